"""The check against solved positions, with players of known strength."""

from collections.abc import Callable
from pathlib import Path

import games
import numpy as np
import pytest

from seraphim.errors import GameError
from seraphim.evaluation.check import RAW, SEARCHED, CheckResult, StartLosses, evaluate, loses_from_start
from seraphim.evaluation.error_rates import Errors, find_mistakes
from seraphim.evaluation.intervals import Rate
from seraphim.game import Array, Game, PlainGame, PlainRules
from seraphim.game.exhaustive import solve
from seraphim.game.loading import PositionSet
from seraphim.game.solved import load_position_sets
from tictactoe.game import GAME
from tictactoe.minimax import position_sets

(POSITIONS,) = position_sets()
BEST = {
    state.tobytes(): int(np.nanargmax(values))
    for state, values in zip(POSITIONS.states, POSITIONS.action_values, strict=True)
}


def perfect(states: Array) -> Array:
    return np.array([BEST[state.tobytes()] for state in states])


def first_legal(states: Array) -> Array:
    return GAME.legal(states).argmax(axis=1)


def state(drawing: str) -> Array:
    marks = drawing.replace(" ", "")
    return np.array([sum(1 << cell for cell in range(9) if marks[cell] == side) for side in "XO"], np.int64)


def perfect_but(drawing: str, label: str) -> Callable[[Array], Array]:
    """A player that is perfect except in one position."""
    exception = state(drawing)

    def choose(states: Array) -> Array:
        return np.where((states == exception).all(axis=1), GAME.parse_action(label), perfect(states))

    return choose


# ---------------------------------------------------------------- mistakes


def test_a_perfect_player_makes_no_mistake() -> None:
    assert not find_mistakes(POSITIONS, perfect(POSITIONS.states)).any()


def test_a_mistake_is_counted_where_it_is_made() -> None:
    choose = perfect_but("X·· ··· ·O·", "a2")  # gives the win away
    wrong = find_mistakes(POSITIONS, choose(POSITIONS.states))
    assert wrong.sum() == 1
    assert POSITIONS.states[wrong].tolist() == [state("X·· ··· ·O·").tolist()]


def test_another_action_of_the_same_value_is_not_a_mistake() -> None:
    for cell in range(9):
        actions = perfect(POSITIONS.states)
        actions[(POSITIONS.states == 0).all(axis=1)] = cell  # every first move draws
        assert not find_mistakes(POSITIONS, actions).any()


def test_a_slower_win_is_not_a_mistake_but_a_draw_is() -> None:
    positions = PositionSet("one", state("XX· OO· ···")[None], np.array([[np.nan] * 2 + [1] + [np.nan] * 2 + [0] * 4]))
    assert not find_mistakes(positions, np.array([2])).any()
    assert find_mistakes(positions, np.array([8])).all()


def test_an_illegal_choice_is_refused() -> None:
    actions = perfect(POSITIONS.states)
    row = int(np.flatnonzero(POSITIONS.states[:, 0] & 1)[0])
    actions[row] = 0
    with pytest.raises(GameError, match=f"the player chose the illegal action 0 in position {row} of 'all positions'"):
        find_mistakes(POSITIONS, actions)


# ---------------------------------------------------------------- from the start


def loses_by_recursion(plain: PlainGame, choose: Callable[[tuple[int, ...]], int], player: int) -> bool:
    def loses(position: tuple[int, ...]) -> bool:
        result = plain.outcome(position)
        if result is not None:
            return result * (1 - 2 * player) < 0
        ours = plain.to_play(position) == player
        actions = [choose(position)] if ours else plain.legal(position)
        return any(loses(plain.step(position, action)) for action in actions)

    return loses(plain.initial())


def test_a_perfect_player_never_loses_from_the_start() -> None:
    assert loses_from_start(GAME, perfect) == StartLosses(moving_first=False, moving_second=False)


def test_a_careless_player_loses_as_either_side() -> None:
    assert loses_from_start(GAME, first_legal) == StartLosses(moving_first=True, moving_second=True)


def test_one_mistake_as_second_player_is_found() -> None:
    # After a corner only the center draws.
    assert loses_from_start(GAME, perfect_but("X·· ··· ···", "c3")) == StartLosses(
        moving_first=False, moving_second=True
    )


def test_a_mistake_in_a_position_that_the_player_avoids_does_not_lose() -> None:
    avoided = "·X· O·· ···"  # the perfect player of this test starts in the corner
    assert perfect(np.zeros((1, 2), np.int64)).tolist() == [0]
    worst = int(np.nanargmin(POSITIONS.action_values[(POSITIONS.states == state(avoided)).all(axis=1)][0]))
    choose = perfect_but(avoided, GAME.action_label(worst))
    assert loses_from_start(GAME, choose) == StartLosses(moving_first=False, moving_second=False)


@pytest.mark.parametrize(("heap", "lost"), [(15, StartLosses(False, True)), (16, StartLosses(True, False))])
def test_nim_is_lost_by_the_side_that_faces_a_multiple_of_four(heap: int, lost: StartLosses) -> None:
    def leave_a_multiple_of_four(states: Array) -> Array:
        return np.maximum(states[:, 0] % 4, 1) - 1

    assert loses_from_start(PlainRules(games.Nim(heap)), leave_a_multiple_of_four) == lost


@pytest.mark.parametrize("plain", [games.Nim(10), games.MovesTwice(10)], ids=lambda plain: plain.name)
def test_the_walk_agrees_with_a_recursive_one(plain: games.Nim) -> None:
    game = PlainRules(plain)
    for seed in range(30):
        table = np.random.default_rng(seed).integers(3, size=(11, 11))

        def choose_one(position: tuple[int, ...], table: Array = table) -> int:
            return min(int(table[position]), position[0] - 1)

        def choose(states: Array, choose_one: Callable[[tuple[int, ...]], int] = choose_one) -> Array:
            return np.array([choose_one(tuple(row)) for row in states.tolist()])

        losses = loses_from_start(game, choose)
        assert losses == tuple(loses_by_recursion(plain, choose_one, player) for player in (0, 1))


@pytest.mark.parametrize(
    ("heap", "lost", "reported"),
    [
        (15, StartLosses(False, None), "never loses from the start moving first"),
        (16, StartLosses(None, False), "never loses from the start moving second"),
    ],
)
def test_losses_against_best_play_do_not_count(heap: int, lost: StartLosses, reported: str) -> None:
    def leave_a_multiple_of_four(states: Array) -> Array:
        return np.maximum(states[:, 0] % 4, 1) - 1

    game = PlainRules(games.Nim(heap))
    evaluation = evaluate(game, solve(game).position_sets(), leave_a_multiple_of_four, leave_a_multiple_of_four)
    assert evaluation.losses == lost
    assert evaluation.perfect
    assert str(evaluation).endswith(reported)
    assert len([name for name in evaluation.to_dict() if name.startswith("loses/")]) == 1


def test_avoidable_losses_are_reported() -> None:
    game = PlainRules(games.Nim(15))
    evaluation = evaluate(
        game, solve(game).position_sets(), lambda states: states[:, 0] * 0, lambda states: states[:, 0] * 0
    )
    assert evaluation.losses == StartLosses(True, None)
    assert not evaluation.perfect
    assert str(evaluation).endswith("loses from the start moving first")


def test_a_game_that_is_cut_off_is_not_lost() -> None:
    game = PlainRules(games.ENDLESS)
    assert loses_from_start(game, lambda states: states[:, 0] % 2) == StartLosses(False, False)


def test_each_position_is_visited_once_in_a_game_with_cycles() -> None:
    asked = []

    def choose(states: Array) -> Array:
        asked.extend(state.tobytes() for state in states)
        return np.zeros(len(states), np.int64)

    loses_from_start(PlainRules(games.ENDLESS), choose)
    assert len(asked) == 10  # five places of the wheel, with either player to move
    assert len(set(asked)) == 10


def test_a_long_game_is_walked_without_recursion() -> None:
    game = PlainRules(games.CHAIN)
    assert loses_from_start(game, lambda states: states[:, 0] % 2) == StartLosses(
        moving_first=False, moving_second=True
    )


# ---------------------------------------------------------------- the report


def test_a_perfect_model_is_reported_as_perfect() -> None:
    evaluation = evaluate(GAME, [POSITIONS], perfect, first_legal)
    assert evaluation.perfect
    assert str(evaluation) == (
        "all positions: searched move wrong in 0 of 4,520, raw network in 1,869; never loses from the start"
    )


def test_the_report_says_on_which_side_a_model_loses() -> None:
    evaluation = evaluate(GAME, [POSITIONS], perfect_but("X·· ··· ···", "c3"), perfect)
    assert not evaluation.perfect
    assert str(evaluation) == (
        "all positions: searched move wrong in 1 of 4,520, raw network in 0; loses from the start moving second"
    )


def test_a_mistake_that_does_not_lose_from_the_start_is_not_perfect() -> None:
    assert not CheckResult(
        (Errors("some", SEARCHED, Rate(1, 10)), Errors("some", RAW, Rate(0, 10))), StartLosses(False, False)
    ).perfect


def test_the_report_has_figures_for_logs() -> None:
    assert evaluate(GAME, [POSITIONS], perfect, first_legal).to_dict() == {
        "all positions/positions": 4520,
        "all positions/searched_mistakes": 0,
        "all positions/raw_mistakes": 1869,
        "loses/moving_first": False,
        "loses/moving_second": False,
    }


def test_a_sample_of_positions_does_not_prove_a_player_perfect() -> None:
    sample = PositionSet("sample", POSITIONS.states[:100], POSITIONS.action_values[:100])
    evaluation = evaluate(GAME, [sample], perfect, perfect)
    assert evaluation.losses is None
    assert not evaluation.perfect
    assert str(evaluation) == "sample: searched move wrong in 0 of 100, raw network in 0"
    assert "loses/moving_first" not in evaluation.to_dict()


def test_no_positions_prove_nothing() -> None:
    evaluation = evaluate(GAME, [], perfect, perfect)
    assert not evaluation.perfect


def test_each_position_is_searched_once() -> None:
    asked = []

    def counting(states: Array) -> Array:
        asked.extend(state.tobytes() for state in states)
        return perfect(states)

    evaluate(GAME, [POSITIONS], counting, perfect)
    assert len(asked) == len(set(asked)) == 4520


# ---------------------------------------------------------------- what games offer


def game_module(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, positions: str) -> str:
    (folder / f"{name}.py").write_text(
        "import numpy as np\nfrom seraphim.game.solved import PositionSet\n"
        "from tictactoe.game import GAME\n\n\n"
        f"def position_sets(split):\n    return [PositionSet('mine', {positions})]\n"
    )
    monkeypatch.syspath_prepend(folder)
    return name


def test_a_game_may_offer_no_positions() -> None:
    assert load_position_sets("games") == []


def test_positions_of_the_wrong_shape_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = game_module(tmp_path, monkeypatch, "misshapen", "GAME.initial(4), np.zeros((4, 7))")
    with pytest.raises(
        GameError, match=r"'mine' of misshapen has states \(4, 2\) and action values \(4, 7\): expected"
    ):
        load_position_sets(name)


def test_values_for_illegal_actions_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = game_module(tmp_path, monkeypatch, "liberal", "np.array([[1, 0]]), np.zeros((1, 9))")
    with pytest.raises(GameError, match="a value for each legal action and NaN for all others") as caught:
        load_position_sets(name)
    assert str(caught.value).endswith("1 X · ·\n2 · · ·\n3 · · ·")


def test_finished_positions_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = game_module(tmp_path, monkeypatch, "finished", "np.array([[7, 24]]), np.full((1, 9), np.nan)")
    with pytest.raises(GameError, match="'mine' of finished must hold unfinished positions"):
        load_position_sets(name)


def test_evaluation_needs_no_more_than_the_protocol() -> None:
    game: Game = PlainRules(games.PLAIN_TICTACTOE)
    assert loses_from_start(game, lambda states: game.legal(states).argmax(axis=1)) == StartLosses(True, True)
