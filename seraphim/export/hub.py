"""A model as the folder that a model hub expects: a card with metadata, and the network in four formats.

The folder is a snapshot with the model's settings beside it; `seraphim.players.hub` reads it back. Sends nothing
anywhere.
"""

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from seraphim.errors import FileError, ModelError
from seraphim.export.formats import Parity, convert
from seraphim.game import load_game
from seraphim.network.saved_model import ARCHIVE
from seraphim.settings import dump_settings
from seraphim.storage import atomic
from seraphim.storage.models import ModelFolder, Snapshot
from seraphim.storage.shipped import SHIPPED

_TASK = "reinforcement-learning"
_KINDS = {
    "raw_mistakes": "moves of the network alone that lose the result, %",
    "searched_mistakes": "moves of a short search that lose the result, %",
}  # figures of a snapshot
_CARD = """---
{metadata}
---

# {name}

A network that plays {game}: it learned from games against itself, as AlphaZero does, with Seraphim, whose search it
guides. This is the snapshot {snapshot}, after {step:,} training steps.

```python
import seraphim

model = seraphim.load("./{folder}")  # the path of this folder, with a slash
print(model.analyze())
```

`model.play("…")` takes the moves so far, and returns the next one. A game that does not come with Seraphim has to be
imported first. `saved_model.pb` with `variables/`, `assets.extra/model.keras`, `assets.extra/model.tflite` and
`model.onnx` are the same network: `observation` uint8 [N, …] to `policy`, logits of all actions, and `value`.
"""


def write_hub(model: ModelFolder, snapshot: Snapshot, out: Path) -> Parity:
    """Write a folder for a model hub, completely or not at all; return the differences of the ONNX file.

    Raises:
        FileError: `out` exists.
        ModelError: the snapshot has no Keras archive, or see `seraphim.export.formats.convert`.
        NotInstalledError: a package is not installed.
    """
    out = out.absolute()
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise FileError(f"{out} exists: name another folder with --out, or remove it")
    if not (snapshot.path / ARCHIVE).is_file():
        raise ModelError(f"{snapshot.path} has no {ARCHIVE}, without which nobody could check it: train it again")
    content, parity = convert(snapshot.path, load_game(model.settings().game), "onnx", model.trust)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.unfinished-", dir=out.parent) as scratch:
        folder = Path(scratch) / "hub"
        shutil.copytree(snapshot.path, folder)
        atomic.write_file(folder / "model.onnx", content)
        (folder / "settings.json").write_text(dump_settings(model.settings()))
        for source, name in (("curve.png", "curve.png"), ("README.md", "MODEL.md")):
            if (model.path / source).is_file():
                shutil.copyfile(model.path / source, folder / name)
        (folder / "README.md").write_text(_card(model, snapshot, folder, out.name))
        folder.replace(out)
    return parity


def _card(model: ModelFolder, snapshot: Snapshot, folder: Path, name: str) -> str:
    game = model.settings().game
    metadata: dict[str, Any] = {
        "library_name": "seraphim",
        "license": "apache-2.0" if model.path.is_relative_to(SHIPPED) else "unknown",
        "pipeline_tag": _TASK,
        "tags": [_TASK, "alphazero", "board-games", "self-play", game, "keras", "onnx"],
    }
    if results := list(_results(game, snapshot.metrics())):
        metadata["model-index"] = [{"name": model.name, "results": results}]
    # YAML includes JSON, if what goes on below a key is indented.
    lines = [f"{key}: {json.dumps(value, indent=2)}".replace("\n", "\n  ") for key, value in metadata.items()]
    facts = {"game": game, "snapshot": snapshot.name, "step": snapshot.step, "folder": name}
    card = _CARD.format(metadata="\n".join(lines), name=model.name, **facts)
    if (folder / "curve.png").is_file():
        card += "\n![mistakes over the minutes of learning](curve.png)\n"
    if (folder / "MODEL.md").is_file():
        card += "\nHow it was made and measured: [MODEL.md](MODEL.md).\n"
    return card


def _results(game: str, metrics: Mapping[str, float]) -> Iterator[dict[str, Any]]:
    # What a model-index has of each set of solved positions: the shares of moves that lose the result, in percent.
    for positions in (name.removesuffix("/positions") for name in metrics if name.endswith("/positions")):
        count = metrics[f"{positions}/positions"]
        shares = {kind: round(100 * metrics.get(f"{positions}/{kind}", -1) / max(1, count), 2) for kind in _KINDS}
        if count >= 1 and min(shares.values()) >= 0:
            yield {
                "task": {"type": _TASK, "name": game},
                "dataset": {"type": f"{game}/{positions}", "name": f"{positions}, {count:,.0f} solved positions"},
                "metrics": [{"type": kind, "value": share, "name": _KINDS[kind]} for kind, share in shares.items()],
            }
