"""The blocks of code in the pages of documentation."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any, NamedTuple

DOCS = Path(__file__).parents[2] / "docs"


class Block(NamedTuple):
    """Python code, and what the page says that it prints."""

    code: str
    printed: str | None  # None where the page does not say


def blocks_of(page: str) -> list[Block]:
    """The blocks of Python in a page; a block of text right after one is what it prints."""
    found = re.findall(r"^```python\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", (DOCS / page).read_text(), re.M | re.S)
    return [Block(code, printed or None) for code, printed in found]


def run_page(page: str) -> dict[str, Any]:
    """Run the blocks of a page in succession; return the names that they define."""
    names: dict[str, Any] = {}
    for block in blocks_of(page):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block.code, page, "exec"), names)
        assert block.printed in (None, printed.getvalue()), printed.getvalue()
    return names


def function_of(page: str, name: str) -> Any:
    """A function that a page defines, run without what stands around it, but for imports."""
    names: dict[str, Any] = {}
    for block in blocks_of(page):
        imports = "\n".join(line for line in block.code.splitlines() if re.match(r"(import|from) ", line))
        exec(imports, names)
        found = re.search(rf"^(@\S+\n)?def {name}\(.*?(?=^\S|\Z)", block.code, re.M | re.S)
        if found:
            exec(compile(found[0], page, "exec"), names)
            return names[name]
    raise LookupError(f"{page} defines no {name}")
