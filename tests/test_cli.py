"""How programs end."""

import subprocess
import sys

import pytest

RAISES = {
    "raise KeyboardInterrupt": "",
    "raise SystemError('in C code') from KeyboardInterrupt()": "",
    "raise SystemError('in C code') from RuntimeError()": "SystemError: in C code\n",
}


@pytest.mark.parametrize("statement", RAISES)
def test_ctrl_c_ends_a_program_without_a_traceback_even_inside_of_c_code(statement: str) -> None:
    program = f"from seraphim import cli\ndef main(arguments):\n    {statement}\ncli.run(main)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == ""
    assert done.stderr.endswith(RAISES[statement])
    assert (done.returncode, bool(done.stderr)) == ((1, True) if RAISES[statement] else (130, False))
