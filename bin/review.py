"""The command `seraphim review` as a program."""

import sys

sys.path.append(__file__.rsplit("/", 2)[0])  # where Seraphim is not installed
from seraphim.__main__ import run

if __name__ == "__main__":
    run("review")
