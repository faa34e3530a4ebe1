"""The solver of connect four against minimax, OpenSpiel's rules and known facts; and the solved positions it made."""

import sys
from itertools import product
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np
import programs
import pyspiel
import pytest

from connectfour.bitsets import MIRRORED, completes, count, key_of, safe_moves
from connectfour.game import GAME, position_from_moves
from connectfour.lines import completing
from connectfour.plain import GAME as PLAIN
from connectfour.positions import FILES, FOLDER, NAMES, format_position, position_sets, states_outside_test
from connectfour.positions.generator import BOUNDS, SEEDS, generate
from connectfour.rules import FULL, ROWS, STRIDE
from connectfour.solver import Score, Solver
from seraphim.errors import GameError, SettingsError
from seraphim.evaluation.error_rates import find_mistakes
from seraphim.evaluation.position_lists import default_split, load_sets
from seraphim.game import Array
from seraphim.game.loading import MoveResults, PositionSet, Split
from seraphim.game.solved import load_position_sets
from seraphim.game.solved_files import play_games

SPLITS: tuple[Split, ...] = get_args(Split)
Cells = tuple[int, ...]
# Where the cells of the plain rules stand in a word of a state.
BITS = np.array([STRIDE * (cell % 7) + 5 - cell // 7 for cell in range(42)])
OTHER_WAY = np.arange(7)[::-1]


def random_positions(plies: int, number: int) -> list[str]:
    """Random games of so many plies that are not over, in digits; the same in every run."""
    generator = np.random.default_rng(plies)
    found: list[str] = []
    while len(found) < number:
        state, moves = GAME.initial(1), ""
        while len(moves) < plies and GAME.legal(state).any():
            action = generator.choice(np.flatnonzero(GAME.legal(state)[0]))
            state, moves = GAME.step(state, np.array([action])), moves + str(action + 1)
        if len(moves) == plies and GAME.legal(state).any():
            found.append(moves)
    return found


def to_cells(state: Array) -> Cells:
    """The same position as a state of the plain rules."""
    return tuple(((state[0] >> BITS & 1) + 2 * (state[1] >> BITS & 1)).tolist())


def minimax(cells: Cells, known: dict[Cells, Score]) -> Score:
    """What a position of the plain rules is worth, by looking at all that can follow."""
    if cells not in known:
        ended = PLAIN.outcome(cells)
        if ended is not None:
            known[cells] = Score(-int(abs(ended)), 0)  # who moves next has lost, if anybody has
        else:
            moves = [minimax(PLAIN.step(cells, action), known) for action in PLAIN.legal(cells)]
            known[cells] = max((Score(-move.result, move.plies + 1) for move in moves), key=preference)
    return known[cells]


def preference(score: Score) -> tuple[int, int]:
    """Wins before draws before losses; fast wins, slow losses."""
    return score.result, -score.plies if score.result > 0 else score.plies


def minimax_moves(cells: Cells) -> dict[int, Score]:
    """What each legal action is worth."""
    known: dict[Cells, Score] = {}
    below = {action: minimax(PLAIN.step(cells, action), known) for action in PLAIN.legal(cells)}
    return {action: Score(-score.result, score.plies + 1) for action, score in below.items()}


def known_moves(scores: MoveResults) -> dict[int, Score]:
    """The moves of which everything is known."""
    known = np.flatnonzero(~np.isnan(scores.plies))
    return {int(action): Score(int(scores.results[action]), int(scores.plies[action])) for action in known}


def mirrored(moves: str) -> str:
    return "".join(str(8 - int(digit)) for digit in moves)


@pytest.fixture(scope="module")
def solver() -> Solver:
    return Solver(64)


# ---------------------------------------------------------------- against minimax


@pytest.mark.kernels
@pytest.mark.parametrize("plies", [34, 36, 37, 38, 39, 40, 41])
@pytest.mark.slow
def test_every_move_near_the_end_is_worth_what_minimax_finds(plies: int) -> None:
    solver = Solver(2)
    for moves in random_positions(plies, 15):
        state = position_from_moves(moves)
        expected = minimax_moves(to_cells(state))
        best = max(expected.values(), key=preference)
        assert known_moves(solver.solve_moves(state)) == expected, moves
        assert solver.solve(state) == best, moves
        assert solver.solve_weakly(state) == best.result, moves


@pytest.mark.parametrize("plies", [*(pytest.param(plies, marks=pytest.mark.slow) for plies in (28, 29, 30, 31)), 32])
def test_every_move_of_the_last_third_is_worth_what_minimax_finds(plies: int, solver: Solver) -> None:
    for moves in random_positions(plies, 10 if plies > 28 else 2):
        state = position_from_moves(moves)
        assert known_moves(solver.solve_moves(state)) == minimax_moves(to_cells(state)), moves


def test_endgames_hold_wins_draws_and_losses_of_many_lengths() -> None:
    scores = {minimax(to_cells(position_from_moves(moves)), {}) for moves in random_positions(32, 100)}
    assert {score.result for score in scores} == {1, 0, -1}
    assert len(scores) >= 8


@pytest.mark.kernels
def test_results_alone_are_those_with_plies() -> None:
    solver = Solver(2)
    for moves in random_positions(34, 15):
        state = position_from_moves(moves)
        strong, weak = solver.solve_moves(state), solver.solve_moves(state, weak=True)
        assert np.array_equal(strong.results, weak.results, equal_nan=True)
        assert np.isnan(weak.plies).all()


def test_results_alone_are_those_with_plies_early_too(solver: Solver) -> None:
    for moves in random_positions(12, 30):
        state = position_from_moves(moves)
        solver.clear()
        score = solver.solve(state)
        solver.clear()
        assert score is not None
        assert solver.solve_weakly(state) == score.result, moves


@pytest.mark.parametrize("plies", [10, 20, 33, 40])
def test_a_question_of_so_many_plies_is_answered_if_the_game_ends_within_them(plies: int, solver: Solver) -> None:
    for moves in random_positions(plies, 5):
        state = position_from_moves(moves)
        score = solver.solve(state)
        assert score is not None
        for most in range(1, 43):
            assert solver.solve_within(state, most) == (score if score.plies <= most else None), (moves, most)


# ---------------------------------------------------------------- against what others know


@pytest.mark.parametrize("plies", [10, 13, 16, 23])
@pytest.mark.slow
def test_both_sides_bring_about_what_was_announced_by_openspiels_rules(plies: int, solver: Solver) -> None:
    rules = pyspiel.load_game("connect_four")
    for moves in random_positions(plies, 4):
        theirs, ours = rules.new_initial_state(), position_from_moves(moves)[None]
        for digit in moves:
            theirs.apply_action(int(digit) - 1)
        announced = solver.solve(ours[0])
        assert announced is not None
        mover, played = theirs.current_player(), 0
        while not theirs.is_terminal():
            scores = known_moves(solver.solve_moves(ours[0]))
            assert sorted(scores) == theirs.legal_actions()
            action = max(scores, key=lambda action: preference(scores[action]))
            theirs.apply_action(action)
            ours = GAME.step(ours, np.array([action]))
            played += 1
        assert (theirs.returns()[mover], played) == announced, moves


@pytest.mark.parametrize(
    ("moves", "score"),
    [
        # Two examples of http://blog.gamesolver.org/solving-connect-four/02-test-protocol/
        ("4455", Score(1, 3)),
        ("44455554221", Score(-1, 2)),
        ("444444", Score(1, 35)),  # the line of best play down the centre column is won with the 41st stone
    ],
)
def test_published_positions(moves: str, score: Score, solver: Solver) -> None:
    assert solver.solve(position_from_moves(moves)) == score


@pytest.mark.slow
def test_the_first_player_wins_with_the_41st_stone_in_the_centre_alone() -> None:
    # Allis 1988: the centre wins, its neighbours draw, the others lose. The plies are Tromp's and Pons'.
    scores = Solver(1024).solve_moves(GAME.initial(1)[0])
    assert scores.results.tolist() == [-1, -1, 0, 1, 0, -1, -1]
    assert scores.plies.tolist() == [40, 42, 42, 41, 42, 42, 40]


# ---------------------------------------------------------------- what must not matter


def test_mirror_images_are_worth_the_same(solver: Solver) -> None:
    for moves in [*random_positions(12, 8), *random_positions(20, 20), *random_positions(30, 30)]:
        solver.clear()
        scores = solver.solve_moves(position_from_moves(moves))
        solver.clear()
        others = solver.solve_moves(position_from_moves(mirrored(moves)))
        for one, other in zip(scores, others, strict=True):
            assert np.array_equal(one, other[OTHER_WAY], equal_nan=True), moves


def test_a_table_that_overflows_changes_no_answer(solver: Solver) -> None:
    small = Solver(2)
    games = random_positions(10, 10)
    assert [small.solve(position_from_moves(moves)) for moves in games] == [
        solver.solve(position_from_moves(moves)) for moves in games
    ]
    assert small.nodes > 3 * (2 * 2**20 / 8)  # entries


def test_what_was_solved_before_changes_no_answer() -> None:
    games = random_positions(12, 20)
    one, other = Solver(4), Solver(4)
    forwards = [one.solve(position_from_moves(moves)) for moves in games]
    backwards = [other.solve(position_from_moves(moves)) for moves in games[::-1]]
    assert forwards == backwards[::-1]


# ---------------------------------------------------------------- bounds


def test_what_is_not_proven_within_the_nodes_is_unknown_and_never_wrong(solver: Solver) -> None:
    unknown = known = partly = 0
    for moves in random_positions(14, 10):
        state = position_from_moves(moves)
        score, expected = solver.solve(state), solver.solve_moves(state)
        assert score is not None
        for nodes in (0, 1, 10, 100, 1_000, 10_000, 100_000):
            assert Solver(2).solve(state, nodes) in (None, score)
            assert Solver(2).solve_weakly(state, nodes) in (None, score.result)
            scores = Solver(2).solve_moves(state, nodes)
            for found, exact in zip(scores, expected, strict=True):
                assert (np.isnan(found) | (found == exact)).all(), (moves, nodes)
            unknown += int(np.isnan(scores.results).any())
            known += int(not np.isnan(scores.plies).any())
            partly += int((~np.isnan(scores.results) & np.isnan(scores.plies)).any())
    assert min(unknown, known, partly) >= 5


@pytest.mark.kernels
@pytest.mark.parametrize("nodes", [0, 1, 3, 10, 30])
def test_no_more_nodes_are_searched_than_allowed(nodes: int) -> None:
    for moves in random_positions(20, 3):
        solver = Solver(2)
        solver.solve_moves(position_from_moves(moves), nodes)
        assert solver.nodes <= nodes


def test_the_time_may_be_bounded() -> None:
    start = GAME.initial(1)[0]
    assert Solver(2).solve(start, max_seconds=0.2) is None
    assert np.isnan(Solver(2).solve_moves(start, max_seconds=0.5).plies).all()
    assert Solver(2).solve(position_from_moves("4455"), max_seconds=5) == Score(1, 3)


def test_a_search_in_slices_of_time_finds_what_one_in_one_piece_does(solver: Solver) -> None:
    for moves in random_positions(8, 3):
        state = position_from_moves(moves)
        one, other = Solver(16), Solver(16)
        assert one.solve(state, max_seconds=600) == other.solve(state)
        assert one.nodes == other.nodes


@pytest.mark.kernels
def test_a_move_that_ends_the_game_needs_no_search() -> None:
    scores = Solver(2).solve_moves(position_from_moves("121212"), max_nodes=0)
    assert known_moves(scores)[0] == Score(1, 1)
    last = Solver(2).solve_moves(position_from_moves(random_positions(41, 1)[0]), max_nodes=0)
    assert set(last.plies[~np.isnan(last.plies)]) == {1}


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("state", "problem"),
    [
        (np.zeros(3, np.int64), r"a state of connectfour has 2 words, not the shape \(3,\)"),
        (np.array([1, 1]), "stones overlap, float, or are not in turn"),
        (np.array([2, 0]), "stones overlap, float, or are not in turn"),
        (np.array([1 | 1 << 7, 0]), "stones overlap, float, or are not in turn"),
        (np.array([0, 1]), "stones overlap, float, or are not in turn"),
        (np.array([1 << 50, 0]), "stones overlap, float, or are not in turn"),
        (position_from_moves("1212121"), "there is nothing to solve, the game is over"),
    ],
)
def test_states_that_cannot_be_solved_are_refused(state: Array, problem: str, solver: Solver) -> None:
    for ask in (solver.solve, solver.solve_weakly, solver.solve_moves):
        with pytest.raises(GameError, match=problem):
            ask(state)


def test_a_table_without_room_is_refused() -> None:
    with pytest.raises(SettingsError, match="needs 2 megabytes or more, not 1"):
        Solver(1)


# ---------------------------------------------------------------- sets of cells


@pytest.mark.kernels
def test_cells_that_complete_four_are_those_with_which_there_are_four() -> None:
    for moves in random_positions(20, 20):
        state = position_from_moves(moves)
        for stones in state:
            found = completing(stones, ROWS)
            for bit in (bit for bit in range(49) if (FULL & ~(state[0] | state[1])) >> bit & 1):
                line = bool(GAME.outcome(np.array([[stones | np.int64(1) << bit, 0]]))[0][0])
                assert bool(found >> bit & 1) == line
                assert completes(stones | np.int64(1) << bit) == line
            assert count(stones) == int(stones).bit_count()


@pytest.mark.kernels
@pytest.mark.parametrize(
    ("playable", "threats", "safe"),
    [
        (0b100, 0b000, 0b100),  # no threat
        (0b100, 0b1000, 0b000),  # under the opponent's threat
        (0b100 | 1 << 7, 0b100, 0b100),  # a threat must be met
        (0b100 | 1 << 7, 0b1100, 0b000),  # and not by allowing the next
        (0b100 | 1 << 7, 0b100 | 1 << 7, 0b000),  # two cannot be met
    ],
)
def test_safe_moves_meet_a_threat_and_allow_none(playable: int, threats: int, safe: int) -> None:
    assert safe_moves(playable, threats) == safe


@pytest.mark.kernels
def test_positions_share_a_key_only_with_their_mirror_image_early() -> None:
    keys: dict[int, tuple[int, ...]] = {}
    for plies in (3, 5, 9, MIRRORED - 1, MIRRORED, 20, 33):
        for moves in random_positions(plies, 40):
            pair = []
            for game in (moves, mirrored(moves)):
                first, second = position_from_moves(game)
                mover = second if plies % 2 else first
                key = int(key_of(mover, first | second, plies))
                assert 0 <= key < 1 << 49
                pair.append(key)
                images = [
                    tuple(position_from_moves(game).tolist()),
                    tuple(position_from_moves(mirrored(game)).tolist()),
                ]
                position = min(images) if plies < MIRRORED else images[0]
                assert keys.setdefault(key, position) == position
            assert (pair[0] == pair[1]) == (plies < MIRRORED) or moves == mirrored(moves)


# ---------------------------------------------------------------- the sets of solved positions


class Solved(NamedTuple):
    """The positions of a file."""

    moves: list[str]
    states: Array
    results: Array
    plies: Array


def solved_of(positions: PositionSet) -> Solved:
    assert positions.lines is not None
    assert positions.plies is not None
    moves = ["".join(map(GAME.action_label, line)) for line in positions.lines]
    return Solved(moves, positions.states, positions.action_values, positions.plies)


def read_positions(name: str, split: Split = "validation") -> Solved:
    return solved_of(FILES.read(name, split))


class Best(NamedTuple):
    """The best move's score in each position."""

    results: Array
    plies: Array


def best_of(name: str) -> Best:
    solved = read_positions(name)
    values = solved.results * (1 - solved.plies / 100)  # prefers fast wins and slow losses
    rows, best = np.arange(len(values)), np.nanargmax(values, axis=1)
    return Best(solved.results[rows, best], solved.plies[rows, best])


@pytest.mark.parametrize("name", NAMES)
def test_a_set_holds_at_least_500_positions_that_belong_to_it(name: str) -> None:
    solved, best = read_positions(name), best_of(name)
    assert len(solved.moves) >= 500
    bounds = BOUNDS[name]
    assert all(bounds.fewest_moves <= len(moves) <= bounds.most_moves for moves in solved.moves)
    assert ((best.plies >= bounds.fewest_left) & (best.plies <= bounds.most_left)).all()
    assert not ((best.results != 0) & (best.plies <= 2)).any()
    assert not GAME.outcome(solved.states)[0].any()


def test_the_bounds_are_those_of_the_field() -> None:
    for name, bounds in BOUNDS.items():
        stage, difficulty = name.split("-")
        assert {"begin": (0, 14), "middle": (15, 28), "end": (29, 41)}[stage][1] == bounds.most_moves
        assert {"easy": 13, "medium": 27, "hard": 34}[difficulty] == bounds.most_left
    assert tuple(BOUNDS) == NAMES


def test_no_position_is_there_twice_nor_with_its_mirror_image_nor_in_two_splits_nor_in_a_former_test_set() -> None:
    seen: set[bytes] = set()
    for name, split in product(NAMES, (*SPLITS, "former")):
        solved = read_positions(name, split)
        _, images = play_games(GAME, [mirrored(moves) for moves in solved.moves])
        for state, image in zip(solved.states, images, strict=True):
            assert state.tobytes() not in seen
            seen |= {state.tobytes(), image.tobytes()}


def test_the_test_sets_hold_a_thousand_positions_each() -> None:
    assert [len(read_positions(name, "test").moves) for name in NAMES] == [1000] * 6


def check_sample(name: str, number: int, solver: Solver, split: Split) -> None:
    solved = read_positions(name, split)
    for row in np.random.default_rng(number).choice(len(solved.moves), number, replace=False):
        scores = solver.solve_moves(position_from_moves(solved.moves[row]))
        assert np.array_equal(scores.results, solved.results[row], equal_nan=True), solved.moves[row]
        assert np.array_equal(scores.plies, solved.plies[row], equal_nan=True), solved.moves[row]


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("middle-easy", 10),
        ("middle-medium", 6),
        ("end-easy", 20),
        *(
            pytest.param(*sample, marks=pytest.mark.slow)
            for sample in (("middle-easy", 100), ("middle-medium", 50), ("end-easy", 200))
        ),
    ],
)
def test_a_sample_of_the_later_sets_is_solved_again(name: str, number: int, solver: Solver) -> None:
    check_sample(name, number, solver, "validation")
    check_sample(name, number // 2, solver, "test")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["begin-easy", "begin-medium", "begin-hard"])
def test_a_sample_of_the_early_sets_is_solved_again(name: str) -> None:
    check_sample(name, 10, Solver(256), "validation")
    check_sample(name, 5, Solver(256), "test")


@pytest.mark.parametrize("number", [20, pytest.param(100, marks=pytest.mark.slow)])
def test_the_end_of_games_is_what_minimax_finds_in_the_set(number: int) -> None:
    solved = read_positions("end-easy")
    for row in range(number):
        expected = minimax_moves(to_cells(solved.states[row]))
        assert known_moves(MoveResults(solved.results[row], solved.plies[row])) == expected


def test_the_sets_are_offered_as_every_game_offers_them() -> None:
    sets = load_position_sets("connectfour")
    assert [one.name for one in sets] == list(NAMES)
    assert [one.name for one in position_sets()] == list(NAMES)
    test_sets = load_sets("connectfour", default_split("connectfour"))
    assert [one.name for one in test_sets] == [f"test/{name}" for name in NAMES]
    for one in [*sets, *test_sets]:
        assert set(np.unique(one.action_values[~np.isnan(one.action_values)])) == {-1, 0, 1}


def test_the_strong_error_counts_slower_wins_and_faster_losses() -> None:
    for positions in [*position_sets(), *load_sets("connectfour", "test")]:
        assert positions.plies is not None
        for row in range(50):
            moves = known_moves(MoveResults(positions.action_values[row], positions.plies[row]))
            best = max(map(preference, moves.values()))
            # The same position, once for each legal move.
            actions = np.array([*moves])
            states, values, plies = (
                np.repeat(each[[row]], len(moves), axis=0)
                for each in (positions.states, positions.action_values, positions.plies)
            )
            wrong = find_mistakes(PositionSet("one", states, values), actions, plies)
            assert wrong.tolist() == [preference(score) != best for score in moves.values()]
            weakly_wrong = find_mistakes(PositionSet("one", states, values), actions)
            assert not (weakly_wrong & ~wrong).any()


# ---------------------------------------------------------------- their files


def test_a_line_is_the_moves_and_a_score_for_each_column() -> None:
    line = "222222 -36 . -35 0 1 -2 36\n"
    solved = solved_of(FILES.parse("mine", line))
    assert solved.results[0].tolist() == pytest.approx([-1, np.nan, -1, 0, 1, -1, 1], nan_ok=True)
    assert solved.plies[0].tolist() == pytest.approx([36, np.nan, 35, 36, 1, 2, 36], nan_ok=True)
    assert format_position(solved.moves[0], solved.results[0], solved.plies[0]) + "\n" == line
    assert solved.states[0].tolist() == position_from_moves("222222").tolist()


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_read_and_written_without_a_change(name: str, split: Split) -> None:
    solved = read_positions(name, split)
    lines = [format_position(*one) + "\n" for one in zip(solved.moves, solved.results, solved.plies, strict=True)]
    assert "".join(lines) == (FOLDER / split / f"{name}.txt").read_text()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("44 1 2 3", "mine, line 1: expected moves and 7 scores, not 3"),
        ("4 1 1 1 1 1 1 1\n\n", "mine, line 2: expected moves and 7 scores, not 0"),
        ("44 1 2 3 x 5 6 7", "mine, line 1: a score is not a number of at most 40 plies: 'x'"),
        ("44 1 2 3 ٤ 5 6 7", "mine, line 1: a score is not a number of at most 40 plies: '٤'"),
        ("44 1 2 3 41 5 6 7", "mine, line 1: a score is not a number of at most 40 plies: '41'"),
        ("44 1 2 3 -41 5 6 7", "mine, line 1: a score is not a number of at most 40 plies: '-41'"),
        ("44 1 2 3 1_0 5 6 7", "mine, line 1: a score is not a number of at most 40 plies: '1_0'"),
        ("44 1 2 3 . 5 6 7", "mine, line 1: expected a score for each legal move alone"),
        ("444444 1 2 3 4 5 6 7", "mine, line 1: expected a score for each legal move alone"),
        ("4444444 1 2 3 . 5 6 7", "'4444444' is not a game: move 7 is not legal"),
        ("1212121 . . . . . . .\n12121212 . . . . . . .", "'12121212' is not a game: move 8 comes after its end"),
        (
            "48 1 2 3 4 5 6 7",
            "'48' is not a game: move 2: '8' is not a move of connectfour: expected one such as 1 or 7",
        ),
    ],
)
def test_damaged_files_are_refused(text: str, problem: str) -> None:
    with pytest.raises(GameError, match=problem):
        FILES.parse("mine", text)


def test_an_unknown_set_is_refused() -> None:
    with pytest.raises(GameError, match="there is no set 'end-hard' of solved positions: expected one of begin-easy, "):
        read_positions("end-hard")


@pytest.mark.parametrize("name", ["middle-easy", "middle-medium", "end-easy"])
def test_the_files_are_what_the_generator_makes(name: str, tmp_path: Path, solver: Solver) -> None:
    for split in SPLITS:
        excluded = states_outside_test(name) if split == "test" else None
        (tmp_path / split).mkdir()
        lines = list(generate(name, 12, SEEDS[split], tmp_path / split, solver, excluded=excluded))
        assert lines == (FOLDER / split / f"{name}.txt").read_text().splitlines()[:12]


def test_what_is_excluded_does_not_get_into_a_set_nor_does_its_mirror_image(tmp_path: Path, solver: Solver) -> None:
    for folder in ("all", "some"):
        (tmp_path / folder).mkdir()
    lines = list(generate("end-easy", 6, 3, tmp_path / "all", solver))
    games = [line.split(" ")[0] for line in lines]
    _, excluded = play_games(GAME, [games[1], mirrored(games[3])])
    assert list(generate("end-easy", 4, 3, tmp_path / "some", solver, excluded=excluded)) == [
        line for row, line in enumerate(lines) if row not in (1, 3)
    ]


def test_an_interrupted_file_is_continued_as_if_it_had_not_been(tmp_path: Path, solver: Solver) -> None:
    whole = list(generate("middle-easy", 9, 3, tmp_path, solver))
    path = tmp_path / "middle-easy.txt"
    path.write_text("\n".join(whole[:4]) + "\n" + whole[4][:-3])  # stopped while it wrote the fifth line
    assert list(generate("middle-easy", 9, 3, tmp_path, solver)) == whole[4:]
    assert path.read_text().splitlines() == whole
    assert list(generate("middle-easy", 9, 3, tmp_path, solver)) == []


def test_lines_of_another_seed_are_refused(tmp_path: Path, solver: Solver) -> None:
    list(generate("end-easy", 2, 1, tmp_path, solver))
    before = (tmp_path / "end-easy.txt").read_text()
    with pytest.raises(GameError, match="end-easy.txt is not of seed 2: give the seed that it was made with"):
        list(generate("end-easy", 3, 2, tmp_path, solver))
    assert (tmp_path / "end-easy.txt").read_text() == before


def test_another_seed_draws_other_positions(tmp_path: Path, solver: Solver) -> None:
    (tmp_path / "one").mkdir()
    assert list(generate("end-easy", 5, 1, tmp_path, solver)) != list(
        generate("end-easy", 5, 2, tmp_path / "one", solver)
    )


def test_the_program_writes_sets_and_names_those_there_are(tmp_path: Path) -> None:
    program = [sys.executable, "bin/generate_positions.py", "--count=3", "--table=16", f"--folder={tmp_path}"]
    done = programs.run([*program, "--sets=end-easy"])
    assert done.stdout.startswith("end-easy: 3 more positions in "), done.stderr
    assert len((tmp_path / "end-easy.txt").read_text().splitlines()) == 3
    done = programs.run([*program, "--sets=end-hard"])
    assert done.returncode == 1
    assert "there is no set 'end-hard': expected some of begin-easy,begin-medium," in done.stderr


def test_the_sets_of_the_project_do_not_grow() -> None:
    program = [sys.executable, "bin/generate_positions.py", "--table=16", "--sets=begin-hard"]
    before = {path: path.read_bytes() for path in FOLDER.rglob("*.txt")}
    try:
        done = programs.run([*program, "--minutes=0"])
        assert done.stdout.startswith("begin-hard: 0 more positions in "), done.stderr
        done = programs.run([*program, "--minutes=0", "--count=502"])
        assert (done.returncode, done.stdout) == (1, "")
        assert "begin-hard comes with Seraphim and has 501 positions: add --folder=FOLDER" in done.stderr
        assert {path: path.read_bytes() for path in FOLDER.rglob("*.txt")} == before
    finally:
        for path, content in before.items():
            path.write_bytes(content)
