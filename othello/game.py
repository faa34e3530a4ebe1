"""Othello as people see it, and the options that learn it well; the rules themselves are in `othello.rules`."""

from typing import Any

import numpy as np

from othello import rules
from othello.alphabeta import late_results
from othello.bits import CELLS, D4, SIZE
from othello.rules import PLANES
from seraphim.errors import GameError
from seraphim.game import EMPTY, Array, Symmetries
from seraphim.game.grid import LETTERS, Grid, bits_of, move_cells, turned_and_mirrored

MOST_PLIES = 120  # sixty stones are placed, and two passes in a row would end the game
LATE = 8  # empty cells at most, of a position whose result an exact search finds sooner than a network values it

_E4, _D5, _E5 = 1 << 28, 1 << 35, 1 << 36
_FIRST_COLUMN = sum(1 << SIZE * row for row in range(SIZE))
_LAST_COLUMN = _FIRST_COLUMN << SIZE - 1
_START = np.array([_E4 | _D5, _E5], np.int64)

# Options that differ from the defaults, by section.
SETTINGS: dict[str, Any] = {
    "search": {"tempering_point": 16, "dirichlet_alpha": 0.5},
    "self_play": {"random_plies": 12},
}


class Othello(Grid):
    """Othello; see `rules.observe` for the observation."""

    name = "othello"
    num_actions = CELLS + 1
    observation_shape = (SIZE, SIZE, PLANES)
    state_words = 2
    max_plies = MOST_PLIES
    goal = "Enclose your opponent's discs in a line to turn them over: most discs win."
    row_names, column_names, look = tuple("12345678"), tuple(LETTERS[:SIZE]), "stones"

    def initial(self, batch: int) -> Array:
        return np.repeat(_START[None], batch, axis=0)

    def step(self, states: Array, actions: Array) -> Array:
        successors: Array = rules.step(states.view(np.uint64), actions).view(np.int64)
        return successors

    def legal(self, states: Array) -> Array:
        return rules.legal(states.view(np.uint64))

    def to_play(self, states: Array) -> Array:
        return rules.to_play(states.view(np.uint64))

    def outcome(self, states: Array) -> tuple[Array, Array]:
        return rules.outcome(states.view(np.uint64))

    def known_results(self, states: Array) -> tuple[Array, Array]:
        """Return in which states int64 [B, 2] at most LATE cells are empty, bool [B], and their exact results.

        The results are for black under best play, float32 [B], 0 in other states.
        """
        return late_results(states.view(np.uint64), LATE)

    def score(self, state: Array) -> float:
        """Return how many stones more black has."""
        black, white = (self.cells(state) == player for player in (0, 1))
        return float(black.sum() - white.sum())

    def observe(self, states: Array) -> Array:
        return rules.observe(states.view(np.uint64))

    def symmetries(self) -> Symmetries:
        """Return the eight of a square; passing stays passing."""
        return move_cells(turned_and_mirrored(SIZE), PLANES, others=1)

    def is_position(self, state: Array) -> bool:
        """Return whether a state has each stone once, four in the center, and the others in touch with these.

        Play leads to no other states, though not to all of these.
        """
        black, white = (int(word) for word in state.view(np.uint64))
        center = D4 | _E4 | _D5 | _E5
        taken, reached, before = black | white | D4, center, 0
        while reached != before:
            before = reached
            beside = reached | (reached & ~_LAST_COLUMN) << 1 | (reached & ~_FIRST_COLUMN) >> 1
            reached = taken & (beside | beside << SIZE | beside >> SIZE)
        return not black & white & ~D4 and taken & center == center and reached == taken

    def render(self, state: Array) -> str:
        return f"{super().render(state)}\n{self.marks[self.to_play(state[None])[0]]} to move"


GAME = Othello()


def count_empty(states: Array) -> Array:
    """Return the number of empty cells of each position of `states` int64 [B, 2], int64 [B]."""
    taken = states[:, 0] | states[:, 1] | np.int64(D4)  # the owner of d4 is in the first word alone
    return CELLS - np.bitwise_count(taken.view(np.uint64)).astype(np.int64)


def state_from_board(text: str) -> Array:
    """Return the state int64 [2] that a drawing shows, written as `GAME.render` does; `.` is an empty cell as well.

    Without a last line `X to move` or `O to move`, X moves if the number of stones is even.

    Raises:
        GameError: the drawing does not have eight rows of eight cells, or d4 is empty.
    """
    head, _, last = text.strip().rpartition("\n")
    words = last.lower().split()
    told = words[1:] == ["to", "move"] and words[0] in ("x", "o")
    cells = GAME.read_cells(head if told else text).ravel()
    if cells[D4.bit_length() - 1] == EMPTY:
        raise GameError("the cell d4 is empty: the game begins with a stone there, and none is ever removed")
    mover = GAME.marks.index(words[0].upper()) if told else int((cells != EMPTY).sum() % 2)
    black, white = (bits_of(cells, player) for player in (0, 1))
    return np.array([black, white & ~D4 | D4 * mover], np.uint64).view(np.int64)
