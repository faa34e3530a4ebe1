"""The sets of solved endgames: what is in them, whether it is right, and how they are made."""

from pathlib import Path

import numpy as np
import pytest

from othello import positions
from othello.game import GAME, count_empty
from othello.positions import (
    EMPTY_CELLS,
    FOLDER,
    format_position,
    parse_positions,
    read_positions,
    states_from_moves,
)
from othello.positions.generator import _canonical, generate
from othello.solver import Solver
from seraphim.errors import GameError
from seraphim.game import Array
from seraphim.game.features import Split
from seraphim.game.solved import check_position_sets

COUNT = 1000
SPLITS: tuple[Split, ...] = ("validation", "test")


def first_legal(states: Array) -> Array:
    return GAME.legal(states).argmax(axis=1)


def last_legal(states: Array) -> Array:
    return GAME.num_actions - 1 - GAME.legal(states)[:, ::-1].argmax(axis=1)


@pytest.mark.parametrize("name", EMPTY_CELLS)
@pytest.mark.parametrize("split", SPLITS)
def test_sets_hold_what_their_names_say(name: str, split: Split) -> None:
    solved = read_positions(name, split)
    stones = GAME.observe(solved.states)[..., :2].sum(axis=(1, 2, 3), dtype=np.int64)
    assert len(solved.states) == COUNT
    assert (64 - stones == EMPTY_CELLS[name]).all()
    assert (count_empty(solved.states) == EMPTY_CELLS[name]).all()
    assert (GAME.legal(solved.states).sum(axis=1) >= 2).all()
    best = np.nanmax(solved.results, axis=1)
    worst = np.nanmin(solved.results, axis=1)
    assert {-1.0, 0.0, 1.0} == set(best.tolist())
    assert (best > worst).mean() > 0.2  # where a move can be a mistake
    assert not solved.states.flags.writeable


@pytest.mark.parametrize("name", EMPTY_CELLS)
def test_no_position_is_in_a_set_twice_nor_in_two_splits_nor_in_a_former_test_set(name: str) -> None:
    keys = [_canonical(state) for split in (*SPLITS, "former") for state in read_positions(name, split).states]
    assert len(set(keys)) == 3 * COUNT


@pytest.mark.parametrize(("name", "count"), [("12-empty", 60), ("16-empty", 12), ("20-empty", 1)])
def test_results_are_those_of_the_solver(name: str, count: int) -> None:
    random = np.random.default_rng(0)
    for split in SPLITS:
        solved, solver = read_positions(name, split), Solver(16)
        for row in random.choice(COUNT, count, replace=False):
            np.testing.assert_array_equal(solver.solve_moves(solved.states[row]).results, solved.results[row])


def test_the_game_offers_them() -> None:
    for sets in (positions.position_sets(), positions.test_position_sets()):
        assert [each.name.removeprefix("test/") for each in check_position_sets("othello", sets)] == [*EMPTY_CELLS]


def test_lines_are_read_back() -> None:
    text = (FOLDER / "test/12-empty.txt").read_text()
    solved = parse_positions("some", text)
    lines = [format_position(moves, row) for moves, row in zip(solved.moves, solved.results, strict=True)]
    assert "\n".join(lines) + "\n" == text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("f5z9 a1+", "expected moves from a1 to h8 or pass, written together"),
        ("a1 a2+", "move 1 is not legal"),
        ("f5 d6+ f4+ f6*", "expected a move and one of"),
        ("f5 d6+ f4+", "expected a result for each legal move alone"),
        ("f5 d6+ f4+ f6- a1=", "expected a result for each legal move alone"),
    ],
)
def test_damaged_lines_are_refused(line: str, message: str) -> None:
    with pytest.raises(GameError, match=message):
        parse_positions("some", line)
    with pytest.raises(GameError, match="there is no set 'some'"):
        read_positions("some")


def test_passes_are_part_of_a_game() -> None:
    moves = "d3c3e6d2d1e1b2c1pass"
    assert GAME.to_play(states_from_moves([moves, "f5", moves[:-4]])).tolist() == [1, 1, 0]


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
    excluded = states_from_moves([whole[0].split(" ")[0]])
    (tmp_path / "part/12-empty.txt").unlink()
    assert next(generate("12-empty", 1, 7, tmp_path / "part", players, excluded)) == whole[1]


def test_lines_of_another_seed_are_refused_and_a_complete_file_is_left(tmp_path: Path) -> None:
    players = (first_legal, last_legal)
    list(generate("12-empty", 2, 7, tmp_path, players))
    assert list(generate("12-empty", 2, 8, tmp_path, players)) == []
    with pytest.raises(GameError, match="line 1: not of seed 8 and these players: give those that the file was"):
        list(generate("12-empty", 3, 8, tmp_path, players))
