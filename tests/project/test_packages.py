"""What Seraphim requires: every package that the code imports is named, and every license is looked at."""

import ast
import configparser
import re
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
GAMES = "backgammon", "connectfour", "cube", "hex", "othello", "pig", "threes", "tictactoe", "twenty48"
OWN = ("seraphim", *GAMES, "benchmarks", "_installed")
DEVELOPERS = ("dev", "docs", "bench")  # extras


def needs() -> dict[str, set[str]]:
    """The distributions that setup.cfg names, by extra; "" for those that every program needs."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    texts = {"": setup["options"]["install_requires"], **setup["options.extras_require"]}
    return {extra: {canonical(Requirement(line).name) for line in text.split()} for extra, text in texts.items()}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def owners() -> Mapping[str, list[str]]:
    """The distributions that hold each module: thousands of files are read for that."""
    return metadata.packages_distributions()


def imported(folder: str) -> dict[str, set[str]]:
    """The distributions of which the files of a folder import modules, each with the files."""
    found: dict[str, set[str]] = {}
    distributions = owners()
    for file in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            for top in {name.split(".")[0] for name in names} - {*OWN, *sys.stdlib_module_names}:
                # Several distributions share the module `google`.
                for owner in {"google": ["protobuf"]}.get(top) or distributions.get(top, [top]):
                    found.setdefault(canonical(owner), set()).add(str(file.relative_to(ROOT)))
    return found


@pytest.mark.parametrize("folder", [*OWN[:-2], "bin"])
def test_every_package_that_is_imported_is_named(folder: str) -> None:
    named = set().union(*(names for extra, names in needs().items() if extra not in DEVELOPERS))
    assert {package: files for package, files in imported(folder).items() if package not in named} == {}


def test_what_the_server_imports_comes_with_its_extra() -> None:
    assert set(imported("seraphim/server")) <= needs()[""] | needs()["serve"]
    assert "h11" in needs()["serve"]  # which Uvicorn's module h11_impl drives


@pytest.mark.parametrize("extra", ["onnx", "openspiel", "pettingzoo", "cluster", "serve", "tracking", "sgf", "arena"])
def test_developers_have_every_extra(extra: str) -> None:
    assert needs()[extra] <= needs()["dev"]


def test_the_licenses_of_all_that_is_required_are_compatible() -> None:
    done = subprocess.run([sys.executable, ROOT / ".ci/licenses"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    listed = {canonical(re.split("[ ,]", line)[0]) for line in done.stdout.splitlines()}
    assert set().union(*(names for extra, names in needs().items() if extra not in DEVELOPERS)) <= listed


@pytest.mark.parametrize("extra", ["", "; extra == 'more'"])
def test_a_license_that_cannot_be_looked_at_is_a_failure(tmp_path: Path, extra: str) -> None:
    folder = tmp_path / "seraphim_zero-9.0.dist-info"
    folder.mkdir()
    head = "Metadata-Version: 2.1\nName: seraphim-zero\nVersion: 9.0\nLicense: MIT\nProvides-Extra: more\n"
    (folder / "METADATA").write_text(f"{head}Requires-Dist: no-such-package>=1{extra}\n")
    done = subprocess.run(
        [sys.executable, ROOT / ".ci/licenses"], env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stdout.startswith("NOT CHECKED: no-such-package is not installed: install it, or add it to ")
