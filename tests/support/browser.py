"""A browser and a server for the tests of pages: Debian's Chromium, driven by Playwright, and bin/serve.py."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, sync_playwright

ROOT = Path(__file__).parents[2]
AXE = ROOT / "node_modules/axe-core/axe.min.js"
# The shell has no windows to draw: pages open in less than half the time.
CHROMIUM = os.environ.get("SERAPHIM_CHROMIUM") or shutil.which("chromium-headless-shell") or shutil.which("chromium")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None,
    reason="Chromium is not installed: apt install chromium-headless-shell, or set SERAPHIM_CHROMIUM to its path",
)
needs_axe = pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed: npm ci")

DESKTOP = {"viewport": {"width": 1280, "height": 800}}
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True, "device_scale_factor": 2}


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser with a profile of its own, which is gone afterwards."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def serving(root: Path, *arguments: str, **environment: str) -> Iterator[str]:
    """The address of a server of the models below a folder, at a free port of this machine."""
    command = [sys.executable, "bin/serve.py", *arguments, "--port=0"]
    environment = {**os.environ, "SERAPHIM_DATA": str(root), "SERAPHIM_MODEL_NAME": "", **environment}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        said = server.stdout.readline()
        found = re.search(r"http://\S+/", said)
        try:
            assert found, f"the server did not start: {said}"
            yield found[0]
        finally:
            server.send_signal(signal.SIGINT)
            server.communicate(timeout=20)


class Visitor:
    """Opens pages of one address, each in a context of its own, and notes what should not happen on them."""

    def __init__(self, browser: Browser, url: str) -> None:
        self._browser = browser
        self._contexts: list[BrowserContext] = []
        self.url = url
        self.trouble: list[str] = []

    def context(self, **options: Any) -> BrowserContext:
        """A fresh context, by default of a desktop without animations."""
        context = self._browser.new_context(**{**DESKTOP, "reduced_motion": "reduce", **options})
        context.set_default_timeout(15_000)
        context.on("page", self.watch)
        self._contexts.append(context)
        return context

    def open(self, path: str = "", **options: Any) -> Page:
        """A page in a fresh context."""
        page = self.context(**options).new_page()
        page.goto(self.url + path)
        return page

    def watch(self, page: Page) -> None:
        """Note errors of a page, and requests to other hosts."""
        page.on("pageerror", lambda error: self.trouble.append(f"error: {error}"))
        page.on("console", lambda said: said.type in ("error", "warning") and self.trouble.append(said.text))
        page.on("request", lambda request: self._note(request.url))
        page.on("websocket", lambda socket: self._note(socket.url))

    def close(self) -> None:
        """Close all pages."""
        for context in self._contexts:
            context.close()

    def _note(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("data", "blob") and parts.netloc != urlsplit(self.url).netloc:
            self.trouble.append(f"a request to {url}")


def box(locator: Locator) -> dict[str, float]:
    """The place of an element; one that the page is drawing anew at the moment has none, and is asked again."""
    deadline = time.monotonic() + 15
    while (found := locator.bounding_box()) is None:
        assert time.monotonic() < deadline, f"no place for {locator}"
    return dict(found)


def violations(page: Page) -> list[str]:
    """What axe-core finds wrong with a page as it stands, in light and in dark."""
    page.evaluate(AXE.read_text())
    found = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for each in page.evaluate("() => axe.run()")["violations"]:
            found.append(f"{scheme}: {each['id']}: {each['help']}: {[node['html'] for node in each['nodes']]}")
    return found
