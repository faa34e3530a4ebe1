"""The style sheets and the texts of pages, as files."""

import gzip
import re
from collections import defaultdict
from pathlib import Path

from seraphim.server.webfiles import WEB

ALONE = re.compile(r"\.([\w-]+)(?:[:[].*)?")  # a selector of one class, in whatever state


def selectors(sheet: str) -> list[str]:
    """Every selector of a sheet, those of its media queries included."""
    rules = re.sub(r"/\*.*?\*/|@media[^{]*\{", "", sheet, flags=re.DOTALL)
    return [each.strip() for rule in re.findall(r"([^{};]+)\{", rules) for each in rule.split(",")]


def test_no_class_is_styled_by_itself_in_two_sheets() -> None:
    # A drawing and a page that call different things alike would style each other's.
    found = defaultdict(set)
    for path in WEB.rglob("*.css"):
        for selector in selectors(path.read_text()):
            if alone := ALONE.fullmatch(selector):
                found[alone[1]].add(path.name)
    assert len(found) > 80
    assert {name: sheets for name, sheets in found.items() if len(sheets) > 1} == {}


def loaded_by(*files: str) -> set[Path]:
    """The modules of a page that are loaded with these files."""
    found, pending = set[Path](), [WEB / file for file in files]
    while pending:
        path = pending.pop()
        if path not in found:
            found.add(path)
            names = re.findall(r"^(?:import|export|\}).* from '(.*)';$", path.read_text(), re.MULTILINE)
            pending += [(path.parent / name).resolve() for name in names if path.suffix == ".js"]
    return found


def test_a_page_loads_the_board_of_its_game_alone_and_little_else() -> None:
    sheets = re.findall(r'rel="stylesheet" href="([^"]+)"', (WEB / "index.html").read_text())
    files = loaded_by("index.html", "explorer/explorer.js", *sheets)
    assert len(sheets) == 4
    assert not [path for path in files if path.parent.name == "styles"]
    assert sum(len(gzip.compress(path.read_bytes())) for path in files) < 69_000
