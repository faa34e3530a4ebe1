"""The engine in the browser against the Python one: its rules move for move, its search visit for visit."""

from typing import Any

import numpy as np
import pytest
from games import Wait
from node import GAMES, ROOT, HashNetwork, ask_node, assert_equal, found, in_words, needs_node, random_games
from one_of_each import one_of_each
from reference import random_states

from seraphim.game import Array, Board, Game, PlainRules, board_of, load_features
from seraphim.game.features import features_of
from seraphim.inference import load_inference
from seraphim.options import SearchOptions
from seraphim.search.analysis import Analysis
from seraphim.storage.models import ModelFolder

pytestmark = needs_node
SLOW = pytest.mark.slow

BOARD_GAMES = ["tictactoe", "connectfour", "othello", "hex", "hex:7,swap", "hex:9,swap"]


class Recorded:
    """A network that remembers what it said of each position."""

    overlaps = False

    def __init__(self, game: Game, inference: Any) -> None:
        self.name = self.description = "recorded"
        self.outputs: dict[str, list[float]] = {}
        self._game, self._inference = game, inference
        self._states: dict[bytes, str] = {}

    def observe(self, states: Array) -> Array:
        observations = self._game.observe(states)
        for state, observation in zip(in_words(states), observations, strict=True):
            self._states[observation.tobytes()] = ",".join(state)
        return observations

    def infer(self, observations: Array) -> tuple[Array, Array]:
        logits, values = self._inference.infer(observations)
        for observation, row, value in zip(observations, logits, values, strict=True):
            self.outputs[self._states[observation.tobytes()]] = [*row.tolist(), float(value)]
        return logits, values


class Observed:
    """A game whose observations a Recorded sees."""

    def __init__(self, game: Game, recorded: Recorded) -> None:
        self._game, self.observe = game, recorded.observe

    def __getattr__(self, name: str) -> Any:
        return getattr(self._game, name)


def searched(
    game: Game, inference: Any, options: SearchOptions, states: Array, readouts: int, moves: int = 0
) -> list[list[dict[str, Any]]]:
    """The same as `searches` of tests/web/js/driver.js."""
    everything = []
    for state in states:
        analysis = Analysis(game, inference, options, leaves=1)
        analysis.start(state)
        analysis.more(readouts)
        results = [found(analysis, game.num_actions)]
        for _ in range(moves):
            analysis.play(analysis.result().best_action)
            if game.outcome(analysis.state[None])[0][0]:
                break
            analysis.more(readouts)
            results.append(found(analysis, game.num_actions))
        everything.append(results)
    return everything


# ---------------------------------------------------------------- search


@pytest.mark.parametrize("count", [10, pytest.param(52, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "solver"), one_of_each(list(GAMES), [False, True]))
def test_visits_equal_those_of_the_python_search(name: str, solver: bool, count: int) -> None:
    game, rules = GAMES[name]
    options = SearchOptions(solver=solver, cache_megabytes=1)
    states = random_states(game, count, seed=1)
    ours = searched(game, HashNetwork(game), options, states, readouts=300)
    assert_equal(ours, ask_node(rules, options=vars(options), states=in_words(states), readouts=300))
    assert any(result["proven"] for results in ours for result in results) == solver


CHANGES: list[dict[str, Any]] = [
    {"cpuct": 0.6, "solver": True},
    {"leaf": "playout"},
    {"fast_wins": 0.9},
    {"known_results": True},
    {"known_results": True, "solver": True},
    {"leaf": "playout", "solver": True},
]


def games_for(changed: dict[str, Any]) -> list[str]:
    """The games that an option is for: not every game tells how far it has got, or knows results."""
    needed = [
        name for name, option in (("progress", "fast_wins"), ("known_results", "known_results")) if option in changed
    ]
    return [name for name in GAMES if all(getattr(features_of(GAMES[name][0]), each) for each in needed)]


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        # Each change in one game, and each game with one; the others only in `make test-all`. Playouts are slow on
        # large boards.
        pytest.param(name, changed, marks=() if place == (0 if "leaf" in changed else number % len(names)) else SLOW)
        for number, changed in enumerate(CHANGES)
        for names in [games_for(changed)]
        for place, name in enumerate(names)
    ],
    ids=str,
)
def test_every_option_that_matters_without_noise_matters_alike(name: str, changed: dict[str, Any]) -> None:
    game, rules = GAMES[name]
    options = SearchOptions(**{"solver": False, **changed}, cache_megabytes=1)
    count, readouts = (3, 60) if options.leaf == "playout" and game.num_actions > 9 else (10, 150)
    states = random_states(game, count, seed=2)
    ours = searched(game, HashNetwork(game), options, states, readouts)
    assert_equal(ours, ask_node(rules, options=vars(options), states=in_words(states), readouts=readouts))


@pytest.mark.parametrize(("name", "readouts"), one_of_each(list(GAMES), [1, 2, 3, 5, 8]))
def test_few_readouts_find_alike(name: str, readouts: int) -> None:
    game, rules = GAMES[name]
    known_results = features_of(game).known_results is not None
    options = SearchOptions(solver=True, known_results=known_results, cache_megabytes=1)
    states = random_states(game, 40, seed=6)
    ours = searched(game, HashNetwork(game), options, states, readouts)
    assert_equal(ours, ask_node(rules, options=vars(options), states=in_words(states), readouts=readouts))


def test_playouts_are_cut_off_alike() -> None:
    game = PlainRules(Wait())
    options = SearchOptions(leaf="playout", cache_megabytes=1, solver=False)
    states = game.initial(1)
    ours = searched(game, HashNetwork(game), options, states, readouts=30)
    rules = ROOT / "tests/web/js/wait.js"
    assert_equal(ours, ask_node(rules, options=vars(options), states=in_words(states), readouts=30))


@pytest.mark.parametrize("name", GAMES)
def test_a_tree_is_kept_over_moves_alike(name: str) -> None:
    game, rules = GAMES[name]
    options = SearchOptions(solver=True, cache_megabytes=1)
    states = random_states(game, 4, seed=3)
    ours = searched(game, HashNetwork(game), options, states, readouts=120, moves=4)
    assert_equal(ours, ask_node(rules, options=vars(options), states=in_words(states), readouts=120, moves=4))


def test_visits_are_equal_on_the_outputs_of_the_trained_model() -> None:
    game, rules = GAMES["connectfour"]
    folder = ModelFolder(ROOT, "connectfour")
    recorded = Recorded(game, load_inference(folder.champion().path, game, "litert"))
    states = random_states(game, 50, seed=4)
    options = folder.settings().search
    ours = searched(Observed(game, recorded), recorded, options, states, readouts=100)  # type: ignore[arg-type]
    theirs = ask_node(rules, options=vars(options), states=in_words(states), readouts=100, outputs=recorded.outputs)
    assert_equal(ours, theirs)


# ---------------------------------------------------------------- rules


def names_and_look(board: Board) -> dict[str, object]:
    names = {"row_names": list(board.row_names), "column_names": list(board.column_names)} if board.row_names else {}
    return names | ({} if board.look == "marks" else {"look": board.look})


def known_of(known: Array, results: Array) -> float | None:
    return float(results[0]) if known[0] else None


@pytest.mark.parametrize("count", [10, pytest.param(40, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", BOARD_GAMES)
def test_rules_are_those_of_python(name: str, count: int) -> None:
    game, rules = GAMES[name]
    games = random_games(game, count, seed=5)
    results, progress, from_board = set(), features_of(game).progress, load_features(name).state_from_board
    known_results = features_of(game).known_results
    for actions, positions in zip(games, ask_node(rules, task="rules", games=games), strict=True):
        state = game.initial(1)
        for ply, told in enumerate(positions):
            ended, result = game.outcome(state)
            board = board_of(game, state[0])
            assert board is not None
            assert told == {
                "words": in_words(state)[0],
                "legal": np.flatnonzero(game.legal(state)[0]).tolist(),
                "to_play": int(game.to_play(state)[0]),
                "outcome": {"ended": bool(ended[0]), "result": float(result[0])},
                "numbers": [game.num_actions, 2, game.max_plies, 1],
                "observation": game.observe(state)[0].ravel().tolist(),
                "board": {
                    "rows": board.cells.shape[0],
                    "columns": board.cells.shape[1],
                    "cells": board.cells.tolist(),
                    "marks": list(board.marks),
                    "targets": {str(action): [list(cell) for cell in cells] for action, cells in board.targets.items()},
                    **names_and_look(board),
                },
                "text": game.render(state[0]),
                "line": [list(cell) for cell in board.line],
                "again": in_words(state)[0],
                "known": None if known_results is None or ended[0] else known_of(*known_results(state)),
                "progress": None if progress is None else pytest.approx(float(progress(state)[0])),
                "same": True,
                "chances": None,
                "labels": [],
                "banked": None,
                "drawn": in_words(state if from_board is None else from_board(game.render(state[0]))[None])[0],
            }
            if ended[0]:
                results.add(float(result[0]))
            if ply < len(actions):
                state = game.step(state, np.array([actions[ply]]))
    assert {1.0, -1.0} <= results
