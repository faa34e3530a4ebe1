"""The Gumbel root: equal to mctx's on the same logits, values and noise, and no worse than the prior."""

import numpy as np
import pytest
from reference import ArbitraryNetwork, random_states

from seraphim.game import Array, identity_symmetry
from seraphim.options import SearchOptions
from seraphim.search.rng import stream_key, uniform
from seraphim.search.roots import Result
from seraphim.search.search import Search
from seraphim.search.selection import considered_visits
from tictactoe.game import TicTacToe

pytestmark = pytest.mark.kernels

STATES, ACTIONS = 400, 6


class TableGame:
    """A game of random transitions between numbered positions that never ends; players move in turn."""

    name = "table"
    num_actions = ACTIONS
    observation_shape = (2,)
    state_words = 2  # number and ply
    max_plies = 1000

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.successors = rng.integers(STATES, size=(STATES, ACTIONS))
        self.logits = rng.normal(size=(STATES, ACTIONS)).astype(np.float32)
        self.values = rng.uniform(-1, 1, STATES).astype(np.float32)

    def initial(self, batch: int) -> Array:
        return np.stack([np.arange(batch) % STATES, np.zeros(batch, int)], axis=1)

    def step(self, states: Array, actions: Array) -> Array:
        return np.stack([self.successors[states[:, 0], actions], states[:, 1] + 1], axis=1)

    def legal(self, states: Array) -> Array:
        return np.ones((len(states), ACTIONS), bool)

    def to_play(self, states: Array) -> Array:
        return (states[:, 1] % 2).astype(np.int8)

    def outcome(self, states: Array) -> tuple[Array, Array]:
        return np.zeros(len(states), bool), np.zeros(len(states), np.float32)

    def observe(self, states: Array) -> Array:
        return np.stack([states[:, 0] // 256, states[:, 0] % 256], axis=1).astype(np.uint8)

    def symmetries(self):
        return identity_symmetry(self.observation_shape, ACTIONS)

    def render(self, state: Array) -> str:
        return str(state)

    def action_label(self, action: int) -> str:
        return str(action)

    def parse_action(self, text: str) -> int:
        return int(text)


class TableNetwork:
    name, description = "table", "table"

    def __init__(self, game: TableGame) -> None:
        self._game = game

    def infer(self, observations: Array) -> tuple[Array, Array]:
        numbers = observations[:, 0].astype(int) * 256 + observations[:, 1]
        return self._game.logits[numbers], self._game.values[numbers]


def gumbel_noise(key: np.uint64, count: int) -> Array:
    return np.array([-np.log(-np.log(uniform(key, np.uint64(k)))) for k in range(count)])


def searched(game, network, states: Array, options: SearchOptions, keys: Array | None) -> Result:
    search = Search(game, network, options, len(states))
    search.begin(np.arange(len(states)), states, keys)
    search.run()
    return search.result(np.arange(len(states)))


@pytest.mark.parametrize(("readouts", "considered"), [(1, 16), (3, 16), (16, 4), (32, 16), (50, 3), (77, 5), (30, 1)])
@pytest.mark.slow
def test_a_gumbel_search_equals_that_of_mctx(readouts: int, considered: int, monkeypatch: pytest.MonkeyPatch) -> None:
    jax = pytest.importorskip("jax")
    mctx = pytest.importorskip("mctx")
    jnp = jax.numpy
    game = TableGame(seed=readouts)
    batch = 24
    states = game.initial(batch)
    streams = np.array([stream_key(f"{readouts}-{row}") for row in range(batch)], np.uint64)
    noise = np.stack([gumbel_noise(key, ACTIONS) for key in streams]).astype(np.float32)
    options = SearchOptions(
        readouts=readouts, root="gumbel", gumbel_actions=considered, cache_megabytes=1, solver=False
    )
    ours = searched(game, TableNetwork(game), states, options, streams)

    successors, logits, values = (jnp.array(table) for table in (game.successors, game.logits, game.values))

    def recurrent(params, key, action, embedding):
        number = successors[embedding, action]
        output = mctx.RecurrentFnOutput(
            reward=jnp.zeros_like(values[number]),
            discount=-jnp.ones_like(values[number]),
            prior_logits=logits[number],
            value=values[number],
        )
        return output, number

    numbers = jnp.array(states[:, 0])
    monkeypatch.setattr(jax.random, "gumbel", lambda key, shape, dtype: jnp.array(noise, dtype).reshape(shape))
    theirs = mctx.gumbel_muzero_policy(
        None,
        jax.random.PRNGKey(0),
        mctx.RootFnOutput(prior_logits=logits[numbers], value=values[numbers], embedding=numbers),
        recurrent,
        num_simulations=readouts,
        max_num_considered_actions=considered,
    )
    assert ours.visits.tolist() == np.asarray(theirs.search_tree.summary().visit_counts).astype(int).tolist()
    assert ours.best.tolist() == np.asarray(theirs.action).tolist()
    assert ours.policies == pytest.approx(np.asarray(theirs.action_weights), abs=2e-5)


@pytest.mark.parametrize("considered", range(1, 18))
@pytest.mark.parametrize("readouts", [1, 2, 7, 16, 31, 100])
def test_the_schedule_of_sequential_halving_equals_that_of_mctx(considered: int, readouts: int) -> None:
    halving = pytest.importorskip("mctx._src.seq_halving")
    theirs = halving.get_sequence_of_considered_visits(considered, readouts)
    assert considered_visits(considered, readouts).tolist() == list(theirs)


def test_the_budget_is_spent_exactly_on_legal_actions_of_any_number() -> None:
    game = TicTacToe()
    states = random_states(game, 40, 3)
    for readouts in (1, 5, 9, 33):
        options = SearchOptions(readouts=readouts, root="gumbel", solver=False)
        result = searched(game, ArbitraryNetwork(game), states, options, np.arange(40, dtype=np.uint64))
        assert (result.visits.sum(axis=1) == readouts).all()
        assert not result.visits[~game.legal(states)].any()
        assert result.policies.sum(axis=1) == pytest.approx(1.0, abs=1e-5)
        assert not result.policies[~game.legal(states)].any()


def test_the_improved_policy_is_no_worse_than_the_prior() -> None:
    # Danihelka et al. 2022, section 4: the expected value under π' is at least that under the prior.
    game = TableGame(seed=5)
    options = SearchOptions(readouts=40, root="gumbel", solver=False)
    result = searched(game, TableNetwork(game), game.initial(200), options, None)
    seen = result.visits > 0
    gain = ((result.policies - result.priors) * np.where(seen, result.action_values, 0)).sum(axis=1)
    assert gain.mean() > 0.05
    complete = seen.all(axis=1)
    assert complete.sum() > 20
    assert (gain[complete] >= -1e-6).all()


def test_without_noise_a_gumbel_search_is_the_same_each_time_and_with_noise_it_varies() -> None:
    game = TableGame(seed=6)
    options = SearchOptions(readouts=8, root="gumbel", gumbel_actions=2, solver=False)
    states = np.repeat(game.initial(1), 50, axis=0)
    assert len(np.unique(searched(game, TableNetwork(game), states, options, None).best)) == 1
    noisy = searched(game, TableNetwork(game), states, options, np.arange(50, dtype=np.uint64))
    assert len(np.unique(noisy.best)) > 2
