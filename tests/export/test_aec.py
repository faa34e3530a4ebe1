"""Games as environments of PettingZoo: its own tests, and its own connect four as an oracle."""

import importlib
import pickle
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from games import ENDLESS, MOVES_TWICE, PLAIN_TICTACTOE

import seraphim
from seraphim.errors import GameError, NotInstalledError, SettingsError
from seraphim.export import aec
from seraphim.game import Game, PlainRules, name_of

# What PettingZoo's tests also say of its own board games, but for those that they know by name.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Observation is not a NumPy array"),
    pytest.mark.filterwarnings("ignore:Observation numpy array is all zeros"),
    pytest.mark.filterwarnings("ignore:Observation space for each agent probably should be"),
    pytest.mark.filterwarnings("ignore:The old environment creation"),  # where pygame is installed
]
GAMES: list[Any] = [
    PLAIN_TICTACTOE,
    "tictactoe",
    "connectfour",
    "othello",
    "hex:4",
    "openspiel:breakthrough",
    "openspiel:mancala",
]


def seeded(env: Any, seed: int = 0) -> Any:
    for number, agent in enumerate(env.possible_agents):
        env.action_space(agent).seed(seed + number)
    return env


@pytest.mark.parametrize("make", [aec.env, aec.GameEnv])
@pytest.mark.parametrize("game", [*GAMES, PlainRules(MOVES_TWICE), PlainRules(ENDLESS)], ids=name_of)
def test_pettingzoo_finds_no_fault_with_the_interface(make: Callable[..., Any], game: str | Game) -> None:
    from pettingzoo.test import api_test

    api_test(seeded(make(game)))


@pytest.mark.parametrize("game", GAMES)
def test_a_seed_plays_the_same_game_twice(game: str) -> None:
    from pettingzoo.test import seed_test

    seed_test(lambda: aec.env(game), num_cycles=100)


@pytest.mark.parametrize("game", GAMES)
def test_every_mode_renders(game: str, capsys: pytest.CaptureFixture[str]) -> None:
    from pettingzoo.test import render_test

    render_test(lambda **options: seeded(aec.env(game, **options)))
    assert capsys.readouterr().out


def play(env: Any, seed: int) -> list[int]:
    """Play a random game, and return its actions."""
    env.reset()
    actions = []
    for agent in seeded(env, seed).agent_iter():
        observation, _, termination, truncation, _ = env.last()
        over = termination or truncation
        actions.append(None if over else env.action_space(agent).sample(observation["action_mask"]))
        env.step(actions[-1])
    assert actions[-2:] == [None, None]
    return actions[:-2]


def test_in_othello_a_player_who_must_pass_passes() -> None:
    env = aec.env("othello")
    games = [play(env, seed) for seed in range(20)]
    assert sum(64 in actions for actions in games) > 3


# ---------------------------------------------------------------- PettingZoo's own games


@pytest.fixture
def _pygame(monkeypatch: pytest.MonkeyPatch) -> None:
    # PettingZoo's board games import what draws them, which they do not need where nothing is drawn.
    try:
        import pygame  # noqa: F401
    except ModuleNotFoundError:
        monkeypatch.setitem(sys.modules, "pygame", ModuleType("pygame"))


@pytest.mark.usefixtures("_pygame")
def test_connect_four_is_that_of_pettingzoo() -> None:
    from pettingzoo.classic.connect_four import connect_four

    assert_same_games(aec.env("connectfour"), connect_four.env(), games=60)


@pytest.mark.usefixtures("_pygame")
def test_tictactoe_is_that_of_pettingzoo() -> None:
    from pettingzoo.classic.tictactoe import tictactoe

    assert_same_games(aec.env("tictactoe"), tictactoe.env(), games=60)


def assert_same_games(ours: Any, theirs: Any, games: int) -> None:
    """Check that both say the same in random games; in one of four, an illegal move is tried after some plies."""
    random, rewards = np.random.default_rng(0), set()
    for number in range(games):
        ours.reset()
        theirs.reset()
        plies = 0
        while theirs.agents:
            (mine, *said), (other, *expected) = ours.last(), theirs.last()
            assert said == expected
            assert list(ours.rewards.values()) == list(theirs.rewards.values())
            assert ours.agents.index(ours.agent_selection) == theirs.agents.index(theirs.agent_selection)
            rewards.add(said[0])
            action = None
            if not any(said[1:3]):
                planes = other["observation"].shape[-1]  # the stones; connect four has more planes here
                np.testing.assert_array_equal(mine["observation"][..., :planes], other["observation"])
                np.testing.assert_array_equal(mine["action_mask"], other["action_mask"])
                legal = mine["action_mask"]
                tried = 1 - legal if number % 4 == 0 and plies > 6 and not legal.all() else legal
                action = int(random.choice(np.flatnonzero(tried)))
            ours.step(action)
            theirs.step(action)
            plies += 1
        assert not ours.agents
    assert rewards == {-1, 0, 1}


# ---------------------------------------------------------------- what is particular


def test_a_game_that_is_cut_off_is_truncated() -> None:
    env = aec.env(PlainRules(ENDLESS))
    assert len(play(env, 0)) == ENDLESS.max_plies
    env.reset()
    for _ in range(ENDLESS.max_plies):
        assert not any(env.truncations.values())
        env.step(0)
    assert all(env.truncations.values())
    assert not any(env.terminations.values())
    assert set(env.rewards.values()) == {0}
    assert not any(env.observe(agent)["action_mask"].any() for agent in env.agents)


def test_a_player_may_move_twice() -> None:
    env = aec.env(PlainRules(MOVES_TWICE))
    env.reset()
    turns = []
    for _ in range(5):
        turns.append(env.agent_selection[-1])
        masks = {agent: env.observe(agent)["action_mask"].any() for agent in env.agents}
        assert masks == {agent: agent == env.agent_selection for agent in env.agents}
        env.step(0)
    assert turns == list("01100")


def test_the_state_is_one_that_a_model_takes() -> None:
    env = aec.env("tictactoe")
    assert env.state_space.shape == (2,)
    env.reset()
    for action in (4, 1):
        env.step(action)
    model = seraphim.load("tictactoe")
    assert model.analyze(env.state()).value == model.analyze("b2 b1").value
    env.state()[:] = 0
    assert env.state().any()
    assert env.state_space.contains(env.state())


def test_the_position_is_rendered_as_the_game_does(capsys: pytest.CaptureFixture[str]) -> None:
    env = aec.env("tictactoe", render_mode="ansi")
    env.reset()
    env.step(4)
    assert env.render() == env.unwrapped.game.render(env.state())
    env = aec.env("tictactoe", render_mode="human")
    env.reset()
    env.step(4)
    assert capsys.readouterr().out == env.unwrapped.game.render(env.state()) + "\n"


def test_an_environment_is_pickled_by_its_name() -> None:
    env = pickle.loads(pickle.dumps(aec.GameEnv("openspiel:mancala", "ansi")))
    assert (env.game.name, env.render_mode) == ("openspiel:mancala", "ansi")


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(GameError, match="there is no game 'chess960'"):
        aec.env("chess960")
    with pytest.raises(SettingsError, match="there is no render mode 'rgb_array': expected human or ansi"):
        aec.env("tictactoe", render_mode="rgb_array")
    env = aec.GameEnv("tictactoe")
    env.reset()
    env.step(4)
    for action in (4, 9, -1, None):
        with pytest.raises(GameError, match=f"action {action} is not legal here"):
            env.step(action)


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "seraphim.export.aec")
    monkeypatch.setitem(sys.modules, "pettingzoo", None)
    with pytest.raises(NotInstalledError, match=r"an environment needs pettingzoo: pip install .*\[pettingzoo\]"):
        importlib.import_module("seraphim.export.aec")


@pytest.mark.parametrize("game", ["pig", "twenty48"])
def test_games_of_chance_are_refused(game: str) -> None:
    with pytest.raises(GameError, match="a game of chance, which is not played here"):
        aec.env(game)
