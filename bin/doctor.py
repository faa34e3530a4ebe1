"""The command `seraphim doctor` as a program."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # where Seraphim is not installed
from seraphim.__main__ import run

if __name__ == "__main__":
    run("doctor")
