"""The pages of docs/ that a person follows: their files, their commands, and what they say that these print."""

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from browser import ROOT

SET_UP = ("git", "make", "source")  # what has been done already where tests run


class Block(NamedTuple):
    """A block of code or text."""

    kind: str  # sh, text, python, …
    file: str  # where the page says to put it, if anywhere
    text: str


class Tutorial:
    """A page as its blocks."""

    def __init__(self, page: str) -> None:
        text = (ROOT / page).read_text()
        found = re.findall(r"^```(\w+) ?(\S*)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
        self.blocks = [Block(*block) for block in found]

    @property
    def files(self) -> list[str]:
        """The names of the files that it says to write."""
        return [block.file for block in self.blocks if block.file]

    @property
    def commands(self) -> list[str]:
        """The commands that it says to run."""
        lines = [line for block in self.blocks if block.kind == "sh" for line in block.text.splitlines()]
        return [line.split("#")[0].strip() for line in lines if not line.startswith(SET_UP)]

    @property
    def said(self) -> dict[str, str]:
        """What it says that a command prints, or the last one of a block: the text that follows."""
        return {
            before.text.strip().splitlines()[-1]: after.text
            for before, after in itertools.pairwise(self.blocks)
            if before.kind == "sh" and after.kind == "text"
        }

    def write_files(self, folder: Path) -> None:
        """Write its files."""
        for block in self.blocks:
            if block.file:
                (folder / block.file).write_text(block.text)


def run(folder: Path, command: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    """Run `seraphim …` or `python …` in a folder, and type what a person types."""
    program, *arguments = command.split()
    assert program in ("seraphim", "python")
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [Path(sys.executable).with_name(program), *arguments],
        cwd=folder,
        env={**os.environ, "SERAPHIM_DATA": "", "PYTHONPATH": path, "COLUMNS": "100"},
        input=typed,
        capture_output=True,
        text=True,
        timeout=300,
    )


def program_of(command: str) -> str:
    """`seraphim` and the name of its command, or `python` and its file."""
    return " ".join(command.split()[:2])


def assert_same_form(said: str, text: str) -> None:
    """Check that lines which the page shows come in this order: `…` is any text or lines, a number is any number."""
    lines = iter([plain(line) for line in text.splitlines()])
    for line in said.splitlines():
        parts = re.escape(plain(line)).replace("…", ".*")
        form = re.sub(r"\d+((\\\.|,)\d+)*", r"[\\d,.]+", parts)
        assert any(re.fullmatch(form, other) for other in lines), line


def plain(line: str) -> str:
    """A line without the spaces that make columns."""
    return " ".join(line.split()).replace("[ ", "[")
