"""The page docs/interop.md, as it is written: its code, its commands, and what it says that they print."""

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import seraphim
from seraphim.records.sparse import SparseRows

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/interop.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.slow


class Outcome(NamedTuple):
    """What the page's blocks did."""

    folder: Path
    names: dict[str, Any]
    printed: list[str]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """Run the page from top to bottom in a folder like a clone, and return what came of it."""
    folder = tmp_path_factory.mktemp("clone")
    shutil.copytree(ROOT / "models", folder / "models", symlinks=True)
    names: dict[str, Any] = {}
    with contextlib.chdir(folder):
        return Outcome(folder, names, [run(kind, text, names) for kind, text in BLOCKS])


def run(kind: str, text: str, names: dict[str, Any]) -> str:
    """Run a block and return what it prints."""
    if kind == "python":
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(text, "docs/interop.md", "exec"), names)
        return printed.getvalue()
    if kind == "sh":
        program, *arguments = shlex.split(text)
        assert program == "seraphim"
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "SERAPHIM_DATA": ""}
        done = subprocess.run(
            [Path(sys.executable).with_name(program), *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout
    assert kind == "text"
    return ""


def test_the_page_prints_what_it_says(outcome: Outcome) -> None:
    said = [text if kind == "text" else None for kind, text in BLOCKS]
    for before, text in zip(outcome.printed, said[1:], strict=False):
        if text is not None:
            assert before == text
    assert len(said) - said.count(None) == 10


def read(pairs: Any) -> tuple[Any, ...]:
    """Return what a dataset of the page holds, as observations, policies and values."""
    batches = [(seen, targets["policy"], targets["value"]) for seen, targets in pairs.as_numpy_iterator()]
    return tuple(map(np.concatenate, zip(*batches, strict=True)))


def rows(*columns: Any) -> list[bytes]:
    """Return the positions of some columns as bytes, in an order that does not depend on that of the games."""
    return sorted(b"".join(each.tobytes() for each in row) for row in zip(*columns, strict=True))


@pytest.mark.parametrize(("name", "pairs"), [("mine", "pairs"), ("pawns", "sparse_pairs")])
def test_tf_data_reads_exactly_what_read_games_does(outcome: Outcome, name: str, pairs: str) -> None:
    games = seraphim.read_games(name, folder=outcome.folder)
    with contextlib.chdir(outcome.folder):
        found = read(outcome.names[pairs])
    assert isinstance(games.policies, SparseRows) == (name == "pawns")
    policies = games.policies.dense() if isinstance(games.policies, SparseRows) else games.policies
    expected = (games.observations, policies, games.values)
    for one, other in zip(found, expected, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
    assert rows(*found) == rows(*expected)
    assert len(set(rows(*found))) > 50


def test_a_file_of_numpy_holds_the_games(outcome: Outcome) -> None:
    games = seraphim.read_games("mine", folder=outcome.folder)
    with np.load(outcome.folder / "mine.npz") as loaded:
        for name, array in games._asdict().items():
            np.testing.assert_array_equal(loaded[name], array)


def test_tf_data_takes_five_lines() -> None:
    (lines,) = [text for kind, text in BLOCKS if kind == "python" and text.startswith("shapes = ")]
    assert len(lines.splitlines()) == 5
