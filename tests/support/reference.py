"""Positions and a network to compare searches in."""

import numpy as np

from seraphim.game import Array, Game
from seraphim.game.exhaustive import solve
from seraphim.search.evaluator import StateFunction


class ArbitraryNetwork:
    """A function of the observation that looks like a network's: smooth, arbitrary, the same for the same seed."""

    description = "arithmetic"
    overlaps = False

    def __init__(self, game: Game, seed: int = 0, scale: float = 2.0) -> None:
        self.name = f"arbitrary network {seed}"
        self.positions = 0
        self._scale = scale
        cells = int(np.prod(game.observation_shape))
        self._weights = np.random.default_rng(seed).normal(size=(cells, game.num_actions + 1))

    def infer(self, observations: Array) -> tuple[Array, Array]:
        """See `seraphim.search.evaluator.Inference.infer`; row by row, so that a row does not depend on the batch."""
        self.positions += len(observations)
        rows = [np.sin(3 * (row.ravel().astype(float) @ self._weights)) for row in observations]
        outputs = np.array(rows, np.float32).reshape(len(observations), -1)
        return self._scale * outputs[:, :-1], outputs[:, -1].copy()


def random_states(game: Game, count: int, seed: int) -> Array:
    """Unfinished positions int64 [count, W] after a random number of random moves."""
    rng = np.random.default_rng(seed)
    found = []
    while len(found) < count:
        state = game.initial(1)
        for _ in range(rng.integers(game.max_plies)):
            successor = game.step(state, rng.choice(np.flatnonzero(game.legal(state)[0]), 1))
            if game.outcome(successor)[0][0]:
                break
            state = successor
        found.append(state[0])
    return np.stack(found)


def exact_network(game: Game) -> StateFunction:
    """A network that gives each position of a game the value of its exhaustive solution, and no policy."""
    solution = solve(game)
    results = {state.tobytes(): result for state, result in zip(solution.states, solution.results, strict=True)}

    def evaluate(states: Array) -> tuple[Array, Array]:
        values = np.array([results[state.tobytes()] for state in states], np.float32)  # for player 0
        values = np.where(game.to_play(states) == 1, -values, values)
        return np.zeros((len(states), game.num_actions), np.float32), values

    return StateFunction(game, evaluate)
