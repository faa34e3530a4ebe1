"""Keys tell positions apart, and do not tell symmetric ones apart."""

import contextlib
import hashlib
import json
import zlib
from pathlib import Path

import numpy as np
import pytest
from games import NIM

from connectfour.game import ConnectFour
from seraphim.commands import check_proof
from seraphim.errors import GameError
from seraphim.game import Array, Game, PlainGame, PlainRules, Symmetries
from seraphim.game.exhaustive import solve
from seraphim.game.saved_games import Position
from seraphim.proof import known_moves, proving
from seraphim.proof.certificate import MAGIC
from seraphim.proof.keys import Keys
from seraphim.proof.proving import Limits, Objective, prove
from seraphim.search.evaluator import Uniform
from tictactoe.game import GAME as TICTACTOE

START = Position(None, [], [])
pytestmark = pytest.mark.kernels


class Histories(PlainRules):
    """Positions that begin with the number of plies, and then hold the moves, a byte for each; nobody wins."""

    def __init__(self) -> None:
        super().__init__(NIM)
        self.state_words = 2

    def to_play(self, states: Array) -> Array:
        return (states[:, 0] % 2).astype(np.int8)


def histories(plies: int) -> Array:
    rows = [(0, 0)]
    for ply in range(plies):
        rows += [(ply + 1, moves | move << 8 * ply) for count, moves in rows if count == ply for move in range(5)]
    return np.array(rows)


def test_positions_without_symmetries_have_keys_of_their_own() -> None:
    states = histories(4)
    keys = Keys(Histories()).of(states)
    assert len(np.unique(keys, axis=0)) == len(states) == 1 + 5 + 25 + 125 + 625
    assert len(np.unique(keys[:, 0])) == len(states)


@pytest.mark.parametrize("game", [TICTACTOE, ConnectFour(4, 4)], ids=lambda game: game.name)
def test_symmetric_positions_share_a_key(game: Game) -> None:
    states = solve(game).states[:20_000]
    seen = game.observe(states).reshape(len(states), -1)
    classes = np.stack([seen[:, cells] for cells in game.symmetries().observations])
    players = game.to_play(states).astype(np.uint8)
    least = np.array(
        [
            min(bytes([player]) + turned.tobytes() for turned in row)
            for player, row in zip(players, classes.swapaxes(0, 1), strict=True)
        ]
    )
    keys = Keys(game).of(states)
    _, expected = np.unique(least, return_inverse=True)
    _, found = np.unique(keys, axis=0, return_inverse=True)
    pairs = np.unique(np.stack([expected.ravel(), found.ravel()]), axis=1)
    assert pairs.shape[1] == expected.max() + 1 == found.max() + 1


class Forgetful(PlainGame):
    """One heap; nobody may take as many as the last player did, which observations do not show."""

    name, num_actions, observation_shape, state_words, max_plies = "forgetful", 3, (2,), 3, 9

    def initial(self) -> tuple[int, ...]:
        return (9, 0, 0)

    def step(self, state: tuple[int, ...], action: int) -> tuple[int, ...]:
        return (state[0] - 1 - action, 1 - state[1], action + 1)

    def legal(self, state: tuple[int, ...]) -> list[int]:
        return [action for action in range(min(3, state[0])) if action + 1 != state[2]]

    def to_play(self, state: tuple[int, ...]) -> int:
        return state[1]

    def outcome(self, state: tuple[int, ...]) -> float | None:
        return None if self.legal(state) else (1.0 if state[1] else -1.0)

    def observe(self, state: tuple[int, ...]) -> list[int]:
        return [state[0], state[0]]

    def symmetries(self) -> Symmetries:
        return Symmetries(np.array([[0, 1], [1, 0]]), np.array([[0, 1, 2], [0, 1, 2]]))


class Slide(PlainGame):
    """The first player puts a stone left or right, then slides it there or not; six plies later the slide has won.

    Which it was is not seen: a stone that stayed left looks like one that slid there, or mirrored like any other.
    """

    name, num_actions, observation_shape, state_words, max_plies = "slide", 2, (11,), 3, 8

    def initial(self) -> tuple[int, ...]:
        return (0, 2, 0)

    def step(self, state: tuple[int, ...], action: int) -> tuple[int, ...]:
        ply, side, slid = state
        return (ply + 1, action if ply < 2 else side, int(action != side) if ply == 1 else slid)

    def legal(self, state: tuple[int, ...]) -> list[int]:
        return [0, 1]

    def to_play(self, state: tuple[int, ...]) -> int:
        return 0 if state[0] < 2 else state[0] % 2

    def outcome(self, state: tuple[int, ...]) -> float | None:
        return None if state[0] < 8 else 1.0 if state[2] else -1.0

    def observe(self, state: tuple[int, ...]) -> Array:
        return np.array([state[1] == 0, state[1] == 1, *(state[0] == ply for ply in range(9))], np.uint8)

    def symmetries(self) -> Symmetries:
        return Symmetries(np.array([[*range(11)], [1, 0, *range(2, 11)]]), np.array([[0, 1], [1, 0]]))


class Late(PlainGame):
    """The first player wins at ply 6, but games are cut off after four."""

    name, num_actions, observation_shape, state_words, max_plies = "late", 2, (8,), 1, 4

    def initial(self) -> tuple[int, ...]:
        return (0,)

    def step(self, state: tuple[int, ...], action: int) -> tuple[int, ...]:
        return (state[0] + 1,)

    def legal(self, state: tuple[int, ...]) -> list[int]:
        return [0, 1]

    def to_play(self, state: tuple[int, ...]) -> int:
        return state[0] % 2

    def outcome(self, state: tuple[int, ...]) -> float | None:
        return 1.0 if state[0] >= 6 else None

    def observe(self, state: tuple[int, ...]) -> Array:
        return np.eye(8, dtype=np.uint8)[state[0]]


@pytest.mark.parametrize("goal", ["first", "second", "result"])
@pytest.mark.parametrize("plain", [Forgetful(), Slide()], ids=lambda plain: plain.name)
def test_where_observations_do_not_tell_positions_apart_nothing_false_is_proven(
    plain: PlainGame, goal: Objective, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    game, out = PlainRules(plain), tmp_path / "proof"
    for module in (proving, known_moves, check_proof):
        monkeypatch.setattr(module, "load_game", lambda _: game)
    results = solve(game).results[:1]
    with contextlib.suppress(GameError):  # what the search found is no proof
        for decision in prove(game.name, START, goal, [Uniform(game)], Limits(60, 8), out, lambda *_: None):
            assert decision.true_claim is not None and decision.true_claim.holds(results)[0]
    if out.exists():
        assert len(list(check_proof.check(out.read_bytes()))) > 1


@pytest.mark.parametrize("moves", [[], [0], [0, 0]])
def test_a_win_after_the_last_ply_of_a_game_is_none(
    moves: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    game, out = PlainRules(Late()), tmp_path / "proof"
    for module in (proving, known_moves, check_proof):
        monkeypatch.setattr(module, "load_game", lambda _: game)
    position = Position(None, moves, [])
    with pytest.raises(GameError, match="is longer than its max_plies, 4"):
        list(prove("late", position, "first", [Uniform(game)], Limits(60, 8), out, lambda *_: None))
    assert not out.exists()
    for start in ([*moves], [0] * 5):
        header = {"game": "late", "start": start, "symmetric": False, "bits": 8}
        claim = {"player": 1, "wins": False, "moves": 0} if len(start) == 5 else {"player": 0, "wins": True, "moves": 3}
        data = MAGIC + json.dumps({**header, "claims": [claim]}).encode() + b"\n" + zlib.compress(bytes(claim["moves"]))
        with pytest.raises(check_proof.RefusedError):
            list(check_proof.check(data + hashlib.sha256(data).digest()))
