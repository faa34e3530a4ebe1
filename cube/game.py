"""The 2×2×2 cube in half turns, a puzzle for one player: U, R, and F by 90, 180, or 270 degrees.

Chance scrambles the cube: it draws a number of turns, then the turns, each of another side than the one before. Each
move costs the same, until every side shows a single color.
"""

import re
from typing import Any

import numpy as np

from cube import corners
from cube.corners import PLACES, SIDES, TURNS, tables
from seraphim.errors import GameError
from seraphim.game import CHANCE, Array, Board, Symmetries
from seraphim.jit import kernel

MOST_TURNS = 14  # of a scramble
PERMUTATION, ORIENTATION, TO_COME, LAST, MOVES = range(5)  # words of a state
UNDRAWN, NO_SIDE = -1, -1  # turns to come before their number is drawn; the side of the last turn, if more are to come
_NET = """\
        ULB UBR
        UFL URF
LUB LUF FUL FUR RUF RUB BUR BUL
LDB LDF FDL FDR RDF RDB BDR BDL
        DLF DFR
        DBL DRB"""

# Options that differ from the defaults, by section.
SETTINGS: dict[str, Any] = {
    "network": {"kind": "mlp", "width": 512, "l2": 1e-5},
    "search": {"readouts": 100},
    "self_play_search": {"root": "gumbel"},  # only the scramble is random
    # Short scrambles are what a network that knows nothing can solve: no random moves, and many games.
    "self_play": {
        "concurrent_games": 512,
        "games_per_generation": 4000,
        "readouts_growth_steps": 0,
        "random_plies": 0,
    },
}


class Cube:
    """The cube; the observation has the colors of all stickers but those of DBL, each of one in six."""

    name = "cube"
    num_actions = len(TURNS)
    num_players = 1
    num_chance_outcomes = MOST_TURNS
    observation_shape = (3 * PLACES, len(SIDES))
    state_words = 5
    bank_words = 1
    max_plies = 30  # 15 to 28 of them moves: enough for the farthest positions, and soon over where a network is lost
    points = 50.0  # the moves that cost 1: more than a game has, with those that a network expects in the end
    value_scale = 15 / points  # the farthest positions are 11 moves from the end
    goal = (
        "Turn the top (U), the right (R), or the front (F) clockwise, 2 for twice, ' for counterclockwise, until each "
        "side shows a single color; the fewer moves, the better."
    )

    def __init__(self) -> None:
        shown = np.eye(len(SIDES), dtype=np.uint8)[corners.stickers()]
        self._colors = shown.reshape(PLACES, 3, 3 * len(SIDES))  # by corner and twist

    def initial(self, batch: int) -> Array:
        return np.tile(np.array([0, 0, UNDRAWN, NO_SIDE, 0], np.int64), (batch, 1))

    def step(self, states: Array, actions: Array) -> Array:
        return _step(states, actions, tables().permutations, tables().orientations)

    def legal(self, states: Array) -> Array:
        return np.repeat(((states[:, TO_COME] == 0) & ~_solved(states))[:, None], len(TURNS), axis=1)

    def to_play(self, states: Array) -> Array:
        return np.where(states[:, TO_COME] == 0, 0, CHANCE).astype(np.int8)

    def chances(self, states: Array) -> Array:
        """Return a chance of c/n for each number n, and equal ones for turns of another side that leave it unsolved.

        So that a network which knows nothing meets positions close to the end, from which it can learn.
        """
        to_come = states[:, [TO_COME]]
        after = tables().permutations[states[:, PERMUTATION]] + tables().orientations[states[:, ORIENTATION]]
        possible = np.zeros((len(states), MOST_TURNS), np.bool_)
        possible[:, : len(TURNS)] = np.arange(len(TURNS)) // 3 != states[:, [LAST]]
        possible[:, : len(TURNS)] &= (to_come > 1) | (after > 0)
        weights = np.where(to_come == UNDRAWN, 1 / np.arange(1, MOST_TURNS + 1), possible & (to_come > 0))
        return weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-9)

    def chance_label(self, state: Array, outcome: int) -> str:
        """Return the number of turns, such as n7, or a turn."""
        return f"n{outcome + 1}" if state[TO_COME] == UNDRAWN else TURNS[outcome]

    def outcome(self, states: Array) -> tuple[Array, Array]:
        ended = (states[:, TO_COME] == 0) & _solved(states)
        return ended, np.where(ended[:, None], self.banked(states), np.float32(0))

    def banked(self, states: Array) -> Array:
        return (-states[:, [MOVES]] / self.points).astype(np.float32)

    def score(self, state: Array) -> float:
        """Return the moves made, below 0."""
        return float(-state[MOVES])

    def observe(self, states: Array) -> Array:
        placed, twists = tables().corners[states[:, PERMUTATION]], tables().twists[states[:, ORIENTATION]]
        return self._colors[placed, twists].reshape(-1, *self.observation_shape)

    def symmetries(self) -> Symmetries:
        return corners.symmetries()

    def is_position(self, state: Array) -> bool:
        """Return whether play leads to a state, as far as its numbers tell."""
        permutation, orientation, to_come, last, moves = (int(word) for word in state)
        if not (0 <= permutation < corners.PERMUTATIONS and 0 <= orientation < corners.ORIENTATIONS):
            return False
        is_solved = permutation == orientation == 0
        if to_come == 0:
            return last == NO_SIDE and 0 <= moves <= self.max_plies - 2 and (moves > 0 or not is_solved)
        if last == NO_SIDE:  # no turn was made yet
            return is_solved and moves == 0 and (to_come == UNDRAWN or 0 < to_come <= MOST_TURNS)
        return 0 <= last < len(TURNS) // 3 and moves == 0 and 0 < to_come < MOST_TURNS

    def board(self, state: Array) -> Board:
        """Return the net of the sides."""
        lines = [line[::2].ljust(8) for line in self._net(state).splitlines()]
        cells = np.array([[SIDES.find(side) for side in line] for line in lines], np.int8)  # -1, EMPTY, for a space
        return Board(cells, tuple(SIDES), {}, look="net")

    def _net(self, state: Array) -> str:
        colors = self.observe(state[None])[0].argmax(axis=1).reshape(PLACES, 3)
        return re.sub(r"\w{3}| {3}", lambda name: _color(colors, name[0]), _NET)

    def render(self, state: Array) -> str:
        """Return the sides as a net: up, then left, front, right, and back, then down."""
        net = self._net(state)
        to_come = int(state[TO_COME])
        scramble = "to be scrambled" if to_come == UNDRAWN else f"{to_come} turns to come"
        return f"{net}\n{scramble if to_come else f'moves: {int(state[MOVES])}'}"

    def action_label(self, action: int) -> str:
        return TURNS[action]

    def parse_action(self, text: str) -> int:
        """Return the turn of this name, in lower or upper case."""
        name = text.strip().upper()
        if name not in TURNS:
            raise GameError(f"{text!r} is not a move of the cube: expected {', '.join(TURNS)}")
        return TURNS.index(name)


@kernel
def _step(states: Array, actions: Array, permutations: Array, orientations: Array) -> Array:
    successors = states.copy()
    for row in range(len(states)):
        turn, to_come = actions[row], states[row, TO_COME]
        if to_come == UNDRAWN:
            successors[row, TO_COME] = turn + 1
            continue
        successors[row, PERMUTATION] = permutations[states[row, PERMUTATION], turn]
        successors[row, ORIENTATION] = orientations[states[row, ORIENTATION], turn]
        if to_come > 0:
            successors[row, TO_COME] = to_come - 1
            successors[row, LAST] = turn // 3 if to_come > 1 else NO_SIDE
        else:
            successors[row, MOVES] += 1
    return successors


def _solved(states: Array) -> Array:
    return (states[:, PERMUTATION] == 0) & (states[:, ORIENTATION] == 0)


def _color(colors: Array, name: str) -> str:
    # What a sticker of the net shows; colors int64 [7, 3] are those of all places but DBL's.
    if name.isspace() or set(name) == set(corners.CORNERS[-1]):
        return name[0]
    return SIDES[colors[corners.sticker_place(name)]]


GAME = Cube()
