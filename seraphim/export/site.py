"""A folder for any static host: the explorer with the engine in the browser, and no server behind it.

    index.html …          the pages of seraphim/web
    config.js             which models there are
    engine/               the search in JavaScript; engine/litert/ runs the network, in WebAssembly
    games/GAME.js         the rules
    models/NAME.tflite    the networks
    service-worker.js     keeps the files that offline.js lists, for who has no connection
    export.json           that the folder was made here, and of what

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

from seraphim.errors import GameError, SettingsError
from seraphim.export.formats import Parity, convert
from seraphim.game import load_game, load_game_module
from seraphim.settings import Settings
from seraphim.storage.models import Snapshot

WEB = Path(__file__).parents[1] / "web"
PROJECT = WEB.parents[1]
"""Where package.json is, and npm puts the library."""

RULES = "rules.js"
"""What a game offers, beside its module, to be played in the browser."""

CDN = "https://cdn.jsdelivr.net/npm"
"""Where pages get the library if npm cannot get it for the export."""

_MARK = "export.json"
_MAKER = "Seraphim's export"
_LIBRARY = "@litertjs/core"
_HELPER = "@litertjs/wasm-utils"  # which the library imports
_BUILDS = {"relaxed": "litert_wasm_internal", "compatible": "litert_wasm_compat_internal"}
_NPM_SECONDS = 300
_NOTICE = """LiteRT.js {version}, copyright Google LLC, under the Apache License, version 2.0:
https://www.apache.org/licenses/LICENSE-2.0
In index.js the path of the helper that it imports was changed, and nothing else.
"""


@dataclass(frozen=True)
class Chosen:
    """A model that goes into a folder."""

    name: str
    """Of the model."""
    snapshot: Snapshot
    """Which of its snapshots."""
    settings: Settings
    """Of the model; pages search as they say."""


@dataclass(frozen=True)
class Library:
    """LiteRT.js, which runs networks in the browser."""

    version: str
    """Which one, by package.json."""
    folder: Path | None
    """What npm installed; None if pages have to get it from the CDN."""
    reason: str = ""
    """Why they have to."""


def find_library(project: Path = PROJECT) -> Library:
    """Return the library in `node_modules`; npm installs it if it is not there.

    Raises:
        SettingsError: there is no package.json, which says what to install.
    """
    try:
        version = json.loads((project / "package.json").read_text())["dependencies"][_LIBRARY]
    except (OSError, ValueError, KeyError) as error:
        raise SettingsError(
            f"{project / 'package.json'} does not name {_LIBRARY}: export in a clone of Seraphim"
        ) from error
    folder = project / "node_modules"
    reason = "" if _is_installed(folder, version) else _install(project)
    if not reason and not _is_installed(folder, version):
        reason = f"npm did not install {_LIBRARY} {version}"
    return Library(version, None if reason else folder, reason)


def _is_installed(folder: Path, version: str) -> bool:
    try:
        return bool(json.loads((folder / _LIBRARY / "package.json").read_text())["version"] == version)
    except (OSError, ValueError, KeyError):
        return False


def _install(project: Path) -> str:
    # Returns what went wrong, if something did.
    npm = shutil.which("npm")
    if npm is None:
        return "npm is not installed"
    command = [npm, "ci", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund"]
    try:
        done = subprocess.run(command, cwd=project, check=False, capture_output=True, text=True, timeout=_NPM_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"npm failed: {error}"
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    return "" if done.returncode == 0 else f"npm failed: {errors[0] if errors else done.returncode}"


def write_site(models: Sequence[Chosen], out: Path, library: Library, trust: bool = False) -> list[Parity]:
    """Write the folder, which appears whole; one that was made here before is replaced.

    Args:
        models: what goes into it.
        out: the folder.
        library: what runs the networks.
        trust: whether a SavedModel without a Keras archive is loaded by TensorFlow as it is.

    Returns:
        How far each model's file is from its SavedModel.

    Raises:
        SettingsError: there is something else in `out`.
        GameError: a game has no rules for the browser.
        ModelError: see `seraphim.export.formats.convert`.
    """
    out = out.resolve()
    _check_replaceable(out)
    rules = {model.settings.game: _rules(model.settings.game) for model in models}
    out.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{out.name}.unfinished-", dir=out.parent))
    try:
        _copy_pages(folder)
        folder.chmod(0o755)
        _copy_rules(rules, folder / "games")
        parities = [_write_model(model, folder / "models", trust) for model in models]
        runtime = _copy_library(library, folder)
        _write_config(models, runtime, folder / "config.js")
        _write_offline(folder, runtime)
        _write_mark(models, parities, library, folder / _MARK)
        _put_into_place(folder, out)
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # renamed by now, if all went well
    return parities


def _check_replaceable(out: Path) -> None:
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    try:
        made_here = json.loads((out / _MARK).read_text())["made_by"] == _MAKER
    except (OSError, ValueError, KeyError, TypeError):
        made_here = False
    if not made_here:
        raise SettingsError(f"{out} exists and was not made by the export: name another folder with --out")


def _put_into_place(folder: Path, out: Path) -> None:
    if not out.exists():
        folder.rename(out)
        return
    replaced = Path(tempfile.mkdtemp(prefix=f".{out.name}.replaced-", dir=out.parent))
    out.rename(replaced / out.name)
    folder.rename(out)
    shutil.rmtree(replaced)


# ---------------------------------------------------------------- what is in it


def _rules(game: str) -> Path:
    file = Path(str(load_game_module(game).__file__)).with_name(RULES)
    if not file.is_file():
        raise GameError(
            f"{game} cannot be played in a browser without {file}, its rules in JavaScript: "
            "write them as in tictactoe/rules.js, or serve the model with bin/serve.py"
        )
    return file


def _copy_pages(folder: Path) -> None:
    # All but the history page, whose data only a server has.
    shutil.copytree(WEB, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("history", "history.html"))
    # A service worker looks after what is beside it and below.
    (folder / "engine/service-worker.js").rename(folder / "service-worker.js")


def _copy_rules(rules: dict[str, Path], folder: Path) -> None:
    folder.mkdir()
    for game, file in rules.items():
        shutil.copyfile(file, folder / f"{game}.js")


def _write_model(model: Chosen, folder: Path, trust: bool) -> Parity:
    folder.mkdir(exist_ok=True)
    content, parity = convert(model.snapshot.path, load_game(model.settings.game), "tflite", trust)
    (folder / f"{model.name}.tflite").write_bytes(content)
    return parity


def _copy_library(library: Library, folder: Path) -> dict[str, str]:
    # Returns what the engine in the page needs to know of it.
    title = f"LiteRT.js {library.version}"
    if library.folder is None:
        there = f"{CDN}/{_LIBRARY}@{library.version}"
        return {"title": title, "library": f"{there}/+esm", "wasm": f"{there}/wasm/"}
    here = folder / "engine/litert"
    here.mkdir()
    source = (library.folder / _LIBRARY / "dist/index.js").read_text()
    # Browsers do not look up packages by their names.
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
        "rules": f"games/{model.settings.game}.js",
        "runtime": runtime,
        "options": asdict(model.settings.search),
    }


def _write_offline(folder: Path, runtime: dict[str, str]) -> None:
    # A browser runs one of the two builds of the library, and keeps only that one.
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
