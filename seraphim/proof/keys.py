"""Keys of positions: equal for the same position, and for positions that are symmetric."""

import numpy as np

from seraphim.game import Array, Game, Symmetries
from seraphim.jit import kernel


def playable_symmetries(game: Game) -> Symmetries:
    """Return the symmetries that leave the initial position as it is: they turn a game from there into another one."""
    initial, symmetries = game.observe(game.initial(1)).ravel(), game.symmetries()
    kept = (initial[symmetries.observations] == initial).all(axis=1)
    return Symmetries(symmetries.observations[kept], symmetries.actions[kept])


class Keys:
    """Keys of 128 bits; two positions share one by chance in fewer than one of 10^20 proofs of a billion positions.

    Symmetries act on observations. So in a game that has some, a key is that of the observation, which must tell
    positions of one player apart; in others it is that of the state. See `playable_symmetries`.
    """

    def __init__(self, game: Game) -> None:
        """Prepare for a game."""
        self._game = game
        self._cells = playable_symmetries(game).observations
        self.symmetric = len(self._cells) > 1
        length = self._cells.shape[1] if self.symmetric else game.state_words
        drawn = np.random.default_rng(0).integers(0, 2**63, (2, length), np.uint64)
        self._factors = 2 * drawn + 1

    def of(self, states: Array) -> Array:
        """Return the keys of states int64 [B, W], uint64 [B, 2]."""
        players = self._game.to_play(states)
        if not self.symmetric:
            return _keys_of_words(states, players, self._factors)
        seen = self._game.observe(states).reshape(len(states), self._cells.shape[1])
        return _keys_of_observations(seen, self._cells, players, self._factors)


@kernel
def _keys_of_words(states: Array, players: Array, factors: Array) -> Array:
    keys = np.empty((len(states), 2), np.uint64)
    for row in range(len(states)):
        for part in range(2):
            key = _mixed(np.uint64(players[row] + 1))
            for word in range(states.shape[1]):
                key = _mixed(key + np.uint64(states[row, word])) * factors[part, word]
            keys[row, part] = _mixed(key)
    return keys


@kernel
def _keys_of_observations(seen: Array, cells: Array, players: Array, factors: Array) -> Array:
    # Of seen uint8 [B, F] under symmetries cells int32 [S, F], the least of each position's keys.
    keys = np.empty((len(seen), 2), np.uint64)
    for row in range(len(seen)):
        for turn in range(len(cells)):
            first, second = np.uint64(players[row]), np.uint64(players[row])
            for cell in range(cells.shape[1]):
                value = np.uint64(seen[row, cells[turn, cell]])
                first += value * factors[0, cell]
                second += value * factors[1, cell]
            first = _mixed(first)
            if turn == 0 or first < keys[row, 0]:
                keys[row, 0], keys[row, 1] = first, second
    return keys


@kernel
def _mixed(key: np.uint64) -> np.uint64:
    # An invertible function whose low bits depend on all bits (the finalizer of MurmurHash3).
    key ^= key >> np.uint64(33)
    key *= np.uint64(0xFF51AFD7ED558CCD)
    key ^= key >> np.uint64(33)
    key *= np.uint64(0xC4CEB9FE1A85EC53)
    return key ^ (key >> np.uint64(33))
