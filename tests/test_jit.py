"""Machine code is kept where it can be, and never used for other kernels, constants or types than it was made of."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from disks import run_read_only

from seraphim.jit import UNCACHED

ROOT = Path(__file__).parents[1]
HELPER = """
from typing import NamedTuple
from numba.extending import overload
from seraphim.jit import kernel

STEP = {step}
TABLE = ({step}, 0)

class Pair(NamedTuple):
    {fields}: int

@kernel
def helper(number):
    return number + {step}

@kernel
def with_default(number=1 + {step}):
    return number

def stub(number):
    return number + {step}

@overload(stub)
def _stub(number):
    return lambda number: number + {step}

def add(step):
    def added(number):
        return number + step
    return added

added = kernel(add({step}))
"""
CALLER = """
from seraphim.jit import kernel
from {package}bits import helper

@kernel
def caller(number):
    return 10 * inner(number)

@kernel
def inner(number):
    return helper(number)

print(caller(1), caller.stats.cache_hits)
"""
REFERENCES = {
    "helper(number)": "from helpers.bits import helper",
    "bits.helper(number)": "from helpers import bits",
    "helpers.bits.helper(number)": "import helpers.bits",
    "number + STEP": "from helpers.bits import STEP",
    "number + bits.STEP": "from helpers import bits",
    "number + TABLE[0]": "from helpers.bits import TABLE",
    "stub(number)": "from helpers.bits import stub",
    "added(number)": "from helpers.bits import added",
    "with_default()": "from helpers.bits import with_default",
    "own(number)": "from bits import helper as own",
}


def run(folder: Path, program: str = "caller.py", **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, program],
        cwd=folder,
        env={**os.environ, "NUMBA_DISABLE_JIT": "0", "NUMBA_CACHE_DIR": "", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


def write_helper(path: Path, step: int, fields: str = "first: int\n    second") -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(HELPER.format(step=step, fields=fields))


def write_caller(folder: Path, package: str = "") -> None:
    (folder / "caller.py").write_text(CALLER.format(package=package))


def kept(folder: Path, function: str) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.name.startswith(f"{function}-")]


@pytest.mark.slow
def test_what_a_kernel_refers_to_is_compiled_anew_when_it_changes(tmp_path: Path) -> None:
    # The kernel that refers to it is another one, which is defined further down.
    pairs = (
        "@kernel\ndef caller{0}(number):\n    return inner{0}(number)\n@kernel\ndef inner{0}(number):\n    return {1}\n"
    )
    parts = ["from seraphim.jit import kernel\n", *(f"{line}\n" for line in REFERENCES.values())]
    parts += [pairs.format(number, expression) for number, expression in enumerate(REFERENCES)]
    parts += [f"print(caller{number}(1), bool(caller{number}.stats.cache_hits))\n" for number in range(len(REFERENCES))]
    (tmp_path / "caller.py").write_text("".join(parts))
    for step in (1, 22):
        write_helper(tmp_path / "helpers/bits.py", step)
        write_helper(tmp_path / "bits.py", step)
        assert run(tmp_path) == f"{1 + step} False\n" * len(REFERENCES)
        assert run(tmp_path) == f"{1 + step} True\n" * len(REFERENCES)


# Modules whose contents reach a kernel by ways that its own code does not show; `deeper` alone changes.
AROUND = {
    "deeper.py": """
from enum import IntEnum, global_enum
from numba.extending import register_jitable

@global_enum
class Piece(IntEnum):
    KING = {step}
    QUEEN = {step} + 1

@register_jitable
def second(number):
    return number + {step}
""",
    "code/rules.py": "import deeper\nfrom deeper import second\n",  # named like a module of Python
    "between.py": """
from code import rules
from numba import njit, int64
from numba.experimental import jitclass
from numba.extending import overload, register_jitable
import deeper

@register_jitable
def first(number):
    return rules.second(number)

@njit(locals={{"limited": int64}})
def limited(number):
    limited = number + deeper.Piece.KING.value
    return limited

@jitclass([("number", int64)])
class Box:
    def __init__(self, number):
        self.number = number

    def get(self):
        return first(self.number)
""",
}
EXPRESSIONS = ["first(number)", "limited(number)", "Box(number).get()", "number + queen(0) - 1", "number + KING"]


@pytest.mark.slow
def test_what_only_other_modules_refer_to_is_compiled_anew_when_it_changes(tmp_path: Path) -> None:
    parts = ["import deeper\nfrom deeper import KING\nfrom between import Box, first, limited\n"]
    parts += ["from seraphim.jit import kernel\n@kernel\ndef queen(number):\n"]
    parts += ["    return number + deeper.Piece.QUEEN.value\n"]
    for number, expression in enumerate(EXPRESSIONS):
        parts.append(f"@kernel\ndef f{number}(number):\n    return {expression} + 0 * deeper.Piece.KING.value\n")
        parts.append(f"print(f{number}(1))\n")
    (tmp_path / "caller.py").write_text("".join(parts))
    (tmp_path / "code").mkdir()
    (tmp_path / "code/__init__.py").touch()
    for step in (1, 22):
        for name, source in AROUND.items():
            (tmp_path / name).write_text(source.format(step=step))
        assert run(tmp_path).split() == [str(1 + step)] * len(EXPRESSIONS)


def test_numbers_that_a_factory_is_given_are_part_of_its_kernels(tmp_path: Path) -> None:
    (tmp_path / "caller.py").write_text(
        "import os\nfrom enum import Enum\nimport numpy as np\nfrom seraphim.jit import kernel\n"
        "given = int(os.environ['GIVEN'])\n"
        "class Hidden(Enum):\n    ONE = given\n    def __repr__(self):\n        return 'one'\n"
        "TABLE = np.zeros(5000, np.int64)\nTABLE[2500] = given\n"
        "def make(added):\n    @kernel\n    def add(number):\n"
        "        return number + added + TABLE[2500] + Hidden.ONE.value\n    return add\n"
        "print(make(given)(0))\n"
    )
    for given in ("1", "22"):
        assert run(tmp_path, GIVEN=given) == f"{3 * int(given)}\n"


def test_a_variable_that_has_no_value_yet_is_numbas_error(tmp_path: Path) -> None:
    (tmp_path / "caller.py").write_text(
        "from seraphim.jit import kernel\n"
        "def make():\n    @kernel\n    def one(number):\n        return 1 if number else later(number)\n"
        "    try:\n        one(1)\n    except Exception as error:\n        print(type(error).__name__)\n"
        "    later = abs\n"
        "make()\n"
    )
    assert run(tmp_path) == "TypingError\n"


def test_fields_are_those_of_the_named_tuple_as_it_is_now(tmp_path: Path) -> None:
    program = (
        "from {0}bits import Pair\nfrom seraphim.jit import kernel\n@kernel\ndef f(pair):\n    return pair.first\n"
    )
    (tmp_path / "caller.py").write_text(program.format("helpers.") + "print(f(Pair(first=1, second=2)))\n")
    write_helper(tmp_path / "helpers/bits.py", 1)
    assert run(tmp_path) == "1\n"
    write_helper(tmp_path / "helpers/bits.py", 1, fields="second: int\n    first")
    assert run(tmp_path) == "1\n"


def test_a_program_that_is_older_than_the_sources_leaves_no_old_code_behind(tmp_path: Path) -> None:
    write_helper(tmp_path / "helpers/bits.py", 1)
    write_caller(tmp_path, "helpers.")
    newer = HELPER.format(step=22, fields="first: int\n    second")
    (tmp_path / "running.py").write_text(
        "from pathlib import Path\nimport helpers.bits\n"
        f"Path('helpers/bits.py').write_text({newer!r})  # an upgrade, before anything is compiled\n"
        "import caller\n"
    )
    assert run(tmp_path, "running.py").startswith("20 ")
    assert run(tmp_path, "caller.py").startswith("230 ")


PLAIN = "from numba.extending import register_jitable\n@register_jitable\ndef plain(x):\n    return x + {0}\n"
USER = "from seraphim.jit import kernel\nfrom plain import plain\n@kernel\ndef user(x):\n    return plain(x)\n"


def test_a_source_that_changes_before_seraphim_is_imported_leaves_no_old_code_behind(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(PLAIN.format(1))
    (tmp_path / "user.py").write_text(USER + "print(user(0))\n")
    (tmp_path / "running.py").write_text(
        f"from pathlib import Path\nimport plain\nPath('plain.py').write_text({PLAIN.format(22)!r})\nimport user\n"
    )
    assert run(tmp_path, "running.py") == "1\n"
    (tmp_path / "after.py").write_text("import user\n")
    assert run(tmp_path, "after.py") == "22\n"


RELOADING = """
import importlib
from pathlib import Path
import {0}, user
print(user.user(0))
source = Path("{0}.py").read_text()
Path("{0}.py").write_text(source.replace("x + 1", "x + 200"))
importlib.reload({0})
print(user.user(0.0), user.user(0))
Path("{0}.py").write_text(source)
"""


@pytest.mark.parametrize("changed", ["user", "plain"])
def test_a_module_that_is_loaded_again_has_its_new_code_and_leaves_none_behind(changed: str, tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(PLAIN.format(1))
    (tmp_path / "user.py").write_text(
        "from seraphim.jit import kernel\nimport plain\n@kernel\ndef user(x):\n    y = plain.plain(x)\n    return y\n"
        if changed == "plain"
        else "from seraphim.jit import kernel\n@kernel\ndef user(x):\n    return x + 1\n"
    )
    (tmp_path / "running.py").write_text(RELOADING.format(changed))
    (tmp_path / "after.py").write_text("import user\nprint(user.user(0), user.user(0.0))\n")
    assert run(tmp_path, "running.py") == f"1\n200.0 {200 if changed == 'user' else 1}\n"
    assert run(tmp_path, "after.py") == "1 1.0\n"


def test_what_modules_hold_is_part_of_the_kernels_that_name_it(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner/__init__.py").write_text("import os\nONE = int(os.environ['GIVEN'])\n")
    (tmp_path / "inner/held.py").write_text("import os\nimport inner\nTABLE = (0, int(os.environ['GIVEN']))\n")
    (tmp_path / "other.py").write_text(
        "import inner\nfrom seraphim.jit import kernel\n@kernel\ndef called(x):\n    return x + inner.ONE\n"
    )
    (tmp_path / "caller.py").write_text(
        "import math\nimport numpy as np\nimport inner.held\nimport other\nfrom seraphim.jit import kernel\n"
        "@kernel\ndef a(x):\n    return x + inner.held.TABLE[1] + int(math.pi) - np.int64(3)\n"
        "@kernel\ndef b(x):\n    return other.called(x)\n"
        "print(a(0), b(0), bool(a.stats.cache_hits), bool(b.stats.cache_hits))\n"
    )
    for given in ("1", "22"):
        assert run(tmp_path, GIVEN=given) == f"{given} {given} False False\n"
        assert run(tmp_path, GIVEN=given) == f"{given} {given} True True\n"


def test_a_module_of_a_folder_without_an_init_file_counts(tmp_path: Path) -> None:
    (tmp_path / "caller.py").write_text(
        "import helpers.bits\nfrom seraphim.jit import kernel\n"
        "@kernel\ndef caller(x):\n    return helpers.bits.stub(x) + helpers.bits.STEP\nprint(caller(0))\n"
    )
    for step in (1, 22):
        write_helper(tmp_path / "helpers/bits.py", step)
        assert run(tmp_path) == f"{2 * step}\n"


def test_an_upgrade_of_another_package_is_noticed(tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    (installed / "package").mkdir(parents=True)
    (installed / "package/__init__.py").write_text("from package.plain import plain\n")
    (tmp_path / "caller.py").write_text(
        "import sys\nsys.path.append('installed')\nfrom pathlib import Path\nfrom seraphim import jit\n"
        "jit._INSTALLED.add(Path('installed').resolve())\nfrom package import plain\n"
        "@jit.kernel\ndef user(x):\n    return plain(x)\nprint(user(0), bool(user.stats.cache_hits))\n"
    )
    for step in (1, 22):
        (installed / "package/plain.py").write_text(PLAIN.format(step))
        assert run(tmp_path) == f"{step} False\n"
        assert run(tmp_path) == f"{step} True\n"


@pytest.mark.slow
def test_code_of_earlier_sources_is_removed_and_other_code_is_not(tmp_path: Path) -> None:
    write_helper(tmp_path / "helpers/bits.py", 1)
    write_caller(tmp_path, "helpers.")
    run(tmp_path)
    before = kept(tmp_path, "__main__.caller")
    run(tmp_path, NUMBA_BOUNDSCHECK="1")
    assert len(kept(tmp_path, "__main__.caller")) == 2
    write_helper(tmp_path / "helpers/bits.py", 22)
    run(tmp_path)
    assert len(kept(tmp_path, "__main__.caller")) == 1
    assert kept(tmp_path, "__main__.caller") != before
    assert "Counter()" not in run(tmp_path)


@pytest.mark.slow
def test_damaged_code_is_compiled_anew(tmp_path: Path) -> None:
    write_helper(tmp_path / "helpers/bits.py", 1)
    write_caller(tmp_path, "helpers.")
    run(tmp_path)
    for file in (tmp_path / "__pycache__/kernels").iterdir():
        file.write_bytes(file.read_bytes()[: 100 if "caller" in file.name else 0])
    assert run(tmp_path) == "20 Counter()\n"
    assert "Counter()" not in run(tmp_path)


def test_the_folder_for_cached_code_may_be_set(tmp_path: Path) -> None:
    write_caller(tmp_path)
    write_helper(tmp_path / "bits.py", 1)
    run(tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "elsewhere"))
    assert kept(tmp_path / "elsewhere", "__main__.caller")
    assert not kept(tmp_path / "__pycache__", "__main__.caller")


def test_nothing_is_written_by_imports_and_by_loading_a_model(tmp_path: Path) -> None:
    # Nor by libraries: OpenVINO's converter would leave a number for Intel's telemetry in the home folder.
    importing = "import seraphim.training.loop, seraphim.server.app, seraphim.cli, othello.perfect, hex.game"
    program = f"{importing}; seraphim.load('connectfour', folder={str(ROOT)!r}); print('loaded')"
    given = {**os.environ, "NUMBA_DISABLE_JIT": "0", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    given |= {"HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=given, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("loaded\n", "")
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------- where nothing can be written


def run_unwritable(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    given = {name: value for name, value in os.environ.items() if name not in ("HOME", UNCACHED)}
    given |= {"NUMBA_DISABLE_JIT": "0", "NUMBA_CACHE_DIR": ""}
    return run_read_only([folder], [str(folder / "caller.py")], {**given, **environment})


@pytest.mark.parametrize("home", ["/proc/nohome", pytest.param(None, marks=pytest.mark.slow)])
def test_kernels_are_compiled_where_no_folder_can_be_written(home: str | None, tmp_path: Path) -> None:
    write_caller(tmp_path)
    write_helper(tmp_path / "bits.py", 1)
    done = run_unwritable(tmp_path, **({"HOME": home} if home else {}))
    assert (done.returncode, done.stdout) == (0, "20 Counter()\n")
    (line,) = done.stderr.splitlines()
    assert f"machine code cannot be kept ({tmp_path}/__pycache__/kernels: Read-only file system)" in line
    assert line.endswith("set NUMBA_CACHE_DIR to a folder that can be written")
    assert not kept(tmp_path, "__main__.caller")


@pytest.mark.slow
def test_the_line_says_what_helps(tmp_path: Path) -> None:
    (tmp_path / "program").mkdir()
    write_caller(tmp_path / "program")
    write_helper(tmp_path / "program/bits.py", 1)
    folder = str(tmp_path / "cache")
    done = run_unwritable(tmp_path / "program", NUMBA_CACHE_DIR=folder)
    assert (done.stdout, done.stderr) == ("20 Counter()\n", "")
    again = run_unwritable(tmp_path / "program", NUMBA_CACHE_DIR=folder)
    assert "Counter()" not in again.stdout


def test_kept_code_that_can_only_be_read_is_used(tmp_path: Path) -> None:
    write_caller(tmp_path)
    write_helper(tmp_path / "bits.py", 1)
    run(tmp_path)
    done = run_unwritable(tmp_path)
    assert "Counter()" not in done.stdout
    assert (done.returncode, done.stderr) == (0, "")


def test_kernels_that_call_each_other_are_compiled_at_each_start(tmp_path: Path) -> None:
    """Numba crashes when it loads the machine code of such a circle."""
    (tmp_path / "caller.py").write_text(
        "from seraphim.jit import kernel\n"
        "@kernel\ndef even(number):\n    return True if number == 0 else odd(number - 1)\n"
        "@kernel\ndef odd(number):\n    return False if number == 0 else even(number - 1)\n"
        "@kernel\ndef outer(number):\n    return even(number)\n"
        "print(even(10), outer(7))\n"
    )
    for _ in range(2):
        assert run(tmp_path) == "True False\n"


def test_damaged_machine_code_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "caller.py").write_text(
        "from seraphim.jit import kernel\n@kernel\ndef twice(number):\n    return 2 * number\n"
        "print(twice(21), bool(twice.stats.cache_hits))\n"
    )
    assert [run(tmp_path) for _ in range(2)] == ["42 False\n", "42 True\n"]
    (file,) = (each for each in tmp_path.rglob("*twice*") if each.is_file())
    content = bytearray(file.read_bytes())
    content[len(content) // 2 :][:512] = bytes(512)
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    assert run(tmp_path) == "42 False\n"
    assert run(tmp_path) == "42 True\n"
