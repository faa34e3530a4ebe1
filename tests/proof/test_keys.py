"""Keys tell positions apart, and do not tell symmetric ones apart."""

import numpy as np
import pytest
from games import NIM

from connectfour.game import ConnectFour
from seraphim.game import Array, Game, PlainRules
from seraphim.game.exhaustive import solve
from seraphim.proof.keys import Keys
from tictactoe.game import GAME as TICTACTOE

pytestmark = pytest.mark.kernels


class Histories(PlainRules):
    """Positions that begin with the number of plies, and then hold the moves, a byte for each; nobody wins."""

    def __init__(self) -> None:
        super().__init__(NIM)
        self.state_words = 2

    def to_play(self, states: Array) -> Array:
        return (states[:, 0] % 2).astype(np.int8)


def histories(plies: int) -> Array:
    rows = [(0, 0)]
    for ply in range(plies):
        rows += [(ply + 1, moves | move << 8 * ply) for count, moves in rows if count == ply for move in range(5)]
    return np.array(rows)


def test_positions_without_symmetries_have_keys_of_their_own() -> None:
    states = histories(4)
    keys = Keys(Histories()).of(states)
    assert len(np.unique(keys, axis=0)) == len(states) == 1 + 5 + 25 + 125 + 625
    assert len(np.unique(keys[:, 0])) == len(states)


@pytest.mark.parametrize("game", [TICTACTOE, ConnectFour(4, 4)], ids=lambda game: game.name)
def test_symmetric_positions_share_a_key(game: Game) -> None:
    states = solve(game).states[:20_000]
    seen = game.observe(states).reshape(len(states), -1)
    classes = np.stack([seen[:, cells] for cells in game.symmetries().observations])
    players = game.to_play(states).astype(np.uint8)
    least = np.array(
        [
            min(bytes([player]) + turned.tobytes() for turned in row)
            for player, row in zip(players, classes.swapaxes(0, 1), strict=True)
        ]
    )
    keys = Keys(game).of(states)
    _, expected = np.unique(least, return_inverse=True)
    _, found = np.unique(keys, axis=0, return_inverse=True)
    pairs = np.unique(np.stack([expected.ravel(), found.ravel()]), axis=1)
    assert pairs.shape[1] == expected.max() + 1 == found.max() + 1
