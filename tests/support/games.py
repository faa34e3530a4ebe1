"""Small games with known properties, for the tests of everything that takes a game; by the name `games`, it is nim."""

from collections.abc import Sequence

import numpy as np

from seraphim.game import CHANCE, Array, PlainGame
from tictactoe.plain import GAME as PLAIN_TICTACTOE

__all__ = ["CHAIN", "ENDLESS", "GAME", "MOVES_TWICE", "NIM", "PLAIN_TICTACTOE"]

Words = tuple[int, ...]


class Nim(PlainGame):
    """One heap; each player in turn takes 1 to 3, and the player who takes the last wins. The state is heap and player.

    Known theory: the player to move wins exactly if the heap is not a multiple of 4, by leaving such a multiple.
    """

    name = "nim"
    num_actions = 3
    state_words = 2

    def __init__(self, heap: int = 15) -> None:
        self.max_plies = heap
        self.observation_shape = (heap + 1,)

    def initial(self) -> Words:
        return (self.max_plies, 0)

    def step(self, state: Words, action: int) -> Words:
        return (state[0] - 1 - action, 1 - state[1])

    def legal(self, state: Words) -> Sequence[int]:
        return range(min(3, state[0]))

    def to_play(self, state: Words) -> int:
        return state[1]

    def outcome(self, state: Words) -> float | None:
        if state[0]:
            return None
        return 1.0 if self.last_mover(state) == 0 else -1.0

    def last_mover(self, state: Words) -> int:
        return 1 - state[1]

    def observe(self, state: Words) -> Array:
        return np.arange(self.max_plies + 1) == state[0]

    def action_label(self, action: int) -> str:
        return f"take {action + 1}"


class MovesTwice(Nim):
    """Nim in which the players move in the order 0 1 1 0 0 1 1 0 0 …; the state is heap and ply."""

    name = "nim of double moves"

    def __init__(self, heap: int = 12) -> None:
        super().__init__(heap)

    def step(self, state: Words, action: int) -> Words:
        return (state[0] - 1 - action, state[1] + 1)

    def to_play(self, state: Words) -> int:
        return (state[1] + 1) // 2 % 2

    def last_mover(self, state: Words) -> int:
        return state[1] // 2 % 2

    def observe(self, state: Words) -> Array:
        # Whether this is the first move of the player's two belongs to the position.
        return (np.arange(self.max_plies + 1) == state[0]) * (1 + state[1] % 2)


class Wait(PlainGame):
    """The player to move waits or ends the game in a draw; a game of waiting is cut off after 40 plies."""

    name, num_actions, state_words, max_plies, observation_shape = "wait", 2, 1, 40, (1,)

    def initial(self) -> Words:
        return (0,)

    def step(self, state: Words, action: int) -> Words:
        return (2,) if action == 1 else (1 - state[0],)

    def legal(self, state: Words) -> Sequence[int]:
        return (0, 1)

    def to_play(self, state: Words) -> int:
        return state[0] % 2

    def outcome(self, state: Words) -> float | None:
        return 0.0 if state[0] == 2 else None

    def observe(self, state: Words) -> Array:
        return np.array([state[0]])


class Results(PlainGame):
    """The first player chooses among results by action; the last action leads on to a second move, which wins 0.1."""

    name, state_words, max_plies, observation_shape = "results", 1, 2, (1,)

    def __init__(self, *results: float) -> None:
        self._results = results
        self.num_actions = len(results) + 1

    def initial(self) -> Words:
        return (-1,)

    def step(self, state: Words, action: int) -> Words:
        return (action,) if state[0] < 0 else (self.num_actions,)

    def legal(self, state: Words) -> Sequence[int]:
        return range(self.num_actions)

    def to_play(self, state: Words) -> int:
        return 0

    def outcome(self, state: Words) -> float | None:
        if state[0] == self.num_actions:
            return 0.1
        return self._results[state[0]] if 0 <= state[0] < len(self._results) else None

    def observe(self, state: Words) -> Array:
        return np.array([state[0] + 1])


class Chain(PlainGame):
    """A corridor of many plies with one way through it; the player who makes the first move wins."""

    name = "chain"
    num_actions = 2
    observation_shape = (2,)
    state_words = 1

    def __init__(self, plies: int = 10_000) -> None:
        self.max_plies = plies

    def initial(self) -> Words:
        return (0,)

    def step(self, state: Words, action: int) -> Words:
        return (state[0] + 1,)

    def legal(self, state: Words) -> Sequence[int]:
        return [state[0] % 2]

    def to_play(self, state: Words) -> int:
        return state[0] % 2

    def outcome(self, state: Words) -> float | None:
        return 1.0 if state[0] == self.max_plies else None

    def observe(self, state: Words) -> Array:
        return np.array([state[0] % 256, state[0] // 256])


class Endless(PlainGame):
    """Two players turn a wheel of five positions to and fro; it never ends, so every game is cut off."""

    name = "endless"
    num_actions = 2
    observation_shape = (5,)
    state_words = 2
    max_plies = 20

    def initial(self) -> Words:
        return (0, 0)

    def step(self, state: Words, action: int) -> Words:
        return ((state[0] + (1, -1)[action]) % 5, 1 - state[1])

    def legal(self, state: Words) -> Sequence[int]:
        return (0, 1)

    def to_play(self, state: Words) -> int:
        return state[1]

    def outcome(self, state: Words) -> float | None:
        return None

    def observe(self, state: Words) -> Array:
        return np.arange(5) == state[0]


class Layers(PlainGame):
    """Random moves through five layers of six places each, in which a player or chance moves; results are few.

    Of one player, each step banks some hundredths, the last word of a state.
    """

    name, num_actions, num_chance_outcomes, max_plies = "layers", 3, 4, 5
    observation_shape, state_words = (30,), 3

    def __init__(self, seed: int, num_players: int = 2) -> None:
        rng = np.random.default_rng(seed)
        self.num_players = num_players
        self.movers = rng.choice([0, num_players - 1, CHANCE], (5, 6))
        self.targets = rng.integers(0, 6, (5, 6, 4))
        self.counts = rng.integers(1, 4, (5, 6))
        self.odds = rng.dirichlet(np.ones(4), (5, 6))
        self.odds[..., 0] = 0
        self.odds /= self.odds.sum(axis=-1, keepdims=True)
        self.results = rng.choice([-1.0, 0.0, 0.25, 1.0], 6)
        self.gains = rng.integers(-9, 10, (5, 6, 4)) * (num_players == 1)
        if num_players == 1:
            self.banked, self.bank_words, self.points = self.bank_of, 1, 100.0

    def initial(self) -> Words:
        return (0, 0, 0)

    def step(self, state: Words, action: int) -> Words:
        layer, place, bank = state
        return (layer + 1, int(self.targets[layer, place, action]), bank + int(self.gains[layer, place, action]))

    def legal(self, state: Words) -> Sequence[int]:
        return range(self.counts[state[:2]])

    def to_play(self, state: Words) -> int:
        return 0 if state[0] == 5 else int(self.movers[state[:2]])

    def chances(self, state: Words) -> Sequence[float]:
        return self.odds[state[:2]].tolist()

    def bank_of(self, state: Words) -> float:
        return state[2] / 100

    def outcome(self, state: Words) -> float | None:
        return None if state[0] < 5 else float(self.results[state[1]]) * 0.3 + state[2] / 100

    def observe(self, state: Words) -> Array:
        return np.arange(30) == 6 * state[0] + state[1]


NIM = Nim()
MOVES_TWICE = MovesTwice()
CHAIN = Chain()
ENDLESS = Endless()
GAME = NIM
