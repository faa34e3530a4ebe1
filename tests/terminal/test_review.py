"""`seraphim review`: games from everywhere, what is drawn, and what is refused."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import programs
import pytest
from reference import ArbitraryNetwork
from rich.console import Console

import seraphim
from seraphim.errors import NotInstalledError
from seraphim.game import load_game
from seraphim.game.tree import GameTree
from seraphim.players.review import GameReview, ReviewedMove
from seraphim.terminal import game_files
from seraphim.terminal.review import draw_review, plot_review, summarize

Run = Callable[..., subprocess.CompletedProcess[str]]
MARKS = ("X", "O")
BLUNDERS = "b2 b1 a1 c3 a2 a3"  # the second and the third and the last but one
SGF = "(;FF[4]GM[2]SZ[8]PB[Hassan]PW[Logistello];B[f5];W[d6];B[C4];W[d3];B[c5])"


@pytest.fixture
def run(root: Path, tmp_path: Path) -> Run:
    """Return a function that runs the command in an empty folder, on the models that come with Seraphim."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        variables = {**os.environ, "SERAPHIM_DATA": str(root), **environment}
        program = Path("bin/review.py").absolute()
        return programs.run([sys.executable, program, *arguments], env=variables, cwd=tmp_path)

    return run


def drawn(review: GameReview, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    console.print(draw_review(review, MARKS, width))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


# ---------------------------------------------------------------- what is drawn


def test_a_review_is_a_curve_the_worst_moves_and_a_line() -> None:
    review = seraphim.Model("tictactoe", readouts=60).review(f"{BLUNDERS} c1 c2")
    first, second = (mark.line[0] for mark in review.mistakes[:2])
    lines = drawn(review)
    assert lines[0] == "X's chance of winning by move; = exact"
    # After each of the moves the result is 0, 0, 1, 1, …: three characters for each position.
    assert lines[1].startswith("100 %       ███")
    assert lines[2].startswith(" 50 % ▄▄▄▄▄▄███")
    assert lines[3].startswith("  0 % █████████")
    assert lines[4].strip() == "===" * 9
    assert lines[5].split() == [MARKS[move.player] for move in review.mistakes]
    assert lines[5].index("O") == 6 + 3 * review.mistakes[0].ply
    assert lines[6].split() == ["move", "0", "4", "8"]
    assert lines[8].split() == ["move", "lost", "better"]
    rows = [line.split()[:5] for line in lines[9:-2]]
    assert rows == [
        [MARKS[move.player], str(move.ply), move.label, f"{move.lost:.0%}", move.better]
        for player in (0, 1)
        for move in review.worst(player)
    ]
    assert {first, second} <= {row[4] for row in rows}
    assert lines[-1] == summarize(review, MARKS)


def test_the_line_says_how_a_game_ended_or_stands() -> None:
    model = seraphim.Model("tictactoe", readouts=60)
    for moves, end in (
        ("a1 b1 a2 b2 a3", "5 moves, X won; mistakes of 20% or more: X none, O 1"),
        ("a1 b2 b1 c1 a3 a2 c2 b3 c3", "9 moves, a draw; mistakes of 20% or more: X none, O none"),
        ("b2 b1", "2 moves, unfinished, X's chance 100%; mistakes of 20% or more: X none, O 1"),
        ("a1 b2 c1 b1 a3 b3", "6 moves, O won; mistakes of 20% or more: X 1, O none"),
    ):
        assert summarize(model.review(moves), MARKS) == end
    assert len(drawn(model.review(""))) == 8
    assert "better" not in " ".join(drawn(model.review("b2 a1")))


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("plies", [1, 30, 60])
def test_a_curve_fits_the_screen(width: int, plies: int) -> None:
    count = plies + 1
    review = GameReview("g", 0.2, 1, (1.0,) * count, (False,) * count, ended=False, moves=())
    lines = drawn(review, width)
    (long,) = {len(line) for line in lines if "█" in line}
    assert long <= width
    if 3 * count + 7 <= width:
        assert long == 6 + 3 * count
    else:
        assert long > 6 + (width - 7) / 2  # no screen is left half empty
    numbers = [int(number) for number in next(line for line in lines if line.startswith("move ")).split()[1:]]
    assert numbers[0] == 0
    assert numbers == sorted(set(numbers))
    assert numbers[-1] <= plies


def test_labels_are_drawn_as_they_are() -> None:
    labels = ("[/a]", "[bold]", ":smile:")
    moves = (ReviewedMove(1, 0, "[red]", 0, 0.5, labels[0], labels),)
    review = GameReview("g", 0.2, 1, (0.0, -1.0), (True, True), ended=False, moves=moves)
    row = next(line for line in drawn(review) if "[red]" in line)
    assert row.split() == ["X", "1", "[red]", "50%", *labels]


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_picture_is_drawn(ending: str, tmp_path: Path) -> None:
    review = seraphim.Model("tictactoe", readouts=60).review(BLUNDERS)
    file = tmp_path / f"game.{ending}"
    plot_review(review, MARKS, file, "a game")
    assert file.read_bytes().startswith({"png": b"\x89PNG", "svg": b"<?xml"}[ending])
    plot_review(seraphim.Model("tictactoe", readouts=8).review(""), MARKS, file, "no moves")


def test_names_are_drawn_as_they_are(tmp_path: Path) -> None:
    """Dollars are commands of the library that draws, and names of files are any bytes."""
    name = os.fsdecode(b"$5\\frac{$ \xff\x01.txt")
    move = ReviewedMove(1, 0, name, 0, 0.5, name, (name,))
    review = GameReview("g", 0.2, 1, (0.0, -1.0), (True, True), ended=False, moves=(move,))
    for ending in ("png", "svg", "pdf"):
        plot_review(review, (name, name), tmp_path / f"game.{ending}", name)
    drawn_text = (tmp_path / "game.svg").read_text()
    assert "<!-- $5\\frac{$ ??.txt -->" in drawn_text
    assert "<!-- $5\\frac{$ ??.txt 1. $5\\frac{$ ??.txt lost 50%, better $5\\frac{$ ??.txt -->" in drawn_text


def test_matplotlibs_own_configuration_changes_no_picture(run: Run, tmp_path: Path) -> None:
    assert run(BLUNDERS, "tictactoe", "--picture=expected.png").returncode == 0
    for configuration in ("text.usetex: True", "savefig.dpi: 1000000", "axes.facecolor: black"):
        (tmp_path / "matplotlibrc").write_text(configuration)
        done = run(BLUNDERS, "tictactoe", "--picture=game.png")
        assert (done.returncode, done.stderr) == (0, "")
        assert (tmp_path / "game.png").read_bytes() == (tmp_path / "expected.png").read_bytes()


def test_a_configuration_that_matplotlib_cannot_read_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "matplotlibrc").write_bytes(b"font.family: \xff")
    bytes_ = run(BLUNDERS, "tictactoe", "--picture=a.png")
    (tmp_path / "matplotlibrc").unlink()
    backend = run(BLUNDERS, "tictactoe", "--picture=a.png", MPLBACKEND="nonsense")
    for done, error in ((bytes_, "UnicodeDecodeError"), (backend, "ValueError")):
        assert (done.returncode, done.stdout) == (1, "")
        line = done.stderr.splitlines()[-1]
        assert line.startswith(f"seraphim review: matplotlib cannot be imported ({error}")
        assert line.endswith("check its configuration, MPLBACKEND and matplotlibrc")
        assert "Traceback" not in done.stderr


def test_a_missing_matplotlib_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(NotInstalledError, match="plots need matplotlib, which is not installed"):
        plot_review(seraphim.Model("tictactoe", readouts=8).review(""), MARKS, tmp_path / "a.png", "")


# ---------------------------------------------------------------- games from everywhere


def test_a_game_is_found_in_moves_and_files_of_all_kinds(tmp_path: Path) -> None:
    rules = load_game("othello")
    moves = "f5 d6 c4 d3 c5"
    actions = [rules.parse_action(move) for move in moves.split()]
    (tmp_path / "game.sgf").write_text(SGF)
    (tmp_path / "moves.txt").write_text(moves)
    tree = GameTree(rules)
    for action in actions:
        tree.play(action)
    tree.go(tree.path()[2])  # where the game was left does not matter
    game_files.save(tree, tmp_path / "saved.txt")
    model = seraphim.Model("othello", ArbitraryNetwork(rules, 1), readouts=8)
    expected = model.review(moves, seconds=0)
    assert [move.action for move in expected.moves] == actions
    for text in (moves, *(str(tmp_path / name) for name in ("game.sgf", "moves.txt", "saved.txt"))):
        assert model.review(game_files.find_game("othello", text), seconds=0) == expected


@pytest.mark.slow
def test_a_game_of_self_play_is_found_by_each_of_its_records(root: Path) -> None:
    program = [sys.executable, "bin/generate_games.py", "fresh", "--games=3", "--workers=1"]
    assert programs.run(program, env={**os.environ, "SERAPHIM_DATA": str(root)}).returncode == 0
    games = seraphim.read_games("fresh", folder=root)
    played, first = [], 0
    for end in np.flatnonzero(games.ends).tolist():
        played.append((games.states[first].tolist(), games.actions[first : end + 1].tolist()))
        first = end + 1
    found = []
    for record in range(len(games.actions)):
        tree = game_files.find_game("tictactoe", f"{root}/gamedata/fresh/batch-0000001.tfrecord:{record}")
        found.append((tree.root.state.tolist(), tree.actions()))
    assert len(played) == 3
    assert sorted(found) == sorted(game for game in played for _ in game[1])


# ---------------------------------------------------------------- the command


def test_the_command_reviews_a_game_of_othello_in_sgf(run: Run, tmp_path: Path) -> None:
    (tmp_path / "game.sgf").write_text(SGF)
    done = run("game.sgf", "othello", "--readouts=8")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "X's chance of winning by move; = exact"
    assert lines[-1].startswith("5 moves, unfinished, X's chance ")
    told = json.loads(run("game.sgf", "othello", "--readouts=8", "--json", "--seconds=0").stdout)
    labels = [move["label"] for move in told["moves"]]
    assert labels == ["f5", "d6", "c4", "d3", "c5"]
    expected = seraphim.load("othello").review(labels, readouts=8, seconds=0)
    assert told == json.loads(json.dumps(expected.to_dict()))


def test_the_command_prints_one_json_document_and_draws_a_picture(run: Run, tmp_path: Path) -> None:
    flags = ("--json", "--picture=game.svg", "--threshold=0.6", "--readouts=30")
    done = run(BLUNDERS, "tictactoe", *flags)
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert (told["game"], told["readouts"], told["threshold"], told["mistakes"]) == ("tictactoe", 30, 0.6, [])
    assert (tmp_path / "game.svg").read_bytes().startswith(b"<?xml")
    shown = run(BLUNDERS, "tictactoe", "--picture=game.png")
    assert shown.stdout.splitlines()[-2:] == [
        "6 moves, unfinished, X's chance 100%; mistakes of 20% or more: X none, O 1",
        "game.png",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "which game? Try: seraphim review GAME NAME, where GAME is a file or moves"),
        (["b2"], "which model? Try: seraphim review GAME NAME, or set SERAPHIM_MODEL_NAME"),
        (["b2", "tictactoe", "c3"], "expected one model NAME, not 2 arguments: tictactoe c3"),
        (["nothing.sgf", "tictactoe"], "move 1: 'nothing.sgf' is not a"),
        (["b2 b2", "tictactoe"], "move 2: b2 is not legal here"),
        (["game.sgf", "tictactoe"], "game.sgf: the Smart Game Format has Go, Othello and Hex, not tictactoe"),
        (["b2", "nobody"], "model 'nobody' does not exist"),
        (["b2", "tictactoe", "--threshold=0"], "threshold must be above 0 to 1, not 0.0"),
        (["b2", "tictactoe", "--readouts=0"], "readouts must be at least 1, not 0"),
        (["b2", "tictactoe", "--picture=a.gif"], "a plot must end with .png, .svg or .pdf, not 'a.gif'"),
        (["b2", "tictactoe", "--picture=no/a.png"], "cannot write no/a.png: there is no folder no"),
        (["b2", "tictactoe", "--batch_size=3"], "--batch_size changes nothing here"),
    ],
)
def test_what_cannot_be_reviewed_is_refused_in_a_line(
    run: Run, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "game.sgf").write_text(SGF)
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"seraphim review: {message}")
