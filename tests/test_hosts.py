"""One model under many threads, as web servers and notebooks have them, and what of Seraphim can be pickled."""

import asyncio
import copy
import dataclasses
import json
import os
import pickle
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from fastapi import FastAPI

import seraphim
from connectfour.game import GAME as CONNECTFOUR
from connectfour.solver import Solver as ConnectFourSolver
from othello.game import GAME as OTHELLO
from othello.solver import EndgameSolver
from seraphim.errors import ModelError
from seraphim.evaluation.match import make_openings
from seraphim.game import Array, load_game
from seraphim.game.notation import labels_along
from seraphim.settings import default_settings

ROOT = Path(__file__).parents[1]
POSITIONS = ["", "4", "44", "444", "4453", "12344", "7", "3142"]  # of connect four
THREADS = 8
OFTEN = pytest.mark.parametrize("times", [8, pytest.param(32, marks=pytest.mark.slow)])  # of all positions


@pytest.fixture(scope="module")
def model() -> seraphim.Model:
    return seraphim.load("connectfour", folder=ROOT)


@pytest.fixture(scope="module")
def alone(model: seraphim.Model) -> dict[str, seraphim.PositionAnalysis]:
    return {position: model.analyze(position, readouts=60) for position in POSITIONS}


def in_threads(work: Callable[[Any], Any], arguments: list[Any]) -> list[Any]:
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(work, arguments))


# ---------------------------------------------------------------- threads


@OFTEN
def test_eight_threads_get_the_answers_of_one(model: seraphim.Model, alone: dict[str, Any], times: int) -> None:
    asked = POSITIONS * times
    found = in_threads(lambda position: model.analyze(position, readouts=60), asked)
    assert [position for position, each in zip(asked, found, strict=True) if each != alone[position]] == []


@OFTEN
def test_endpoints_of_a_web_server_may_share_a_model(model: seraphim.Model, alone: dict[str, Any], times: int) -> None:
    app = FastAPI()

    @app.get("/analysis")
    def analysis(position: str = "") -> dict[str, Any]:  # no coroutine: FastAPI runs it in a pool of threads
        return dataclasses.asdict(model.analyze(position, readouts=60)) | {"seconds": 0}

    async def ask() -> list[Any]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://host") as client:
            asked = (client.get("/analysis", params={"position": each}) for each in POSITIONS * times)
            return [answer.json() for answer in await asyncio.gather(*asked)]

    expected = [json.loads(json.dumps(dataclasses.asdict(alone[position]) | {"seconds": 0})) for position in POSITIONS]
    assert asyncio.run(ask()) == expected * times


@OFTEN
def test_a_notebook_may_ask_in_its_executor(model: seraphim.Model, alone: dict[str, Any], times: int) -> None:
    async def ask() -> list[Any]:
        asked = POSITIONS * times
        return await asyncio.gather(*(asyncio.to_thread(model.analyze, each, 60) for each in asked))

    assert asyncio.run(ask()) == [alone[position] for position in POSITIONS] * times


def test_threads_may_do_different_things_with_a_model(model: seraphim.Model, alone: dict[str, Any]) -> None:
    def match(_: Any) -> Any:
        return seraphim.match(model, "random", games=4, readouts=10).tally

    def games(_: Any) -> Any:
        return [game.actions.tolist() for game in seraphim.self_play(model, games=1, seed=1)]

    def network(_: Any) -> Any:
        return [column.tolist() for column in model.network(POSITIONS)]

    tasks = [match, games, network]
    expected = [task(None) for task in tasks]
    found = in_threads(lambda task: task(None), [*tasks * 2, *[lambda _: model.analyze("44", readouts=60)] * 10])
    assert found == [*expected * 2, *[alone["44"]] * 10]


@pytest.mark.parametrize("runtime", ["openvino", "litert", "tensorflow", "jax"])
def test_every_runtime_evaluates_for_several_threads(runtime: Any) -> None:
    if runtime == "jax":
        pytest.importorskip("jax")
    model = seraphim.load("tictactoe", folder=ROOT, runtime=runtime)
    positions = ["", "a1", "a1 b2", "b2", "a1 b1 a2"]
    expected = [model.analyze(position, readouts=30) for position in positions]
    assert in_threads(lambda position: model.analyze(position, readouts=30), positions * 10) == expected * 10


@pytest.mark.parametrize(
    "game",
    [
        "tictactoe.plain",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("openspiel:connect_four", "othello")),
    ],
)
def test_rules_of_every_kind_serve_several_threads(game: str) -> None:
    model = seraphim.Model(game, solver=True, readouts=100)
    start, openings = model.game.initial(1)[0], make_openings(model.game, 8, 4, 0)
    positions = [" ".join(labels_along(model.game, start, moves)) for moves in openings.moves]
    expected = [model.analyze(position) for position in positions]
    assert in_threads(model.analyze, positions * 5) == expected * 5


def test_a_function_of_ones_own_is_called_by_one_thread_at_a_time() -> None:
    inside = threading.Lock()

    def evaluate(states: Array) -> tuple[Array, Array]:
        assert inside.acquire(blocking=False)
        try:
            threading.Event().wait(0.001)
            return np.zeros((len(states), 9)), np.zeros(len(states))
        finally:
            inside.release()

    model = seraphim.Model("tictactoe", evaluate, readouts=20)
    first = model.analyze()
    assert in_threads(model.analyze, [""] * 40) == [first] * 40


def late_positions(game: Any, plies: int) -> list[Array]:
    random, states = np.random.default_rng(0), game.initial(100)
    for _ in range(plies):
        actions = [random.choice(np.flatnonzero(legal)) for legal in game.legal(states)]
        states = game.step(states, np.array(actions, np.int32))
        states = states[~game.outcome(states)[0]]
    return list(states[:12])


@pytest.mark.parametrize(
    ("kind", "game", "plies"),
    [(ConnectFourSolver, CONNECTFOUR, 22), pytest.param(EndgameSolver, OTHELLO, 46, marks=pytest.mark.slow)],
)
def test_a_solver_serves_one_thread_after_the_other(kind: Any, game: Any, plies: int) -> None:
    states = late_positions(game, plies)
    shared = kind(4)
    found = in_threads(lambda state: shared.solve_moves(state).results, states * 5)
    expected = [kind(4).solve_moves(state).results for state in states] * 5
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(found, expected, strict=True))


def run_in_a_thread(work: Callable[[], Any]) -> Any:
    """As Streamlit runs a page, and a notebook a background job; with the error of the thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def test_a_result_is_proven_in_a_worker_thread() -> None:
    assert run_in_a_thread(lambda: seraphim.prove("b2 a1", game="tictactoe")).value == 0


@pytest.mark.slow
def test_a_model_learns_in_a_worker_thread(tmp_path: Path) -> None:
    small: dict[str, Any] = {"width": 16, "games_per_generation": 16, "concurrent_games": 16, "steps": 4}
    seraphim.new("pupil", "tictactoe", folder=tmp_path, **small)
    lines: list[str] = []
    learn = partial(seraphim.learn, "pupil", generations=1, folder=tmp_path, callback=lines.append)
    assert run_in_a_thread(learn).generations == 1
    assert any(line.startswith("generation 1, ") for line in lines)


# ---------------------------------------------------------------- pickles, and other processes


def test_a_model_is_pickled_as_its_path(model: seraphim.Model, alone: dict[str, Any]) -> None:
    changed = seraphim.load("connectfour", folder=ROOT, cpuct=3.0)
    data = pickle.dumps([model, changed])
    assert len(data) < 10_000
    same, other = pickle.loads(data)
    assert (same.name, same.snapshot, same.step, repr(same)) == (model.name, model.snapshot, model.step, repr(model))
    assert same.analyze("44", readouts=60) == alone["44"]
    assert other.settings.search.cpuct == 3.0
    assert other.analyze("44", readouts=60) == changed.analyze("44", readouts=60) != alone["44"]
    assert copy.deepcopy(model).analyze("44", readouts=60) == alone["44"]


# A host of its own: a fork of the tests' process, with the threads of whatever ran there, might wait forever.
POOL = """
import multiprocessing, sys
import seraphim

def best_move(arguments):
    model, position = arguments
    return model.play(position, readouts=60)

if __name__ == "__main__":
    model = seraphim.load("connectfour")
    model.play("44", readouts=60)
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        print(*pool.map(best_move, [(model, position) for position in sys.argv[2:]]))
"""


@pytest.mark.parametrize("start", [pytest.param("spawn", marks=pytest.mark.slow), "fork"])
def test_processes_may_be_given_a_model(start: str, alone: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "host.py").write_text(POOL)
    command = [sys.executable, tmp_path / "host.py", start, *POSITIONS]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.stdout.split() == [alone[position].best for position in POSITIONS], done.stderr


@pytest.mark.parametrize("runtime", [pytest.param("tensorflow", marks=pytest.mark.slow), "jax"])
def test_a_fork_says_that_a_network_does_not_survive_it(runtime: str) -> None:
    script = f"""
import os, warnings
from seraphim.errors import SeraphimError
import seraphim
warnings.simplefilter("ignore")  # JAX and, from 3.12, Python warn of the fork
model = seraphim.load("tictactoe", runtime={runtime!r})
model.network([""])
child = os.fork()
try:
    model.network([""])
except SeraphimError as error:
    print(error, flush=True)
    os._exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.stdout == (
        "a network of TensorFlow or JAX does not survive a fork: load it in each process, or start them by spawn\n3\n"
    ), done.stderr


def first_is_best(states: Array) -> tuple[Array, Array]:
    return np.tile(np.arange(9.0)[::-1], (len(states), 1)), np.zeros(len(states))


def test_a_model_with_a_function_is_pickled_with_its_name() -> None:
    model = seraphim.Model("tictactoe", first_is_best, readouts=20)
    assert pickle.loads(pickle.dumps(model)).analyze() == model.analyze()
    own = seraphim.Model(load_game("openspiel:tic_tac_toe"), solver=True)  # without a function
    assert pickle.loads(pickle.dumps(own)).analyze(readouts=20) == own.analyze(readouts=20)


def test_a_model_whose_snapshot_is_gone_says_so(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "models/tictactoe", tmp_path / "models/tictactoe", symlinks=True)
    data = pickle.dumps(seraphim.load("tictactoe", folder=tmp_path))
    shutil.rmtree(tmp_path / "models/tictactoe")
    with pytest.raises(ModelError, match="holds no SavedModel"):
        pickle.loads(data)


def test_a_model_of_a_loaded_network_says_why_it_cannot_be_pickled(model: seraphim.Model) -> None:
    held = seraphim.Model("connectfour", model.inference)
    with pytest.raises(ModelError, match="cannot be pickled, as its network is in memory only: use one"):
        pickle.dumps(held)


def test_what_the_library_returns_can_be_pickled(model: seraphim.Model) -> None:
    tictactoe = seraphim.load("tictactoe", folder=ROOT)
    for found in (
        model.analyze("44", readouts=20),
        seraphim.match("minimax:2", "random", games=2, game="tictactoe"),
        seraphim.evaluate(tictactoe, [0], max_positions=20),
        seraphim.prove("a1 b1 a2 b2", game="tictactoe"),
        tictactoe.settings,
        default_settings("othello"),
    ):
        assert pickle.loads(pickle.dumps(found)) == found
    (game,) = seraphim.self_play(tictactoe, games=1)
    again = pickle.loads(pickle.dumps(game))
    assert np.array_equal(again.observations, game.observations)


@pytest.mark.parametrize(
    "name", ["tictactoe", "tictactoe.plain", "connectfour", "hex", "othello", "othello.plain", "openspiel:chess"]
)
def test_games_can_be_pickled(name: str) -> None:
    game = load_game(name)
    again = pickle.loads(pickle.dumps(game))
    states = make_openings(game, 3, 4, 0).states
    assert np.array_equal(again.legal(states), game.legal(states))
    assert np.array_equal(again.observe(states), game.observe(states))
    assert again.render(states[0]) == game.render(states[0])


# ---------------------------------------------------------------- what a host has to itself

SEEN_BY_A_HOST = """
import logging, os, random, sys, numpy

NAMES = ("KERAS", "TF_CPP", "TF_ENABLE", "SERAPHIM")

def seen():
    environment = {name: value for name, value in os.environ.items() if name.startswith(NAMES)}
    numbers = random.getstate(), numpy.random.get_state()[1].tolist()
    return {"random": numbers, "logging": [*logging.root.handlers], "environment": environment, "path": [*sys.path]}

def check(step):
    after = seen()
    print(step, *(name for name in before if before[name] != after[name]))

sys.path.remove("")
before = seen()
import seraphim.api
check("import")
if sys.argv[1] == "learn":
    small = {"width": 8, "games_per_generation": 8, "concurrent_games": 8, "steps": 2}
    seraphim.new("mine", "tictactoe", **small)
    check("new")
    seraphim.learn("mine", generations=1, callback=lambda line: None)
    check("learn")
seraphim.load("tictactoe", runtime="tensorflow").network([""])
seraphim.load("tictactoe").play("")
check("load")
seraphim.prove("a1 b1 a2 b2", game="tictactoe")
check("prove")
logging.basicConfig(format="host: %(message)s")
logging.warning("hello")
"""


@pytest.mark.slow
@pytest.mark.parametrize("what", ["play", "learn"])
def test_a_host_keeps_its_loggers_random_numbers_environment_and_path(what: str, tmp_path: Path) -> None:
    # Not the variables of coverage or pytest, and as a user has it: conftest.py sets one of TensorFlow's.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TF_", "KERAS"))}
    command = [sys.executable, "-c", SEEN_BY_A_HOST, what]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    learned = ["new", "learn"] if what == "learn" else []
    assert done.stdout.split("\n") == ["import", *learned, "load", "prove", ""], done.stderr
    assert done.stderr == "host: hello\n"


def test_a_host_that_runs_a_programs_file_keeps_its_ctrl_c() -> None:
    script = """
import runpy, signal, sys
sys.path.insert(0, "bin")
before = signal.getsignal(signal.SIGINT)
runpy.run_path("bin/check_proof.py")
print(signal.getsignal(signal.SIGINT) is before)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == "True\n"
