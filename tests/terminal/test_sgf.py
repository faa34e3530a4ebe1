"""Games in the Smart Game Format: written, read back, and read by another library."""

from pathlib import Path

import numpy as np
import pytest

from seraphim.errors import RecordError
from seraphim.game import Game, load_game
from seraphim.game.tree import GameTree
from seraphim.terminal import game_files
from seraphim.terminal.sgf import from_sgf, to_sgf

GO = "openspiel:go(board_size=9,komi=7.5)"
GAMES = ["othello", "hex", "hex:11", "hex:3,swap", GO]


def random_tree(game: Game, seed: int) -> GameTree:
    """A whole game, and a few branches."""
    random, tree = np.random.default_rng(seed), GameTree(game)
    for _ in range(4):
        while (legal := tree.legal()) and tree.node.ply < 80:
            tree.play(int(random.choice(legal)))
        tree.go(tree.path()[int(random.integers(tree.node.ply // 2))])
    return tree


def lines(tree: GameTree) -> list[list[int]]:
    """The moves from the root to each leaf."""
    found, open_nodes = [], [tree.root]
    while open_nodes:
        node = open_nodes.pop()
        open_nodes += reversed(node.children)
        if not node.children:
            found.append(tree.actions(node))
    return found


@pytest.mark.parametrize("name", GAMES)
def test_games_are_written_and_read_back_with_their_branches(name: str) -> None:
    game = load_game(name)
    for seed in range(3):
        tree = random_tree(game, seed)
        again = from_sgf(game, to_sgf(tree))
        assert lines(again) == lines(tree)
        assert len(lines(tree)) == 4
        assert again.actions() == lines(tree)[0]  # the end of the main line


def test_moves_of_go_are_those_that_another_reader_finds() -> None:
    sgf = pytest.importorskip("sgfmill.sgf")
    game, random = load_game(GO), np.random.default_rng(5)
    tree = GameTree(game)
    labels = []
    for _ in range(40):
        action = int(random.choice(tree.legal()))
        labels.append(tree.label(action))
        tree.play(action)
    theirs = sgf.Sgf_game.from_string(to_sgf(tree))
    assert theirs.get_size() == 9
    moves = [node.get_move() for node in theirs.get_main_sequence()[1:]]
    names = [
        f"{color.upper()}_{'PASS' if place is None else 'abcdefghj'[place[1]] + str(place[0] + 1)}"
        for color, place in moves
    ]
    assert names == labels


@pytest.mark.parametrize("text", ["(;GM[2]SZ[8];B[f5];W[d6])", "( ;FF[4]GM[2]\nSZ[8] C[x\\]y];B[fe];W[df]C[good])"])
def test_files_of_others_are_read(text: str) -> None:
    game = load_game("othello")
    assert [game.action_label(action) for action in from_sgf(game, text).actions()] == ["f5", "d6"]


def test_a_forced_pass_may_be_left_out() -> None:
    game = load_game("othello")
    moves = ["d3", "c3", "e6", "d2", "d1", "e1", "b2", "c1"]
    text = "".join(f";{'BW'[place % 2]}[{move}]" for place, move in enumerate(moves))
    tree = from_sgf(game, f"(;GM[2]SZ[8]{text})")
    white = game.action_label(int(game.legal(game.step(tree.node.state[None], np.array([64])))[0].argmax()))
    for middle in ("", ";B[]", ";B[pass]"):
        actions = from_sgf(game, f"(;GM[2]SZ[8]{text}{middle};W[{white}])").actions()
        assert [game.action_label(action) for action in actions] == [*moves, "pass", white]


def test_a_move_that_is_no_pass_is_never_left_out() -> None:
    game, random, found = load_game("othello"), np.random.default_rng(1), 0
    while found < 3:
        tree = GameTree(game)
        while (legal := tree.legal()) and (len(legal) > 1 or legal == [64]):
            tree.play(int(random.choice(legal)))
        if not legal:
            continue
        tree.play(legal[0])
        mover = "BW"[int(game.to_play(tree.node.state[None])[0])]
        for action in tree.legal():
            # The file lacks the player's only move.
            lacking = to_sgf(tree).strip().removesuffix(")").rpartition(";")[0]
            with pytest.raises(RecordError, match="but it is the other player's turn"):
                from_sgf(game, f"{lacking};{mover}[{game.action_label(action)}])")
            found += 1


def test_passes_after_the_end_are_no_moves() -> None:
    for name in ("othello", "hex:3", GO):
        game, random = load_game(name), np.random.default_rng(2)
        tree = GameTree(game)
        while legal := tree.legal():
            tree.play(int(random.choice(legal)))
        whole = to_sgf(tree).strip().removesuffix(")")
        for last in (";B[];W[]", ";W[];B[]", ";B[pass]"):
            assert from_sgf(game, f"{whole}{last})").actions() == tree.actions()


@pytest.mark.parametrize(
    "text",
    [
        "(;FF[4]GM[11]SZ[7];B[a3];W[swap-pieces];B[d4];W[e3];B[c6])",  # as the format defines it
        "(;FF[4]GM[11]SZ[7];B[A3];W[Swap-Pieces];B[D4];W[E3];B[C6];W[resign])",
        "(;AP[HexGui:1.0.]FF[4]GM[11]SZ[7];B[a3];W[swap-pieces];W[d4];B[c5];W[f3])",  # players exchange colors
        "(;AP[Hex-benzene:0.1]FF[4]GM[11]PB[player1]PW[player2]SZ[7]\n;B[a3];W[SWAP];W[d4];B[c5];W[f3])",
        "(;GM[11]SZ[7];B[a3];W[swap-sides];W[d4];B[c5];W[f3];B[forfeit])",
        "(;FF[4]EV[x]PB[a]PW[b]SZ[7]RE[B]GC[game #1]SO[y];W[ac];B[swap];W[dd];B[ec];W[cf];B[resign])",  # Little Golem
        "(;FF[4]SZ[7];B[ac];W[swap];B[dd];W[ec];B[cf])",
    ],
)
def test_swapped_pieces_are_read_as_programs_for_hex_write_them(text: str) -> None:
    tree = from_sgf(load_game("hex:7,swap"), text)
    assert [tree.label_of(node) for node in tree.path()[1:]] == ["a3", "swap-pieces", "d4", "e3", "c6"]
    assert to_sgf(tree).strip().endswith(";B[a3];W[swap-pieces];B[d4];W[e3];B[c6])")


def test_a_game_whose_players_exchange_colors_ends_where_it_was_won() -> None:
    """Black's chain is along the column d. Black is the second player, whose chains here are along a row."""
    column = "".join(f";W[a{row}];B[d{row}]" for row in (1, 2, 3, 5, 6, 7))
    tree = from_sgf(load_game("hex:7,swap"), f"(;GM[11]SZ[7];B[d4];W[swap-pieces]{column})")
    ended, results = tree.game.outcome(tree.node.state[None])
    assert (ended[0], results[0]) == (True, -1.0)
    assert (tree.game.cells(tree.node.state)[3] == 1).all()


def test_swaps_are_read_in_each_branch() -> None:
    text = "(;GM[11]SZ[7];B[a3](;W[swap-pieces];W[c5])(;W[swap-pieces];B[c5])(;W[c5];B[d4]))"
    tree = from_sgf(load_game("hex:7,swap"), text)
    swaps = [[tree.game.action_label(action) for action in line] for line in lines(tree)]
    assert swaps == [["a3", "swap-pieces", "e3"], ["a3", "swap-pieces", "c5"], ["a3", "c5", "d4"]]


@pytest.mark.parametrize(
    ("game", "head", "setup", "moves"),
    [
        ("othello", "GM[2]SZ[8]", "AB[ed][de]AW[dd][ee]", "B[dc];W[cc]"),
        ("othello", "GM[2]SZ[8]", "AB[d5][e4]AW[e5][d4]PL[B]", "B[d3];W[c3]"),
        ("hex:3", "GM[11]SZ[3]", "PL[B]", "B[a1];W[b2]"),
        (GO, "GM[1]SZ[9]", "PL[B]", "B[aa];W[bb]"),
    ],
)
def test_a_file_may_set_up_the_initial_position(game: str, head: str, setup: str, moves: str) -> None:
    rules = load_game(game)
    assert from_sgf(rules, f"(;{head}{setup};{moves})").actions() == from_sgf(rules, f"(;{head};{moves})").actions()
    assert from_sgf(rules, f"(;{head};{setup};{moves})").actions() == from_sgf(rules, f"(;{head};{moves})").actions()


@pytest.mark.parametrize(
    ("game", "text", "message"),
    [
        ("othello", "(;GM[2]SZ[8]AB[ed][de]AW[dd];B[f5])", "sets up a board that is not the initial one"),
        ("othello", "(;GM[2]SZ[8]AB[ed][de]AW[dd][ee]PL[W];W[f5])", "sets up a board"),
        ("othello", "(;GM[2]SZ[8]AB[ed][de]AW[dd][ee]AE[aa];B[f5])", "sets up a board"),
        ("othello", "(;GM[2]SZ[8]AB[dd][ee]AW[ed][de];B[f5])", "sets up a board"),
        ("othello", "(;GM[2]SZ[8];B[f5];AB[ed][de]AW[dd][ee])", "sets up a board"),
        ("othello", "f5d6", "this is not an SGF file"),
        ("othello", "(;GM[2]SZ[8];B[f5]", "this is not an SGF file"),
        ("othello", "(;GM[1]SZ[8];B[f5])", "game number 1 of SGF, not othello, which is 2"),
        ("othello", "(;GM[2]SZ[10];B[f5])", "a board of size 10, not 8"),
        ("othello", "(;GM[2]SZ[8]AB[a1];B[f5])", "sets up a board"),
        (GO, "(;GM[1]SZ[9]HA[2];W[cc])", "a handicap of 2 stones"),
        (GO, "(;GM[1]SZ[9]HA[ 2 ];W[cc])", "a handicap of 2 stones"),
        ("othello", "(;GM[2]SZ[8];B[a1])", "move 1 of the SGF file: a1 is not legal here"),
        (GO, "(;GM[1]SZ[9];B[za])", "move 1 of the SGF file: za is not legal here"),
        (GO, "(;GM[1];B[cc])", r"this file has no SZ, so its board has size 19: expected SZ\[9\]"),
        (GO, "(;GM[1]SZ[9];B[cc];B[dd])", "move 2 is B's, but it is the other player's turn"),
        (GO, "(;GM[1]SZ[9];B[];W[];B[cc])", "move 3 of the SGF file: c7 is not legal here: expected none"),
        ("othello", "(;GM[2]SZ[8];W[f5])", "move 1 is W's, but it is the other player's turn"),
        ("othello", "(;GM[2]SZ[8];B[f5];W[é])", "move 2 of the SGF file"),
        ("hex", "(;GM[11]SZ[7];B[a3];W[swap-pieces])", "move 2 of the .* hex:7,swap is Hex with the swap rule"),
        ("hex:7,swap", "(;GM[11]SZ[7];B[a3];W[b4];B[swap-pieces])", "move 3 of the SGF file: swap-pieces is not legal"),
        ("hex:7,swap", "(;GM[11]SZ[7];B[a3];B[c4])", "move 2 is B's, but it is the other player's turn"),
        ("hex:7,swap", "(;GM[11]SZ[7];B[a3];W[swap-pieces];W[z99])", "move 3 of the SGF file: z99 is not legal"),
        ("hex:7,swap", "(;GM[11]SZ[7];W[a3];B[b4])", "move 1 is W's, but it is the other player's turn"),
        ("connectfour", "(;GM[2])", "the Smart Game Format has Go, Othello and Hex, not connectfour"),
    ],
)
def test_what_is_no_such_game_is_refused(game: str, text: str, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        from_sgf(load_game(game), text)


def test_only_games_from_the_beginning_are_written() -> None:
    game = load_game("othello")
    tree = GameTree(game, game.step(game.initial(1), np.array([19]))[0])
    with pytest.raises(RecordError, match="only games from the initial position"):
        to_sgf(tree)
    with pytest.raises(RecordError, match="not connectfour"):
        to_sgf(GameTree(load_game("connectfour")))


def test_files_are_saved_and_loaded_by_their_name(tmp_path: Path) -> None:
    game, file = load_game("othello"), tmp_path / "game.sgf"
    tree = random_tree(game, 1)
    game_files.save(tree, file)
    game_files.save(tree, file)  # again
    loaded = game_files.find("othello", str(file))
    assert isinstance(loaded, GameTree)
    assert lines(loaded) == lines(tree)
    (tmp_path / "other.sgf").write_text("a letter")
    with pytest.raises(RecordError, match="exists and is not a saved game"):
        game_files.save(tree, tmp_path / "other.sgf")


def test_a_file_in_another_encoding_is_read(tmp_path: Path) -> None:
    file = tmp_path / "game.sgf"
    file.write_bytes("(;GM[2]SZ[8]CA[ISO-8859-1]PB[José];B[f5])".encode("latin-1"))
    tree = game_files.load("othello", file)
    assert isinstance(tree, GameTree) and tree.node.ply == 1
