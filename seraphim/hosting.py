"""The models that are served: found below `models/`, loaded when somebody opens them, put away when others need room.

Knows models and engines; knows nothing of connections.
"""

import threading
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from seraphim.analysis import LEAVES
from seraphim.engine import Engine, Seat
from seraphim.errors import ModelError, SeraphimError, SettingsError
from seraphim.game import Game, load_game, load_game_module
from seraphim.inference import load_inference
from seraphim.store import ModelFolder
from seraphim.thinking import SharedSearch
from seraphim.thoughts import ThinkingLimits

CARD = "README.md"
"""What a model's folder says of the model."""


@dataclass(frozen=True)
class Hosted:
    """A snapshot of a model, ready to think."""

    model: str
    snapshot: str
    module: ModuleType
    """Of its game."""
    game: Game
    description: str
    """What runs the network."""
    engine: Engine


@dataclass(frozen=True)
class Listed:
    """A model that can be opened."""

    name: str
    game: str
    champion: str
    snapshots: list[str]
    """The newest first."""
    card: bool
    """Whether it has a description."""


class Host:
    """Loads models, each snapshot once for all who open it."""

    def __init__(
        self,
        root: Path,
        first: str | None = None,
        limits: ThinkingLimits | None = None,
        most_loaded: int = 4,
        trust: bool = False,
    ) -> None:
        """Prepare; nothing is loaded yet.

        Args:
            root: the folder that holds `models/` and `gamedata/`.
            first: name of the model that is listed first.
            limits: of each engine.
            most_loaded: snapshots that are loaded at a time.
            trust: whether models that lie outside `models/` are offered.

        Raises:
            SettingsError: the name is none of a model, or there is no model.
            ModelError: the first model is not there, or has no champion.
        """
        self.root = root
        self._trust = trust
        self._first = first
        self._limits = limits or ThinkingLimits()
        self._most_loaded = most_loaded
        self._loaded: OrderedDict[tuple[str, str], Future[Hosted]] = OrderedDict()
        self._lock = threading.Lock()
        if first is not None:
            self._folder(first).champion()
        elif not self.models():
            raise SettingsError(f"there is no model in {root / 'models'}: make one with bin/learn.py, then serve it")

    def models(self) -> list[Listed]:
        """Return the models that have a champion, by name, the first one first."""
        found = []
        for path in sorted((self.root / "models").glob("*")):
            try:
                folder = self._folder(path.name)
                snapshots = [snapshot.name for snapshot in reversed(folder.snapshots())]
                card = (folder.path / CARD).is_file()
                found.append(Listed(folder.name, folder.settings().game, folder.champion().name, snapshots, card))
            except (SeraphimError, OSError):
                continue  # what cannot be opened is not offered
        return sorted(found, key=lambda model: model.name != self._first)

    def folder(self, model: str) -> ModelFolder:
        """Return the folder of a model that is there.

        Raises:
            SettingsError: this is no name of a model.
            ModelError: there is no such model.
        """
        folder = self._folder(model)
        folder.settings()
        return folder

    def load(self, model: str, snapshot: str | None = None) -> Future[Hosted]:
        """Begin to load a snapshot, by default the champion, unless that was done already.

        Raises:
            SettingsError: this is no name of a model.
            ModelError: there is no such model or snapshot, or too many others are in use.
        """
        folder = self._folder(model)
        chosen = folder.champion() if snapshot is None else folder.snapshot(snapshot)
        key = (model, chosen.name)
        with self._lock:
            if key in self._loaded:
                self._loaded.move_to_end(key)
                return self._loaded[key]
            self._make_room()
            future: Future[Hosted] = Future()
            future.set_running_or_notify_cancel()  # from now on nobody can cancel it
            self._loaded[key] = future
        threading.Thread(target=self._load, args=(folder, chosen.name, future), name=f"loads {model}").start()
        return future

    def sit(self, hosted: Hosted) -> Seat | None:
        """Return a place at the engine of what was loaded; None if that was put away meanwhile."""
        try:
            return hosted.engine.sit()
        except ModelError:
            return None

    @property
    def engines(self) -> list[Engine]:
        """Return the engines that run."""
        with self._lock:
            futures = list(self._loaded.values())
        return [future.result().engine for future in futures if future.done() and not future.exception()]

    def close(self) -> None:
        """End all engines."""
        for engine in self.engines:
            engine.close()

    def _folder(self, model: str) -> ModelFolder:
        return ModelFolder(self.root, model, self._trust)

    def _load(self, folder: ModelFolder, snapshot: str, future: Future[Hosted]) -> None:
        try:
            settings = folder.settings()
            module, game = load_game_module(settings.game), load_game(settings.game)
            path = folder.path / snapshot
            inference = load_inference(path, game, batch=LEAVES, trust=self._trust)
            engine = Engine(SharedSearch(game, inference, settings.search, self._limits))
            future.set_result(Hosted(folder.name, snapshot, module, game, inference.description, engine))
        except Exception as error:  # noqa: BLE001  # told to all who wait for it, and tried again by the next
            with self._lock:
                self._loaded.pop((folder.name, snapshot), None)
            future.set_exception(error)

    def _make_room(self) -> None:
        # Puts away what nobody has a place at, what was opened the longest ago first.
        for key, future in list(self._loaded.items()):
            if len(self._loaded) < self._most_loaded:
                return
            if future.done() and not future.exception() and future.result().engine.close_if_empty():
                del self._loaded[key]
        if len(self._loaded) >= self._most_loaded:
            raise ModelError(f"{self._most_loaded} models are in use, which is the most: try again later")
