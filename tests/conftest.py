"""What several test modules share."""

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from seraphim.retraining import bootstrap
from seraphim.settings import Settings, default_settings
from seraphim.store import ModelFolder
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
settings.load_profile("repeatable")

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
