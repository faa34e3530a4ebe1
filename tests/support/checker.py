"""The program bin/check_proof.py as a module, loaded once: a second time would define its flags twice."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).parents[2] / "bin" / "check_proof.py"
_SPEC = importlib.util.spec_from_file_location("check_proof", PROGRAM)
assert _SPEC and _SPEC.loader
sys.path.append(str(PROGRAM.parent))  # as Python does that runs it
check_proof: Any = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(check_proof)
