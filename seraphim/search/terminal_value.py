"""What the end of a game is worth: its result, or less the longer the game took. Knows the rules' protocol only."""

import numpy as np

from seraphim.errors import SettingsError
from seraphim.game import Array, Game
from seraphim.game.features import features_of


def check_fast_wins(game: Game, fast_wins: float) -> None:
    """Raise a SettingsError if fast wins are to count more in a game that does not tell how far it has got."""
    if fast_wins and features_of(game).progress is None:
        raise SettingsError(
            f"fast_wins needs a game that offers progress(states), but {game.name} does not: set it to 0"
        )


def worth(game: Game, states: Array, results: Array, fast_wins: float) -> Array:
    """Return what results are worth, float32 [B] in [-1, 1] for player 0: less in games that took long.

    That is r·(1 - f·p), where the progress p is 0 at the earliest end that a game may have and 1 at its latest. With
    f = 0.9, a win of connect four is worth 1 after 7 plies and 0.1 after 42: the 1.18 - 9·plies/350 of DeepFour.

    Args:
        game: the rules.
        states: int64 [B, W], where the games ended.
        results: float32 [B], for player 0; 0 in states where the game goes on.
        fast_wins: f, as in `SearchOptions`.
    """
    progress = features_of(game).progress
    if not fast_wins or progress is None:
        return results
    return (results * (1 - fast_wins * progress(states))).astype(np.float32)
