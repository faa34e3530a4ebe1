"""The rules of the design that no linter knows: who may import whom, and what library code does not do."""

import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from seraphim.settings import OPTIONS, SELF_PLAY_SEARCH

ROOT = Path(__file__).parents[2]
COMMANDS = sorted(ROOT.glob("seraphim/commands/[!_]*.py"))
PROGRAMS = sorted({*ROOT.glob("bin/*.py"), *ROOT.glob("*/train.py")})  # which run a command
GAMES = sorted(path.parent.name for path in ROOT.glob("*/game.py") if path.parent.name != "seraphim")
LIBRARY = sorted(path for folder in ["seraphim", *GAMES] for path in (ROOT / folder).rglob("*.py"))
LIBRARY = [path for path in LIBRARY if path not in (*PROGRAMS, *COMMANDS)]

# What a game may use of the library, but for its training program.
FOR_GAMES = {"errors", "game", "jit"}

# Outside libraries, and the only modules that import them. Some take seconds: they are imported inside functions.
HEAVY = {
    "tensorflow": {"network/architectures"},
    "keras": {"network/architectures", "network/muon", "network/saved_model", "training/fit"},
    "openvino": {"inference/openvino"},
    "ai_edge_litert": {"inference/litert"},
    "jax": {"inference/jax"},
    "tensorboard": set(),
    "tf2onnx": {"export/formats"},
    "onnx": {"export/formats"},
    "onnxruntime": {"export/formats"},
    "mlflow": {"tracking/mlflow"},
    "choix": {"evaluation/ratings"},
    "pyspiel": {"game/openspiel/catalog", "export/openspiel_bot"},
    "ray": {"selfplay/cluster/ray_session"},
    "matplotlib": {"training/curve", "evaluation/ratings", "terminal/review"},
}
LIGHT = {
    "fastapi": {"server/app", "server/sockets"},
    "pydantic": {"server/app", "server/searcher/requests"},
    "starlette": {"server/app", "server/middleware"},
    "uvicorn": {"server/connections", "server/run"},
    "gymnasium": {"export/aec"},
    "pettingzoo": {"export/aec"},
    "sgfmill": {"terminal/sgf"},
    "absl": {"cli"},
    "google": {"records/tfrecord"},
    "google_crc32c": {"records/tfrecord", "storage/atomic"},
    "llvmlite": {"jit"},
    "numba": {"jit"},
}
MOST_LINES_OF_A_COMMAND = 110
MOST_LINES_OF_THE_CHECKER = 200  # commands/check_proof.py, which shares no code with the library but the rules
MOST_LINES_OF_A_PROGRAM = 20
MOST_LINES = 400
MOST_FOLDERS, MOST_MODULES_AT_THE_TOP, MOST_MODULES = 18, 9, 13
MOST_PARAMETERS = 7


def identity(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def nodes(tree: ast.AST) -> list[ast.AST]:
    return list(ast.walk(tree))


@pytest.fixture(scope="module", autouse=True)
def _forget() -> Iterator[None]:
    yield
    parsed.cache_clear()
    nodes.cache_clear()


def imports(tree: ast.AST) -> Iterator[str]:
    """Every module that is imported, in full; `from seraphim.storage import models` is `seraphim.storage.models`."""
    for node in nodes(tree):
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
    modules = (name.split(".") for name in imports(parsed(path)))
    return {parts[1] for parts in modules if parts[0] == "seraphim" and len(parts) > 1}


def rooms(folder: Path) -> dict[str, list[Path]]:
    """The modules and folders of a folder, each with its files."""
    modules = {path.stem: [path] for path in folder.glob("*.py") if path.stem not in ("__init__", "__main__")}
    folders = {path.parent.name: sorted(path.parent.rglob("*.py")) for path in folder.glob("*/__init__.py")}
    return modules | folders


def listed(folder: Path) -> list[str]:
    """The same as the folder's docstring lists them, in dependency order."""
    docstring = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    return [name.rstrip("/") for name in re.findall(r"^    ([a-z_]+/?)  +\S", docstring, flags=re.MULTILINE)]


FOLDERS = sorted(path.parent for path in (ROOT / "seraphim").rglob("__init__.py"))


# ---------------------------------------------------------------- who imports whom


def test_each_folder_lists_what_it_holds() -> None:
    for folder in FOLDERS:
        assert sorted(listed(folder)) == sorted(rooms(folder)), identity(folder)


def test_imports_go_one_way() -> None:
    for folder in FOLDERS:
        prefix, order, content = ".".join(folder.relative_to(ROOT).parts) + ".", listed(folder), rooms(folder)
        for place, name in enumerate(order):
            used = {
                module.removeprefix(prefix).split(".")[0]
                for path in content[name]
                for module in imports(parsed(path))
                if module.startswith(prefix)
            } & set(order)
            later = used - set(order[:place]) - {name}
            assert not later, f"{prefix}{name} imports {sorted(later)}, which {prefix[:-1]} lists after it"


def test_folders_and_modules_are_of_a_size_that_a_reader_can_keep_in_mind() -> None:
    top = rooms(ROOT / "seraphim")
    assert sum((ROOT / "seraphim" / name).is_dir() for name in top) <= MOST_FOLDERS
    assert sum((ROOT / "seraphim" / f"{name}.py").exists() for name in top) <= MOST_MODULES_AT_THE_TOP
    for folder in FOLDERS:
        if folder not in (ROOT / "seraphim", ROOT / "seraphim" / "commands"):
            assert len(list(folder.glob("*.py"))) - 1 <= MOST_MODULES, identity(folder)
    for path in LIBRARY:
        assert len(path.read_text().splitlines()) <= MOST_LINES, identity(path)


def is_compiled(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("kernel" in ast.unparse(decorator) for decorator in function.decorator_list)


def test_functions_have_few_parameters() -> None:
    for path in LIBRARY:
        for node in nodes(parsed(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_compiled(node):
                parameters = [each.arg for each in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]]
                parameters = [each for each in parameters if each not in ("self", "cls")]
                assert len(parameters) <= MOST_PARAMETERS, f"{identity(path)}: {node.name}{parameters}"


def test_the_library_knows_no_game() -> None:
    for path in sorted({*(ROOT / "seraphim").rglob("*.py")} - {*COMMANDS}):
        known = {module.split(".")[0] for module in imports(parsed(path))} & set(GAMES)
        assert not known, identity(path)


def test_a_game_uses_little_of_the_library() -> None:
    for path in LIBRARY:
        if path.relative_to(ROOT).parts[0] in GAMES:
            assert used_of_the_library(path) <= FOR_GAMES, identity(path)


def check_outside_libraries(path: Path) -> None:
    tree = parsed(path)
    used = {module.split(".")[0] for module in imports(tree)}
    name = identity(path.with_suffix("")).removeprefix("seraphim/")
    everywhere = {"absl"} if path in COMMANDS else {"numba"} if name.split("/")[0] in GAMES else set()
    for library, allowed in (HEAVY | LIGHT).items():
        if library not in everywhere:
            assert library not in used or name in allowed, f"{identity(path)} imports {library}"
    early = {module.split(".")[0] for module in imports_at_import(tree)} & set(HEAVY)
    assert not early, f"{identity(path)} imports {early} when it is imported itself"


def test_importing_everything_loads_no_heavy_library() -> None:
    modules = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in LIBRARY]
    code = f"import sys, {', '.join(modules)}; print(*sorted(set(sys.modules) & {set(HEAVY)!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == "\n"


# ---------------------------------------------------------------- what library code does not do


def check_asserts(path: Path) -> None:
    lines = [node.lineno for node in nodes(parsed(path)) if isinstance(node, ast.Assert)]
    assert not lines, f"{identity(path)}: raise an error with a message instead, in lines {lines}"


def check_flags(path: Path) -> None:
    if path != ROOT / "seraphim" / "cli.py":
        tree = parsed(path)
        names = [node.attr for node in nodes(tree) if isinstance(node, ast.Attribute)]
        assert not [name for name in names if name.startswith("DEFINE_")]


def check_generators(path: Path) -> None:
    tree = parsed(path)
    own = {"default_rng", "Generator", "SeedSequence", "PCG64", "Philox"}  # which make or are a generator
    if path == ROOT / "seraphim" / "machine.py":  # keeps the global ones as they are
        own |= {"get_state", "set_state"}
    else:
        assert "random" not in {module.split(".")[0] for module in imports(tree)}
    for node in nodes(tree):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Attribute)  # to unparse every other expression as well takes long
            and ast.unparse(node.value) in ("np.random", "numpy.random")
        ):
            assert node.attr in own, (
                f"np.random.{node.attr} in line {node.lineno}: draw from a Generator that is passed"
            )


def test_library_code_keeps_the_rules() -> None:
    for path in LIBRARY:
        check_outside_libraries(path)
        check_asserts(path)
        check_flags(path)
        check_generators(path)


def test_programs_keep_the_rules() -> None:
    for path in (*COMMANDS, *PROGRAMS):
        check_outside_libraries(path)
        check_generators(path)


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        ("import random\n", check_generators),
        ("import numpy as np\nnp.random.seed(0)\n", check_generators),
        ("def f():\n    assert True\n", check_asserts),
        ("from absl import flags\nflags.DEFINE_bool('b', True, '')\n", check_flags),
        ("from absl import flags\n", check_outside_libraries),
        ("if True:\n    import tensorflow as tf\n", check_outside_libraries),
    ],
)
def test_these_rules_see_what_they_forbid(
    broken: str, check: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (tmp_path / "broken.py").write_text(broken)
    with pytest.raises(AssertionError):
        check(tmp_path / "broken.py")


# ---------------------------------------------------------------- names


def types_of(tree: ast.Module) -> Iterator[str]:
    """The public classes and type aliases of a module."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (
                each.id for each in targets if isinstance(each, ast.Name) and re.match(r"[A-Z]\w*[a-z]", each.id)
            )


def named_twice(paths: list[Path]) -> dict[str, list[str]]:
    modules: dict[str, list[str]] = {}
    for path in paths:
        for name in types_of(parsed(path)):
            modules.setdefault(name, []).append(identity(path))
    return {name: where for name, where in modules.items() if len(where) > 1}


def test_a_type_name_means_one_thing() -> None:
    assert named_twice(LIBRARY) == {}


def test_types_of_the_same_name_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    one, other = tmp_path / "one.py", tmp_path / "other.py"
    one.write_text("class Move:\n    pass\nPair = tuple[int, int]\n_Own = int\nMOST = 1\n")
    other.write_text("from one import Pair\nMove: object = int\nclass _Own:\n    pass\nMOST = 2\n")
    assert named_twice([one, other]) == {"Move": ["one.py", "other.py"]}


# ---------------------------------------------------------------- size

MOST_LINES_OF_CODE = 25_167
"""Lines of code of the library, the programs and the games. To raise it is a decision: say why in the commit."""
MOST_OPTIONS, MOST_OPTION_FLAGS = 50, 63


def code_lines(text: str) -> int:
    """The lines that hold code: neither blank, nor a comment or a docstring."""
    strings = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    nothing = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    tokens = [each for each in tokenize.generate_tokens(io.StringIO(text).readline) if each.type not in nothing]
    return len({line for each in tokens for line in range(each.start[0], each.end[0] + 1)} - strings)


def test_lines_of_code_are_counted_without_what_explains_them() -> None:
    assert code_lines('"""Says."""\n\n# Why.\nx = (  # one\n    1\n)\ny = """two\nlines"""\n') == 5


def test_the_code_stays_within_its_budget() -> None:
    lines = sum(code_lines(path.read_text()) for path in (*LIBRARY, *COMMANDS, *PROGRAMS))
    assert lines <= MOST_LINES_OF_CODE


def test_options_and_their_flags_are_few() -> None:
    # Each option has a flag, and each of the search another one for self-play alone.
    assert len([name for name, section in OPTIONS.items() if section != SELF_PLAY_SEARCH]) <= MOST_OPTIONS
    assert len(OPTIONS) <= MOST_OPTION_FLAGS


def test_the_search_can_be_taken_out() -> None:
    """It loads few modules of the library, and neither networks nor storage; of two players: 3,200 lines."""
    program = (
        "import json, sys, seraphim.search.search\n"
        "print(json.dumps({name: vars(each).get('__file__') or '' for name, each in sys.modules.items()}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    loaded = json.loads(done.stdout)
    own = [Path(file) for name, file in loaded.items() if name.partition(".")[0] == "seraphim"]
    assert len(own) <= 20
    assert sum(len(path.read_text().splitlines()) for path in own) <= 3720
    assert not {name.partition(".")[0] for name in loaded} & set(HEAVY)
    assert not [name for name in loaded if name.startswith(("seraphim.network", "seraphim.storage"))]


# ---------------------------------------------------------------- programs


def test_commands_are_flags_and_wiring() -> None:
    for path in COMMANDS:
        most = MOST_LINES_OF_THE_CHECKER if path.stem == "check_proof" else MOST_LINES_OF_A_COMMAND
        assert len(path.read_text().splitlines()) <= most, identity(path)
    for path in PROGRAMS:
        assert len(path.read_text().splitlines()) <= MOST_LINES_OF_A_PROGRAM, identity(path)


def test_the_checker_of_proofs_uses_the_rules_alone() -> None:
    assert used_of_the_library(ROOT / "seraphim" / "commands" / "check_proof.py") <= {"errors", "game"}


@pytest.mark.parametrize("path", PROGRAMS, ids=identity)
def test_help_is_there_at_once(path: Path) -> None:
    command = [sys.executable, "-X", "importtime", path, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    (name,) = re.findall(r'^    run\("([a-z-]+)"', path.read_text(), re.MULTILINE)
    explained = path if path.stem == "train" and path.parent.name != "bin" else ROOT / f"seraphim/commands/{name}.py"
    docstring = ast.get_docstring(ast.parse(Path(str(explained).replace("-", "_")).read_text())) or ""
    assert done.returncode == 0
    assert docstring in done.stdout
    assert f"\nseraphim {name}:\n  --" in done.stdout  # its flags
    lines = done.stderr.splitlines()
    assert all(line.startswith("import time:") for line in lines)
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}
    assert "absl" in imported
    # What takes seconds to import is not.
    assert not imported & set(HEAVY)
