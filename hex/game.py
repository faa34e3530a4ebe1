"""Hex as people see it, and the options that learn it well; the rules themselves are in `hex.rules`."""

from typing import Any

import numpy as np

from hex import rules
from hex.rules import BITS, connects, has_stone, mover
from seraphim.errors import GameError
from seraphim.game import Array, Board, Symmetries
from seraphim.game.grid import LETTERS, Grid, bits_of, move_cells

SIZE, SMALLEST, LARGEST = 7, 2, 11
_NEIGHBORS = (0, 1), (0, -1), (1, 0), (-1, 0), (1, -1), (-1, 1)  # rows down, columns to the right

# Options that differ from the defaults, by section.
SETTINGS: dict[str, Any] = {
    "network": {"activation": "relu"},
    "search": {"tempering_point": 6},
    "self_play_search": {"readouts": 64},
    "self_play": {"readouts_growth_steps": 0, "random_plies": 8},
    "training": {"learning_rate_decay_steps": 2000, "batch_size": 1024, "max_window": 500_000},
}


class Hex(Grid):
    """Hex; the observation is the mover's stones, the opponent's, and whether the second player moves, as planes.

    With `swap`, the action after those of the cells swaps pieces; the planes tell when, as the only stone is then the
    opponent's, and the second player moves.

    Raises:
        GameError: there is no board of this size.
    """

    goal = "Connect the two sides of the board in your color."
    look = "hexagons"
    other = "swap-pieces"

    def __init__(self, size: int = SIZE, swap: bool = False) -> None:
        if not SMALLEST <= size <= LARGEST:
            raise GameError(f"a board of {size}x{size} is not possible: expected a size from {SMALLEST} to {LARGEST}")
        self.size, self.swap, self._num_cells = size, swap, size * size
        self.name = f"hex:{size},swap" if swap else "hex" if size == SIZE else f"hex:{size}"
        self.num_actions = self.max_plies = self._num_cells + swap
        self.observation_shape = (size, size, 3)
        self.row_names = tuple(str(row + 1) for row in range(size))
        self.column_names = tuple(LETTERS[:size])
        self.state_words = 2 * -(-self._num_cells // BITS)

    def initial(self, batch: int) -> Array:
        return np.zeros((batch, self.state_words), np.int64)

    def step(self, states: Array, actions: Array) -> Array:
        return rules.step(states, actions, self.size)

    def legal(self, states: Array) -> Array:
        return rules.legal(states, self.size, self.swap)

    def to_play(self, states: Array) -> Array:
        return rules.to_play(states)

    def outcome(self, states: Array) -> tuple[Array, Array]:
        return rules.outcome(states, self.size)

    def observe(self, states: Array) -> Array:
        return rules.observe(states, self.size)

    def symmetries(self) -> Symmetries:
        """Return the identity, and the board turned by 180 degrees; swapping stays swapping."""
        cells = np.arange(self._num_cells, dtype=np.int32)
        return move_cells(np.stack([cells, cells[::-1]]), planes=3, others=int(self.swap))

    def render(self, state: Array) -> str:
        """Return the cells as text, and with `swap` who moves, which the number of stones does not tell."""
        mover = f"\n{self.marks[self.to_play(state[None])[0]]} to move" if self.swap else ""
        return super().render(state) + mover

    def read_board(self, text: str) -> Array:
        """Return the state int64 [W] that a drawing shows, written as `render` does; `.` is an empty cell as well.

        With `swap` and without a last line `X to move` or `O to move`, O moves if there are more X.

        Raises:
            GameError: the drawing is not of this board, or play cannot lead to the position.
        """
        cells, swapped = self._read_swapped(text) if self.swap else (self.read_stones(text), False)
        bits = [bits_of(cells, 0) | swapped << self._num_cells, bits_of(cells, 1)]
        words = range(self.state_words // 2)
        state = np.array([each >> BITS * word & (1 << BITS) - 1 for each in bits for word in words], np.int64)
        if not self.is_position(state):
            raise GameError("the sides were connected before the last stone: the game was over before")
        return state

    def _read_swapped(self, text: str) -> tuple[Array, bool]:
        # The cells of a drawing, and whether pieces were swapped.
        head, _, last = text.strip().rpartition("\n")
        told = last.strip().lower() in ("x to move", "o to move")
        cells = self.read_cells(head if told else text)
        first, second = (int((cells == player).sum()) for player in (0, 1))
        player = self.marks.index(last.strip()[0].upper()) if told else int(first > second)
        swapped = second > 0 and first - second == player - 1
        if not swapped and first - second != player:
            raise GameError(
                f"{first} X and {second} O with {self.marks[player]} to move: the sides alternate, so with X to move "
                "there must be as many X as O, or one O more after a swap; else one X more, or as many after a swap"
            )
        return cells, swapped

    def board(self, state: Array) -> Board:
        """Return the cells, with a shortest chain between the two sides once there is one."""
        board = super().board(state)
        chains = [_chain(board.cells == player, player) for player in (0, 1)]
        return board._replace(line=chains[0] or chains[1])

    def is_position(self, state: Array) -> bool:
        """Return whether play leads to a state."""
        cells = self._num_cells
        words, half = [int(word) for word in state], self.state_words // 2
        first, second = (
            sum(word << BITS * place for place, word in enumerate(words[half * player : half * (player + 1)]))
            for player in (0, 1)
        )
        surplus = first.bit_count() - second.bit_count()
        if min(words) < 0 or first >> self.num_actions or second >> cells or first & second or surplus not in (0, 1):
            return False
        if first >> cells and not second:  # the stone that was taken over is missing
            return False
        # A game is over with the first connection: some stone of the player who moved last was needed for it.
        own, reached = np.empty(self.size, np.int64), np.empty(self.size, np.int64)
        last = 1 - mover(state)
        if connects(state, 1 - last, self.size, own, reached):
            return False
        if not connects(state, last, self.size, own, reached):
            return True
        for cell in range(cells):
            if has_stone(state, last, cell):
                without = state.copy()
                without[half * last + cell // BITS] ^= 1 << cell % BITS
                if not connects(without, last, self.size, own, reached):
                    return True
        return False


def _chain(stones: Array, player: int) -> tuple[tuple[int, int], ...]:
    # A shortest chain in stones bool [n, n] between the two sides of their player, if there is one.
    size = len(stones)
    sides = [(0, each) if player == 0 else (each, 0) for each in range(size)]
    before: dict[tuple[int, int], tuple[int, int] | None] = {cell: None for cell in sides if stones[cell]}
    reached = list(before)
    for cell in reached:
        if cell[player] == size - 1:
            chain = [cell]
            while (previous := before[chain[-1]]) is not None:
                chain.append(previous)
            return tuple(chain)
        for down, right in _NEIGHBORS:
            other = cell[0] + down, cell[1] + right
            if min(other) >= 0 and max(other) < size and stones[other] and other not in before:
                before[other] = cell
                reached.append(other)
    return ()


GAME = Hex()


state_from_board = GAME.read_board
