"""Plants each fault of `planted_faults.py` in a copy of the repository, and tells which of them the tests catch.

    python tests/support/plant.py [--only=NAME]

A fault is caught if a test that is not slow fails with it, and passes without it. Exits with 1 if fewer than 90 % are.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from planted_faults import FAULTS, MISTAKES, Fault

ROOT = Path(__file__).parents[2]
SOUGHT = 0.9
SECONDS = 300  # that the tests of a fault may take: one that hangs is caught
LEFT_OUT = (".git", ".venv", "node_modules", "site", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis")


def plant(text: str, fault: Fault) -> str:
    """Return the text of a file with the fault in it; raise a ValueError unless it applies exactly once."""
    if text.count(fault.old) != 1 or fault.new == fault.old:
        raise ValueError(f"{fault.name}: {fault.file} holds the text {text.count(fault.old)} times, not once")
    return text.replace(fault.old, fault.new)


def pytest_arguments(fault: Fault) -> list[str]:
    """Return the arguments of pytest that run the tests of a fault."""
    return [f"tests/{each}" if each.endswith(".py") else each for each in shlex.split(fault.tests)]


def copy_tree(source: Path, folder: Path) -> None:
    """Copy the repository, with the machine code of its kernels, but without what tests do not need."""
    shutil.copytree(source, folder, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
    for name in ("node_modules", ".venv"):
        if (ROOT / name).exists():
            (folder / name).symlink_to(ROOT / name)


def run_tests(folder: Path, arguments: Sequence[str]) -> str:
    """Run tests of a copy until one fails; return its id, what else ended them, or nothing."""
    environment = os.environ | {"PYTHONPATH": str(folder)}  # before what is installed
    command = [sys.executable, "-m", "pytest", "-m", "not slow", "-x", "-q", "-p", "no:cacheprovider", *arguments]
    command.append("--hypothesis-profile=unshrunk")
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"no end within {SECONDS} s"
    if done.returncode == 0:
        return ""
    if done.returncode < 0:
        return f"signal {-done.returncode}"
    failed = re.search(r"^(?:FAILED|ERROR) (tests/.+?)(?: - |$)", done.stdout, re.MULTILINE)
    if not failed:
        raise RuntimeError(f"pytest ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return failed[1]


def catch(fault: Fault, clean: Path, folder: Path) -> str:
    """Plant a fault in a new copy, and run its tests; return the test that caught it, or nothing.

    Raises:
        RuntimeError: pytest ran no tests, or that test fails in the clean copy as well.
    """
    copy_tree(clean, folder)  # a new one, as kernels that are compiled with a fault replace those without it
    file = folder / fault.file
    file.write_text(plant(file.read_text(), fault))
    try:
        caught_by = run_tests(folder, pytest_arguments(fault))
    finally:
        shutil.rmtree(folder)
    if caught_by.startswith("tests/") and run_tests(clean, [caught_by]):
        raise RuntimeError(f"{caught_by} fails without {fault.name} as well")
    return caught_by


def main() -> int:
    """Plant the faults, and print which are caught."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="the name of one fault")
    options = parser.parse_args()
    faults = [fault for fault in FAULTS if options.only in (None, fault.name)]
    if not faults:
        parser.error(f"no fault is named {options.only}: choose from {', '.join(fault.name for fault in FAULTS)}")
    missed = []
    with tempfile.TemporaryDirectory() as temporary:
        clean = Path(temporary) / "clean"
        copy_tree(ROOT, clean)
        for fault in faults:
            start = time.perf_counter()
            caught_by = catch(fault, clean, Path(temporary) / "faulty")
            verdict = "caught" if caught_by else "MISSED"
            print(f"{verdict} {fault.name:32} {time.perf_counter() - start:4.0f} s  {caught_by}", flush=True)
            if not caught_by:
                missed.append(fault)
    for fault in missed:
        print(f"missed: {fault.name}, {MISTAKES.get(fault.mistake, 'a mutant')} ({fault.file})")
    share = 1 - len(missed) / len(faults)
    print(f"{len(faults) - len(missed)} of {len(faults)} planted faults are caught: {share:.0%} (sought {SOUGHT:.0%})")
    return int(share < SOUGHT)


if __name__ == "__main__":
    sys.exit(main())
