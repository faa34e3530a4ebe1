"""2048 as people see it, and the options that learn it well; the rules themselves are in `twenty48.rules`.

(Cirulli, "2048", 2014.) The score is what merges make: a new tile of 8 scores 8.
"""

from typing import Any

import numpy as np

from seraphim.errors import GameError
from seraphim.game import EMPTY, Array, Board, Symmetries
from seraphim.game.grid import LETTERS, move_cells, turned_rectangle
from twenty48 import rules
from twenty48.rules import MOST, tile

ACTIONS = ("up", "right", "down", "left")
SMALLEST, LARGEST, MOST_CELLS = 2, 4, 16

# Options that differ from the defaults, by section.
SETTINGS: dict[str, Any] = {
    "network": {"kind": "mlp", "width": 256, "l2": 1e-5},
    "search": {"readouts": 100},
    "self_play": {"readouts_growth_steps": 0, "games_per_generation": 500},
    # Scores differ much by chance: what the search expects says more than how a game ended.
    "training": {"batch_size": 1024, "root_value_share": 0.9, "max_window": 300_000},
}


class Twenty48:
    """2048; the observation has a plane for each power of two, and one for the empty cells."""

    num_actions = len(ACTIONS)
    num_players = 1
    observation_shape: tuple[int, ...]
    state_words = 3
    bank_words = 1
    value_scale = 0.5
    goal = "Slide the tiles so that equal ones merge; each merge scores the tile that it makes."

    def __init__(self, rows: int = 4, columns: int = 4) -> None:
        if not (SMALLEST <= rows <= LARGEST and SMALLEST <= columns <= LARGEST):
            raise GameError(
                f"a board of {rows}x{columns} is not possible: expected {SMALLEST} to {LARGEST} rows and columns"
            )
        self.rows, self.columns, self.cells = rows, columns, rows * columns
        self.name = "twenty48" if (rows, columns) == (4, 4) else f"twenty48:{rows}x{columns}"
        self.num_chance_outcomes = 2 * self.cells
        self.observation_shape = (rows, columns, MOST + 1)
        # On a full board of 4, 8, 16, … nothing merges any more: no more can be scored, and no more tiles added.
        powers = np.minimum(np.arange(2, self.cells + 2), MOST)
        self.points = float(((powers - 1) << powers).sum())
        # Best play expects about a third of the most points there are. On 4x4 nothing that learns in hours comes close,
        # and values that are all near 0 are not learned: there, a value of 1 is 88,000 points (see docs/results.md).
        if self.cells == MOST_CELLS:
            self.value_scale = 0.05
        self.max_plies = int(min((1 << powers).sum() + 2, 50_000))

    def initial(self, batch: int) -> Array:
        return np.tile(np.array([0, 2, 0], np.int64), (batch, 1))

    def step(self, states: Array, actions: Array) -> Array:
        return rules.step(states, actions, self.rows, self.columns)

    def legal(self, states: Array) -> Array:
        return rules.legal(states, self.rows, self.columns)

    def to_play(self, states: Array) -> Array:
        return rules.to_play(states)

    def chances(self, states: Array) -> Array:
        return rules.chances(states, self.cells)

    def chance_label(self, _state: Array, outcome: int) -> str:
        """Return the cell and the tile, such as b1=2; rows from the top."""
        cell = outcome // 2
        return f"{LETTERS[cell % self.columns]}{cell // self.columns + 1}={2 << outcome % 2}"

    def outcome(self, states: Array) -> tuple[Array, Array]:
        return rules.outcome(states, self.rows, self.columns, self.points)

    def banked(self, states: Array) -> Array:
        return rules.banked(states, self.points)

    def score(self, state: Array) -> float:
        """Return the score."""
        return float(state[2])

    def observe(self, states: Array) -> Array:
        return rules.observe(states, self.rows, self.columns)

    def symmetries(self) -> Symmetries:
        """Return those of the rectangle, or of the square."""
        turned = self.cell_symmetries()
        return Symmetries(move_cells(turned, planes=MOST + 1).observations, _moves(turned, self.columns))

    def cell_symmetries(self) -> Array:
        """Return the cell that comes to each cell, int32 [S, C]."""
        return turned_rectangle(self.rows, self.columns)

    def board(self, state: Array) -> Board:
        """Return the tiles, and where chance moves the cell of each outcome."""
        powers = np.array([tile(state[0], cell) for cell in range(self.cells)]).reshape(self.rows, self.columns)
        marks = tuple(str(2 << power) for power in range(MOST))
        outcomes = np.flatnonzero(self.chances(state[None])[0]).tolist()
        targets = {outcome: [divmod(outcome // 2, self.columns)] for outcome in outcomes}
        cells = np.where(powers > 0, powers - 1, EMPTY).astype(np.int8)
        rows, columns = tuple("1234"[: self.rows]), tuple(LETTERS[: self.columns])
        return Board(cells, marks, targets, (), rows, columns, "tiles")

    def render(self, state: Array) -> str:
        powers = [int(tile(state[0], cell)) for cell in range(self.cells)]
        width = max(len(str(1 << power)) for power in powers)
        lines = [" ".join(f"{name:>{width}}" for name in ["", *LETTERS[: self.columns]])]
        for row in range(self.rows):
            cells = powers[row * self.columns : (row + 1) * self.columns]
            tiles = (str(1 << power) if power else "·" for power in cells)
            lines.append(" ".join(f"{each:>{width}}" for each in [str(row + 1), *tiles]))
        return "\n".join([*lines, f"score {int(state[2]):,}"])

    def action_label(self, action: int) -> str:
        return ACTIONS[action]

    def parse_action(self, text: str) -> int:
        """Return the action of this name, in lower or upper case."""
        name = text.strip().lower()
        if name not in ACTIONS:
            raise GameError(f"{text!r} is not a move of {self.name}: expected {', '.join(ACTIONS)}")
        return ACTIONS.index(name)


def _moves(turned: Array, columns: int) -> Array:
    # What each symmetry does to the moves, int32 [S, 4]: the move that comes to each place, by where a tile slides.
    directions = ((-1, 0), (0, 1), (1, 0), (0, -1))  # of the tiles, in rows and columns
    found = np.empty((len(turned), len(ACTIONS)), np.int32)
    for symmetry, cells in enumerate(turned):
        places = np.argsort(cells)  # where each cell comes to
        origin, right, below = (np.array(divmod(int(places[cell]), columns)) for cell in (0, 1, columns))
        for action, (down, across) in enumerate(directions):
            image = tuple(int(each) for each in down * (below - origin) + across * (right - origin))
            found[symmetry, directions.index(image)] = action
    return found


GAME = Twenty48()
