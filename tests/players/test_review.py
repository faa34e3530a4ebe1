"""Reviews of whole games, against solved games, and against the search of each position."""

import itertools
import json
from collections.abc import Callable, Sequence

import games
import numpy as np
import pytest
from knows_the_end import GAME as KNOWS_THE_END
from reference import ArbitraryNetwork

import connectfour
import seraphim
import tictactoe
from seraphim.errors import GameError, SettingsError
from seraphim.game import Array, Game, PlainGame, load_game
from seraphim.game.tree import GameTree
from seraphim.players.review import GameMoves, GameReview

LINE = "d3 c3 e6 d2 d1 e1 b2 c1"  # of Othello; X must pass


def random_game(game: Game, seed: int) -> list[int]:
    random, tree = np.random.default_rng(seed), GameTree(game)
    while legal := tree.legal():
        tree.play(int(random.choice(legal)))
    return tree.actions()


def states_along(game: Game, actions: list[int]) -> list[Array]:
    (state,) = game.initial(1)
    states = [state]
    for action in actions:
        states.append(game.step(states[-1][None], np.array([action]))[0])
    return states


def check_sums(review: GameReview) -> None:
    """What the moves of player 0 lost, less what those of player 1 lost, is the change of the chance of winning."""
    assert len(review.values) == len(review.exact) == len(review.moves) + 1
    for (before, after), move in zip(itertools.pairwise(review.chances), review.moves, strict=True):
        assert move.lost == pytest.approx(after - before if move.player else before - after)
    lost = sum(-move.lost if move.player else move.lost for move in review.moves)
    assert lost == pytest.approx(review.chances[0] - review.chances[-1])
    assert all(move.lost >= review.threshold for move in review.mistakes)
    assert all(move.better == move.line[0] != move.label for move in review.mistakes)


def check_exact(review: GameReview, results: list[Array], first: int = 0) -> None:
    """The mistakes from a ply on are the moves that change the exact result, and what is better keeps it."""
    best = [np.nanmax(each) for each in results]
    wrong = [
        move.ply
        for move, each, most in zip(review.moves, results, best, strict=True)
        if move.ply > first and each[move.action] < most
    ]
    mistakes = [move for move in review.mistakes if move.ply > first]
    assert [move.ply for move in mistakes] == wrong
    for move in mistakes:
        each, most = results[move.ply - 1], best[move.ply - 1]
        assert each[load_game(review.game).parse_action(move.better)] == most
        assert move.lost == (most - each[move.action]) / 2
    check_sums(review)


# ---------------------------------------------------------------- exact results


@pytest.mark.parametrize("seed", range(12))
def test_mistakes_at_tictactoe_are_the_moves_that_change_the_result(seed: int) -> None:
    game = tictactoe.GAME
    actions = random_game(game, seed)
    *states, last = states_along(game, actions)
    results = [tictactoe.action_results(state, 0.0).results for state in states]
    review = seraphim.Model("tictactoe", readouts=20).review(actions)
    check_exact(review, results)
    signs = 1 - 2 * game.to_play(np.stack(states)).astype(int)
    assert review.values == (*(signs * np.nanmax(results, axis=1)), game.outcome(last[None])[1][0])
    assert all(review.exact)
    assert review.ended


@pytest.mark.parametrize("seed", range(6))
def test_an_exact_evaluation_finds_the_same_mistakes_without_the_solver_of_the_game(seed: int) -> None:
    def exact(states: Array) -> tuple[Array, Array]:
        results = np.stack([tictactoe.action_results(state, 0.0).results for state in states])
        best = np.nanmax(results, axis=1)
        return np.where(results == best[:, None], 0.0, -20.0), best

    model, actions = seraphim.Model("tictactoe", exact, readouts=400, solver=False), random_game(tictactoe.GAME, seed)
    searched, solved = model.review(actions, seconds=0), model.review(actions)
    assert not all(searched.exact)
    assert [move.ply for move in searched.mistakes] == [move.ply for move in solved.mistakes]
    assert searched.values == pytest.approx(solved.values, abs=0.1)
    check_sums(searched)


@pytest.mark.parametrize(("moves", "first"), [("444373534725356", 8), ("3773155656777756115", 10)])
def test_mistakes_at_connect_four_are_the_moves_that_change_the_result(moves: str, first: int) -> None:
    states = states_along(connectfour.GAME, [int(move) - 1 for move in moves])[:-1]
    results = [np.full(7, np.nan)] * first
    for state in states[: first - 1 : -1]:  # from the end, as the solver remembers
        results.insert(first, connectfour.action_results(state, 60.0).results)
    review = seraphim.Model("connectfour", readouts=4).review(moves, seconds=2.0)
    assert all(review.exact[first:])
    assert any(move.ply > first for move in review.mistakes)
    check_exact(review, [np.nan_to_num(each, nan=-2) for each in results], first)


def test_the_search_proves_what_the_game_does_not_tell() -> None:
    def best(state: tuple[int, ...]) -> float:
        """The result for player 0 by plain minimax."""
        result = game.outcome(state)
        if result is not None:
            return result
        values = [best(game.step(state, action)) for action in game.legal(state)]
        return min(values) if game.to_play(state) else max(values)

    game = games.MovesTwice(9)
    model, wrong = seraphim.Model(game, readouts=2000, solver=True), set()
    for seed in range(20):
        actions = random_game(model.game, seed)
        review = model.review(actions)
        values = tuple(best(tuple(state)) for state in states_along(model.game, actions))
        assert all(review.exact)
        assert review.values == values
        assert [move.player for move in review.moves] == [(ply + 1) // 2 % 2 for ply in range(len(actions))]
        changed = [ply for ply, (one, other) in enumerate(itertools.pairwise(values), start=1) if one != other]
        assert [move.ply for move in review.mistakes] == changed
        assert all(move.lost == 1 for move in review.mistakes)
        wrong |= {move.ply for move in review.mistakes}
        check_sums(review)
    assert len(wrong) > 2


def test_results_that_the_rules_know_are_exact() -> None:
    model = seraphim.Model("knows_the_end", readouts=1, solver=False, known_results=False)
    for seed in range(6):
        actions = random_game(KNOWS_THE_END, seed)
        states = states_along(KNOWS_THE_END, actions)
        known, results = KNOWS_THE_END.known_results(np.stack(states[:-1]))
        for place in np.flatnonzero(known & (KNOWS_THE_END.legal(np.stack(states[:-1])).sum(axis=1) > 1)):
            review = model.review(actions[:place], seconds=0)  # unfinished
            assert (review.values[-1], review.exact[-1]) == (results[place], True)


def test_a_position_is_worth_what_a_move_in_it_is_known_to_be() -> None:
    model = seraphim.Model("tictactoe", readouts=1, solver=False)
    review = model.review("a1 b1 a2 b2 a3", seconds=0)
    assert review.values[-2:] == (1, 1)
    assert review.exact[-3:] == (False, True, True)
    model = seraphim.Model("tictactoe", lambda states: (np.zeros((len(states), 9)), np.full(len(states), 0.5)))
    drawn = model.review("b2 a1 c3 a2 a3 c1 b1 b3 c2", readouts=2, seconds=0)
    assert drawn.values[-1] == 0
    assert drawn.exact[-2:] == (True, True)  # the last move is forced
    review = model.review("a1 b2 b1 c1 a3 a2 c2 b3 c3", readouts=2, seconds=0)  # a draw
    forced, choice = review.values[-2], review.values[-3]
    assert (forced, choice) == (0, 0)  # O could at least draw, by b3
    assert review.exact[-3:] == (False, True, True)


def test_a_forced_move_loses_nothing() -> None:
    model = seraphim.Model("othello", ArbitraryNetwork(load_game("othello"), 1), readouts=8)
    review = model.review(f"{LINE} pass", seconds=0)
    assert review.moves[-1].lost == 0
    assert review.values[-1] == review.values[-2] == model.analyze(f"{LINE} pass").value * -1
    chain = seraphim.Model(games.Chain(30), readouts=4).review([0, 1] * 15)
    assert set(chain.values) == {1}
    assert not chain.mistakes


class Late(PlainGame):
    """Player 0 wins by 3 steps of its own, or after 6 forced moves; but games are cut off after 4 plies."""

    name, num_actions, state_words, max_plies, observation_shape = "late", 2, 2, 4, (1,)

    def __init__(self, forced: bool) -> None:
        self._forced = forced

    def initial(self) -> tuple[int, ...]:
        return (0, 0)

    def step(self, state: tuple[int, ...], action: int) -> tuple[int, ...]:
        return (state[0] + (self._forced or (action and not state[1] % 2)), state[1] + 1)

    def legal(self, state: tuple[int, ...]) -> Sequence[int]:
        return (0,) if self._forced else (0, 1)

    def to_play(self, state: tuple[int, ...]) -> int:
        return state[1] % 2

    def outcome(self, state: tuple[int, ...]) -> float | None:
        return 1.0 if state[0] >= (6 if self._forced else 3) else -1.0 if state[1] >= 8 else None

    def observe(self, state: tuple[int, ...]) -> Array:
        return np.zeros(1, np.uint8)

    def is_position(self, state: Array) -> bool:
        return bool(0 <= state[0] <= state[1])


@pytest.mark.parametrize(("forced", "moves"), [(True, [0, 0, 0, 0]), (False, [1, 0, 1, 0])])
def test_a_cut_off_is_no_result(forced: bool, moves: list[int]) -> None:
    model = seraphim.Model(Late(forced), readouts=400)
    for plies in range(5):
        review = model.review(moves[:plies])
        assert review.values == (1,) * (plies + 1)  # by the rules, which know no cut-off
        assert (all(review.exact), review.mistakes, review.ended) == (True, (), False)
    *_, before, _ = states_along(model.game, moves)
    tree = GameTree(model.game, before)  # as from a drawing, after any number of plies
    for action in moves[:2]:
        tree.play(action)
    assert model.review(tree).values == (1,) * 3
    assert model.review(tree).ended is (not model.game.legal(tree.node.state[None]).any())
    unknown = seraphim.Model(games.ENDLESS, readouts=5).review([0] * 20)
    assert (set(unknown.values), any(unknown.exact), unknown.ended) == ({0}, False, False)


# ---------------------------------------------------------------- searches


@pytest.mark.parametrize("name", ["connectfour", "tictactoe", "othello"])
def test_values_are_those_of_the_search_of_each_position(name: str) -> None:
    game = load_game(name)
    model = seraphim.Model(name, ArbitraryNetwork(game, 3), readouts=30)
    actions = random_game(game, 4)[:7]  # unfinished
    review = model.review(actions, seconds=0)
    assert not review.ended
    assert review == model.review(actions, seconds=0)
    for value, exact, state in zip(review.values, review.exact, states_along(game, actions), strict=True):
        found = model.analyze(state)
        assert value == found.to_dict()["value_first"]
        assert exact == found.proven
    check_sums(review)


def test_what_is_better_is_the_most_visited_other_move_that_promises_more() -> None:
    game = load_game("connectfour")
    model, found = seraphim.Model(game, ArbitraryNetwork(game, 3), readouts=12, solver=False), 0
    for seed in range(20):
        actions = random_game(game, seed)[:6]  # nobody can have won
        states = states_along(game, actions)
        for move in model.review(actions, threshold=0.05, seconds=0).mistakes:
            sign = -1 if move.player else 1
            after = sign * model.analyze(states[move.ply]).to_dict()["value_first"]
            searched = model.analyze(states[move.ply - 1])
            promising = [
                each for each in searched.moves if each.action != move.action and each.visits and each.value > after
            ]
            assert move.better == promising[0].label
            found += 1
            (state,) = game.step(states[move.ply - 1][None], np.array([promising[0].action]))
            assert move.line == (move.better, *model.analyze(state).moves[0].variation)
    assert found > 5


def test_a_move_is_no_mistake_where_nothing_better_is_known() -> None:
    def only_the_middle(states: Array) -> tuple[Array, Array]:
        """One move of X is worth more than the others, until it has been made."""
        first, _ = states.T
        values = np.where(first == 1 << 4, -0.5, 0.9)
        return np.where(np.arange(9) == 4, 1.0, 0.0) * np.ones((len(states), 1)), values

    review = seraphim.Model("tictactoe", only_the_middle, solver=False).review("b2", 2, threshold=0.05, seconds=0)
    assert review.moves[0].lost > 0.05
    assert not review.mistakes


def test_fewer_moves_are_mistakes_by_a_higher_threshold() -> None:
    model = seraphim.Model("tictactoe", readouts=20)
    actions = random_game(tictactoe.GAME, 0)
    lost = [move.lost for move in model.review(actions).moves]
    assert {0.5, 1.0} & set(lost)
    for threshold in (0.2, 0.5, 0.51, 1.0):
        review = model.review(actions, threshold=threshold)
        assert [move.lost for move in review.mistakes] == [each for each in lost if each >= threshold]
        assert review.worst(0) == sorted(review.worst(0, 9), key=lambda move: -move.lost)[:3]
        assert all(move.player == 1 for move in review.worst(1, 1))


# ---------------------------------------------------------------- games for these tests


def test_moves_are_a_text_a_list_of_labels_or_of_actions_or_a_tree() -> None:
    model, tree = seraphim.Model("tictactoe", readouts=8), GameTree(tictactoe.GAME)
    for action in (4, 0, 8):
        tree.play(action)
    tree.go(tree.root)
    expected = model.review("b2 a1 c3")
    forms: list[GameMoves] = [["b2", "a1", "c3"], [4, 0, 8], np.array([4, 0, 8]), ("b2", "a1", "c3"), tree]
    for moves in forms:
        assert model.review(moves) == expected
    for once in (iter(["b2", "a1", "c3"]), map(int, "408"), reversed([8, 0, 4])):
        assert model.review(once) == expected
    nim = seraphim.Model(games.NIM, readouts=8)  # whose labels have spaces
    assert nim.review(["take 1", "take 3"]) == nim.review("take 1, take 3") == nim.review([0, 2])


class Misere(games.Nim):
    """Other rules under a name that is taken."""

    def outcome(self, state: tuple[int, ...]) -> float | None:
        result = super().outcome(state)
        return None if result is None else -result


def test_a_tree_is_not_believed() -> None:
    for name, words in (
        *(("tictactoe", [0, 512]), ("tictactoe", [0, 511]), ("tictactoe", [7, 0])),
        *(("connectfour", [0, 1 << 55]), ("othello", [0, 0])),
    ):
        tree = GameTree(load_game(name), np.array(words, np.int64))
        for action in tree.legal()[:1]:
            tree.play(action)
        with pytest.raises(GameError, match=f"not a position of {name}: play does not lead there"):
            seraphim.Model(name, readouts=8).review(tree)
    for one, other in ((games.NIM, Misere()), (Misere(), games.NIM)):
        tree = GameTree(seraphim.Model(one).game)
        tree.play(0)
        assert seraphim.Model(one, readouts=8).review(tree) == seraphim.Model(one, readouts=8).review([0])
        with pytest.raises(GameError, match="a game of 'nim', not 'nim', or by other rules of that name"):
            seraphim.Model(other, readouts=8).review(tree)
    state = np.array([3, 8], np.int64)
    drawn = seraphim.Model("tictactoe", readouts=8).review(GameTree(tictactoe.GAME, state))
    assert drawn == seraphim.Model("tictactoe", readouts=8).review("X X . / O . . / . . .")
    with pytest.raises(GameError, match="nim cannot check a position"):
        seraphim.Model(games.NIM, readouts=8).review(GameTree(seraphim.Model(games.NIM).game, np.array([3, 1])))


def test_a_game_without_moves_and_a_drawn_board_are_one_position() -> None:
    model = seraphim.Model("tictactoe", readouts=8)
    for review in (model.review(""), model.review([])):
        assert (review.values, review.moves, review.mistakes, review.ended) == ((0,), (), (), False)
    board = model.review("X X . / O O . / . . .")
    assert (board.values, board.exact) == ((1,), (True,))
    assert "of 0 moves 0 lost" in str(board)


def test_a_review_prints_as_a_table_and_is_json() -> None:
    review = seraphim.load("tictactoe").review("b2 b1 a1 c3 a2 a3")
    head, names, *rows = str(review).splitlines()
    assert head == "tictactoe, 100 readouts; of 6 moves 1 lost at least 20% of a win"
    assert names.split() == ["ply", "player", "move", "first", "wins", "lost", "better"]
    assert [row.split()[:5] for row in rows[:2]] == [
        ["1", "first", "b2", "50.0%=", "0.0%"],
        ["2", "second", "b1", "100.0%=", "50.0%"],
    ]
    assert " ".join(review.mistakes[0].line) in rows[1]
    told = json.loads(json.dumps(review.to_dict()))
    assert set(told) == {
        *("game", "threshold", "readouts", "values", "exact", "ended", "moves", "chances", "mistakes"),
    }
    assert (told["values"], told["chances"]) == (list(review.values), list(review.chances))
    assert told["mistakes"] == [2]
    assert told["moves"][1] == {
        "ply": 2,
        "player": 1,
        "label": "b1",
        "action": 1,
        "lost": 0.5,
        "better": review.mistakes[0].better,
        "line": list(review.mistakes[0].line),
    }


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda model: model.review("b2 b2"), GameError, "move 2: b2 is not legal here"),
        (lambda model: model.review("b2 z9"), GameError, "move 2: "),
        (lambda model: model.review(["b2", "z9"]), GameError, "move 2: "),
        (lambda model: model.review([4, 4]), GameError, "move 2: b2 is not legal here"),
        (lambda model: model.review([4, 99]), GameError, "move 2: 99 is not legal here"),
        (lambda model: model.review([4, "a1"]), GameError, "a text or a list of labels or actions, not"),
        (lambda model: model.review([4, 0.5]), GameError, "a text or a list of labels or actions, not"),
        (lambda model: model.review([4, True]), GameError, r"labels or actions, not \[4, True\]"),
        (lambda model: model.review([False]), GameError, r"labels or actions, not \[False\]"),
        (lambda model: model.review(np.array([True])), GameError, "labels or actions, not"),
        (lambda model: model.review({4, 0}), GameError, "labels or actions, not {0, 4}"),
        (lambda model: model.review(frozenset({"b2"})), GameError, "labels or actions, not frozenset"),
        (lambda model: model.review({"b2": 1}), GameError, "labels or actions, not {'b2': 1}"),
        (lambda model: model.review(None), GameError, "a text or a list of labels or actions, not None"),
        (lambda model: model.review(GameTree(connectfour.GAME)), GameError, "a game of 'connectfour', not 'tictactoe'"),
        (lambda model: model.review("a1 a2 b1 b2 c1 c2"), GameError, "move 6: the game is over here"),
        (lambda model: model.review("b2", readouts=0), SettingsError, "readouts must be at least 1"),
        (lambda model: model.review("b2", threshold=0), SettingsError, "threshold must be above 0"),
        (lambda model: model.review("b2", threshold=1.5), SettingsError, "threshold must be above 0 to 1"),
        (lambda model: model.review("b2", seconds=-1), SettingsError, "seconds must be at least 0"),
        (lambda model: model.review("b2", seconds=float("nan")), SettingsError, "seconds must be"),
    ],
)
def test_what_is_no_game_or_out_of_range_is_refused(
    call: Callable[[seraphim.Model], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call(seraphim.Model("tictactoe", readouts=8))


class Alone(games.Nim):
    """A game of one player."""

    num_players = 1


@pytest.mark.parametrize(("game", "kind"), [("pig", "chance"), (Alone(), "one player")])
@pytest.mark.parametrize("moves", [[], [0], [2] * 5])
def test_games_of_chance_or_of_one_player_are_refused(game: str | PlainGame, kind: str, moves: list[int]) -> None:
    with pytest.raises(GameError, match=f"is a game of {kind}, which is not played here"):
        seraphim.Model(game, readouts=8).review(moves)
