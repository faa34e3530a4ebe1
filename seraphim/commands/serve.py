"""Serves a page in the browser: play the models, watch their searches, browse the games that they learned from.

    seraphim serve NAME --open
    seraphim serve NAME --engine="gtp:gtp-rhino --level=3"    # to play with another program, too

All models are there; NAME is shown first, and may be left out. Only this machine can reach the page, unless --host says
otherwise: there is no password. Ctrl-C stops the server.
"""

import os
import threading
import webbrowser
from collections.abc import Sequence

from absl import flags

from seraphim import cli

HOST = flags.DEFINE_string("host", "127.0.0.1", "Address of this machine to serve at; 0.0.0.0 is all of them.")
PORT = flags.DEFINE_integer("port", 8080, "Port to serve at; 0 is any free one.", lower_bound=0, upper_bound=65535)
ALLOWED_HOSTS = flags.DEFINE_list(
    "allowed_hosts", [], "Names by which browsers reach this machine, such as play.example.org; by default its own."
)
ORIGINS = flags.DEFINE_list(
    "origins", [], "Other origins whose pages may use the server, such as https://play.example.org:8443."
)
PROXY = flags.DEFINE_list("proxy", [], "Addresses or networks of proxies whose X-Forwarded-For is trusted.")
ENGINE = flags.DEFINE_string(
    "engine", None, "A program that plays the game of NAME on the page, too: gnubg:PLIES, gtp:COMMAND or uci:COMMAND."
)
OPEN = flags.DEFINE_bool("open", False, "Open the page in a browser.")
cli.define_trust()


def main(arguments: Sequence[str]) -> None:
    """Serve."""
    from seraphim.errors import SettingsError, how_to_install
    from seraphim.machine import needed

    with needed(f"serving needs {{}}: {how_to_install('serve')}"):
        from seraphim.server import run
    from seraphim.game import load_game
    from seraphim.server.middleware import Access
    from seraphim.server.searcher.engine_host import EngineHost
    from seraphim.server.searcher.model_host import ModelHost
    from seraphim.storage.shipped import data_root

    named = len(arguments) > 1 or os.environ.get("SERAPHIM_MODEL_NAME")
    host = ModelHost(data_root(), cli.model_name(arguments) if named else None, trust=cli.FLAGS.trust)
    allowed_hosts = frozenset(name.lower() for name in ALLOWED_HOSTS.value)
    access = Access(allowed_hosts or None, frozenset(ORIGINS.value), tuple(PROXY.value))
    if ENGINE.value and not named:
        raise SettingsError("--engine plays the game of one model: name it, seraphim serve NAME --engine=...")
    engines = (
        EngineHost(load_game(cli.model_to_read(arguments).settings().game), ENGINE.value) if ENGINE.value else None
    )
    server = run.bind(host, HOST.value, PORT.value, access, engines=engines)
    print(f"{', '.join(model.name for model in host.models())} at {server.url} (Ctrl-C to stop)", flush=True)
    if engines:
        print(f"{engines.title} plays {engines.game.name}", flush=True)
    if not run.is_loopback(HOST.value):
        print("anyone who can reach this machine can use the page", flush=True)
    if OPEN.value:
        threading.Thread(target=webbrowser.open, args=(server.url,), daemon=True).start()
    server.run()
