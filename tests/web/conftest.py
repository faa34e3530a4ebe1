"""What the tests of pages share: a browser, and who visits the address that a module serves."""

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Return a browser."""
    from browser import chromium  # with Playwright, which the tests of the engine do not need

    with chromium() as browser:
        yield browser


@pytest.fixture
def visitor(browser: Any, address: str) -> Iterator[Any]:
    """Return a visitor that must see no error and send no request to another host."""
    from browser import Visitor

    visitor = Visitor(browser, address)
    yield visitor
    visitor.close()
    assert not visitor.trouble
