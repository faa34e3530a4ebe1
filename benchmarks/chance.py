"""Compares what a search may do where chance moves, by the regret of its moves in Pig to 50 points and in 2048 on 2×3.

    PYTHONPATH=. python benchmarks/chance.py

The naive search plays with exact values and priors that are blurred by noise, as a trained network's are, and with none
at all. Each row is the mean loss of the chosen move, by the network's evaluations, and the difference to the first row
with its standard error, over the same positions.
"""

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from pig.game import Pig
from pig.optimal import solve as solve_pig
from seraphim.game import CHANCE, Array, Game
from seraphim.game.exhaustive import solve
from seraphim.game.features import features_of
from seraphim.options import SearchOptions
from seraphim.search import naive
from twenty48.game import Twenty48

BUDGETS = (16, 50, 200)  # evaluations
POSITIONS, SEEDS = 150, 2
_MOST_READOUTS = 4  # for each evaluation, where the ends of games are near
_TEMPERATURE = 2  # of the blurred priors, in units of the noise


class Oracle:
    """A game whose observations are its states, and a blurred network that knows their values."""

    overlaps = False
    name = description = "oracle"

    def __init__(
        self, game: Game, value: Callable[[Array], float], unit: float, noise: float | None, seed: int
    ) -> None:
        """Take the exact value of a state for player 0, and the noise on it; None is a network that knows nothing."""
        self.game, self.unit, self.seed, self.asked = game, unit, seed, 0
        self._value, self._noise = value, noise

    def __getattr__(self, name: str) -> Any:
        return getattr(self.game, name)

    def observe(self, states: Array) -> Array:
        """Return the states themselves."""
        return states

    def exact(self, state: Array) -> float:
        """Return the value of a state for the player to move."""
        return self._value(state) * (-1 if self.game.to_play(state[None])[0] == 1 else 1)

    def after(self, state: Array) -> Array:
        """Return the value of each action for the player to move, float64 [A]; NaN where it is illegal."""
        legal = np.flatnonzero(self.game.legal(state[None])[0])
        values = np.full(self.game.num_actions, np.nan)
        sign = -1 if self.game.to_play(state[None])[0] == 1 else 1
        for action in legal:
            values[action] = sign * self._value(self.game.step(state[None], np.array([action]))[0])
        return values

    def infer(self, states: Array) -> tuple[Array, Array]:
        """See `Inference.infer`; of one state."""
        (state,) = states
        self.asked += 1
        banked = features_of(self.game).banked
        before = 0.0 if banked is None else float(banked(states)[0, 0])
        if self._noise is None:
            return np.zeros((1, self.game.num_actions), np.float32), np.zeros(1, np.float32)
        kept = state[: len(state) - (features_of(self.game).bank_words or 0)]
        drawn = np.random.default_rng([zlib.crc32(kept.tobytes()), self.seed]).normal(size=self.game.num_actions + 1)
        values = np.nan_to_num(self.after(state)) + self._noise * drawn[1:]
        value = self.exact(state) - before + self._noise * drawn[0]
        return (values / (_TEMPERATURE * self._noise)).astype(np.float32)[None], np.array([value], np.float32)


# ---------------------------------------------------------------- rules


def mean_value(node: naive.Node) -> float:
    """The mean of what came back from a node, for its mover."""
    if node.result is not None:
        return node.result if node.mover == 0 else -node.result
    if node.chance is not None:
        return expectation(node.mover, node.chance)
    returns = [each for edge in node.edges for each in edge.returns]
    return (node.value + sum(returns)) / (1 + len(returns))


def expectation(mover: int, chance: naive.Chance) -> float:
    """The expectation over the outcomes that were visited, for the player before."""
    values = {o: mean_value(child) * (1 if child.mover == mover else -1) for o, child in chance.children.items()}
    total = sum(chance.probabilities[outcome] for outcome in values)
    return float(sum(chance.probabilities[outcome] * value for outcome, value in values.items()) / total)


def q_by_expectation(edge: naive.Edge) -> float:
    """Q of an edge, where the outcomes below it count by their probabilities, not by their visits."""
    child = edge.child
    if child is not None and child.chance is not None and child.chance.children:
        return expectation(child.mover, child.chance)
    return sum(edge.returns) / len(edge.returns)


def draw_at_random(chance: naive.Chance, visits: int) -> int:
    """Draw an outcome by its probability."""
    rng = np.random.default_rng([int(chance.offset * 2**53), visits])
    return int(rng.choice(len(chance.probabilities), p=chance.probabilities / chance.probabilities.sum()))


def draw_what_lags(chance: naive.Chance, visits: int) -> int:
    """Draw the outcome whose visits lag furthest behind its probability."""
    counts = [chance.children[o].visits if o in chance.children else 0 for o in range(len(chance.probabilities))]
    return int(np.argmax(chance.probabilities * (visits + 1) - counts))


def stop_at_afterstates(
    game: Any, inference: Any, node: naive.Node, move: int, child: naive.Node | None, options: SearchOptions, depth: int
) -> tuple[float, int, naive.Node]:
    """Evaluate the position in which chance moves, before any of its outcomes."""
    if child is not None or node.chance is not None:
        return _DESCEND(game, inference, node, move, child, options, depth)
    child = naive.add_child(game, inference, node, move, ask_game=False)
    if child.chance is None:
        return (
            _DESCEND(game, inference, node, move, child, options, depth)
            if child.result is not None
            else (
                *_visit(child),
                child,
            )
        )
    child.value = inference.afterstate(child.state, node.mover)
    return child.value, child.mover, child


_DESCEND = naive.descend


def _visit(child: naive.Node) -> tuple[float, int]:
    child.visits += 1
    return child.value, child.mover


@contextmanager
def rule(name: str) -> Iterator[None]:
    """Let the naive search follow another rule where chance moves."""
    changes: dict[str, tuple[Any, str, Any]] = {
        "random draws": (naive.Chance, "draw", draw_at_random),
        "the outcome that lags": (naive.Chance, "draw", draw_what_lags),
        "expectation over visited": (naive.Edge, "q", property(q_by_expectation)),
        "values of afterstates": (naive, "descend", stop_at_afterstates),
    }
    if name not in changes:
        yield
        return
    owner, attribute, change = changes[name]
    with patch.object(owner, attribute, change):
        yield


RULES = ("golden ratio", "random draws", "the outcome that lags", "expectation over visited", "values of afterstates")


# ---------------------------------------------------------------- regrets


def regrets(oracle: Oracle, states: Array) -> Array:
    """Return what the chosen move loses in each state, float64 [P, budgets]."""
    options = SearchOptions(readouts=1, root="puct", solver=False, cache_megabytes=0)
    found = np.empty((len(states), len(BUDGETS)))
    for row, state in enumerate(states):
        oracle.asked = 0
        root = naive.search(oracle, oracle, state, options, readouts=0)
        played, values = 0, oracle.after(state)
        for column, budget in enumerate(BUDGETS):
            while oracle.asked < budget and played < _MOST_READOUTS * budget:
                naive.readout(oracle, oracle, root, options)
                played += 1
            best = max(root.edges, key=lambda edge: (edge.visits, edge.prior))
            found[row, column] = np.nanmax(values) - values[best.action]
    return found * oracle.unit


def pig() -> tuple[Game, Callable[[Array], float], Array]:
    """Return Pig to 50 points, its exact values, and positions drawn evenly."""
    game, solved = Pig(50), solve_pig(50)

    def value(state: Array) -> float:
        first, second, turn, player, rolls = state.tolist()
        ended, result = game.outcome(state[None])
        if ended[0]:
            return float(result[0])
        own, other = (first, second)[player], (first, second)[1 - player]
        wins = 1.0
        if own + turn < game.target:
            wins = float((solved.roll if rolls else solved.best)[own, other, turn])
        return (2 * wins - 1) * (1 if player == 0 else -1)

    rng = np.random.default_rng(0)
    drawn = np.stack([rng.integers(0, 50, 4000), rng.integers(0, 50, 4000), rng.integers(2, 30, 4000)], axis=1)
    drawn = drawn[drawn[:, 0] + drawn[:, 2] < 50][:POSITIONS]
    return game, value, np.concatenate([drawn, np.zeros((len(drawn), 2), np.int64)], axis=1)


def twenty48() -> tuple[Game, Callable[[Array], float], Array]:
    """Return 2048 on 2×3, its exact values, and positions of games in which a tenth of the moves are random."""
    game = Twenty48(2, 3)
    solution = solve(game)
    banked = game.banked(solution.states)[:, 0]
    rest = dict(zip((state[:2].tobytes() for state in solution.states), solution.results - banked, strict=True))

    def value(state: Array) -> float:
        return float(rest[state[:2].tobytes()] + game.banked(state[None])[0, 0])

    rng, found = np.random.default_rng(0), list[Array]()
    while len(found) < POSITIONS:
        state, played = game.initial(1), list[Array]()
        while not game.outcome(state)[0][0]:
            if game.to_play(state)[0] == CHANCE:
                (chances,) = game.chances(state)
                state = game.step(state, np.array([rng.choice(len(chances), p=chances)]))
                continue
            legal = np.flatnonzero(game.legal(state)[0])
            if len(legal) > 1:
                played.append(state[0])
            after = [value(game.step(state, np.array([action]))[0]) for action in legal]
            action = rng.choice(legal) if rng.random() < 0.1 else legal[int(np.argmax(after))]
            state = game.step(state, np.array([action]))
        found += [played[index] for index in rng.choice(len(played), min(3, len(played)), replace=False)]
    return game, value, np.stack(found[:POSITIONS])


class Afterstates(Oracle):
    """An oracle that also values positions in which chance moves."""

    def afterstate(self, state: Array, player: int) -> float:
        """Return the blurred value of a state for a player, what is banked included."""
        self.asked += 1
        sign = -1 if player == 1 else 1
        if self._noise is None:
            banked = features_of(self.game).banked
            return 0.0 if banked is None else float(banked(state[None])[0, player])
        kept = state[: len(state) - (features_of(self.game).bank_words or 0)]
        noise = np.random.default_rng([zlib.crc32(kept.tobytes()), self.seed]).normal()
        return sign * self._value(state) + self._noise * float(noise)


def main() -> None:
    """Print the table of each game."""
    for make, unit, name, noises in (
        (pig, 0.5, "Pig to 50: chance of winning", (None, 0.05, 0.2)),
        (twenty48, 1284.0, "2048 on 2×3: points", (None, 0.01, 0.05)),
    ):
        game, value, states = make()
        for noise in noises:
            print(f"{name}, {'a network that knows nothing' if noise is None else f'noise {noise}'}", flush=True)
            first: Array | None = None
            for each in RULES:
                with rule(each):
                    losses = np.concatenate(
                        [regrets(Afterstates(game, value, unit, noise, seed), states) for seed in range(SEEDS)]
                    )
                first = losses if first is None else first
                apart = losses - first
                cells = [
                    f"{budget}: {losses[:, i].mean():.4f} ({apart[:, i].mean():+.4f} ± "
                    f"{apart[:, i].std() / len(apart) ** 0.5:.4f})"
                    for i, budget in enumerate(BUDGETS)
                ]
                print(f"  {each:25} {'   '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
