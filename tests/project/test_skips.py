"""Where CI is set, a test that is skipped fails, and `.ci/run` installs what tests need; `make faults` counts skips."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from faults import other_tests
from skips import ALLOWED_SKIPS

ROOT = Path(__file__).parents[2]
SKIPPING = {
    "call": "import pytest\ndef test_call():\n    pytest.skip('nothing here')\n",
    "mark": "import pytest\n@pytest.mark.skipif(True, reason='nothing here')\ndef test_mark(): pass\n",
    "fixture": (
        "import pytest\n@pytest.fixture\ndef thing():\n    pytest.skip('nothing here')\ndef test_fixture(thing): pass\n"
    ),
    "import": "import pytest\ndef test_import():\n    pytest.importorskip('nothing_here')\n",
    "module": "import pytest\npytest.importorskip('nothing_here')\ndef test_module(): pass\n",
}
EXPECTED_FAILURE = "import pytest\n@pytest.mark.xfail\ndef test_expected():\n    assert False\n"


def run_tests(folder: Path, ci: str) -> subprocess.CompletedProcess[str]:
    """Run tests that are skipped in every way, as those of this folder are run."""
    for way, code in {**SKIPPING, "expected": EXPECTED_FAILURE}.items():
        (folder / f"test_{way}.py").write_text(code)
    file, _, name = next(iter(ALLOWED_SKIPS)).partition("::")
    listed = (
        f"import pytest\n@pytest.mark.parametrize('number', [1, 2])\ndef {name}(number):\n    pytest.skip('listed')\n"
    )
    (folder / file).write_text(listed)
    environment = {**os.environ, "CI": ci, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}:{ROOT / 'tests/support'}"}
    flags = ("-p", "conftest", "-p", "no:cacheprovider", f"--rootdir={folder}", "--continue-on-collection-errors")
    command = [sys.executable, "-m", "pytest", *flags, str(folder)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.slow
def test_a_skip_that_is_not_listed_is_a_failure_where_ci_is_set(tmp_path: Path) -> None:
    done = run_tests(tmp_path, ci="1")
    assert done.returncode == 1
    assert "2 failed, 2 skipped, 1 xfailed, 3 errors" in done.stdout  # errors: before a test begins
    assert done.stdout.count("\nskipped where CI is set: ") == len(SKIPPING)
    for way in SKIPPING:
        assert f"test_{way}.py" in done.stdout.partition("short test summary info")[2]


@pytest.mark.slow
def test_a_skip_is_a_skip_where_ci_is_not_set(tmp_path: Path) -> None:
    done = run_tests(tmp_path, ci="")
    assert done.returncode == 0
    assert "7 skipped, 1 xfailed" in done.stdout


def test_the_list_names_tests_that_exist() -> None:
    for listed in ALLOWED_SKIPS:
        file, _, name = listed.partition("::")
        (path,) = (ROOT / "tests").rglob(file)
        assert f"def {name}(" in path.read_text()


@pytest.mark.slow
def test_fault_tests_that_are_skipped_are_counted_as_faults(tmp_path: Path) -> None:
    skipping, passing = tmp_path / "test_skipping.py", tmp_path / "test_passing.py"
    skipping.write_text(SKIPPING["fixture"])
    passing.write_text("def test_b(): pass\n")
    passed, skipped = other_tests([skipping, passing])
    assert passed == ("tests of single faults", 1, [])
    assert skipped[1] == 1
    assert "nothing here" in skipped[2][0]
    assert [row[1:] for row in other_tests([passing])] == [(1, []), (0, [])]


# ---------------------------------------------------------------- .ci/run


def run_ci(tmp_path: Path, apt: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `.ci/run` as root on a machine that has nothing but apt-get, and a `make` that says what it was asked."""
    (tmp_path / "bin").mkdir()
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run")
    for name in ("bash", "dirname", "env", "chmod"):
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
    scripts = {"id": "echo 0", "make": 'echo "make $* with CI=$CI"', "apt-get": apt}
    for name, script in scripts.items():
        (tmp_path / "bin" / name).write_text(f"#!{shutil.which('bash')}\n{script}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    given = {"PATH": str(tmp_path / "bin"), **environment}
    return subprocess.run([tmp_path / ".ci/run"], env=given, capture_output=True, text=True)


def test_what_tests_need_is_installed_and_skips_become_failures(tmp_path: Path) -> None:
    # An "installation" that puts a command of each package into place.
    apt = 'case "$*" in *nodejs) name=node;; *util-linux) name=unshare;; *) name=${!#};; esac; '
    apt += f'[ "$1" = update ] || {{ : > {tmp_path}/bin/$name; chmod +x {tmp_path}/bin/$name; }}'
    done = run_ci(tmp_path, apt)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "make audit licenses with CI=1\nmake test test-all with CI=1\n"


def test_what_cannot_be_installed_is_told_by_name(tmp_path: Path) -> None:
    done = run_ci(tmp_path, "exit 100", CI="true")
    assert done.returncode == 0, done.stderr
    *told, audit, test = done.stdout.splitlines()
    missing = [line.partition(" is not installed: ")[0] for line in told]
    assert missing == ["chromium-headless-shell", "nodejs", "npm", "util-linux"]
    assert (audit, test) == ("make audit licenses with CI=true", "make test test-all with CI=true")
