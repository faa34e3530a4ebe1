"""A game in which each player moves twice in a row, and random games of it: what records are tested with.

It has so many actions and plies that their numbers take two bytes each where they are stored.
"""

import numpy as np

from seraphim.game import Game, PlainGame, PlainRules
from seraphim.records.examples import GameRecord

PLIES = 6


class Pairs(PlainGame):
    """Multiples of three are added up; the sum decides."""

    name = "pairs"
    num_actions = 300
    observation_shape = (2, 2)
    state_words = 2
    max_plies = 200

    def initial(self):
        return (0, 0)  # ply, sum

    def step(self, state, action):
        return (state[0] + 1, state[1] + action // 3)

    def legal(self, state):
        return range(0, self.num_actions, 3)

    def to_play(self, state):
        return state[0] // 2 % 2

    def outcome(self, state):
        return None if state[0] < PLIES else float(state[1] % 3 - 1)

    def observe(self, state):
        return np.array([[state[0], self.to_play(state)], [state[1] % 256, 7]])


class WidePairs(Pairs):
    """The same with so many actions that records name the few legal ones."""

    name = "wide_pairs"
    num_actions = 600

    def legal(self, state):
        return range(3 * (state[0] % 2), self.num_actions, 33 + state[0])


GAME = PlainRules(Pairs())
WIDE_GAME = PlainRules(WidePairs())


def play(seed: int, game: Game = GAME, game_id: str = "", plies: int | None = None) -> GameRecord:
    """Return a random game; one that has not ended after `plies` is cut off."""
    rng = np.random.default_rng(seed)
    state = game.initial(1)
    states, actions, policies = [], [], []
    while not game.outcome(state)[0][0] and len(actions) != plies:
        policy = rng.random(game.num_actions) * game.legal(state)[0]
        actions.append(rng.choice(game.num_actions, p=policy / policy.sum()))
        policies.append(policy / policy.sum())
        states.append(state[0])
        state = game.step(state, np.array(actions[-1:]))
    ended, results = game.outcome(state)
    return GameRecord(
        game_id or f"game-{seed:04d}",
        np.array(states, np.int64),
        np.array(actions, np.int32),
        np.array(policies, np.float32),
        rng.uniform(-1, 1, len(actions)).astype(np.float32),
        float(results[0]) if ended[0] else None,
    )
