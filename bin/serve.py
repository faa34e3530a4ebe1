"""Serves a page in the browser: play the models, see them think, look at what they learnt from.

    python bin/serve.py NAME --open

All models are there; NAME is the one shown first, and may be left out. Only this machine can reach the page, unless
--host says otherwise: there is no password. Ctrl-C ends it.
"""

import os
import threading
import webbrowser
from collections.abc import Sequence

from absl import flags

from seraphim import cli

HOST = flags.DEFINE_string("host", "127.0.0.1", "Address of this machine to serve at; 0.0.0.0 is all of them.")
PORT = flags.DEFINE_integer("port", 8080, "Port to serve at; 0 is any free one.", lower_bound=0, upper_bound=65535)
NAMES = flags.DEFINE_list("names", [], "Names by which browsers reach this machine, such as play.example.org.")
ORIGINS = flags.DEFINE_list(
    "origins", [], "Pages elsewhere that may use the server, such as https://play.example.org:8443."
)
PROXY = flags.DEFINE_list("proxy", [], "Addresses or networks of proxies whose X-Forwarded-For is believed.")
OPEN = flags.DEFINE_bool("open", False, "Open the page in a browser.")
cli.define_trust()


def main(arguments: Sequence[str]) -> None:
    """Serve."""
    from seraphim.errors import SettingsError

    try:
        from seraphim.server import run
    except ModuleNotFoundError as error:
        raise SettingsError(f"serving needs {error.name}: pip install -e '.[serve]'") from error
    from seraphim.server.engine.model_host import Host
    from seraphim.server.middleware import Access

    named = len(arguments) > 1 or os.environ.get("SERAPHIM_MODEL_NAME")
    host = Host(cli.data_root(), cli.model_name(arguments) if named else None, trust=cli.FLAGS.trust)
    names = frozenset(name.lower() for name in NAMES.value)
    access = Access(names or None, frozenset(ORIGINS.value), tuple(PROXY.value))
    listening = run.listen(host, HOST.value, PORT.value, access)
    print(f"{', '.join(model.name for model in host.models())} at {listening.url} (Ctrl-C ends)", flush=True)
    if not run.is_loopback(HOST.value):
        print("everybody who can reach this machine can use that page", flush=True)
    if OPEN.value:
        threading.Thread(target=webbrowser.open, args=(listening.url,), daemon=True).start()
    listening.run()


if __name__ == "__main__":
    cli.run(main)
