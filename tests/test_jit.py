"""The kernel cache notices a change in any source beside a kernel, though Numba checks the kernel's own file only."""

import os
import subprocess
import sys
from pathlib import Path

HELPER = """
from seraphim.jit import kernel

@kernel
def helper(number):
    return number + {step}
"""
CALLER = """
from seraphim.jit import kernel
from helper import helper

@kernel
def caller(number):
    return 10 * helper(number)

print(caller(1), caller.stats.cache_hits)
"""


def run(folder: Path, **environment: str) -> str:
    return subprocess.run(
        [sys.executable, "caller.py"],
        cwd=folder,
        env={**os.environ, "NUMBA_DISABLE_JIT": "0", **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_a_changed_helper_recompiles_its_callers(tmp_path: Path) -> None:
    (tmp_path / "caller.py").write_text(CALLER)
    (tmp_path / "helper.py").write_text(HELPER.format(step=1))
    assert run(tmp_path).startswith("20 ")
    assert "Counter()" not in run(tmp_path)  # the second run found the code
    (tmp_path / "helper.py").write_text(HELPER.format(step=22))
    assert run(tmp_path).startswith("230 ")
    assert len(list((tmp_path / "__pycache__").glob("kernels-*"))) == 1  # outdated code is removed


def test_the_folder_for_cached_code_may_be_set(tmp_path: Path) -> None:
    (tmp_path / "caller.py").write_text(CALLER)
    (tmp_path / "helper.py").write_text(HELPER.format(step=1))
    run(tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "elsewhere"))
    assert list((tmp_path / "elsewhere").glob("kernels-*"))
    assert not list((tmp_path / "__pycache__").glob("kernels-*"))
