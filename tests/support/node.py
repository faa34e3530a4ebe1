"""The engine of browsers, run by node."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from games import MOVES_TWICE

from seraphim.game import Array, Game, PlainRules, load_game
from seraphim.game.features import num_columns
from seraphim.search.analysis import Analysis

ROOT = Path(__file__).parents[2]
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="node, which runs the engine of browsers here, is not installed")

TWICE = PlainRules(MOVES_TWICE)
GAMES: dict[str, tuple[Game, Path]] = {
    "tictactoe": (load_game("tictactoe"), ROOT / "tictactoe/rules.js"),
    "connectfour": (load_game("connectfour"), ROOT / "connectfour/rules.js"),
    "othello": (load_game("othello"), ROOT / "othello/rules.js"),
    "hex": (load_game("hex"), ROOT / "hex/rules.js"),
    "hex:7,swap": (load_game("hex:7,swap"), ROOT / "tests/web/js/hex_swap.js"),
    "hex:9,swap": (load_game("hex:9,swap"), ROOT / "tests/web/js/hex_large.js"),
    "double moves": (TWICE, ROOT / "tests/web/js/double_nim.js"),
}


def ask_node(rules: Path, **request: object) -> Any:
    done = subprocess.run(
        [str(NODE), ROOT / "tests/web/js/driver.js"],
        input=json.dumps({"rules": rules.as_uri(), **request}),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def in_words(states: Array) -> list[list[str]]:
    return [[str(word) for word in row] for row in states.tolist()]


class HashNetwork:
    """A network of integers, which tests/web/js/hash_network.js computes alike to the last bit."""

    name = description = "hash"
    overlaps = False

    def __init__(self, game: Game) -> None:
        self._num_actions, self._columns = game.num_actions, num_columns(game)

    def infer(self, observations: Array) -> tuple[Array, Array]:
        rows = observations.reshape(len(observations), -1).astype(np.uint32)
        bits = np.full(len(rows), 0x811C9DC5, np.uint32)
        for column in rows.T:
            bits = (bits ^ column) * np.uint32(0x01000193)
        steps = np.arange(1, self._num_actions + self._columns + 1, dtype=np.uint32) * np.uint32(0x9E3779B9)
        numbers = self._scrambled(bits[:, None] + steps)
        values = (2 * numbers[:, self._num_actions :] - 1).astype(np.float32)
        return (6 * numbers[:, : self._num_actions] - 3).astype(np.float32), (
            values if self._columns > 1 else values[:, 0]
        )

    @staticmethod
    def _scrambled(bits: Array) -> Array:
        bits = (bits ^ bits >> np.uint32(16)) * np.uint32(0x85EBCA6B)
        bits = (bits ^ bits >> np.uint32(13)) * np.uint32(0xC2B2AE35)
        return ((bits ^ bits >> np.uint32(16)) >> np.uint32(8)) / 2.0**24


def random_games(game: Game, count: int, seed: int) -> list[list[int]]:
    """Games of random moves; where pieces can be swapped, every second game swaps them."""
    rng = np.random.default_rng(seed)
    games = []
    for number in range(count):
        state, actions = game.initial(1), []
        while not game.outcome(state)[0][0]:
            legal = np.flatnonzero(game.legal(state)[0])
            swaps = number % 2 and game.action_label(int(legal[-1])) == "swap-pieces"
            actions.append(int(legal[-1] if swaps else rng.choice(legal)))
            state = game.step(state, np.array(actions[-1:]))
        games.append(actions)
    return games


def found(analysis: Analysis, num_actions: int) -> dict[str, Any]:
    """What the Python search found, in the form of tests/web/js/driver.js."""
    result = analysis.result().to_dict()
    visits = np.zeros(num_actions, int)
    for candidate in result["candidates"]:
        visits[candidate["action"]] = candidate["visits"]
        candidate["variation"] = list(candidate.pop("actions"))  # labels come later, as pages need them
        del candidate["label"]
        if "values" in candidate:
            candidate["values"] = list(candidate["values"])
    told = ("best", "value", "values", "proven", "candidates")
    return {"visits": visits.tolist(), **{name: result.get(name) for name in told}}


def assert_equal(ours: list[list[dict[str, Any]]], theirs: list[list[dict[str, Any]]]) -> None:
    assert len(ours) == len(theirs)
    for python, javascript in zip(ours, theirs, strict=True):
        assert [each["visits"] for each in javascript] == [each["visits"] for each in python]
        assert [each["best"] for each in javascript] == [each["best"] for each in python]
        assert [each["proven"] for each in javascript] == [each["proven"] for each in python]
        for one, other in zip(python, javascript, strict=True):
            assert other["value"] == pytest.approx(one["value"], abs=1e-6)
            assert other["values"] == (one["values"] and pytest.approx(one["values"], abs=1e-6))
            for expected, candidate in zip(one["candidates"], other["candidates"], strict=True):
                assert candidate["prior"] == expected["prior"]  # as both round to float32
                assert candidate == {
                    name: pytest.approx(value, rel=1e-6) if isinstance(value, float) or name == "values" else value
                    for name, value in expected.items()
                }
