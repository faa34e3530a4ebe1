"""What several test modules share."""

import json
import os
import shutil
import signal
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import Phase, settings
from skips import ALLOWED_SKIPS

from seraphim.options import SearchOptions
from seraphim.search.evaluator import Uniform
from seraphim.search.search import Search
from seraphim.settings import Settings, default_settings
from seraphim.storage.models import ModelFolder
from seraphim.training.trainer import bootstrap
from tictactoe.game import GAME

if TYPE_CHECKING:
    from serving_tests import Running

# Before jax, which mctx imports, sets it for itself and for every program that a test starts: those say more then.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

# A shell that starts the tests in the background lets them, and what they start, ignore Ctrl-C; some of them send it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in every run, so that a red test stays red until its cause is mended.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile(
    "unshrunk", parent=settings.get_profile("repeatable"), phases=[Phase.explicit, Phase.generate]
)
settings.load_profile("repeatable")

# Folders and modules of tests that coverage leaves alone: tracing makes Python half as slow again, and what they run of
# seraphim/ others run too.
UNTRACED = set(
    "backgammon/test_backgammon benchmarks connectfour cube hex othello pig project threes tictactoe twenty48 web "
    "inference/test_xla network/test_saved_model search/test_chance search/test_oracles search/test_search "
    "search/test_solver search/test_three_players search/test_tree_policy "
    "test_effects test_hosts test_jit "
    "training/test_fit training/test_loop training/test_strength training/test_three_players".split()
)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile the kernels of the search, before several processes that run tests would each do it."""
    if getattr(session.config.option, "numprocesses", None) and not hasattr(session.config, "workerinput"):
        search, trees = Search(GAME, Uniform(GAME), SearchOptions(readouts=4, root="puct"), 2), np.arange(2)
        search.begin(trees, GAME.initial(2))
        search.run()
        search.move(trees, search.result(trees).best)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Take no coverage of the tests that reach no lines of seraphim/ which others do not reach."""
    for item in items:
        place = os.path.relpath(item.path.with_suffix(""), Path(__file__).parent)
        if not UNTRACED.isdisjoint({place, place.partition("/")[0]}):
            item.add_marker("no_cover")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report a test that is skipped as failed, where CI is set."""
    report = yield
    test = f"{item.path.name}::{getattr(item, 'originalname', item.name)}"
    if not hasattr(report, "wasxfail") and test not in ALLOWED_SKIPS:
        _fail_for_a_skip(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Report a module that is skipped as failed, where CI is set."""
    report = yield
    _fail_for_a_skip(report)
    return report


def _fail_for_a_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and os.environ.get("CI"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"skipped where CI is set: {reason}\nInstall what it needs, or list it in ALLOWED_SKIPS."


SMALL = default_settings("tictactoe").override(
    {
        "depth": 1,
        "width": 16,
        "value_width": 8,
        "readouts": 12,
        "concurrent_games": 8,
        "games_per_generation": 30,
        "games_per_file": 10,
        "batch_size": 32,
        "steps": 8,
    }
)


@pytest.fixture(scope="session")
def small_settings() -> Settings:
    """Return settings with which everything is quick."""
    return SMALL


@pytest.fixture(scope="session")
def _fresh_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    bootstrap(ModelFolder(root, "fresh"), GAME, SMALL, seed=1)
    return root


@pytest.fixture
def root(_fresh_root: Path, tmp_path: Path) -> Path:
    """Return a data root of the test's own, with a model `fresh` of random weights and no game data."""
    shutil.copytree(_fresh_root, tmp_path / "data", symlinks=True)
    return tmp_path / "data"


@pytest.fixture
def folder(root: Path) -> ModelFolder:
    """Return the folder of the model `fresh`."""
    return ModelFolder(root, "fresh")


@pytest.fixture(scope="module")
def fresh_root(_fresh_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data root with the model `fresh`, whose cache is off, so that its searches do not depend on earlier ones."""
    root = tmp_path_factory.mktemp("served") / "data"
    shutil.copytree(_fresh_root, root, symlinks=True)
    file = root / "models" / "fresh" / "settings.json"
    content = json.loads(file.read_text())
    content["search"] |= {"cache_megabytes": 0, "readouts": 100}
    file.write_text(json.dumps(content))
    (root / "secret.txt").write_text("not for pages")
    return root


@pytest.fixture
def serve(fresh_root: Path) -> Iterator[Callable[..., "Running"]]:
    """Return a function that starts a server of the test's own."""
    from serving_tests import Running  # FastAPI and what it needs, which most tests do not

    servers: list[Running] = []

    def start(*arguments: Any, root: Path = fresh_root, **options: Any) -> Running:
        servers.append(Running(root, *arguments, **options))
        return servers[-1]

    yield start
    for running in servers:
        running.close()
