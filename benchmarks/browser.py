"""Measure the engine in the browser: seconds per move in Chromium, in WebAssembly on one thread, without a server.

    python benchmarks/browser.py [MODEL] [READOUTS]

exports a model (default: connectfour), opens the exported site in headless Chromium, and lets the engine play whole
games against itself with READOUTS per move (default: 200). The games differ in their first move. The tree is reused
from move to move, as on the page. Times are measured in the browser.
"""

import functools
import http.server
import statistics
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np

from seraphim.export.site import Chosen, find_library, write_site
from seraphim.storage.models import ModelFolder

CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
GAMES = 3

# Plays games in the page; returns the seconds to open the model and those of each move.
PLAY = """async ([model, readouts, games]) => {
    const worker = new Worker('engine/worker.js', {type: 'module'});
    const waiting = new Map();
    worker.onmessage = ({data}) => (data.type !== 'analysis' || data.done) && waiting.get(data.id)(data);
    worker.postMessage({type: 'config', base: document.baseURI, models: SERAPHIM.models});
    const ask = (message) => new Promise((resolve) => {
        const id = waiting.size + 1;
        waiting.set(id, resolve);
        worker.postMessage({id, ...message});
    });
    let began = performance.now();
    const {engine, game} = await ask({type: 'open', model, snapshot: null});
    const opened = (performance.now() - began) / 1000;
    const seconds = [];
    for (let first = 0; first < games; first += 1) {
        const moves = [first % game.num_actions];
        for (;;) {
            const position = await ask({type: 'position', start: null, moves});
            if (position.ended) break;
            began = performance.now();
            const {best} = await ask({type: 'think', readouts});
            seconds.push((performance.now() - began) / 1000);
            moves.push(best);
        }
    }
    return {engine, opened, seconds};
}"""


class Host(http.server.SimpleHTTPRequestHandler):
    """A static host that counts requests."""

    requests = 0

    def log_message(self, *_: Any) -> None:
        """Count a request, except the browser's checks for a new service worker."""
        Host.requests += not self.path.endswith(("/service-worker.js", "/offline.js"))


def measure(folder: Path, model: str, readouts: int) -> dict[str, Any]:
    """Return the result of PLAY for a folder, and `requests`, the number of requests after the page was loaded."""
    from playwright.sync_api import sync_playwright

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Host, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page()
        # The page's own engine is idle meanwhile.
        page.add_init_script("localStorage.setItem('seraphim', '{\"analyzing\": false}')")
        for _ in range(2):  # the second time as a returning visitor
            page.goto(f"http://127.0.0.1:{server.server_port}/")
            page.wait_for_function("document.querySelector('#engine').textContent")
            page.evaluate("navigator.serviceWorker.ready")
        before = Host.requests
        figures: dict[str, Any] = page.evaluate(PLAY, [model, readouts, GAMES])
        figures["requests"] = Host.requests - before
        browser.close()
    server.shutdown()
    return figures


def main() -> None:
    """Measure and print."""
    name, readouts = [*sys.argv[1:], *["connectfour", "200"][len(sys.argv) - 1 :]][:2]
    model = ModelFolder(Path(), name)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "site"
        write_site([Chosen(name, model.champion(), model.settings())], out, find_library())
        figures = measure(out, name, int(readouts))
    seconds = figures["seconds"]
    print(f"{name}, {figures['engine']}: {readouts} readouts per move, {len(seconds)} moves in {GAMES} games")
    print(
        f"seconds per move: median {statistics.median(seconds):.2f}, 95 % {np.quantile(seconds, 0.95):.2f}, "
        f"slowest {max(seconds):.2f}; until the model is open {figures['opened']:.2f}; "
        f"requests after the page was loaded: {figures['requests']}"
    )


if __name__ == "__main__":
    main()
