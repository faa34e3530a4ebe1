"""Games for more than two players: the contract, plain rules, and the bounds of what each player gets."""

import itertools
import math
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from seraphim.errors import GameError
from seraphim.game import CHANCE, Array, PlainGame, PlainRules
from seraphim.game.conformance import check_agreement, check_game
from seraphim.game.exhaustive import Solution, UnsolvedError, solve
from seraphim.game.features import check_two_players, is_combinatorial, num_columns, num_players
from threes.plain import PlainThrees

Words = tuple[int, ...]
Results = tuple[float, ...]


class Nim(PlainGame):
    """Three players in turn take any number from one of some heaps; who takes the last wins. The mover is last."""

    name = "nim of three"
    num_players = 3
    words_behind = 1

    def __init__(self, *heaps: int) -> None:
        self.heaps, self.most = heaps, max(heaps)
        self.num_actions, self.max_plies = len(heaps) * self.most, 2 * sum(heaps)
        self.state_words = len(heaps) + self.words_behind
        self.observation_shape = (len(heaps), 2)

    def initial(self) -> Words:
        return (*self.heaps, *[0] * self.words_behind)

    def step(self, state: Words, action: int) -> Words:
        heap, taken = divmod(action, self.most)
        heaps = [have - (taken + 1) * (place == heap) for place, have in enumerate(state[: len(self.heaps)])]
        return (*heaps, (self.to_play(state) + 1) % 3)

    def legal(self, state: Words) -> Sequence[int]:
        return [action for action in range(self.num_actions) if state[action // self.most] > action % self.most]

    def to_play(self, state: Words) -> int:
        return state[len(self.heaps)]

    def outcome(self, state: Words) -> Results | None:
        if any(state[: len(self.heaps)]):
            return None
        winner = (state[len(self.heaps)] - 1) % 3
        return tuple(1.0 if player == winner else -1.0 for player in range(3))

    def observe(self, state: Words) -> Array:
        return np.array([[heap, self.to_play(state)] for heap in state[: len(self.heaps)]])


class Skips(Nim):
    """The same, where chance makes a player miss a turn, one time in four."""

    name = "nim of three with chance"
    num_chance_outcomes = 2

    def step(self, state: Words, action: int) -> Words:
        *heaps, player = state
        if player >= 3:  # which chance comes after
            return (*heaps, (player + 1 + action) % 3)
        *heaps, _ = super().step(state, action)
        return (*heaps, player + 3) if any(heaps) else (*heaps, (player + 1) % 3)

    def to_play(self, state: Words) -> int:
        return CHANCE if state[-1] >= 3 else state[-1]

    def chances(self, _state: Words) -> Sequence[float]:
        return [0.75, 0.25]


class Taken(Nim):
    """The same as nim, where what a player takes counts a little."""

    name = "nim of three that counts"
    words_behind = 4
    bank_words = 3

    def step(self, state: Words, action: int) -> Words:
        before = state[: len(self.heaps) + 1]
        bank = [has + (action % self.most + 1) * (player == before[-1]) for player, has in enumerate(state[-3:])]
        return (*super().step(before, action), *bank)

    def banked(self, state: Words) -> Results:
        return tuple(has / 64 for has in state[-3:])

    def outcome(self, state: Words) -> Results | None:
        won = super().outcome(state[:-3])
        return None if won is None else tuple(w / 2 + has for w, has in zip(won, self.banked(state), strict=True))


class Tree(PlainGame):
    """A game given as nested choices: (mover, moves) or the results of the players; chance is a mover as well."""

    name, observation_shape, state_words, max_plies, num_players = "tree", (1,), 4, 4, 3
    num_actions, num_chance_outcomes = 3, 2

    def __init__(self, tree: Any) -> None:
        self.tree = tree

    def initial(self) -> Words:
        return (-1,) * 4

    def _at(self, state: Words) -> Any:
        found = self.tree
        for action in itertools.takewhile(lambda action: action >= 0, state):
            found = found[1][action]
        return found

    def step(self, state: Words, action: int) -> Words:
        plies = 4 - state.count(-1)
        return (*state[:plies], action, *state[plies + 1 :])

    def legal(self, state: Words) -> Sequence[int]:
        return range(len(self._at(state)[1]))

    def to_play(self, state: Words) -> int:
        return 0 if self.outcome(state) else self._at(state)[0]

    def chances(self, _state: Words) -> Sequence[float]:
        return [0.25, 0.75]

    def outcome(self, state: Words) -> Results | None:
        found = self._at(state)
        return None if isinstance(found[1], list) else found

    def observe(self, state: Words) -> Array:
        return np.zeros(1)


# ---------------------------------------------------------------- the contract

NIM, SKIPS, TAKEN, ALONE = Nim(2, 3), Skips(2, 2), Taken(2, 3), Nim(4)


def nim_with(base: type[Nim] = Nim, **members: object) -> Nim:
    return type("Broken", (base,), members)(2, 3)


def batched_with(plain: Nim, **members: Callable[[Array], Any]) -> PlainRules:
    rules = PlainRules(plain)
    vars(rules).update(members)
    return rules


RULES = {game: PlainRules(game) for game in (NIM, TAKEN)}


@pytest.mark.parametrize("game", [NIM, SKIPS, TAKEN], ids=lambda game: game.name)
def test_a_game_for_three_keeps_the_contract(game: Nim) -> None:
    report = check_game(game, games=50)
    assert report.num_players == num_columns(game) == num_players(game) == 3
    assert check_game(PlainRules(game), games=50).games == 50
    assert check_agreement(PlainRules(game), PlainRules(game), games=10).games == 10
    assert re.search(
        r"; mean results [-+]0\.\d\d of player 0, \S+ of player 1, \S+ of player 2; 0 cut off", str(report)
    )


def test_mean_results_are_those_of_the_games() -> None:
    tree: Any = (0, [(1.0, 0.5, -1.0), (1.0, 0.25, -1.0)])
    report = check_game(Tree(tree), games=400)
    assert report.means[0] == 1
    assert report.means[1] == pytest.approx(0.375, abs=0.05)
    assert report.means[2] == -1


def without_the_second(states: Array) -> tuple[Array, Array]:
    ended, results = RULES[TAKEN].outcome(states)
    return ended, results * np.array([1, 0, 1], np.float32)


@pytest.mark.parametrize(
    ("game", "message"),
    [
        (nim_with(outcome=lambda *_: (1.0, -1.0)), r"outcome must return 3 numbers, one for each player, but returned"),
        (nim_with(outcome=lambda *_: 1.0), r"outcome must return 3 numbers, one for each player, but returned 1.0"),
        (nim_with(outcome=lambda *_: ((1.0,), 1.0)), r"outcome must return 3 numbers, one for each player"),
        (nim_with(Taken, banked=lambda *_: (0.0,)), r"banked must return 3 numbers, one for each player, but returned"),
        (nim_with(outcome=lambda *_: (1.0, 0.0, -1.5)), r"a result must be from -1 to 1, but it is \[1.0, 0.0, -1.5\]"),
        (nim_with(to_play=lambda _, state: state[2] + 1), r"to_play must be 0 or 1 or 2, but it is 3"),
        (nim_with(num_players=9), "num_players must be an int from 1 to 8, but it is 9"),
        (nim_with(known_results=lambda *_: None), "known_results are for one or two players, but num_players is 3"),
        (
            nim_with(Taken, outcome=lambda _, state: TAKEN.outcome(state), banked=lambda *_: (0.0, 0.0, 0.0)),
            "a result must be what is banked and what does not depend on it",
        ),
        (nim_with(Taken, banked=lambda *_: (0.0, math.nan, 0.0)), "banked must be finite"),
        (
            batched_with(NIM, outcome=lambda states: (RULES[NIM].outcome(states)[0], np.ones(len(states)))),
            r"outcome must return bool \[20\] and float32 \[20, 3\], but returned bool \[20\] and float64 \[20\]",
        ),
        (
            batched_with(
                NIM, outcome=lambda states: (RULES[NIM].outcome(states)[0], np.ones((len(states), 3), np.float32))
            ),
            r"the result of an unfinished game must be 0, but it is \[1.0, 1.0, 1.0\]",
        ),
        (
            batched_with(TAKEN, banked=lambda states: np.zeros((len(states), 2), np.float32)),
            r"banked must return float32 \[20, 3\], but returned float32 \[20, 2\]",
        ),
        (
            batched_with(TAKEN, outcome=without_the_second),
            "a result must be what is banked and what does not depend on it",
        ),
    ],
)
def test_a_broken_rule_is_found(game: Any, message: str) -> None:
    with pytest.raises(GameError, match=message):
        check_game(game, games=20)


@pytest.mark.parametrize("method", ["outcome", "banked"])
def test_two_forms_must_agree_about_every_player(method: str) -> None:
    def of_the_second(self: Taken, state: Words) -> Results | None:
        results = getattr(TAKEN, method)(state)
        return None if results is None else (results[0], results[1] / 2, results[2])

    other = PlainRules(nim_with(Taken, **{"outcome": lambda _, state: TAKEN.outcome(state), method: of_the_second}))
    with pytest.raises(
        GameError, match=rf"the {'result' if method == 'outcome' else 'banked result'} must be the same"
    ):
        check_agreement(PlainRules(TAKEN), other, games=20)


def test_results_of_another_length_are_one_line() -> None:
    rules = PlainRules(nim_with(outcome=lambda *_: (1.0, -1.0)))
    with pytest.raises(
        GameError, match=r"^nim of three: outcome must return 3 numbers, one for each player, not \(1.0"
    ):
        rules.outcome(rules.initial(2))


def test_two_players_are_asked_for_by_name() -> None:
    assert not is_combinatorial(NIM)
    with pytest.raises(GameError, match="nim of three is a game of more than two players, which is not played here"):
        check_two_players(PlainRules(NIM))
    with pytest.raises(GameError, match="nim of three with chance is a game of chance"):
        check_two_players(PlainRules(SKIPS))


# ---------------------------------------------------------------- solved

KINGMAKER = (0, [(0.0, 1.0, -1.0), (0.0, -1.0, 1.0)])
UNSURE = (2, [(CHANCE, [KINGMAKER, (0.0, 0.5, 0.0)]), (1, [(0.0, 0.5, -0.5), (0.5, 0.5, 0.25)]), (0.0, 0.0, -1.0)])


def attainable(game: PlainGame) -> Callable[[Any], frozenset[Results]]:
    """All results that best play can have from a state, by the definition: each position breaks ties as it likes."""

    @cache
    def found(state: Any) -> frozenset[Results]:
        results: Any = game.outcome(state)
        if results is not None:
            return frozenset([tuple(results)])
        mover = game.to_play(state)
        if mover == CHANCE:
            chances = game.chances(state)  # type: ignore[attr-defined]
            after = [found(game.step(state, outcome)) for outcome in range(len(chances))]
            return frozenset(tuple(np.array(chances) @ np.array(each)) for each in itertools.product(*after))
        after = [found(game.step(state, action)) for action in game.legal(state)]
        sure = [min(each[mover] for each in results) for results in after]
        return frozenset(each for results in after for each in results if each[mover] >= max(sure) - 1e-9)

    return found


def compare(game: PlainGame, exact: bool) -> Solution:
    solution, of = solve(game), attainable(game)
    for row, state in enumerate(solution.states):
        known = np.array(sorted(of(tuple(state.tolist()))))
        least, most = known.min(axis=0), known.max(axis=0)
        assert (solution.low[row] <= least + 1e-6).all()
        assert (solution.high[row] >= most - 1e-6).all()
        if exact or not solution.decided_by_ties[row]:
            assert solution.low[row] == pytest.approx(least, abs=1e-6)
            assert solution.high[row] == pytest.approx(most, abs=1e-6)
        assert solution.decided_by_ties[row] >= bool((most - least > 1e-9).any())
    return solution


@pytest.mark.parametrize(
    "game", [Nim(3, 2), Nim(2, 2, 2), PlainThrees(2, 4), Tree(UNSURE), SKIPS, TAKEN, ALONE], ids=lambda each: each.name
)
def test_bounds_hold_all_that_best_play_can_bring(game: Nim) -> None:
    exact = isinstance(game, PlainThrees) or type(game) is Nim
    assert compare(game, exact).decided_by_ties.any() == (game not in (SKIPS, TAKEN, ALONE))


def test_mistakes_are_worth_less_however_ties_are_broken() -> None:
    for game in (Nim(3, 2), Skips(2, 2), Taken(2, 3)):
        solution, of = solve(game), attainable(game)
        for state, values in zip(solution.states, solution.action_values, strict=True):
            words = tuple(state.tolist())
            if np.isnan(values).all():
                continue
            mover = game.to_play(words)
            after = {action: [each[mover] for each in of(game.step(words, action))] for action in game.legal(words)}
            sure = max(min(each) for each in after.values())
            for action, each in after.items():
                assert values[action] == pytest.approx(min(max(each), sure), abs=1e-6)
            assert np.isnan(values[[action for action in range(game.num_actions) if action not in after]]).all()


def test_a_player_with_nothing_to_win_decides_who_else_does() -> None:
    solution = solve(Tree((1, [KINGMAKER, (0.5, 0.25, 0.5), (1.0, -1.0, 1.0)])))
    assert solution.low[0].tolist() == [0, 0.25, -1]
    assert solution.high[0].tolist() == [0.5, 1, 0.5]
    assert solution.action_values[0].tolist() == [0.25, 0.25, -1]  # the first may bring more than the second
    assert math.isnan(solution.results[0])
    assert solution.perfect_actions(solution.states[:1]).tolist() == [[True, True, False]]
    assert str(solution).endswith(
        "best play from the start ends in: +0.00 to +0.50, +0.25 to +1.00, -1.00 to +0.50 for the players; ties decide "
        "in 2 positions"
    )


def test_a_mover_is_sure_of_the_best_that_no_tie_can_take_away() -> None:
    solution = solve(Tree((1, [(CHANCE, [KINGMAKER, KINGMAKER]), (0.0, 0.5, 0.0)])))
    assert (solution.low[0, 1], solution.high[0, 1]) == (0.5, 1)
    assert solution.action_values[0, :2].tolist() == [0.5, 0.5]


def test_bounds_of_two_players_are_their_results() -> None:
    from pig.game import Pig
    from twenty48.game import Twenty48

    pig, puzzle = solve(Pig(10)), solve(Twenty48(2, 2))
    assert np.array_equal(pig.low, np.stack([pig.results, -pig.results], axis=1))
    assert np.array_equal(puzzle.low, puzzle.results[:, None])
    for solution in (pig, puzzle):
        assert np.array_equal(solution.low, solution.high)
        assert not solution.decided_by_ties.any()


def test_positions_that_recur_by_chance_are_not_solved_for_three() -> None:
    class Again(Skips):
        def step(self, state: Words, action: int) -> Words:
            return state if state[-1] >= 3 and action else super().step(state, action)

    with pytest.raises(UnsolvedError, match="it is for more than two players, and a position can recur by chance"):
        solve(Again(2, 1))


def test_ties_decide_in_most_positions_of_nim() -> None:
    assert str(solve(Nim(3, 4, 5))) == (
        "nim of three is solved: play can reach 332 positions, no game is longer than 12 plies, and best play from the "
        "start ends in: -1.00 to +1.00, -1.00 to +1.00, -1.00 to +1.00 for the players; ties decide in 254 positions"
    )
