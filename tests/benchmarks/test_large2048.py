"""The benchmark of 2048: its games, its file, and what it prints."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks import large2048
from benchmarks.large2048 import FROM_TWO_TWOS, OPTIMA, load_player, main, openings_of, play, read_games, summary
from seraphim.errors import SeraphimError
from seraphim.evaluation.seats import play_solo
from seraphim.players.choose import greedy_player
from twenty48.game import Twenty48
from twenty48.rules import tile

GAME = Twenty48(2, 3)
GREEDY = greedy_player(GAME)


def test_an_interrupted_run_goes_on_with_the_same_games(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large2048, "AT_A_TIME", 4)
    whole, parts = tmp_path / "whole.csv", tmp_path / "parts.csv"
    expected = play(GAME, "greedy", GREEDY, 10, whole)

    def interrupted(states: np.ndarray) -> np.ndarray:
        if parts.exists():
            raise KeyboardInterrupt
        return GREEDY(states)

    with pytest.raises(KeyboardInterrupt):
        play(GAME, "greedy", interrupted, 10, parts)
    lines = parts.read_text().splitlines(keepends=True)
    assert len(lines) == 4
    parts.write_text("".join(lines) + f"{GAME.name},other,0,4,4,9,0.1\n" + lines[0][:-8])  # torn by a crash
    played = play(GAME, "greedy", GREEDY, 10, parts)
    assert [row[:-1] for row in played] == [row[:-1] for row in expected]  # all but the time
    assert [row[:-1] for row in read_games(parts, GAME.name, "greedy")] == [row[:-1] for row in expected]
    assert len(parts.read_text().splitlines()) == 11
    points = play_solo(GAME, GREEDY, openings_of(GAME, 10)).points
    assert [row.score for row in expected] == pytest.approx(points, abs=1e-3)
    assert all(row.largest <= row.score + 4 for row in expected)


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "games.csv"
    file.write_text("move,score\n1,2\n")
    with pytest.raises(SeraphimError, match="is no file of games"):
        read_games(file, GAME.name, "greedy")
    file.write_text(f"{GAME.name},greedy,1,4,4,9,0.1\n")
    with pytest.raises(SeraphimError, match="does not hold the games 0, 1, 2 … of greedy"):
        read_games(file, GAME.name, "greedy")


def test_games_on_twelve_cells_begin_from_two_twos() -> None:
    game = Twenty48(4, 3)
    assert game.cells == FROM_TWO_TWOS
    openings = openings_of(game, 20)
    powers = np.array([[tile(state[0], cell) for cell in range(12)] for state in openings.states])
    assert (np.sort(powers, axis=1)[:, -3:] == [0, 1, 1]).all()
    assert not game.to_play(openings.states).any()
    assert len(set(openings.states[:, 0].tolist())) > 10
    assert np.array_equal(openings_of(game, 5).states, openings.states[:5])


def test_a_line_says_what_a_player_makes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, arguments = tmp_path / "games.csv", ["optimum", "random", "--game=twenty48:2x3", "--games=400"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["large2048", *arguments, f"--out={file}"])
        main()
    solved, best, random = capsys.readouterr().out.splitlines()
    assert solved.startswith("twenty48:2x3 is solved: 21,752 boards, of symmetric ones one, expected score 480.25827; ")
    assert best.startswith("twenty48:2x3, optimum: 400 games, ")
    assert " of the optimum of 480.26 (at least " in best
    assert random.endswith(" games/h")
    points = np.array([row.score for row in read_games(file, GAME.name, "optimum")])
    assert abs(points.mean() - OPTIMA[6]) < 4 * points.std() / 20
    with pytest.raises(SeraphimError, match="tictactoe plays tictactoe: expected a player of twenty48"):
        load_player("tictactoe", None, None)


def test_of_sixteen_cells_it_says_how_often_2048_is_reached() -> None:
    games = [large2048.Played("twenty48", "p", seed, 20_000, 1024 << seed % 2, 50_000, 36.0) for seed in range(4)]
    assert summary(Twenty48(), games) == (
        "twenty48, p: 4 games, 20,000 [20,000, 20,000] points; 2048 reached in 50.0%; largest tile 2048 50.0%, 1024 "
        "50.0%; 4 cut off after 50,000 plies; 100 games/h"
    )
