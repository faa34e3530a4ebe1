"""Hex: compiled rules on sets of bits.

A cell is n·row + column. Its neighbours are those beside it in the row, the two below it (same column, and one to the
left) and the two above it (same column, and one to the right). The first player connects top and bottom, the second
one left and right; in the end one of them does (Gale 1979, "The Game of Hex and the Brouwer Fixed-Point Theorem").
There is no swap after the first move.

A state is the cells of the first player, then those of the second, 63 to a word.
"""

from typing import Any

import numpy as np

from seraphim.errors import GameError
from seraphim.game import EMPTY, Array, Board, Symmetries
from seraphim.jit import kernel

SIZE, SMALLEST, LARGEST = 7, 2, 11
LETTERS = "abcdefghijk"  # the names of the columns
MARKS = ("X", "O")
_BITS = 63  # of a word that are used

# Options that differ from the defaults, by section.
SETTINGS: dict[str, Any] = {
    "network": {"activation": "relu"},
    "search": {"tempering_point": 6},
    "self_play_search": {"readouts": 64},
    "self_play": {"readouts_growth_steps": 0, "random_plies": 8},
    "training": {"learning_rate_decay_steps": 2000, "batch_size": 1024, "max_window": 500_000},
}


# Kernels take the size n of the board. `state` is a row of a batch.


@kernel
def _has_stone(state: Array, player: int, cell: int) -> int:
    return (state[len(state) // 2 * player + cell // _BITS] >> cell % _BITS) & 1


@kernel
def _mover(state: Array) -> int:
    stones = 0
    for word in range(len(state)):
        stones ^= state[word]
    for shift in (32, 16, 8, 4, 2, 1):
        stones ^= stones >> shift
    return stones & 1


@kernel
def _connects(state: Array, player: int, n: int, own: Array, reached: Array) -> bool:
    """Return whether a player connects the two sides; `own` and `reached` are int64 [n] to work on.

    Floods from the player's first side, a row of bits at a time. For the second player, rows are the board's columns:
    exchanging rows and columns keeps neighbours.
    """
    for row in range(n):
        bits = np.int64(0)
        for column in range(n):
            cell = n * row + column if player == 0 else n * column + row
            bits |= _has_stone(state, player, cell) << column
        own[row] = bits
        reached[row] = 0
    reached[0] = own[0]
    changed = True
    while changed:
        changed = False
        for row in range(n):
            bits = reached[row]
            if row > 0:
                bits |= (reached[row - 1] | reached[row - 1] >> 1) & own[row]
            if row + 1 < n:
                bits |= (reached[row + 1] | reached[row + 1] << 1) & own[row]
            before = np.int64(-1)
            while bits != before:
                before = bits
                bits |= (bits << 1 | bits >> 1) & own[row]
            if bits != reached[row]:
                reached[row] = bits
                changed = True
    return reached[n - 1] != 0


@kernel
def _step(states: Array, actions: Array) -> Array:
    successors = states.copy()
    for row in range(len(states)):
        word = states.shape[1] // 2 * _mover(states[row]) + actions[row] // _BITS
        successors[row, word] |= np.int64(1) << np.int64(actions[row] % _BITS)
    return successors


@kernel
def _legal(states: Array, n: int) -> Array:
    legal = np.empty((len(states), n * n), np.bool_)
    own, reached = np.empty(n, np.int64), np.empty(n, np.int64)
    for row in range(len(states)):
        state = states[row]
        ended = _connects(state, 1 - _mover(state), n, own, reached)
        for cell in range(n * n):
            legal[row, cell] = not (ended or _has_stone(state, 0, cell) or _has_stone(state, 1, cell))
    return legal


@kernel
def _to_play(states: Array) -> Array:
    players = np.empty(len(states), np.int8)
    for row in range(len(states)):
        players[row] = _mover(states[row])
    return players


@kernel
def _outcome(states: Array, n: int) -> tuple[Array, Array]:
    # Only the player who moved last can have connected.
    ended = np.empty(len(states), np.bool_)
    results = np.zeros(len(states), np.float32)
    own, reached = np.empty(n, np.int64), np.empty(n, np.int64)
    for row in range(len(states)):
        last = 1 - _mover(states[row])
        ended[row] = _connects(states[row], last, n, own, reached)
        if ended[row]:
            results[row] = 1 - 2 * last
    return ended, results


@kernel
def _observe(states: Array, n: int) -> Array:
    observations = np.empty((len(states), n, n, 3), np.uint8)
    for row in range(len(states)):
        state = states[row]
        mover = _mover(state)
        for cell in range(n * n):
            observations[row, cell // n, cell % n, 0] = _has_stone(state, mover, cell)
            observations[row, cell // n, cell % n, 1] = _has_stone(state, 1 - mover, cell)
            observations[row, cell // n, cell % n, 2] = mover
    return observations


class Hex:
    """Hex; the observation is the mover's stones, the opponent's, and whether the second player moves, as planes.

    Raises:
        GameError: there is no board of this size.
    """

    def __init__(self, size: int = SIZE) -> None:
        if not SMALLEST <= size <= LARGEST:
            raise GameError(f"a board of {size}x{size} is not possible: expected a size from {SMALLEST} to {LARGEST}")
        self.size = size
        self.name = "hex" if size == SIZE else f"hex:{size}"
        self.num_actions = self.max_plies = size * size
        self.observation_shape = (size, size, 3)
        self.state_words = 2 * -(-self.num_actions // _BITS)

    def initial(self, batch: int) -> Array:
        return np.zeros((batch, self.state_words), np.int64)

    def step(self, states: Array, actions: Array) -> Array:
        return _step(states, actions)

    def legal(self, states: Array) -> Array:
        return _legal(states, self.size)

    def to_play(self, states: Array) -> Array:
        return _to_play(states)

    def outcome(self, states: Array) -> tuple[Array, Array]:
        return _outcome(states, self.size)

    def observe(self, states: Array) -> Array:
        return _observe(states, self.size)

    def symmetries(self) -> Symmetries:
        """Return the identity, and the board turned by 180 degrees."""
        cells, planes = np.arange(self.num_actions, dtype=np.int32), np.arange(3, dtype=np.int32)
        turned = 3 * cells[::-1, None] + planes
        return Symmetries(
            np.stack([np.arange(3 * self.num_actions, dtype=np.int32), turned.ravel()]), np.stack([cells, cells[::-1]])
        )

    def _cells(self, state: Array) -> Array:
        cells = np.full(self.num_actions, EMPTY, np.int8)
        for player in (0, 1):
            cells[[_has_stone(state, player, cell) == 1 for cell in range(self.num_actions)]] = player
        return cells.reshape(self.size, self.size)

    def is_position(self, state: Array) -> bool:
        """Return whether play leads to a state."""
        words, half = [int(word) for word in state], self.state_words // 2
        first, second = (
            sum(word << _BITS * place for place, word in enumerate(words[half * player : half * (player + 1)]))
            for player in (0, 1)
        )
        surplus = first.bit_count() - second.bit_count()
        if min(words) < 0 or (first | second) >> self.num_actions or first & second or surplus not in (0, 1):
            return False
        # A game is over with the first connection: some stone of the player who moved last was needed for it.
        own, reached = np.empty(self.size, np.int64), np.empty(self.size, np.int64)
        last = 1 - _mover(state)
        if _connects(state, 1 - last, self.size, own, reached):
            return False
        if not _connects(state, last, self.size, own, reached):
            return True
        for cell in range(self.num_actions):
            if _has_stone(state, last, cell):
                without = state.copy()
                without[half * last + cell // _BITS] ^= 1 << cell % _BITS
                if not _connects(without, last, self.size, own, reached):
                    return True
        return False

    def render(self, state: Array) -> str:
        width = len(str(self.size))
        rows = [
            f"{' ' * row}{row + 1:>{width}} {' '.join('·' if cell == EMPTY else MARKS[cell] for cell in cells)}"
            for row, cells in enumerate(self._cells(state))
        ]
        return "\n".join([" " * (width + 1) + " ".join(LETTERS[: self.size]), *rows])

    def board(self, state: Array) -> Board:
        actions = np.flatnonzero(self.legal(state[None])[0]).tolist()
        return Board(
            self._cells(state),
            MARKS,
            {action: [divmod(action, self.size)] for action in actions},
            row_names=tuple(str(row + 1) for row in range(self.size)),
            column_names=tuple(LETTERS[: self.size]),
            look="hexagons",
        )

    def action_label(self, action: int) -> str:
        row, column = divmod(action, self.size)
        return f"{LETTERS[column]}{row + 1}"

    def parse_action(self, text: str) -> int:
        name = text.strip().lower()
        column, row = LETTERS[: self.size].find(name[:1] or "?"), name[1:]
        if column < 0 or not (row.isdecimal() and len(row) <= 2) or not 1 <= int(row) <= self.size:
            last = self.action_label(self.num_actions - 1)
            raise GameError(f"{text.strip()!r} is not a cell: expected a letter and a number, from a1 to {last}")
        return self.size * (int(row) - 1) + column


GAME = Hex()
