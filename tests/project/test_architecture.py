"""The rules of the design that no linter knows: who may import whom, and what library code does not do."""

import ast
import configparser
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import seraphim

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted([*ROOT.glob("bin/*.py"), *ROOT.glob("*/train.py")])
GAMES = sorted(path.parent.name for path in ROOT.glob("*/game.py") if path.parent.name != "seraphim")
LIBRARY = sorted(path for folder in ["seraphim", *GAMES] for path in (ROOT / folder).rglob("*.py"))
LIBRARY = [path for path in LIBRARY if path not in PROGRAMS]

# The modules of the library, each of which imports only from those before it: the docstring of the package.
ORDER = re.findall(r"^    (\w+)  ", seraphim.__doc__ or "", flags=re.MULTILINE)
# The same within the search.
SEARCH_ORDER = [
    "options",
    "results",
    "randomness",
    "tree",
    "cache",
    "selection",
    "kernels",
    "expansion",
    "roots",
    "search",
]
# What a game may use of the library, but for its training program.
FOR_GAMES = {"errors", "game", "compiled", "evaluation", "exhaustive"}

# Outside libraries, and the only modules that import them. Some take seconds: they are imported inside functions.
HEAVY = {
    "tensorflow": {"seraphim/network/architectures.py"},
    "keras": {"seraphim/network/architectures.py", "seraphim/network/saved_model.py", "seraphim/training/fit.py"},
    "openvino": {"seraphim/inference/openvino.py"},
    "ai_edge_litert": {"seraphim/inference/litert.py"},
    "tensorboard": set(),
    "tf2onnx": {"seraphim/export/formats.py"},
    "onnx": {"seraphim/export/formats.py"},
    "onnxruntime": {"seraphim/export/formats.py"},
    "mlflow": {"seraphim/tracking/mlflow.py"},
    "choix": {"seraphim/evaluation/ratings.py"},
    "pyspiel": {"seraphim/game/openspiel.py"},
    "ray": {"seraphim/selfplay/cluster/ray_session.py"},
    "matplotlib": {"seraphim/training/curve.py", "seraphim/evaluation/ratings.py"},
}
LIGHT = {
    "fastapi": {"seraphim/server/app.py", "seraphim/server/sockets.py"},
    "pydantic": {"seraphim/server/app.py"},
    "starlette": {"seraphim/server/app.py"},
    "uvicorn": {"seraphim/server/run.py"},
    "absl": {"seraphim/cli.py", *(str(path.relative_to(ROOT)) for path in PROGRAMS)},
    "google": {"seraphim/records/tfrecord.py"},
    "google_crc32c": {"seraphim/records/tfrecord.py", "seraphim/storage/atomic.py"},
    "llvmlite": {"seraphim/jit.py"},
    "numba": {"seraphim/jit.py", *(str(path.relative_to(ROOT)) for path in LIBRARY if path.parent.name in GAMES)},
}
MOST_LINES_OF_A_PROGRAM = 90


def identity(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imports(tree: ast.AST) -> Iterator[str]:
    """Every module that is imported, in full; `from seraphim import store` is `seraphim.storage.models`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{name.name}" for name in node.names)


def imports_at_import(tree: ast.Module) -> Iterator[str]:
    """The same for those that happen when the module is imported."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield from imports(node)
            pending.extend(ast.iter_child_nodes(node))


def used_of_the_library(path: Path) -> set[str]:
    modules = (name.split(".") for name in imports(ast.parse(path.read_text())))
    return {parts[1] for parts in modules if parts[0] == "seraphim" and len(parts) > 1}


# ---------------------------------------------------------------- who imports whom


def test_the_packages_docstring_lists_every_module_once() -> None:
    modules = {path.stem for path in (ROOT / "seraphim").glob("*.py")} - {"__init__"}
    packages = {path.parent.name for path in (ROOT / "seraphim").glob("*/__init__.py")}
    assert sorted(ORDER) == sorted(modules | packages)


@pytest.mark.parametrize("name", ORDER)
def test_imports_go_one_way(name: str) -> None:
    folder = ROOT / "seraphim" / name
    paths = folder.glob("*.py") if folder.is_dir() else [folder.with_suffix(".py")]
    before = set(ORDER[: ORDER.index(name)])
    used = set().union(*(used_of_the_library(path) for path in paths)) - {name}
    assert used <= before, f"{name} imports {sorted(used - before)}, which the docstring of seraphim lists after it"


def test_imports_within_the_search_go_one_way() -> None:
    for place, name in enumerate(SEARCH_ORDER):
        tree = ast.parse((ROOT / "seraphim" / "search" / f"{name}.py").read_text())
        used = {module.split(".")[2] for module in imports(tree) if module.startswith("seraphim.search.")}
        assert used <= set(SEARCH_ORDER[:place]), name
    assert {path.stem for path in (ROOT / "seraphim" / "search").glob("*.py")} == {"__init__", *SEARCH_ORDER}


def test_the_library_knows_no_game() -> None:
    for path in (ROOT / "seraphim").rglob("*.py"):
        known = {module.split(".")[0] for module in imports(ast.parse(path.read_text()))} & set(GAMES)
        assert not known, identity(path)


def test_a_game_uses_little_of_the_library() -> None:
    for path in LIBRARY:
        if path.relative_to(ROOT).parts[0] in GAMES:
            assert used_of_the_library(path) <= FOR_GAMES, identity(path)


@pytest.mark.parametrize("path", LIBRARY + PROGRAMS, ids=identity)
def test_outside_libraries_are_imported_where_they_belong(path: Path) -> None:
    tree = ast.parse(path.read_text())
    used = {module.split(".")[0] for module in imports(tree)}
    for library, allowed in (HEAVY | LIGHT).items():
        assert library not in used or identity(path) in allowed, f"{identity(path)} imports {library}"
    early = {module.split(".")[0] for module in imports_at_import(tree)} & set(HEAVY)
    assert not early, f"{identity(path)} imports {early} when it is imported itself"


def test_importing_everything_loads_no_heavy_library() -> None:
    modules = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in LIBRARY]
    code = f"import sys, {', '.join(modules)}; print(*sorted(set(sys.modules) & {set(HEAVY)!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == "\n"


def test_setup_declares_every_package() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    found = {".".join(path.parent.relative_to(ROOT).parts) for path in LIBRARY if path.name == "__init__.py"}
    assert set(setup["options"]["packages"].split()) == found


# ---------------------------------------------------------------- what library code does not do


@pytest.mark.parametrize("path", LIBRARY, ids=identity)
def test_library_code_has_no_assert(path: Path) -> None:
    lines = [node.lineno for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Assert)]
    assert not lines, f"raise an error with a message instead, in lines {lines}"


@pytest.mark.parametrize("path", LIBRARY, ids=identity)
def test_library_code_defines_no_flags(path: Path) -> None:
    if path != ROOT / "seraphim" / "programs.py":
        tree = ast.parse(path.read_text())
        names = [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
        assert not [name for name in names if name.startswith("DEFINE_")]


@pytest.mark.parametrize("path", LIBRARY + PROGRAMS, ids=identity)
def test_no_random_number_comes_from_a_global_generator(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert "random" not in {module.split(".")[0] for module in imports(tree)}
    own = {"default_rng", "Generator", "SeedSequence", "PCG64", "Philox"}  # which make or are a generator
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("np.random", "numpy.random"):
            assert node.attr in own, (
                f"np.random.{node.attr} in line {node.lineno}: draw from a Generator that is passed"
            )


@pytest.mark.parametrize(
    ("broken", "test"),
    [
        ("import random\n", test_no_random_number_comes_from_a_global_generator),
        ("import numpy as np\nnp.random.seed(0)\n", test_no_random_number_comes_from_a_global_generator),
        ("def f():\n    assert True\n", test_library_code_has_no_assert),
        ("from absl import flags\nflags.DEFINE_bool('b', True, '')\n", test_library_code_defines_no_flags),
        ("from absl import flags\n", test_outside_libraries_are_imported_where_they_belong),
        ("if True:\n    import tensorflow as tf\n", test_outside_libraries_are_imported_where_they_belong),
    ],
)
def test_these_rules_see_what_they_forbid(
    broken: str, test: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (tmp_path / "broken.py").write_text(broken)
    with pytest.raises(AssertionError):
        test(tmp_path / "broken.py")  # type: ignore[operator]


# ---------------------------------------------------------------- programs


@pytest.mark.parametrize("path", PROGRAMS, ids=identity)
def test_programs_are_flags_and_wiring(path: Path) -> None:
    assert len(path.read_text().splitlines()) < MOST_LINES_OF_A_PROGRAM


@pytest.mark.parametrize("path", PROGRAMS, ids=identity)
def test_help_is_there_at_once(path: Path) -> None:
    command = [sys.executable, "-X", "importtime", path, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    assert done.returncode == 1  # which is what absl does
    assert docstring.splitlines()[0] in done.stdout
    lines = done.stderr.splitlines()
    assert all(line.startswith("import time:") for line in lines)
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}
    assert "absl" in imported
    # What takes seconds to import is not.
    assert not imported & set(HEAVY)
