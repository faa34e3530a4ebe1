"""Tic-tac-toe for three on 3×4 cells, and the options that learn it well; the rules are in `threes.rules`.

Best play is a draw. In one of 40 positions, somebody with several best moves decides who else gets what; on 3×3 cells
that never happens.
"""

from typing import Any

import numpy as np

from seraphim.errors import GameError
from seraphim.game import Array, Board, Symmetries
from seraphim.game.grid import LETTERS, Grid, bits_of, move_cells, turned_rectangle
from threes import rules
from threes.rules import PLAYERS

IN_A_ROW = 3

# Options that differ from the defaults, by section.
SETTINGS: dict[str, Any] = {
    "network": {"kind": "mlp", "width": 256, "activation": "relu", "l2": 1e-5},
    "search": {"readouts": 100, "tempering_point": 12},
    # Random moves at the beginning lead to positions that good play avoids.
    "self_play": {
        "concurrent_games": 512,
        "games_per_generation": 2000,
        "readouts_growth_steps": 0,
        "random_plies": 10,
    },
    "training": {"batch_size": 1024, "samples_per_position": 8.0, "max_window": 300_000},
}


class Threes(Grid):
    """Tic-tac-toe for three; the observation has the stones of the mover, of the next player and of the one after."""

    num_players = PLAYERS
    num_actions: int
    observation_shape: tuple[int, ...]
    state_words = PLAYERS
    max_plies: int
    goal = "Get three of your marks in a row before the two others do: each plays for themselves."
    marks = ("X", "O", "Z")  # of players 0, 1 and 2

    def __init__(self, rows: int = 3, columns: int = 4) -> None:
        self.rows, self.columns = rows, columns
        self.name = "threes" if (rows, columns) == (3, 4) else f"threes on {rows}×{columns} cells"
        self.num_actions = self.max_plies = rows * columns
        self.observation_shape = (rows, columns, PLAYERS)
        self.row_names, self.column_names = tuple("123456789"[:rows]), tuple(LETTERS[:columns])
        self.lines = np.array(_lines(rows, columns), np.int64)

    def initial(self, batch: int) -> Array:
        return np.zeros((batch, self.state_words), np.int64)

    def step(self, states: Array, actions: Array) -> Array:
        return rules.step(states, actions, self.num_actions)

    def legal(self, states: Array) -> Array:
        return rules.legal(states, self.lines, self.num_actions)

    def to_play(self, states: Array) -> Array:
        return rules.to_play(states, self.num_actions)

    def outcome(self, states: Array) -> tuple[Array, Array]:
        return rules.outcome(states, self.lines, self.num_actions)

    def observe(self, states: Array) -> Array:
        return rules.observe(states, self.rows, self.columns)

    def symmetries(self) -> Symmetries:
        """Return those of the rectangle, or of the square."""
        return move_cells(turned_rectangle(self.rows, self.columns), planes=PLAYERS)

    def is_position(self, state: Array) -> bool:
        """Return whether play leads to a state, as far as the numbers of stones and the lines tell."""
        stones = [int(word) for word in state]
        if not 0 <= sum(stones) == stones[0] | stones[1] | stones[2] < 1 << self.num_actions or min(stones) < 0:
            return False
        counts = [each.bit_count() for each in stones]
        plies = sum(counts)
        if not _in_turn(counts):
            return False
        won = {player for player in range(PLAYERS) if self._full_lines(stones[player])}
        return won <= {(plies - 1) % PLAYERS}

    def _full_lines(self, stones: int) -> list[int]:
        return [line for line in self.lines.tolist() if stones & line == line]

    def board(self, state: Array) -> Board:
        full = [line for stones in state.tolist() for line in self._full_lines(stones)]
        cells = [
            divmod(cell, self.columns) for cell in range(self.num_actions) if any(line >> cell & 1 for line in full)
        ]
        return super().board(state)._replace(line=tuple(cells))


def _lines(rows: int, columns: int) -> list[int]:
    # Bit sets of cells: three in a row, down, and both ways across.
    lines = []
    for row in range(rows):
        for column in range(columns):
            for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
                cells = [(row + step * down, column + step * right) for step in range(IN_A_ROW)]
                if all(r < rows and 0 <= c < columns for r, c in cells):
                    lines.append(sum(1 << r * columns + c for r, c in cells))
    return lines


GAME = Threes()


def _in_turn(counts: list[int]) -> bool:
    # Whether players who take turns can have placed these numbers of stones.
    return counts == [(sum(counts) + PLAYERS - 1 - player) // PLAYERS for player in range(PLAYERS)]


def state_from_board(text: str) -> Array:
    """Return the state int64 [3] that a drawing shows, written as `GAME.render` does; `.` is an empty cell as well.

    Raises:
        GameError: the drawing does not have three rows of four cells, or play cannot lead to the position.
    """
    cells = GAME.read_cells(text)
    state = np.array([bits_of(cells, player) for player in range(PLAYERS)], np.int64)
    if not _in_turn([int((cells == player).sum()) for player in range(PLAYERS)]):
        raise GameError("these numbers of marks cannot come about: X, O and Z move in turn, and X begins")
    if not GAME.is_position(state):
        raise GameError("three in a row of a player who did not move last: the game was over before")
    return state
