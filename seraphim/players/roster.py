"""Players by name.

A player's name is `random`, `greedy` (in games for one player), `minimax:DEPTH`, `mcts:READOUTS`, `solver`,
`solver:SECONDS` (per position), `proof:FILE`, which plays the moves of a proof and knows only the positions that these
lead to, `gtp:COMMAND` or `uci:COMMAND`, an external engine that the command starts (`uci:COMMAND go depth 5`: with this
limit), `gnubg:PLIES`, or a model's: `NAME` is its champion, `NAME/SNAPSHOT` one of its snapshots, `NAME/all` all of
them; with `:raw` it plays without search. `./FOLDER` or `/FOLDER` is a snapshot anywhere, which plays with the default
settings of the game.
"""

import contextlib
import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from seraphim.errors import ModelError, SettingsError, shown, version
from seraphim.game import AnyGame, Game, is_same, load_game, name_of
from seraphim.game.solved import load_perfect_actions
from seraphim.inference import Runtime, SavedNetwork
from seraphim.machine import count_cores
from seraphim.players import choose
from seraphim.players.choose import Choose
from seraphim.players.external.load import load_engine
from seraphim.players.model import Model
from seraphim.proof.known_moves import proof_player
from seraphim.settings import Settings, default_settings
from seraphim.storage.atomic import check_path
from seraphim.storage.models import ModelFolder, Snapshot
from seraphim.storage.shipped import find_model, own_model

ALL, CHAMPION = "all", "champion"
_MOST_DIGITS = 9  # of a depth, or a number of readouts or seconds
_RAW = ":raw"


class _BuiltIn(NamedTuple):
    # A kind of players that are no models; its name and a colon precede the text.
    forms: str
    takes: Callable[[str], bool]
    make: Callable[["Roster", AnyGame, str, str], "Entrant"]  # of the game, the player's name, and the text in it


@dataclass(frozen=True)
class Entrant:
    """A player by name, not loaded yet."""

    name: str
    load: Callable[[], Choose] = dataclasses.field(compare=False)
    with_seed: Callable[[int], Choose] | None = dataclasses.field(default=None, compare=False)
    """Returns the same player with another seed; None if the player has no seed."""


def has_network(name: str) -> bool:
    """Return whether a player's name stands for a model."""
    return not _is_built_in(name)


def is_searching(name: str) -> bool:
    """Return whether a player's name stands for a model that searches."""
    return has_network(name) and not name.endswith(_RAW)


def all_snapshots(name: str) -> str:
    """Return the name of all snapshots of a model for that of its champion; other names stay as they are."""
    if "/" in name or not _is_model(name):
        return name
    model, colon, suffix = name.partition(":")
    return f"{model}/{ALL}{colon}{suffix}"


def _is_built_in(name: str) -> bool:
    return name.partition(":")[0] in _BUILT_IN and name != "proof"  # which may be a model's


def _is_model(name: str) -> bool:
    return not _is_built_in(name) and not name.startswith((".", "/", "~"))


def _model_of(name: str) -> str:
    return name.partition(":")[0].partition("/")[0]


def _is_positive(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS and int(text) > 0


@dataclass(frozen=True)
class Roster:
    """Finds players by their names."""

    root: Path  # folder that holds `models/`
    game: AnyGame | None  # None takes that of the models
    games: int = 100  # of a match: half of them, two players apart, are evaluated together
    readouts: int | None = None  # of a model's search; None takes each model's own
    seed: int = 0  # of players that draw among equal actions
    runtime: Runtime = "auto"
    trust: bool = False  # whether models outside `models/` are loaded; see also `load_inference`

    def game_of(self, names: Iterable[str]) -> AnyGame:
        """Return the game that these players play.

        Raises:
            SettingsError: they play different games, or none of them is a model and no game was given.
            ModelError: there is no such model.
        """
        games: dict[str, AnyGame] = {"--game": self.game} if self.game else {}
        games |= {name: self._folder(name).settings().game for name in names if _is_model(name)}
        if not games:
            raise SettingsError("which game? No model is among the players: give --game as well")
        (one, game), *others = games.items()
        for other, another in others:
            if not is_same(another, game):
                played = f"{one} is for {name_of(game)} and {other} for {name_of(another)}"
                raise SettingsError(f"players must share a game, but {played}")
        return game

    def entrants(self, names: Sequence[str]) -> list[Entrant]:
        """Return the players of these names, each once.

        Raises:
            SettingsError: a name is not a player's, or see `game_of`.
            ModelError: there is no such model or snapshot.
            GameError: there is no such game, or it has no solver.
        """
        module = self.game_of(names)
        game = load_game(module)
        found: dict[str, Entrant] = {}
        for name in names:
            if _is_built_in(name):
                entrants = [self._built_in(module, name)]
            else:
                entrants = self._of_model(game, name) if _is_model(name) else [self._of_path(module, game, name)]
            for entrant in entrants:
                found.setdefault(entrant.name, entrant)
        return list(found.values())

    def entrant(self, name: str) -> Entrant:
        """Return the player of a name; errors as `entrants`, and a SettingsError if it means several choose."""
        found, *others = self.entrants([name])
        if others:
            raise SettingsError(f"{name!r} is {1 + len(others)} players: name one of them, such as {found.name}")
        return found

    def fingerprint(self, names: Iterable[str]) -> str:
        """Return a hash of all that decides how the models among these players play.

        That is their search options, the runtime as it was asked for, and Seraphim's version.

        Raises:
            ModelError: there is no such model.
        """
        facts = [version(), self.runtime]
        for model in sorted({_model_of(name) for name in names if _is_model(name)}):
            options = self._folder(model).settings().search
            readouts = options.readouts if self.readouts is None else self.readouts
            facts.append(f"{model}: {dataclasses.replace(options, readouts=max(1, readouts))}")
        return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:8]

    def folder_of(self, names: Iterable[str]) -> ModelFolder:
        """Return the folder of the first model among these players, to write it.

        Raises:
            SettingsError: none of them is a model.
            ModelError: there is no such model below `root`.
        """
        for name in names:
            if _is_model(name):
                return own_model(self.root, _model_of(name), self.trust)
        raise SettingsError("a standing tournament ranks the snapshots of a model: name one")

    def player_of(self, model: Model, readouts: int | None) -> Choose:
        """Return the player of a model; one that values whole turns, which takes longest by far, on all cores."""
        threads = count_cores() if model.settings.search.by_turns else 1
        return model.player(readouts, model.inferences(1 + self.games // 2, threads))

    def _folder(self, name: str) -> ModelFolder:
        try:
            folder = find_model(self.root, _model_of(name), self.trust)
        except SettingsError as error:
            raise SettingsError(f"{name!r} is not a player: {_EXPECTED}") from error
        if folder.is_new() and not folder.snapshots():
            raise ModelError(f"{name!r} is not a player: {folder.path} does not exist; {_EXPECTED}")
        return folder

    def _built_in(self, module: AnyGame, name: str) -> Entrant:
        kind, _, text = name.partition(":")
        if not _BUILT_IN[kind].takes(text):
            raise SettingsError(f"{name!r} is not a player: {_EXPECTED}")
        return _BUILT_IN[kind].make(self, module, name, text)

    def _seeded(self, name: str, player: Callable[[int], Choose]) -> Entrant:
        return Entrant(name, lambda: player(self.seed), player)

    def _of_model(self, game: Game, name: str) -> list[Entrant]:
        path = name.removesuffix(_RAW)
        if ":" in path:
            path = path.partition(":")[0]
            raise SettingsError(f"{name!r} is not a player: expected {path}, or {path}{_RAW} without search")
        folder, wanted, suffix = self._folder(name), path.partition("/")[2], name.removeprefix(path)
        if not wanted:
            return [self._entrant(game, folder.settings, folder.champion(), name)]
        if wanted == ALL:
            snapshots = folder.snapshots()
        else:
            snapshots = [folder.champion() if wanted == CHAMPION else folder.snapshot(wanted)]
        return [self._entrant(game, folder.settings, each, f"{folder.name}/{each.name}{suffix}") for each in snapshots]

    def _of_path(self, module: AnyGame, game: Game, name: str) -> Entrant:
        path = Path(name.removesuffix(_RAW))
        with contextlib.suppress(RuntimeError):  # no such user
            path = path.expanduser()
        check_path(player=path)
        if not path.is_dir():
            raise SettingsError(f"{shown(name)} is not a player: {_EXPECTED}, or the path of a snapshot")
        # The model's name does not matter: the folder only checks whether the path may be loaded.
        snapshot = ModelFolder(self.root, "_", self.trust).external_snapshot(path)
        return self._entrant(game, lambda: default_settings(module), snapshot, name)

    def _entrant(self, game: Game, settings: Callable[[], Settings], snapshot: Snapshot, name: str) -> Entrant:
        def load() -> Choose:
            model = Model(game, SavedNetwork(snapshot.path, self.runtime, self.trust), settings=settings())
            return self.player_of(model, 0 if name.endswith(_RAW) else self.readouts)

        return Entrant(name, load)


def load_players(players: Sequence[str | Model | Choose], roster: Roster) -> tuple[Game, list[Choose]]:
    """Return the rules that some players play by, and the players: given by name, as models, or themselves.

    Raises:
        SettingsError, ModelError, GameError: as `Roster.entrant`.
    """
    models = [each for each in players if isinstance(each, Model)]
    given = models[0].origin if roster.game is None and models else roster.game
    played = dataclasses.replace(roster, game=given).game_of([each for each in players if isinstance(each, str)])
    for model in models:
        if not is_same(model.origin, played):
            raise SettingsError(f"players must share a game, but {model!r} does not play {name_of(played)}")
    return load_game(played), [_player(each, dataclasses.replace(roster, game=played)) for each in players]


def _player(player: str | Model | Choose, roster: Roster) -> Choose:
    if isinstance(player, Model):
        return roster.player_of(player, roster.readouts)
    return roster.entrant(player).load() if isinstance(player, str) else player


def _random(roster: Roster, module: AnyGame, name: str, _text: str) -> Entrant:
    return roster._seeded(name, lambda seed: choose.random_player(load_game(module), seed))


def _greedy(roster: Roster, module: AnyGame, name: str, _text: str) -> Entrant:
    return roster._seeded(name, lambda seed: choose.greedy_player(load_game(module), seed))


def _minimax(roster: Roster, module: AnyGame, name: str, text: str) -> Entrant:
    return roster._seeded(name, lambda seed: choose.minimax_player(load_game(module), int(text), seed))


def _mcts(_roster: Roster, module: AnyGame, name: str, text: str) -> Entrant:
    return Entrant(name, lambda: choose.mcts_player(load_game(module), int(text)))


def _solver(roster: Roster, module: AnyGame, name: str, text: str) -> Entrant:
    perfect_actions, seconds = load_perfect_actions(module), float(text) if text else None
    return roster._seeded(name, lambda seed: choose.solver_player(load_game(module), perfect_actions, seed, seconds))


def _proof(_roster: Roster, module: AnyGame, name: str, text: str) -> Entrant:
    check_path(proof=Path(text))
    return Entrant(name, lambda: proof_player(module, Path(text)))


def _engine(_roster: Roster, module: AnyGame, name: str, _text: str) -> Entrant:
    return Entrant(name, lambda: load_engine(load_game(module), name))


_BUILT_IN = {
    "random": _BuiltIn("random", lambda text: not text, _random),
    "greedy": _BuiltIn("greedy", lambda text: not text, _greedy),
    "minimax": _BuiltIn("minimax:DEPTH", _is_positive, _minimax),
    "mcts": _BuiltIn("mcts:READOUTS", _is_positive, _mcts),
    "solver": _BuiltIn(
        "solver, solver:SECONDS", lambda text: not text or _is_positive(text.replace(".", "", 1)), _solver
    ),
    "proof": _BuiltIn("proof:FILE", bool, _proof),
    "gnubg": _BuiltIn("gnubg:PLIES", lambda _: True, _engine),
    "gtp": _BuiltIn("gtp:COMMAND", lambda _: True, _engine),
    "uci": _BuiltIn("uci:COMMAND", lambda _: True, _engine),
}
_FORMS = ", ".join(kind.forms for kind in _BUILT_IN.values())
_EXPECTED = f"expected {_FORMS}, or a model: NAME, NAME/SNAPSHOT or NAME/all"
