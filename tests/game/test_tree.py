"""A game with branches: what one can walk to, what is kept, and how it is written and read again."""

import gc
import os
import sys
from pathlib import Path

import games
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import connectfour
import tictactoe
from seraphim.errors import GameError, RecordError
from seraphim.game import Game, PlainRules, load_game, saved_games
from seraphim.game.notation import format_moves, parse_moves
from seraphim.game.tree import GameNode, GameTree, line_name
from seraphim.options import RecordOptions, SearchOptions
from seraphim.players.opponent import PlayOptions
from seraphim.records.examples import GameRecord, encode
from seraphim.records.writer import GameWriter
from seraphim.search.evaluator import Uniform
from seraphim.terminal import game_files
from seraphim.terminal.session import GameSession, SessionOptions

FOUR = connectfour.GAME
HEX = load_game("hex")
NIM = PlainRules(games.NIM)


def columns(tree: GameTree, node: GameNode | None = None) -> str:
    return format_moves(tree.game, tree.actions(node))


def played(moves: str) -> GameTree:
    tree = GameTree(FOUR)
    for action in parse_moves(FOUR, moves):
        tree.play(action)
    return tree


def branched() -> GameTree:
    """Line A is 4453, B leaves it after 44 with 33, C after 4 with 7; we are at B3, which is 443."""
    tree = played("4453")
    tree.go(tree.find("A", 2))
    for action in (2, 2):
        tree.play(action)
    tree.go(tree.find("A", 1))
    tree.play(6)
    tree.go(tree.find("B", 3))
    return tree


# ---------------------------------------------------------------- walking


def test_every_position_is_the_one_that_the_moves_lead_to() -> None:
    for nodes in branched().lines().values():
        for node in nodes:
            moves = columns(branched(), node)
            assert node.state.tolist() == connectfour.position_from_moves(moves).tolist()
            assert node.ply == len(moves)


def test_taking_back_and_playing_the_same_goes_to_the_same_node() -> None:
    tree = played("44")
    node = tree.node
    assert tree.undo()
    assert tree.play(3) is node
    assert len(tree.lines()) == 1


def test_another_move_makes_a_branch_and_nothing_is_lost() -> None:
    tree = branched()
    own = {name: [n.action for n in nodes if n.action is not None] for name, nodes in tree.lines().items()}
    assert {name: format_moves(FOUR, actions) for name, actions in own.items()} == {"A": "4453", "B": "33", "C": "7"}
    assert [columns(tree, tree.find(name)) for name in "ABC"] == ["4453", "4433", "47"]


def test_undo_stops_at_the_root_and_redo_at_the_end() -> None:
    tree = played("445")
    assert [tree.undo() for _ in range(4)] == [True, True, True, False]
    assert tree.node is tree.root
    assert [tree.redo() for _ in range(4)] == [True, True, True, False]
    assert columns(tree) == "445"


def test_redo_leads_to_where_one_was_last() -> None:
    tree = branched()
    tree.go(tree.root)
    assert [node.action for node in tree.ahead()] == [3, 3, 2, 2]  # B was visited after C was
    tree.go(tree.find("C"))
    tree.go(tree.root)
    assert [node.action for node in tree.ahead()] == [3, 6]


def test_lines_are_named_in_the_order_in_which_they_came_to_be() -> None:
    tree = branched()
    assert [node.line for node in tree.path()] == ["A", "A", "A", "B"]
    names = [line_name(index) for index in range(800)]
    assert names[:3] + names[25:28] + names[701:703] == ["A", "B", "C", "Z", "AA", "AB", "ZZ", "AAA"]
    assert len(set(names)) == 800


def test_an_illegal_move_is_refused_and_changes_nothing() -> None:
    tree = played("444444")
    node = tree.node
    with pytest.raises(GameError, match="4 is not legal here: expected one of 1 2 3 5 6 7"):
        tree.play(3)
    assert tree.node is node
    assert not node.children


def test_no_move_follows_the_end_of_a_game() -> None:
    with pytest.raises(GameError, match="the game is over here, so no move follows"):
        played("1212121").play(1)


def test_a_game_that_is_cut_off_has_no_moves_left() -> None:
    tree = GameTree(PlainRules(games.ENDLESS))
    for _ in range(games.ENDLESS.max_plies):
        tree.play(tree.legal()[0])
    assert tree.legal() == []


@pytest.mark.parametrize(
    ("line", "ply", "problem"),
    [
        ("D", None, "there is no line D: expected one of A B C"),
        ("C", 3, "line C has 2 moves: expected a number from 0"),
    ],
)
def test_a_place_that_is_not_there_is_refused(line: str, ply: int | None, problem: str) -> None:
    with pytest.raises(GameError, match=problem):
        branched().find(line, ply)


@given(st.lists(st.integers(0, 9), max_size=40))
def test_any_walk_keeps_the_tree_whole(steps: list[int]) -> None:
    tree, seen = GameTree(tictactoe.GAME), set()
    for step in steps:
        if step == 9:
            tree.undo()
        elif tree.legal():
            tree.play(tree.legal()[step % len(tree.legal())])
        seen.add(tuple(tree.actions()))
    own = [node for nodes in tree.lines().values() for node in nodes]
    assert len(own) == len(set(map(id, own)))  # each node on exactly one line
    assert {tuple(tree.actions(node)) for node in own} == seen | {()}
    assert all(tree.find(node.line, node.ply) is node for node in own)


# ---------------------------------------------------------------- moves in text


@pytest.mark.parametrize("text", ["4453", "4 4 5 3", "4,4,5,3", " 4, 4\n53 "])
def test_single_characters_may_stand_together(text: str) -> None:
    assert parse_moves(FOUR, text) == [3, 3, 4, 2]


@pytest.mark.parametrize("text", ["a1 b2 c3", "a1,b2,c3", "A1,  B2 c3"])
def test_longer_labels_have_spaces_or_commas_between_them(text: str) -> None:
    assert parse_moves(tictactoe.GAME, text) == [0, 4, 8]


def test_labels_with_spaces_are_read_as_the_game_writes_them() -> None:
    assert parse_moves(NIM, "take 1, take 3 take 2") == [0, 2, 1]
    with pytest.raises(GameError, match="move 2: 'give 3' begins with no action of nim"):
        parse_moves(NIM, "take 1, give 3")


def test_a_label_of_two_cells_is_one_move() -> None:
    class FromTo(games.Nim):
        def action_label(self, action: int) -> str:
            return f"a1a{action + 2}"

    assert parse_moves(PlainRules(FromTo()), "a1a3 a1a2") == [1, 0]


@pytest.mark.parametrize("game", [FOUR, tictactoe.GAME, NIM], ids=lambda game: game.name)
@pytest.mark.parametrize("together", [False, True])
def test_formatted_moves_are_read_again(game: Game, together: bool) -> None:
    actions = list(range(game.num_actions)) * 2
    assert parse_moves(game, format_moves(game, actions, together)) == actions


def test_a_move_that_is_none_is_named_with_its_place() -> None:
    with pytest.raises(GameError, match="move 3: '9' is not a move of connectfour"):
        parse_moves(FOUR, "4492")


# ---------------------------------------------------------------- positions in text


def test_a_position_is_read_from_moves_or_from_a_drawing() -> None:
    assert saved_games.read_position("connectfour", "4453") == (None, [3, 3, 4, 2], [])
    drawn = saved_games.read_position("tictactoe", "X.O/.X./...")
    assert drawn.start is not None
    assert tictactoe.GAME.render(drawn.start) == "  a b c\n1 X · O\n2 · X ·\n3 · · ·"
    rendered = FOUR.render(connectfour.position_from_moves("4453"))
    again = saved_games.read_position("connectfour", rendered)
    assert again.start is not None and again.start.tolist() == connectfour.position_from_moves("4453").tolist()


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("connectfour", "4444444", "move 7: 4 is not legal here"),
        ("connectfour", "hello", "move 1: 'h' is not a move of connectfour"),
        ("tictactoe", "X.O/.X.", "a board of 2 rows: expected 3 rows of 3 cells"),
        ("games", "X.O/.X.", "games reads no drawn boards: give the moves"),
    ],
)
def test_what_is_neither_is_refused(name: str, text: str, problem: str) -> None:
    with pytest.raises(GameError, match=problem):
        saved_games.read_position(name, text)


# ---------------------------------------------------------------- files


@given(st.lists(st.integers(0, 9), max_size=40), st.booleans())
def test_a_saved_game_is_the_same_when_it_is_loaded(steps: list[int], drawn: bool) -> None:
    start = tictactoe.state_from_board("X../.O./...") if drawn else None
    tree = GameTree(tictactoe.GAME, start)
    for step in steps:
        if step == 9:
            tree.undo()
        elif tree.legal():
            tree.play(tree.legal()[step % len(tree.legal())])
    text = saved_games.to_text(tree)
    again = saved_games.from_text(tictactoe.GAME, text)
    assert saved_games.to_text(again) == text
    assert again.actions() == tree.actions()
    assert again.node.state.tolist() == tree.node.state.tolist()


def test_a_saved_game_is_written_for_people() -> None:
    text = saved_games.to_text(branched())
    assert text.splitlines()[1:] == ["game: connectfour", "A: 4453", "B after A2: 33", "C after A1: 7", "at: B3"]


def test_moves_with_spaces_in_their_names_are_saved_too() -> None:
    tree = GameTree(NIM)
    for action in (2, 0, 1):
        tree.play(action)
    assert saved_games.from_text(NIM, saved_games.to_text(tree)).actions() == [2, 0, 1]


def test_a_file_is_loaded_whether_it_is_a_game_moves_or_a_drawing(tmp_path: Path) -> None:
    game_files.save(branched(), tmp_path / "game.txt")
    (tmp_path / "moves.txt").write_text("4453\n")
    (tmp_path / "board.txt").write_text(FOUR.render(connectfour.position_from_moves("4453")))
    game = game_files.find("connectfour", str(tmp_path / "game.txt"))
    assert isinstance(game, GameTree) and columns(game) == "443"
    assert game_files.find("connectfour", str(tmp_path / "moves.txt")) == (None, [3, 3, 4, 2], [])
    board = game_files.find("connectfour", str(tmp_path / "board.txt"))
    assert isinstance(board, saved_games.Position) and board.start is not None


def test_only_saved_games_are_written_over(tmp_path: Path) -> None:
    file = tmp_path / "game.txt"
    game_files.save(played("4"), file)
    game_files.save(played("44"), file)
    assert "A: 44\n" in file.read_text()
    file.write_text("my diary")
    with pytest.raises(RecordError, match="game.txt exists and is not a saved game: choose another name"):
        game_files.save(played("4"), file)
    assert file.read_text() == "my diary"


NO_SAVED_GAMES = [
    "game: connectfour\nlearning_rate: 0.1\n# my notes\n",  # YAML
    "game: connectfour\nA: 44\nLR: 0.1\n",
    "game: connectfour\nat: A1\n",
    "game: connectfour\nA: 44\nat: A1\nA: 44\n",
    "title: hers\ngame: connectfour\nA: 44\n",
    "game: connectfour\nA: 44\nB after A1: 3\n\nA letter to you.\n",
    "game: connectfour\nstart: 1 2\nstart: 1 2\nA: 44\n",
    "game: connectfour\nA: 44\nat: A1" + 9 * "\n" + (8 << 20) * "#",
    *("(; a comment in Scheme ;)", "(;;; about this list\n 1)", "(;GM[2] and then a letter", "( ;let ((a 1)) a)"),
]


@pytest.mark.parametrize("text", NO_SAVED_GAMES, ids=range(len(NO_SAVED_GAMES)))
def test_what_is_nearly_a_saved_game_is_not_written_over(text: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(RecordError, match="exists and is not a saved game: choose another name|too large for a game"):
        game_files.save(played("4"), tmp_path / "file")
    assert (tmp_path / "file").read_text() == text


@pytest.mark.parametrize(
    "text",
    [
        "game: hex\n\nA:\n# notes\n",
        "# first\ngame: hex\r\nstart: 1 2\r\n  A: a1\r\nB after A0: b1\r\nat: B1",
        "\n(;GM[1]SZ[9]\n;B[aa](;W[bb])(;W[cc]))\n",
        "(\n;\nGM [2])",
    ],
)
def test_a_saved_game_that_others_wrote_is_written_over(text: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(text)
    game_files.save(played("4"), tmp_path / "file")
    assert "A: 4\n" in (tmp_path / "file").read_text()


def test_a_pipe_is_not_written_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RecordError, match="cannot write .*pipe: not a regular file"):
        game_files.save(played("4"), tmp_path / "pipe")


@pytest.mark.parametrize("name", ["game.txt", "game.sgf"])
def test_a_game_that_is_too_large_is_neither_read_nor_written(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, tree = tmp_path / name, GameTree(HEX)
    for action in tree.legal()[:20]:
        tree.play(action)
    game_files.save(tree, file)
    written = file.read_text()
    monkeypatch.setattr(saved_games, "MOST_CHARACTERS", len(written))
    assert game_files.load("hex", file)
    tree.play(tree.legal()[0])
    refused = [lambda: game_files.save(tree, file), lambda: game_files.save(tree, tmp_path / f"other.{name}")]
    monkeypatch.setattr(saved_games, "MOST_CHARACTERS", len(written) - 1)
    for attempt in (*refused, lambda: game_files.load("hex", file)):
        with pytest.raises(RecordError, match=r"too large for a game: one may have \d+ characters$"):
            attempt()
    assert [each.name for each in tmp_path.iterdir()] == [name]
    assert file.read_text() == written


@pytest.mark.parametrize("name", ["missing/game.txt", ".", "/", "nul\0", "~nobodyatall/game"])
def test_a_file_that_cannot_be_written_is_reported(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RecordError, match="cannot write|is not a saved game"):
        game_files.save(played("4"), Path(name))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "this is not a saved game: expected a first line such as game: tictactoe"),
        ("game: tictactoe\nA: a1", "this is a game of 'tictactoe', not 'connectfour'"),
        ("game: connectfour\nA: 4444444", "line 2 of the saved game: 4 is not legal here"),
        ("game: connectfour\nA: 44\nB after A7: 1", "line 3 of the saved game: line A has 2 moves"),
        ("game: connectfour\nnonsense", "line 2 of the saved game: 'nonsense' is not a line of moves"),
        ("game: connectfour\nat: nowhere", "line 2 of the saved game: 'at: nowhere' names no position"),
        (f"game: connectfour\nat: A{5000 * '1'}", "line 2 of the saved game: 'at: A1111.*' names no position"),
        (f"game: connectfour\nA: 44\nB after A{5000 * '1'}: 1", "line 3 of the saved game: .* is not a line of moves"),
        ("game: connectfour\nstart: x", "expected a start of whole numbers, not 'start: x'"),
        ("game: connectfour\nstart: 1 2 3", "a state of 2 whole numbers, not int64 of shape \\(3,\\)"),
        ("game: connectfour\nstart: 1 99999999999999999999", "expected a start of whole numbers"),
    ],
)
def test_a_damaged_saved_game_is_reported(text: str, problem: str) -> None:
    with pytest.raises(RecordError, match=problem):
        saved_games.from_text(FOUR, text)


@pytest.mark.parametrize(
    ("game", "words"),
    [("tictactoe", "1 1"), ("connectfour", "-1 7"), ("openspiel:tic_tac_toe", "2 136")],  # the last: twice one cell
)
@pytest.mark.parametrize("moves", ["", "x(0,0)"])
def test_a_saved_game_from_an_impossible_position_is_refused(game: str, words: str, moves: str, tmp_path: Path) -> None:
    file = tmp_path / "game.txt"
    file.write_text(f"game: {game}\nstart: {words}\nA: {moves}\n")
    with pytest.raises(RecordError, match="start: these words are not a position of "):
        game_files.load(game, file)


def calls(text: str) -> int:
    """Return how many functions of Python are called while a saved game of Hex is read."""
    count = 0

    def watch(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    gc.disable()  # others watch it by functions of their own
    sys.setprofile(watch)
    try:
        saved_games.from_text(HEX, text)
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


def test_a_row_of_a_saved_game_takes_no_longer_if_there_are_many_lines() -> None:
    """A game of a message's size may have thousands, and its reader serves everybody."""
    few = f"game: {HEX.name}\nA: a1 b2\n"
    many = few + "".join(f"A after A0: {HEX.action_label(action)}\n" for action in range(1, 49))
    calls(many)
    rows = "at: A1\n" * 10
    assert calls(many + rows) - calls(many) == calls(few + rows) - calls(few)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A file of two games of tic-tac-toe: a1 a2 b1 b2 c1, and, from its third ply, a3 b3 a2 b2 a1."""
    game = tictactoe.GAME
    with GameWriter(tmp_path / "data", RecordOptions()) as writer:
        for game_id, moves, first_ply in (("one", "a1 a2 b1 b2 c1", 0), ("two", "a3 b3 a2 b2 a1", 2)):
            tree = GameTree(game)
            for action in parse_moves(game, moves):
                tree.play(action)
            states = np.array([node.state for node in tree.path()[first_ply:-1]])
            actions = np.array(tree.actions()[first_ply:])
            policies = np.eye(game.num_actions, dtype=np.float32)[actions]
            values = np.zeros(len(actions), np.float32)
            record = GameRecord(
                game_id, states, actions, policies, values, 1.0, plies=first_ply + np.arange(len(actions))
            )
            writer.add(encode(game, record))
    return next((tmp_path / "data").glob("*.tfrecord"))


def test_a_record_is_loaded_with_the_game_that_it_is_of(recorded: Path) -> None:
    found = game_files.find("tictactoe", f"{recorded}:3")
    assert found == (None, parse_moves(tictactoe.GAME, "a1 a2 b1"), parse_moves(tictactoe.GAME, "b2 c1"))
    assert game_files.find("tictactoe", str(recorded)) == (None, [], parse_moves(tictactoe.GAME, "a1 a2 b1 b2 c1"))
    assert game_files.find("tictactoe", f"{recorded.parent}:4")[1] == parse_moves(tictactoe.GAME, "a1 a2 b1 b2")


def test_a_session_goes_to_a_record_and_redo_through_the_rest_of_its_game(recorded: Path) -> None:
    game = tictactoe.GAME
    options = SearchOptions(readouts=4, cache_megabytes=0, solver=False)
    generator = np.random.default_rng(1)
    session = GameSession("tictactoe", Uniform(game), options, PlayOptions(), SessionOptions("both"), generator)
    session.load(f"{recorded}:3")
    assert format_moves(game, session.tree.actions()) == "a1 a2 b1"
    session.redo(2)
    assert session.ended and session.values == (1.0,)
    session.load(f"{recorded}:6")  # which is of a game that began elsewhere
    assert not session.tree.starts_afresh
    assert format_moves(game, session.tree.actions()) == "a2"


def test_a_game_that_is_not_recorded_from_its_start_begins_where_it_is(recorded: Path) -> None:
    found = game_files.find("tictactoe", f"{recorded}:6")
    assert isinstance(found, saved_games.Position) and found.start is not None
    assert tictactoe.GAME.render(found.start) == "  a b c\n1 · · ·\n2 · · ·\n3 X O ·"
    assert (found.actions, found.ahead) == ([3], [4, 0])


@pytest.mark.parametrize(
    ("name", "place", "problem"),
    [
        ("tictactoe", "{file}:8", "there is no record 8 in .*: expected a number from 0 to 7"),
        ("connectfour", "{file}:0", "holds positions of tictactoe, but the game is connectfour"),
        ("tictactoe", "{folder}/missing.tfrecord:0", "there is no file or folder"),
        ("tictactoe", "{folder}/empty.tfrecord", "holds no records"),
        ("tictactoe", "{folder}/torn.tfrecord", "truncated"),
    ],
)
def test_a_missing_record_is_reported(name: str, place: str, problem: str, recorded: Path) -> None:
    (recorded.parent / "empty.tfrecord").write_bytes(b"")
    (recorded.parent / "torn.tfrecord").write_bytes(recorded.read_bytes()[:-3])
    with pytest.raises(RecordError, match=problem):
        game_files.find(name, place.format(file=recorded, folder=recorded.parent))
