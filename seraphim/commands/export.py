"""Writes a model for other places: a page that plays in the browser, one file for another runtime, or a hub's folder.

    seraphim export NAME [NAME ...] --out=site         # a folder for any static host; no server behind it
    seraphim export NAME --format=tflite --out=NAME.tflite
    seraphim export NAME --format=onnx --out=NAME.onnx
    seraphim export NAME --format=hub --out=NAME-hub    # a folder for a model hub, which seraphim.load reads back

What is written is compared with the SavedModel before, and refused if it computes something else.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from absl import flags

from seraphim import cli

FORMAT = cli.define_choice("format", Literal["web", "tflite", "onnx", "hub"], "web", "What to write.")
OUT = flags.DEFINE_string("out", None, "The folder, or the file. Default: site, NAME.tflite, NAME.onnx or NAME-hub.")
SNAPSHOT = flags.DEFINE_string(
    "snapshot", None, "Which snapshot of the one model, or a path to one. Default: the champion."
)
cli.define_trust()


def main(arguments: Sequence[str]) -> None:
    """Export."""
    from seraphim.errors import SettingsError
    from seraphim.export.formats import export_file
    from seraphim.export.hub import write_hub
    from seraphim.export.site import Chosen, find_library, write_site
    from seraphim.game import load_game
    from seraphim.storage.shipped import data_root, find_model

    names = list(arguments[1:]) or [cli.model_name(arguments)]
    if len(names) > 1 and (SNAPSHOT.value or FORMAT.value != "web"):
        raise SettingsError(f"--snapshot and --format={FORMAT.value} are for one model at a time: name one")
    if len(set(names)) < len(names):
        raise SettingsError(f"a model is named twice: {' '.join(names)}")
    trust = cli.FLAGS.trust
    folders = [find_model(data_root(), name, trust) for name in names]
    chosen = [Chosen(each.name, each.choose(SNAPSHOT.value), each.settings()) for each in folders]
    if FORMAT.value == "hub":
        (folder,), (model,) = folders, chosen
        out = Path(OUT.value or f"{model.name}-hub")
        print(f"{model.name}, {model.snapshot.name}: {write_hub(folder, model.snapshot, out)}")
        print(f"{out}: look at README.md, whose license is that of the model, then upload the folder to a hub")
        return
    if FORMAT.value != "web":
        (model,) = chosen
        file = Path(OUT.value or f"{model.name}.{FORMAT.value}")
        parity = export_file(model.snapshot.path, load_game(model.settings.game), FORMAT.value, file, trust)
        print(f"{model.name}, {model.snapshot.name}: {parity}")
        print(f"{file}: {file.stat().st_size:,} bytes")
        return
    library = find_library()
    out = Path(OUT.value or "site")
    for model, parity in zip(chosen, write_site(chosen, out, library, trust), strict=True):
        print(f"{model.name}, {model.snapshot.name}: {parity}")
    if library.reason:
        print(f"{library.reason}, so the page loads LiteRT.js {library.version} from a CDN when it is opened")
    print(f"{out}: put it on any static host, or try it: python -m http.server --directory {out}")
