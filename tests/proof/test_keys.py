"""Keys tell positions apart, and do not tell symmetric ones apart."""

from pathlib import Path

import numpy as np
import pytest
from games import NIM

from connectfour.game import ConnectFour
from seraphim.errors import GameError
from seraphim.game import Array, Game, PlainGame, PlainRules, Symmetries
from seraphim.game.exhaustive import solve
from seraphim.game.saved_games import Position
from seraphim.inference import Uniform
from seraphim.proof import known_moves, proving
from seraphim.proof.keys import Keys
from seraphim.proof.proving import Goal, Limits, prove
from tictactoe.game import GAME as TICTACTOE

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


@pytest.mark.parametrize("goal", ["first", "second"])
def test_where_observations_do_not_tell_positions_apart_nothing_is_proven(
    goal: Goal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = PlainRules(Forgetful())
    for module in (proving, known_moves):
        monkeypatch.setattr(module, "load_game", lambda _: game)
    out, start = tmp_path / "proof", Position(None, [], [])
    decisions = prove("forgetful", start, goal, [Uniform(game)], Limits(60, 8), out, lambda *_: None)
    with pytest.raises(GameError, match="observations do not tell all positions apart|is no proof"):
        list(decisions)
    assert not out.exists()
