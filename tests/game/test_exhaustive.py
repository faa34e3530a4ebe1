"""Small games, solved: against minimax that knows the game, known theory, and a naive search."""

import math
import os
import re
import subprocess
import sys
from pathlib import Path

import games
import numpy as np
import pytest

from seraphim.errors import GameError
from seraphim.game import CHANCE, Array, PlainGame
from seraphim.game.exhaustive import Solution, UnsolvedError, solve
from seraphim.game.solved import load_position_sets
from tictactoe.game import GAME
from tictactoe.minimax import position_sets
from twenty48.game import Twenty48

ROOT = Path(__file__).parents[2]


def naive(game: PlainGame, state: games.Words) -> float:
    """The result for player 0 of a state with best play, by the definition."""
    outcome = game.outcome(state)
    if outcome is not None:
        return outcome
    results = [naive(game, game.step(state, action)) for action in game.legal(state)]
    return max(results) if game.to_play(state) == 0 else min(results)


def values(solution: Solution) -> dict[bytes, Array]:
    return {state.tobytes(): row for state, row in zip(solution.states, solution.action_values, strict=True)}


def test_tictactoe_is_solved_as_its_own_minimax_solves_it() -> None:
    solution = solve(GAME)
    (ours,), (theirs,) = solution.position_sets(), position_sets()
    assert len(ours.states) == len(theirs.states) == 4520
    known = values(solution)
    for state, row in zip(theirs.states, theirs.action_values, strict=True):
        assert np.array_equal(known[state.tobytes()], row, equal_nan=True)
    assert str(solution) == (
        "tictactoe is solved: play can reach 5,478 positions, no game is longer than 9 plies, "
        "and best play from the start ends in: a draw"
    )


@pytest.mark.parametrize("game", [games.NIM, games.MOVES_TWICE, games.Nim(8)], ids=["nim", "moves twice", "nim of 8"])
def test_values_are_those_of_a_naive_search_also_where_a_player_moves_twice(game: games.Nim) -> None:
    solution = solve(game)
    for state, result, row in zip(solution.states, solution.results, solution.action_values, strict=True):
        words = tuple(state.tolist())
        assert result == naive(game, words)
        for action in range(game.num_actions):
            if game.outcome(words) is None and action in game.legal(words):
                sign = 1 if game.to_play(words) == 0 else -1
                assert row[action] == sign * naive(game, game.step(words, action))
            else:
                assert math.isnan(row[action])


def test_a_result_between_win_and_draw_is_printed() -> None:
    class Halves(games.Nim):
        def outcome(self, state: games.Words) -> float | None:
            whole = super().outcome(state)
            return None if whole is None else whole / 2

    assert str(solve(Halves(5))).endswith("ends in: +0.50 for player 0")
    assert str(solve(games.Nim(4))).endswith("ends in: player 1 wins")
    assert str(solve(games.Nim(5))).endswith("ends in: player 0 wins")


def test_unfinished_positions_are_shuffled_the_same_way_each_time() -> None:
    first, second = (solve(GAME).position_sets()[0].states for _ in range(2))
    assert np.array_equal(first, second)
    stones = np.bitwise_count(first).sum(axis=1)
    assert abs(stones[:1000].mean() - stones.mean()) < 0.2  # so the first are a sample


def test_a_long_game_is_solved() -> None:
    solution = solve(games.Chain(3000))
    assert solution.longest == 3000
    assert (solution.results == 1).all()


@pytest.mark.parametrize(
    ("game", "most", "reason"),
    [
        (games.ENDLESS, 100, "endless is not solved: a position can recur, so a game need not end"),
        (games.NIM, 29, "nim is not solved: play can reach more than 29 positions"),
    ],
)
def test_what_cannot_be_solved_says_why(game: PlainGame, most: int, reason: str) -> None:
    with pytest.raises(UnsolvedError, match=f"^{reason}$"):
        solve(game, most)
    assert issubclass(UnsolvedError, GameError)


def test_a_game_that_may_be_cut_off_is_not_solved() -> None:
    game = games.Nim(6)
    game.max_plies = 5
    game.initial = lambda: (6, 0)  # type: ignore[method-assign]
    with pytest.raises(UnsolvedError, match="a game can take 6 plies, but is cut off after 5"):
        solve(game)


def python_of(page: str, with_text: str) -> str:
    """The block of Python on a page that holds a text."""
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), flags=re.MULTILINE | re.DOTALL)
    (block,) = (block for block in blocks if with_text in block)
    return block


@pytest.fixture
def nim(tmp_path: Path) -> Path:
    """Return a folder with the README's nim, which offers its solved positions as docs/your-own-game.md says."""
    code = python_of("README.md", "class Nim") + python_of("docs/your-own-game.md", "def position_sets")
    (tmp_path / "nim.py").write_text(code)
    return tmp_path


def test_a_small_game_offers_its_positions_in_a_line(nim: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(nim)
    (positions,) = load_position_sets("nim")
    heaps = positions.states[:, 0]
    assert len(heaps) == 28  # of 1 to 15 with either player to move; 15 and 14 only with one
    # Who leaves a multiple of four wins.
    assert np.array_equal(np.nanmax(positions.action_values, axis=1) > 0, heaps % 4 != 0)


@pytest.mark.slow
def test_learning_knows_when_it_plays_a_small_game_perfectly(nim: Path) -> None:
    flags = "--goal=search --generations=3 --games_per_generation=60 --steps=60 --readouts=200 --solver --workers=1"
    done = subprocess.run(
        [sys.executable, ROOT / "bin/learn.py", "my-nim", "--game=nim", *flags.split()],
        cwd=nim,
        env={**os.environ, "SERAPHIM_DATA": ""},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    checked = "checked all positions: searched move wrong in 0 of 28, raw network in "
    assert re.search(rf"{checked}\d+; never loses from the start moving first$", done.stdout, flags=re.MULTILINE)
    assert "plays perfectly after" in done.stdout


# ---------------------------------------------------------------- chance


class Loop(PlainGame):
    """Chance goes on to the end, or back; by `choice` player 0 may go in a circle of their own."""

    name, num_actions, observation_shape, state_words, max_plies = "loop", 2, (4,), 1, 20
    num_chance_outcomes = 2

    def __init__(self, odds: list[float], choice: bool = False) -> None:
        self.odds, self.choice = odds, choice

    def initial(self) -> tuple[int]:
        return (0,)

    def step(self, state: games.Words, action: int) -> tuple[int]:
        if state == (0,):
            return ((1,), (2,))[action]
        return ((3,), (1,))[action]

    def legal(self, state: games.Words) -> list[int]:
        return [0, 1] if self.choice else [0]

    def to_play(self, state: games.Words) -> int:
        return CHANCE if state == (0,) or (state == (1,) and not self.choice) else 0

    def chances(self, state: games.Words) -> list[float]:
        return self.odds if state == (0,) else [0.5, 0.5]

    def outcome(self, state: games.Words) -> float | None:
        return {2: -1.0, 3: 1.0}.get(state[0])

    def observe(self, state: games.Words) -> Array:
        return np.zeros(4)


def test_positions_may_recur_by_chance_but_not_by_choice() -> None:
    solution = solve(Loop([0.25, 0.75]))
    assert solution.longest is None
    assert solution.results[0] == pytest.approx(-0.5)
    with pytest.raises(UnsolvedError, match="a position can recur"):
        solve(Loop([0.25, 0.75], choice=True))


def test_values_that_hardly_settle_are_not_given() -> None:
    class Slow(Loop):
        def chances(self, state: games.Words) -> list[float]:
            return [0.5, 0.5] if state == (0,) else [1e-12, 1 - 1e-12]

    with pytest.raises(UnsolvedError, match="do not settle"):
        solve(Slow([]))


@pytest.mark.parametrize("odds", [[0.5, 0.6], [math.nan, 0.5], [-0.5, 1.5], [0.0, 0.0]])
def test_chances_must_be_probabilities(odds: list[float]) -> None:
    with pytest.raises(GameError, match="chances that are no probabilities: run seraphim check-game"):
        solve(Loop(odds))


def test_a_solution_knows_the_best_actions_whatever_is_banked() -> None:
    game = Twenty48(2, 2)
    solution = solve(game)
    rows = np.flatnonzero(~np.isnan(solution.action_values).all(axis=1))
    states = solution.states[rows]
    best = solution.perfect_actions(states)
    chosen = np.where(best, solution.action_values[rows], np.nan)
    most = np.nanmax(solution.action_values[rows], axis=1)
    assert np.nanmin(chosen, axis=1) == pytest.approx(most, abs=1e-6)
    assert (np.abs(solution.action_values[rows] - most[:, None]) > 1e-7)[~best & game.legal(states)].all()
    assert np.array_equal(best, solution.perfect_actions(states + np.array([0, 0, 60])))
    with pytest.raises(GameError, match="play does not lead to one of these positions of twenty48:2x2"):
        solution.perfect_actions(np.array([[0xF, 0, 0]]))
