"""The style sheets and the texts of pages, as files."""

import re
from collections import defaultdict

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
