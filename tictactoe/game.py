"""Tic-tac-toe as people see it, and the options that learn it well; the rules themselves are in `tictactoe.rules`.

A cell is named by column (a-c) and row (1-3, from the top): `a1` is cell 0, `b1` cell 1, `b2` cell 4.
"""

from typing import Any

import numpy as np

from seraphim.errors import GameError
from seraphim.game import Array, Board, Symmetries
from seraphim.game.grid import Grid, bits_of, move_cells, turned_and_mirrored
from tictactoe import rules
from tictactoe.rules import CELLS, FULL, LINES, has_line

FEWEST_PLIES = 5  # of a game that is won

# Options that differ from the defaults, by section. A game this small should be known completely, also where good play
# never goes: games begin with up to six random moves, and moves are sampled to the end.
SETTINGS: dict[str, Any] = {
    "network": {"kind": "mlp", "width": 256, "activation": "relu", "l2": 1e-5},
    # Self-play makes the searches of play: in so small a game, 100 readouts by PUCT are quick, and soon exact.
    "search": {"readouts": 100, "tempering_point": 9, "dirichlet_alpha": 1.0, "solver": False},
    "self_play_search": {"root": "puct", "readouts": 100},
    "self_play": {
        "concurrent_games": 512,
        "games_per_generation": 2000,
        "readouts_growth_steps": 0,
        "random_plies": 6,
    },
    "training": {
        "learning_rate": 0.02,
        "learning_rate_decay_steps": 0,
        "samples_per_position": 16.0,
        "batch_size": 1024,
        "root_value_share": 0.0,
    },
}


class TicTacToe(Grid):
    """Tic-tac-toe; the observation is the mover's stones, then the opponent's, as two planes of the 3×3 board."""

    name = "tictactoe"
    num_actions = CELLS
    observation_shape = (3, 3, 2)
    state_words = 2
    max_plies = CELLS
    goal = "Get three of your marks in a row."
    row_names, column_names = tuple("123"), tuple("abc")

    step, legal, to_play = staticmethod(rules.step), staticmethod(rules.legal), staticmethod(rules.to_play)
    outcome, observe = staticmethod(rules.outcome), staticmethod(rules.observe)

    def initial(self, batch: int) -> Array:
        return np.zeros((batch, 2), np.int64)

    def progress(self, states: Array) -> Array:
        """Return how far games have got, float64 [B]: 0 at 5 plies, the fewest that end a game, and 1 at 9."""
        plies = np.bitwise_count(states).sum(axis=1, dtype=np.int64)
        return (plies - FEWEST_PLIES) / (self.max_plies - FEWEST_PLIES)

    def symmetries(self) -> Symmetries:
        """Return the eight symmetries of the square: four rotations, and their mirror images."""
        return move_cells(turned_and_mirrored(3), planes=2)

    def is_position(self, state: Array) -> bool:
        """Return whether play leads to a state."""
        crosses, noughts = (int(word) for word in state)
        if crosses & noughts or not 0 <= crosses | noughts <= FULL:
            return False
        surplus = crosses.bit_count() - noughts.bit_count()
        before = noughts if surplus else crosses  # of the player who did not move last
        return surplus in (0, 1) and not has_line(before)

    def board(self, state: Array) -> Board:
        full = [line for line in LINES.tolist() for stones in state.tolist() if stones & line == line]
        cells = [divmod(cell, 3) for cell in range(CELLS) if any(line >> cell & 1 for line in full)]
        return super().board(state)._replace(line=tuple(cells))


GAME = TicTacToe()


def state_from_board(text: str) -> Array:
    """Return the state int64 [2] that a drawing shows, written as `GAME.render` does; `.` is an empty cell as well.

    Raises:
        GameError: the drawing does not have three rows of three cells, or play cannot lead to the position.
    """
    cells = GAME.read_stones(text)
    state = np.array([bits_of(cells, player) for player in (0, 1)], np.int64)
    if not GAME.is_position(state):
        raise GameError("three in a row of the player who did not move last: the game was over before")
    return state
