"""External engines as players, by name."""

from seraphim.errors import SettingsError
from seraphim.game import Game
from seraphim.players.external.gnubg import gnubg_player
from seraphim.players.external.gtp import gtp_player
from seraphim.players.external.player import EnginePlayer
from seraphim.players.external.uci import uci_player

_PLAYERS = {"gnubg": gnubg_player, "gtp": gtp_player, "uci": uci_player}


def load_engine(game: Game, name: str) -> EnginePlayer:
    """Return the player `gnubg:PLIES`, `gtp:COMMAND` or `uci:COMMAND`.

    Raises:
        SettingsError: the name is no such name.
        NotInstalledError: there is no such program.
        PlayerError: it does not play this game.
        GameError: the program does not speak the protocol.
    """
    protocol, _, command = name.partition(":")
    if protocol not in _PLAYERS or not command:
        raise SettingsError(f"{name!r} is not an engine: expected gnubg:PLIES, gtp:COMMAND or uci:COMMAND")
    return _PLAYERS[protocol](game, command)
