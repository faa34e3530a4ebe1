"""What a newcomer meets who has installed nothing, or whose installation is broken."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from programs import command_of

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted({*ROOT.glob("bin/*.py"), *ROOT.glob("*/train.py")})
NOTHING_INSTALLED = [sys.executable, "-S", "-E"]  # without site-packages, PYTHONPATH and what coverage puts there


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize(
    "program", [each for each in PROGRAMS if each.stem != "doctor"], ids=lambda each: str(each.relative_to(ROOT))
)
def test_a_program_that_nothing_is_installed_for_says_in_one_line_what_to_do(program: Path) -> None:
    done = run(*NOTHING_INSTALLED, program, "NAME")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"{command_of(program)}: No module named ")
    assert done.stderr.endswith(": source .venv/bin/activate, or run make setup first\n")
    assert done.stderr.count("\n") == 1


def test_the_doctor_names_what_is_missing_where_nothing_is_installed() -> None:
    done = run(*NOTHING_INSTALLED, "bin/doctor.py")
    assert (done.returncode, done.stderr) == (1, "")
    first, *packages, problem, last = done.stdout.splitlines()
    assert first == f"Python {sys.version.split()[0]} at {sys.executable}"
    assert {"absl-py is missing", "numpy is missing", "openvino is missing"} <= set(packages)
    assert problem.startswith("No module named 'absl': ")
    assert last == "1 problem found"


@pytest.mark.parametrize("package", ["numpy", "absl", "numba", "rich"])
@pytest.mark.parametrize("error", ["ImportError", "OSError"])
def test_the_doctor_names_a_package_that_cannot_be_imported(tmp_path: Path, package: str, error: str) -> None:
    (tmp_path / f"{package}.py").write_text(f"raise {error}('libbroken.so: cannot open shared object file')")
    done = run(sys.executable, "bin/doctor.py", "--quick", PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stderr) == (1, "")
    *_, problem, last = done.stdout.splitlines()
    assert problem.startswith("libbroken.so: cannot open shared object file: ")
    assert problem.endswith(": pip install -e . in the clone, or rm -r .venv and make setup")
    assert last == "1 problem found"


GUIDES = (
    "README",
    "commands",
    "playing",
    "engines",
    "interop",
    "openspiel",
    "cluster",
    "proofs",
    "api",
    "your-own-game",
    "game-of-dice",
    "puzzle",
)


@pytest.mark.parametrize("page", [ROOT / "README.md", *(ROOT / f"docs/{name}.md" for name in GUIDES)], ids=str)
def test_who_follows_a_page_is_told_to_activate_the_environment(page: Path) -> None:
    before, told, _ = page.read_text().partition("source .venv/bin/activate")
    assert told
    assert not re.search(r"^(\$ )?(python bin/|seraphim [a-z])", before, re.MULTILINE)
