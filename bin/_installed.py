"""What programs take from absl; where Seraphim is not installed, one line says so instead of a traceback.

Programs import it before any other package: from then on Ctrl-C ends them without a traceback. It is no program itself.
"""

import sys
from pathlib import Path

try:
    from seraphim.machine import end_on_interrupt

    main = getattr(sys.modules["__main__"], "__file__", None) or ""
    if Path(main).resolve().parent == Path(__file__).resolve().parent:  # else a host runs the program's file
        end_on_interrupt()
        sys.path.append("")  # a game in the current folder needs no installation
    from absl import app, flags
except ModuleNotFoundError as error:
    program = Path(sys.argv[0]).name
    raise SystemExit(f"{program}: {error}: source .venv/bin/activate, or run make setup first") from None

__all__ = ["app", "flags"]
