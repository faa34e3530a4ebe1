"""What a game may offer beyond its rules is looked up in one place, and read as it is offered."""

import re
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import games
import numpy as np
import pytest

import connectfour
import tictactoe
from pig.plain import PigState, PlainPig
from seraphim.errors import GameError
from seraphim.game import CHANCE, PlainRules, load_features
from seraphim.game.features import GameFeatures, features_of
from seraphim.game.loading import ModuleFeatures, module_features
from seraphim.game.notation import first_choice
from seraphim.game.solved import best_moves

ROOT = Path(__file__).parents[2]


def test_optional_members_are_looked_up_in_one_module() -> None:
    names = {field.name for kind in (GameFeatures, ModuleFeatures) for field in fields(kind)} | {"SETTINGS", "PRESETS"}
    looked_up = re.compile(rf'(?:has|get)attr\([^()]*(?:\(.*?\))?, "(?:{"|".join(names)})"')
    files = [path for folder in ("seraphim", "bin", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    assert {path.name for path in files if looked_up.search(path.read_text())} == {"loading.py"}


@pytest.mark.parametrize("goal", [(1, 2), 4, lambda state: "Win."])
def test_a_goal_that_is_no_text_is_the_games_own(goal: object) -> None:
    plain = games.Nim()
    plain.goal = goal  # type: ignore[attr-defined]
    assert features_of(plain).goal is None
    assert features_of(PlainRules(plain)).goal is None


def test_a_game_that_offers_everything_is_read_as_it_is() -> None:
    features = load_features("connectfour")
    assert all(getattr(features, field.name) is not None for field in fields(features))
    assert features.perfect_actions is connectfour.perfect_actions
    assert (features.settings, features.presets) == (connectfour.SETTINGS, connectfour.PRESETS)
    assert features.rules_js == ROOT / "connectfour/rules.js"
    board = features_of(tictactoe.GAME).board
    assert board is not None and np.array_equal(board(tictactoe.GAME.initial(1)[0]).cells, np.full((3, 3), -1))


def test_a_game_that_offers_nothing_has_no_features() -> None:
    assert features_of(PlainRules(games.NIM)) == GameFeatures(*[None] * len(fields(GameFeatures)))
    features = module_features(ModuleType("bare"))
    assert not any(getattr(features, field.name) for field in fields(features))


@pytest.mark.parametrize(
    ("results", "plies", "best"),
    [
        ([1, 1, -1], [9, 11, 12], [True, False, False]),
        ([1, 1, -1], [9, np.nan, 12], [True, True, False]),  # the second may be the faster one
        ([1, np.nan, -1], [9, np.nan, 12], [True, False, False]),
        ([-1, -1, np.nan], [9, 11, np.nan], [False, False, False]),
        ([-1, -1, -1], [9, 11, np.nan], [False, True, True]),
        ([0, 0, -1], [np.nan, np.nan, 3], [True, True, False]),
    ],
)
def test_the_best_of_known_results(results: list[float], plies: list[float], best: list[bool]) -> None:
    assert best_moves(np.array(results), np.array(plies)).tolist() == best


@pytest.mark.parametrize("ends", [False, True])
def test_a_game_in_which_no_player_moves_is_refused(ends: bool) -> None:
    class Rolling(PlainPig):
        max_plies = 50

        def to_play(self, _state: PigState) -> int:
            return CHANCE

        def step(self, state: PigState, _action: int) -> PigState:
            return state._replace(first=state.first + ends)

    with pytest.raises(GameError, match="plain pig to 20: no player moves after the first outcomes of chance"):
        first_choice(PlainRules(Rolling(20)))
