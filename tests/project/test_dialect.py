"""Messages and pages name programs as one calls them in a clone and with a wheel alike: `seraphim learn`."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GAMES = sorted(path.parent.name for path in ROOT.glob("*/train.py"))
NAMES = "|".join(sorted({*(path.stem for path in ROOT.glob("bin/*.py")), "train"}))
OF_A_CLONE = re.compile(rf"(?<![\w/])(?:(?:bin|{'|'.join(GAMES)})/)?(?:{NAMES})\.py\b")
PYTHON = sorted(path for folder in ("seraphim", "bin", *GAMES) for path in (ROOT / folder).rglob("*.py"))
PAGES = sorted(path for kind in ("js", "html") for path in (ROOT / "seraphim/web").rglob(f"*.{kind}"))


def texts(path: Path) -> Iterator[str]:
    """The strings of a module, docstrings and parts of f-strings included; of a page all but its comments."""
    source = path.read_text()
    if path.suffix == ".py":
        module = ast.parse(source)
        # How a game's program itself is run, which only a clone has.
        own = rf"^    python {path.parent.name}/train\.py"
        strings = (each.value for each in ast.walk(module) if isinstance(each, ast.Constant))
        yield from (re.sub(own, "", text, flags=re.MULTILINE) for text in strings if isinstance(text, str))
    else:
        yield re.sub(r"/\*.*?\*/|(?<!:)//[^\n]*|<!--.*?-->", "", source, flags=re.DOTALL)


@pytest.mark.parametrize("path", [*PYTHON, *PAGES], ids=lambda path: str(path.relative_to(ROOT)))
def test_no_text_names_a_program_of_the_clone(path: Path) -> None:
    assert [found[0] for text in texts(path) for found in OF_A_CLONE.finditer(text)] == []


@pytest.mark.parametrize(
    ("content", "suffix", "named"),
    [
        ('raise ValueError("make one with bin/learn.py")', "py", ["bin/learn.py"]),
        ('print(f"{name}: run arena.py --from_start")', "py", ["arena.py"]),
        ('"""Shown.\n\n    python hex/train.py NAME\n"""', "py", ["hex/train.py"]),
        ("print('seraphim/commands/check_proof.py')  # bin/serve.py", "py", []),
        ("throw new Error('is bin/serve.py still running?'); // bin/learn.py", "js", ["bin/serve.py"]),
        ("/** As bin/serve.py does. */ fetch('https://example.org')", "js", []),
        ("<p>Run python bin/generate_games.py</p><!-- train.py -->", "html", ["bin/generate_games.py"]),
    ],
)
def test_names_of_programs_of_the_clone_are_found(content: str, suffix: str, named: list[str], tmp_path: Path) -> None:
    path = tmp_path / f"file.{suffix}"
    path.write_text(content)
    assert [found[0] for text in texts(path) for found in OF_A_CLONE.finditer(text)] == named
