"""A folder for any static host: the explorer with the engine in the browser, without a server.

    index.html …          the pages of seraphim/web
    config.js             the models
    engine/               the search in JavaScript; engine/litert/ runs the network, in WebAssembly
    games/GAME.js         the rules
    models/NAME.tflite    the networks
    service-worker.js     keeps the files that offline.js lists, for use without a connection
    export.json           marks the folder as an export, and lists its models

All addresses in it are relative, so it works below any path.
"""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from seraphim.errors import FileError, GameError, NotInstalledError
from seraphim.export.formats import Parity, convert
from seraphim.game import load_features, load_game
from seraphim.settings import Settings, read_json_if_valid
from seraphim.storage.models import Snapshot
from seraphim.storage.shipped import SHIPPED

WEB = Path(__file__).parents[1] / "web"

CDN = "https://cdn.jsdelivr.net/npm"
"""Where pages get the library if npm cannot install it for the export."""

_MARK = "export.json"
_MAKER = "Seraphim's export"
_LIBRARY = "@litertjs/core"
_HELPER = "@litertjs/wasm-utils"  # which the library imports
_BUILDS = {"relaxed": "litert_wasm_internal", "compatible": "litert_wasm_compat_internal"}
_NPM_SECONDS = 300
_NOTICE = """LiteRT.js {version}, copyright Google LLC, under the Apache License, version 2.0:
https://www.apache.org/licenses/LICENSE-2.0
In index.js only the path of an imported helper was changed.
"""


@dataclass(frozen=True)
class Chosen:
    """A model to export."""

    name: str
    snapshot: Snapshot
    settings: Settings
    """Of the model; pages search with its search options."""


@dataclass(frozen=True)
class Library:
    """LiteRT.js, which runs networks in the browser."""

    version: str
    """By package.json."""
    folder: Path | None
    """Where npm installed it; None if pages must load it from the CDN."""
    reason: str = ""
    """Why they must."""


def find_library(project: Path = SHIPPED) -> Library:
    """Return the library in `node_modules`, where npm installs it if it is missing.

    Args:
        project: has package.json, and in a clone package-lock.json, without which nothing is installed.

    Raises:
        NotInstalledError: there is no package.json, which says what to install.
    """
    folder, package = project / "node_modules", project / "package.json"
    version = _read_json(package).get("dependencies", {}).get(_LIBRARY)
    if version is None:
        raise NotInstalledError(f"{package} does not name {_LIBRARY}: export in a clone of Seraphim")
    installed, reason = folder / _LIBRARY / "package.json", ""
    if _read_json(installed).get("version") != version:
        reason = _install(project)
        if not reason and _read_json(installed).get("version") != version:
            reason = f"npm did not install {_LIBRARY} {version}"
    return Library(version, None if reason else folder, reason)


def _read_json(file: Path) -> dict[str, Any]:
    return read_json_if_valid(file) or {}


def _install(project: Path) -> str:
    # Returns the error, or an empty string.
    npm = shutil.which("npm")
    if npm is None:
        return "npm is not installed"
    if not (project / "package-lock.json").is_file():
        return f"{_LIBRARY} is installed in clones of Seraphim only"
    command = [npm, "ci", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund"]
    try:
        done = subprocess.run(command, cwd=project, check=False, capture_output=True, text=True, timeout=_NPM_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"npm failed: {error}"
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    return "" if done.returncode == 0 else f"npm failed: {errors[0] if errors else done.returncode}"


def write_site(models: Sequence[Chosen], out: Path, library: Library, trust: bool = False) -> list[Parity]:
    """Write the folder completely or not at all; return the differences of each model's file from its SavedModel.

    An older export is replaced. With `trust`, TensorFlow may load a SavedModel that has no Keras archive.

    Raises:
        FileError: `out` exists and is not an export.
        GameError: a game has no rules for the browser.
        ModelError: see `seraphim.export.formats.convert`.
    """
    out = out.resolve()
    _check_replaceable(out)
    rules = {model.settings.game: _rules(model.settings.game) for model in models}
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.unfinished-", dir=out.parent) as scratch:
        folder = Path(scratch) / "site"
        _copy_pages(folder)
        for name in ("games", "models"):
            (folder / name).mkdir()
        for game, file in rules.items():
            shutil.copyfile(file, folder / _rules_address(game))
        parities = [_write_model(model, folder / "models", trust) for model in models]
        runtime = _copy_library(library, folder)
        _write_config(models, runtime, folder / "config.js")
        _write_offline(folder, runtime)
        _write_mark(models, parities, library, folder / _MARK)
        if out.exists():
            out.rename(Path(scratch) / "replaced")
        folder.rename(out)
    return parities


def _check_replaceable(out: Path) -> None:
    is_free = not out.exists() or (out.is_dir() and not any(out.iterdir()))
    if not is_free and _read_json(out / _MARK).get("made_by") != _MAKER:
        raise FileError(f"{out} exists and is not an export: name another folder with --out")


# ---------------------------------------------------------------- content


def _rules(game: str) -> Path:
    file = load_features(game).rules_js
    if file is None or not file.is_file():
        raise GameError(
            f"{game} cannot be played in a browser without {file}, its rules in JavaScript: "
            "write them as in tictactoe/rules.js, or serve the model with seraphim serve"
        )
    return file


def _rules_address(game: str) -> str:
    # The games of a family, such as hex:5, share the file.
    return f"games/{game.partition(':')[0]}.js"


def _copy_pages(folder: Path) -> None:
    # All files but those of the history page, which needs a server.
    def history_page(directory: str, names: list[str]) -> list[str]:
        return [name for name in names if Path(directory) == WEB and name.startswith("history")]

    shutil.copytree(WEB, folder, ignore=history_page)
    # A service worker controls the pages in its own folder and below.
    (folder / "engine/service-worker.js").rename(folder / "service-worker.js")


def _write_model(model: Chosen, folder: Path, trust: bool) -> Parity:
    content, parity = convert(model.snapshot.path, load_game(model.settings.game), "tflite", trust)
    (folder / f"{model.name}.tflite").write_bytes(content)
    return parity


def _copy_library(library: Library, folder: Path) -> dict[str, str]:
    # Returns what the engine in the page needs to know about the library.
    title = f"LiteRT.js {library.version}"
    if library.folder is None:
        there = f"{CDN}/{_LIBRARY}@{library.version}"
        return {"title": title, "library": f"{there}/+esm", "wasm": f"{there}/wasm/"}
    here = folder / "engine/litert"
    here.mkdir()
    source = (library.folder / _LIBRARY / "dist/index.js").read_text()
    # Browsers cannot import packages by name.
    (here / "index.js").write_text(source.replace(f'"{_HELPER}"', '"./helper.js"'))
    shutil.copyfile(library.folder / _HELPER / "dist/bundle.js", here / "helper.js")
    for build in _BUILDS.values():
        for ending in ("js", "wasm"):
            shutil.copyfile(library.folder / _LIBRARY / f"wasm/{build}.{ending}", here / f"{build}.{ending}")
    (here / "NOTICE.txt").write_text(_NOTICE.format(version=library.version))
    return {"title": title, "library": "engine/litert/index.js", "wasm": "engine/litert/"}


def _write_config(models: Sequence[Chosen], runtime: dict[str, str], file: Path) -> None:
    config = {"engine": "worker", "models": [_to_config(model, runtime) for model in models]}
    file.write_text(
        f"globalThis.SERAPHIM = {json.dumps(config, indent=2)};\n"
        "navigator.serviceWorker?.register('service-worker.js').catch(console.warn);\n"
    )


def _to_config(model: Chosen, runtime: dict[str, str]) -> dict[str, Any]:
    return {
        "name": model.name,
        "game": model.settings.game,
        "champion": model.snapshot.name,
        "snapshots": [model.snapshot.name],
        "model": f"models/{model.name}.tflite",
        "rules": _rules_address(model.settings.game),
        "runtime": runtime,
        "options": asdict(model.settings.search),
    }


def _write_offline(folder: Path, runtime: dict[str, str]) -> None:
    # A browser keeps only the build of the library that it runs.
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    version = sha256(b"".join(sha256(path.read_bytes()).digest() for path in files)).hexdigest()[:16]
    builds = {
        name: [f"{runtime['wasm']}{build}.{ending}" for ending in ("js", "wasm")] for name, build in _BUILDS.items()
    }
    names = {str(path.relative_to(folder)) for path in files} - {"index.html", "service-worker.js"}
    always = ["./", *sorted(names - {file for build in builds.values() for file in build})]
    if runtime["library"] not in always:
        always.append(runtime["library"])
    listed = {"version": version, "always": always, **builds}
    (folder / "offline.js").write_text(f"self.SERAPHIM_OFFLINE = {json.dumps(listed, indent=2)};\n")


def _write_mark(models: Sequence[Chosen], parities: Sequence[Parity], library: Library, file: Path) -> None:
    made = [
        {"model": model.name, "snapshot": model.snapshot.name, "greatest_difference": parity._asdict()}
        for model, parity in zip(models, parities, strict=True)
    ]
    file.write_text(json.dumps({"made_by": _MAKER, "models": made, "litert": library.version}, indent=2) + "\n")
