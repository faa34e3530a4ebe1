"""How games are found, and what the adapter makes of plain rules."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import games
import numpy as np
import pytest

from seraphim.errors import GameError
from seraphim.game import (
    EMPTY,
    Array,
    Board,
    Game,
    PlainGame,
    PlainRules,
    board_of,
    identity_symmetry,
    load_game,
    load_game_module,
)
from seraphim.game.exhaustive import solve as solve_exhaustively
from seraphim.game.features import features_of
from seraphim.game.loading import plain_form
from seraphim.options import SearchOptions
from seraphim.search.evaluator import Uniform
from seraphim.search.search import Search
from tictactoe.game import GAME
from tictactoe.minimax import solve


def to_cells(states: Array) -> Array:
    """The same positions as states of the plain rules, int64 [B, 9]: 0 empty, 1 a cross, 2 a nought."""
    cells = np.arange(9)
    return (states[:, :1] >> cells & 1) + 2 * (states[:, 1:] >> cells & 1)


@pytest.fixture(scope="module")
def everywhere() -> Array:
    return np.concatenate([layer.states for layer in solve()])


@pytest.mark.parametrize("method", ["legal", "to_play", "observe"])
def test_plain_tictactoe_agrees_with_the_batched_rules_in_every_position(method: str, everywhere: Array) -> None:
    plain = getattr(PlainRules(games.PLAIN_TICTACTOE), method)(to_cells(everywhere))
    batched = getattr(GAME, method)(everywhere)
    assert plain.dtype == batched.dtype
    assert np.array_equal(plain, batched)


def test_plain_tictactoe_agrees_on_every_outcome(everywhere: Array) -> None:
    for plain, batched in zip(
        PlainRules(games.PLAIN_TICTACTOE).outcome(to_cells(everywhere)), GAME.outcome(everywhere), strict=True
    ):
        assert plain.dtype == batched.dtype
        assert np.array_equal(plain, batched)


def test_plain_tictactoe_agrees_on_every_move(everywhere: Array) -> None:
    rows, actions = np.nonzero(GAME.legal(everywhere))
    plain = PlainRules(games.PLAIN_TICTACTOE).step(to_cells(everywhere[rows]), actions)
    assert plain.dtype == np.int64
    assert np.array_equal(plain, to_cells(GAME.step(everywhere[rows], actions)))


def test_the_adapter_is_a_game() -> None:
    assert isinstance(PlainRules(games.NIM), Game)
    assert isinstance(GAME, Game)


def test_the_adapter_works_on_an_empty_batch() -> None:
    game = PlainRules(games.NIM)
    none = game.initial(0)
    assert none.shape == (0, 2)
    assert game.step(none, np.empty(0, int)).shape == (0, 2)
    assert game.legal(none).shape == (0, 3)
    assert game.observe(none).shape == (0, 16)


def test_a_draw_has_ended_with_result_zero() -> None:
    full = np.array([[1, 2, 1, 1, 2, 2, 2, 1, 1]])
    ended, result = PlainRules(games.PLAIN_TICTACTOE).outcome(full)
    assert ended.tolist() == [True]
    assert result.tolist() == [0.0]


def test_no_action_is_legal_after_the_end_even_if_plain_rules_offer_some() -> None:
    won = np.array([[1, 1, 1, 2, 2, 0, 0, 0, 0]])
    assert games.PLAIN_TICTACTOE.legal(tuple(won[0]))
    assert not PlainRules(games.PLAIN_TICTACTOE).legal(won).any()


def test_a_state_of_the_wrong_length_is_refused() -> None:
    class Longer(games.Nim):
        state_words = 3

    with pytest.raises(GameError, match="nim: a state has 2 words but state_words is 3: make states tuples"):
        PlainRules(Longer()).initial(1)


@pytest.mark.parametrize("words", [(2**80 + 15, 0), (-(2**63) - 1, 0), ("fifteen", 0)])
def test_a_state_of_words_that_are_no_ints_of_64_bits_is_refused(words: tuple[Any, int]) -> None:
    class Long(games.Nim):
        def to_words(self, state: Any) -> tuple[Any, int]:
            return words

    with pytest.raises(GameError, match=r"^nim: the words of a state must be ints of 64 bits, from -2\*\*63 to"):
        PlainRules(Long()).initial(1)


def test_states_that_are_no_tuples_travel_as_words() -> None:
    class Named(games.Nim):
        def initial(self) -> str:
            return "15 0"

        def to_words(self, state: str) -> list[int]:
            return [int(word) for word in state.split()]

        def from_words(self, words: tuple[int, ...]) -> str:
            return " ".join(map(str, words))

        def step(self, state: str, action: int) -> str:
            return self.from_words(super().step(tuple(self.to_words(state)), action))

    game = PlainRules(Named())
    assert game.step(game.initial(2), np.array([0, 2])).tolist() == [[14, 1], [12, 1]]


def test_plain_rules_have_labels_drawings_and_the_identity_unless_they_say_otherwise() -> None:
    game = PlainRules(games.ENDLESS)
    assert [game.action_label(action) for action in range(2)] == ["0", "1"]
    assert game.parse_action(" 1 ") == 1
    assert game.render(np.array([3, 0])) == "(3, 0)"
    assert game.symmetries().observations.tolist() == [[0, 1, 2, 3, 4]]
    assert game.symmetries().actions.tolist() == [[0, 1]]


# ---------------------------------------------------------------- boards


def random_positions(game: Game, games_played: int, seed: int = 1) -> Iterator[tuple[Array, int | None]]:
    """Positions [1, W] of random games, each with the action that is played there, which is None at the end."""
    generator = np.random.default_rng(seed)
    for _ in range(games_played):
        states = game.initial(1)
        while not game.outcome(states)[0][0]:
            action = int(generator.choice(np.flatnonzero(game.legal(states)[0])))
            yield states, action
            states = game.step(states, np.array([action]))
        yield states, None


@pytest.mark.parametrize("name", ["tictactoe", "connectfour"])
def test_a_drawn_position_is_read_again(name: str) -> None:
    module = load_game_module(name)
    for states, _ in random_positions(module.GAME, 30):
        drawing = module.GAME.render(states[0])
        bare = "\n".join(line.lstrip("abc ").replace("·", ".") for line in drawing.splitlines()[1:])
        for text in (drawing, bare, bare.lower().replace(" ", "").replace("\n", "/"), drawing.replace("·", "-")):
            assert module.state_from_board(text).tolist() == states[0].tolist()


@pytest.mark.parametrize("name", ["tictactoe", "connectfour"])
def test_a_board_shows_what_is_drawn_and_where_each_move_lands(name: str) -> None:
    game = load_game(name)
    for states, action in random_positions(game, 30):
        board = board_of(game, states[0])
        assert board is not None
        drawn = [mark for mark in game.render(states[0]) if mark in "XO·"]
        assert drawn == ["·" if piece == EMPTY else board.marks[piece] for piece in board.cells.ravel()]
        assert sorted(board.targets) == np.flatnonzero(game.legal(states)[0]).tolist()
        if action is None:
            continue
        after = board_of(game, game.step(states, np.array([action]))[0])
        assert after is not None
        changed = [tuple(place) for place in np.argwhere(after.cells != board.cells).tolist()]
        assert changed == [board.targets[action][0]]
        assert after.cells[changed[0]] == game.to_play(states)[0]


@pytest.mark.parametrize(("name", "length"), [("tictactoe", 3), ("connectfour", 4)])
def test_the_line_of_a_board_is_all_cells_that_are_in_a_row(name: str, length: int) -> None:
    game = load_game(name)
    for states, _ in random_positions(game, 30):
        board = board_of(game, states[0])
        assert board is not None
        pieces = {place: piece for place, piece in np.ndenumerate(board.cells) if piece != EMPTY}
        in_a_row = set()
        for (row, column), piece in pieces.items():
            for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
                cells = [(row + k * down, column + k * right) for k in range(length)]
                if all(pieces.get(cell) == piece for cell in cells):
                    in_a_row |= set(cells)
        assert list(board.line) == sorted(in_a_row)
        assert bool(in_a_row) == bool(game.outcome(states)[1][0])


def test_any_cell_of_a_column_plays_it() -> None:
    game = load_game("connectfour")
    targets = board_of(game, game.initial(1)[0]).targets  # type: ignore[union-attr]
    assert {action: {column for _, column in cells} for action, cells in targets.items()} == {c: {c} for c in range(7)}
    assert all(len(set(cells)) == 6 for cells in targets.values())


@pytest.mark.parametrize(
    ("name", "drawing", "problem"),
    [
        ("tictactoe", "X../.../", "a board of 2 rows: expected 3 rows of 3 cells, each of them one of X O or"),
        ("tictactoe", "X../..../...", "row 2 of the board is '....'"),
        ("tictactoe", "X../.Z./...", "row 2 of the board is '.Z.'"),
        ("tictactoe", "XX./.../...", "2 X and 0 O: X moves first and the sides alternate"),
        ("tictactoe", "O../.../...", "0 X and 1 O"),
        ("tictactoe", "XXX/OO./O..", "three in a row of the player who did not move last"),
        ("tictactoe", "OOO/XX./XX.", "three in a row of the player who did not move last"),
        ("connectfour", "X", "a board of 1 rows: expected 6 rows of 7 cells"),
        ("connectfour", f"{'......./' * 4}...X.../.......", "the stone in row 5 of column 4 floats"),
        ("connectfour", f"{'......./' * 5}OO.....", "0 X and 2 O: X moves first and the sides alternate"),
        ("connectfour", f"{'......./' * 4}O....../XXXXOOO", "four in a row of the player who did not move last"),
    ],
)
def test_a_drawing_of_an_impossible_position_is_refused(name: str, drawing: str, problem: str) -> None:
    with pytest.raises(GameError, match=problem):
        load_game_module(name).state_from_board(drawing)


def test_a_plain_game_may_offer_a_board() -> None:
    class Drawn(games.Nim):
        def board(self, state: tuple[int, ...]) -> Board:
            return Board(np.zeros((1, state[0]), np.int8), ("|",), {})

    drawn = PlainRules(Drawn())
    board = board_of(drawn, drawn.initial(1)[0])
    assert board is not None and board.cells.shape == (1, 15)
    assert board_of(PlainRules(games.NIM), drawn.initial(1)[0]) is None


def test_a_text_that_names_no_action_is_refused_with_an_example() -> None:
    with pytest.raises(GameError, match="'5' is not an action of nim: expected one like 'take 1'"):
        PlainRules(games.NIM).parse_action("5")


@pytest.mark.parametrize("method", ["initial", "step", "legal", "to_play", "outcome", "observe"])
def test_a_missing_plain_rule_raises_an_error(method: str) -> None:
    arguments = {"initial": (), "step": ((0,), 0)}.get(method, ((0,),))
    with pytest.raises(NotImplementedError):
        getattr(PlainGame(), method)(*arguments)


def test_the_identity_leaves_every_cell_and_action() -> None:
    symmetries = identity_symmetry((2, 3), 4)
    assert symmetries.observations.tolist() == [[0, 1, 2, 3, 4, 5]]
    assert symmetries.actions.tolist() == [[0, 1, 2, 3]]


def test_a_game_is_found_by_its_package() -> None:
    assert load_game("tictactoe") is GAME


def test_a_plain_game_is_found_behind_its_adapter() -> None:
    game = load_game("games")
    assert isinstance(game, PlainRules)
    assert game.name == "nim"


def test_a_program_finds_a_game_in_the_current_folder_that_is_not_installed(tmp_path: Path) -> None:
    shutil.copyfile(Path(games.__file__).parents[2] / "tictactoe" / "plain.py", tmp_path / "mine.py")
    seraphim = [sys.executable, "-P", "-m", "seraphim"]  # without the folder of the program
    prove = [*seraphim, "prove", "--game=mine", "--position=a1 b1 a2 b2", "--out=x.proof"]
    for command in (prove, [*seraphim, "check-proof", "x.proof"]):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert (done.returncode, done.stderr) == (0, "")


def test_loading_a_game_leaves_the_path_of_imports_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", before := [entry for entry in sys.path if entry])
    load_game("tictactoe.plain")
    assert sys.path == before and "" not in sys.path


@pytest.mark.parametrize("name", ["nosuchgame", "tictactoe.nosuchgame", "nosuchgame.mine"])
def test_an_unknown_game_is_named(name: str) -> None:
    with pytest.raises(GameError, match=f"there is no game '{name}': name a package or module that offers GAME"):
        load_game_module(name)


@pytest.mark.parametrize("name", ["", "../tictactoe", "tictactoe/game.py", "tic tac toe", ".tictactoe"])
def test_a_path_is_not_a_game(name: str) -> None:
    with pytest.raises(GameError, match="is not a game: name a package or module"):
        load_game_module(name)


def test_a_module_without_a_game_is_named() -> None:
    with pytest.raises(GameError, match="module 'seraphim.errors' offers no GAME"):
        load_game_module("seraphim.errors")


@pytest.mark.parametrize(
    ("name", "plain"),
    [("tictactoe", "tictactoe.plain"), ("hex.game", "hex.plain"), ("cube", None), ("games", None)],
)
def test_a_package_may_offer_the_plain_form_of_its_game(name: str, plain: str | None) -> None:
    assert plain_form(name) == plain


def test_a_missing_import_of_a_game_is_raised_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "needy.py").write_text("import nosuchlibrary\n\nGAME = None\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="nosuchlibrary"):
        load_game_module("needy")


def test_a_missing_import_is_raised_even_if_the_games_name_begins_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nosuch_variant.py").write_text("import nosuch\n\nGAME = None\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="No module named 'nosuch'"):
        load_game_module("nosuch_variant")


def test_optional_members_of_a_plain_game_take_and_return_what_belongs_to_one_state() -> None:
    class Knowing(games.Nim):
        """Knows what it is in theory: the player to move loses if the heap is a multiple of four."""

        uci_variant = "nim"

        def progress(self, state: tuple[int, ...]) -> float:
            return 1 - state[0] / self.max_plies

        def known_results(self, state: tuple[int, ...]) -> float | None:
            return None if state[0] > 8 else (-1.0 if bool(state[0] % 4) == bool(state[1]) else 1.0)

        def score(self, state: tuple[int, ...]) -> float:
            return 2.5 if state[1] else -2.5

        def uci_in(self, state: tuple[int, ...], action: int) -> str:
            return f"{state[0]}-{action + 1}"

    rules = PlainRules(Knowing())
    found = features_of(rules)
    states = np.array([(15, 0), (9, 1), (8, 0), (7, 0), (6, 1), (0, 1)])
    assert found.progress is not None and found.known_results is not None and found.score and found.uci_in
    np.testing.assert_allclose(found.progress(states), 1 - states[:, 0] / 15)
    known, results = found.known_results(states[:-1])
    assert known.tolist() == [False, False, True, True, True] and results[2:].tolist() == [-1.0, 1.0, -1.0]
    exact = solve_exhaustively(rules)
    for state, result in zip(states[2:-1], results[2:], strict=True):
        row = int(np.flatnonzero((exact.states == state).all(axis=1))[0])
        assert np.nanmax(exact.action_values[row]) == (result if state[1] == 0 else -result)
    assert found.score(states[-1]) == 2.5 and found.uci_in(states[0], 2) == "15-3" and found.uci_variant == "nim"
    for options in ({"fast_wins": 0.5, "solver": False}, {"solver": True, "known_results": True}):
        search = Search(rules, Uniform(rules), SearchOptions(readouts=30, **options), 1)
        search.begin(np.array([0]), np.array([(7, 0)]))
        search.run()
        assert search.result(np.array([0])).best[0] == 2  # leaves four
