"""Games for three players that are small enough to be solved by looking at everything, and networks for them."""

import numpy as np

from seraphim.errors import GameError
from seraphim.game import CHANCE, Array, Symmetries


class Pile:
    """Three players in turn take one or two from a pile. Who takes the last wins; the next one after that is even."""

    name = "pile"
    num_players = 3
    num_actions = 2
    max_plies = 60
    observation_shape = (20,)

    @property
    def state_words(self) -> int:
        """The pile, the player to move, what the die decides about, and what was taken."""
        return {"pile": 2, "dice": 3, "banked": 6}[self.name]

    def initial(self, batch: int) -> Array:
        return np.array([[9, *[0] * (self.state_words - 1)]]).repeat(batch, axis=0)

    def step(self, states: Array, actions: Array) -> Array:
        return np.stack([states[:, 0] - actions - 1, (states[:, 1] + 1) % 3], axis=1)

    def legal(self, states: Array) -> Array:
        return states[:, :1] > np.arange(2)

    def to_play(self, states: Array) -> Array:
        return states[:, 1].astype(np.int8)

    def outcome(self, states: Array) -> tuple[Array, Array]:
        seats = (np.arange(3) - states[:, 1:]) % 3  # the winner is the last in turn
        return states[:, 0] == 0, np.where(seats == 2, 1.0, np.where(seats == 1, 0.0, -1.0)).astype(np.float32)

    def observe(self, states: Array) -> Array:
        return (states[:, :1] == np.arange(20)).astype(np.uint8)

    def symmetries(self) -> Symmetries:
        return Symmetries(np.arange(20)[None], np.arange(2)[None])

    def render(self, state: Array) -> str:
        return f"{state[0]} left, player {state[1]} to move"

    def action_label(self, action: int) -> str:
        return str(action + 1)

    def parse_action(self, text: str) -> int:
        if text not in ("1", "2"):
            raise GameError(f"{text!r} is neither 1 nor 2")
        return int(text) - 1


class Guesses:
    """A network of arbitrary outputs that follow from the observation."""

    name = description = "guesses"
    overlaps = False

    def __init__(self, num_actions: int, columns: int) -> None:
        self.shape = num_actions, columns

    def infer(self, observations: Array) -> tuple[Array, Array]:
        rows = observations.reshape(len(observations), -1)
        drawn = [np.random.default_rng(row.tolist()).uniform(-1, 1, sum(self.shape)) for row in rows]
        both = np.array(drawn, np.float32).reshape(-1, sum(self.shape))
        return both[:, : self.shape[0]].copy(), both[:, self.shape[0] :].copy()


class Dice(Pile):
    """The same, where a die decides in between how much goes: what is asked for, or twice as much."""

    name = "dice"
    num_chance_outcomes = 3  # of which the last is impossible

    def step(self, states: Array, actions: Array) -> Array:
        pile, player, asked = states.T
        is_chance = asked > 0
        left = np.where(is_chance, np.maximum(pile - asked * (actions + 1), 0), pile)
        return np.stack([left, np.where(is_chance, (player + 1) % 3, player), np.where(is_chance, 0, actions + 1)], 1)

    def legal(self, states: Array) -> Array:
        return (states[:, :1] > np.arange(2)) & (states[:, 2:3] == 0)

    def to_play(self, states: Array) -> Array:
        return np.where(states[:, 2] > 0, CHANCE, states[:, 1]).astype(np.int8)

    def chances(self, states: Array) -> Array:
        return np.where(states[:, 2:3] > 0, [0.75, 0.25, 0.0], 0.0)

    def outcome(self, states: Array) -> tuple[Array, Array]:
        ended, results = super().outcome(states[:, :2])
        return ended & (states[:, 2] == 0), results


class Banked(Dice):
    """The same, where what was taken counts a little in the end."""

    name = "banked"
    bank_words = 3
    value_scale = 0.5

    def step(self, states: Array, actions: Array) -> Array:
        after = super().step(states[:, :3], actions)
        bank = states[:, 3:].copy()
        bank[np.arange(len(bank)), states[:, 1]] += states[:, 0] - after[:, 0]
        return np.concatenate([after, bank], axis=1)

    def banked(self, states: Array) -> Array:
        return (states[:, 3:] / 50).astype(np.float32)

    def outcome(self, states: Array) -> tuple[Array, Array]:
        ended, results = super().outcome(states[:, :3])
        return ended, (0.5 * results + self.banked(states)).astype(np.float32)


class Even:
    """A network that knows nothing: a value of 0 for each player."""

    name = "even"

    def infer(self, observations: Array) -> tuple[Array, Array]:
        return np.zeros((len(observations), 2), np.float32), np.zeros((len(observations), 3), np.float32)
