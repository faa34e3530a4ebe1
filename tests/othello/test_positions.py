"""The sets of solved endgames: what is in them, whether it is right, and how they are made."""

from pathlib import Path

import numpy as np
import pytest

from othello.game import GAME, count_empty
from othello.positions import EMPTY_CELLS, FILES, FOLDER, format_position
from othello.positions.generator import generate
from othello.solver import EndgameSolver
from seraphim.errors import GameError
from seraphim.game import Array
from seraphim.game.loading import Split
from seraphim.game.solved import load_position_sets
from seraphim.game.solved_files import canonical, play_games

COUNT = 1000
SPLITS: tuple[Split, ...] = ("validation", "test")


def first_legal(states: Array) -> Array:
    return GAME.legal(states).argmax(axis=1)


def last_legal(states: Array) -> Array:
    return GAME.num_actions - 1 - GAME.legal(states)[:, ::-1].argmax(axis=1)


@pytest.mark.parametrize("name", EMPTY_CELLS)
@pytest.mark.parametrize("split", SPLITS)
def test_sets_hold_what_their_names_say(name: str, split: Split) -> None:
    solved = FILES.read(name, split)
    stones = GAME.observe(solved.states)[..., :2].sum(axis=(1, 2, 3), dtype=np.int64)
    assert len(solved.states) == COUNT
    assert (64 - stones == EMPTY_CELLS[name]).all()
    assert (count_empty(solved.states) == EMPTY_CELLS[name]).all()
    assert (GAME.legal(solved.states).sum(axis=1) >= 2).all()
    best = np.nanmax(solved.action_values, axis=1)
    worst = np.nanmin(solved.action_values, axis=1)
    assert {-1.0, 0.0, 1.0} == set(best.tolist())
    assert (best > worst).mean() > 0.2  # where a move can be a mistake
    assert not solved.states.flags.writeable


@pytest.mark.parametrize("name", EMPTY_CELLS)
def test_no_position_is_in_a_set_twice_nor_in_two_splits_nor_in_a_former_test_set(name: str) -> None:
    keys = [canonical(GAME, state) for split in (*SPLITS, "former") for state in FILES.read(name, split).states]
    assert len(set(keys)) == 3 * COUNT


@pytest.mark.parametrize(("name", "count"), [("12-empty", 60), ("16-empty", 12), ("20-empty", 1)])
def test_results_are_those_of_the_solver(name: str, count: int) -> None:
    random = np.random.default_rng(0)
    for split in SPLITS:
        solved, solver = FILES.read(name, split), EndgameSolver(16)
        for row in random.choice(COUNT, count, replace=False):
            np.testing.assert_array_equal(solver.solve_moves(solved.states[row]).results, solved.action_values[row])


def test_the_game_offers_them() -> None:
    for split, prefix in (("validation", ""), ("test", "test/")):
        assert [each.name for each in load_position_sets("othello", split)] == [
            f"{prefix}{name}" for name in EMPTY_CELLS
        ]


def test_lines_are_read_back() -> None:
    text = (FOLDER / "test/12-empty.txt").read_text()
    solved = FILES.parse("some", text)
    assert solved.lines is not None
    games = ["".join(map(GAME.action_label, line)) for line in solved.lines]
    lines = [format_position(moves, row) for moves, row in zip(games, solved.action_values, strict=True)]
    assert "\n".join(lines) + "\n" == text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("f5z9 a1+", "'f5z9' is not a game: move 2: 'z9' is not a move"),
        ("a1 a2+", "move 1 is not legal"),
        ("f5 d6+ f4+ f6*", "some, line 1: expected a move and one of"),
        ("f5 d6+ f4+", "some, line 1: expected a score for each legal move alone"),
        ("f5 d6+ f4+ f6- a1=", "some, line 1: expected a score for each legal move alone"),
    ],
)
def test_damaged_lines_are_refused(line: str, message: str) -> None:
    with pytest.raises(GameError, match=message):
        FILES.parse("some", line)
    with pytest.raises(GameError, match="there is no set 'some'"):
        FILES.read("some")


def test_passes_are_part_of_a_game() -> None:
    moves = "d3c3e6d2d1e1b2c1pass"
    assert GAME.to_play(play_games(GAME, [moves, "f5", moves[:-4]])[1]).tolist() == [1, 1, 0]


def test_an_interrupted_file_is_continued(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "part").mkdir()
    players = (first_legal, last_legal)
    whole = list(generate("12-empty", 30, 7, tmp_path / "whole", players))
    part = list(generate("12-empty", 11, 7, tmp_path / "part", players))
    with (tmp_path / "part/12-empty.txt").open("a") as file:
        file.write(whole[11][:40])  # killed while it wrote
    assert part + list(generate("12-empty", 30, 7, tmp_path / "part", players)) == whole
    assert (tmp_path / "part/12-empty.txt").read_text() == (tmp_path / "whole/12-empty.txt").read_text()
    _, excluded = play_games(GAME, [whole[0].split(" ")[0]])
    (tmp_path / "part/12-empty.txt").unlink()
    assert next(generate("12-empty", 1, 7, tmp_path / "part", players, excluded)) == whole[1]


def test_lines_of_another_seed_are_refused_and_a_complete_file_is_left(tmp_path: Path) -> None:
    players = (first_legal, last_legal)
    list(generate("12-empty", 2, 7, tmp_path, players))
    assert list(generate("12-empty", 2, 8, tmp_path, players)) == []
    with pytest.raises(GameError, match="line 1: not of seed 8 and these players: give those that the file was"):
        list(generate("12-empty", 3, 8, tmp_path, players))
