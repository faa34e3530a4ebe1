"""What programs take from absl; where Seraphim is not installed, one line says so instead of a traceback.

Programs import it before any other package. It is no program itself.
"""

import sys
from pathlib import Path

try:
    from absl import app, flags

    import seraphim
except ModuleNotFoundError as error:
    program = Path(sys.argv[0]).name
    raise SystemExit(f"{program}: {error}: source .venv/bin/activate, or run make setup first") from None

__all__ = ["app", "flags", "seraphim"]
