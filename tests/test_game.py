"""How games are found, and what the adapter makes of plain rules."""

import sys
from pathlib import Path

import games
import numpy as np
import pytest

from seraphim.errors import GameError
from seraphim.game import Array, Game, PlainGame, PlainRules, identity_symmetry, load_game, load_game_module
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


def test_a_text_that_names_no_action_is_refused_with_an_example() -> None:
    with pytest.raises(GameError, match="'5' is no action of nim: expected one like 'take 1'"):
        PlainRules(games.NIM).parse_action("5")


@pytest.mark.parametrize("method", ["initial", "step", "legal", "to_play", "outcome", "observe"])
def test_plain_rules_lack_nothing_silently(method: str) -> None:
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


def test_a_game_in_the_current_folder_needs_no_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "wheel.py").write_text("import games\nGAME = games.ENDLESS\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    assert load_game("mine.wheel").name == "endless"


@pytest.mark.parametrize("name", ["nosuchgame", "tictactoe.nosuchgame", "nosuchgame.mine"])
def test_an_unknown_game_is_named(name: str) -> None:
    with pytest.raises(GameError, match=f"there is no game '{name}': name a package or module that offers GAME"):
        load_game_module(name)


@pytest.mark.parametrize("name", ["", "../tictactoe", "tictactoe/game.py", "tic tac toe", ".tictactoe"])
def test_a_path_is_no_game(name: str) -> None:
    with pytest.raises(GameError, match="is not a game: name a package or module"):
        load_game_module(name)


def test_a_module_without_a_game_is_named() -> None:
    with pytest.raises(GameError, match="module 'seraphim.errors' offers no GAME"):
        load_game_module("seraphim.errors")


def test_an_import_that_a_game_lacks_is_its_authors_business(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "needy.py").write_text("import nosuchlibrary\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="nosuchlibrary"):
        load_game_module("needy")
