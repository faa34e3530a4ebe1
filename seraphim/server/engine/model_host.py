"""The models that are served: found below `models/`, loaded when somebody opens them, put away when others need room.

What nobody has a place at is put away first. One place is for champions alone, which also take that of another snapshot
in use: its players find it put away, and open it again when they go on.

Knows models and engines; knows nothing of connections.
"""

import threading
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from seraphim.errors import CapacityError, ModelError, SeraphimError, SettingsError
from seraphim.game import Game, load_game, load_game_module, solved
from seraphim.inference import load_inference
from seraphim.search.analysis import LEAVES
from seraphim.server.engine import messages
from seraphim.server.engine.engine import Engine, Seat
from seraphim.server.engine.messages import Message
from seraphim.server.engine.shared_search import SharedSearch
from seraphim.server.engine.thoughts import ThinkingLimits
from seraphim.storage.models import ModelFolder

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
    info: Message
    """What a page needs to know of the game."""


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
        self._most_others = max(1, most_loaded - 1)  # that are no champions
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
            ModelError: there is no such model or snapshot.
            CapacityError: too many others are in use.
        """
        folder = self._folder(model)
        chosen = folder.champion() if snapshot is None else folder.snapshot(snapshot)
        key = (model, chosen.name)
        with self._lock:
            known = self._loaded.get(key)
            if known is not None and not _has_ended(known):
                self._loaded.move_to_end(key)
                return known
            self._loaded.pop(key, None)
            self._make_room(key)
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
    def loaded(self) -> list[Hosted]:
        """Return what is loaded."""
        with self._lock:
            futures = list(self._loaded.values())
        return [future.result() for future in futures if future.done() and not future.exception()]

    def close(self) -> None:
        """End all engines."""
        for hosted in self.loaded:
            hosted.engine.close()

    def _folder(self, model: str) -> ModelFolder:
        return ModelFolder(self.root, model, self._trust)

    def _load(self, folder: ModelFolder, snapshot: str, future: Future[Hosted]) -> None:
        try:
            settings = folder.settings()
            module, game = load_game_module(settings.game), load_game(settings.game)
            path = folder.path / snapshot
            inference = load_inference(path, game, batch=LEAVES, trust=self._trust)
            info = messages.to_game_info(game, solved=solved.is_solved(module))
            engine = Engine(SharedSearch(game, inference, settings.search, self._limits))
            future.set_result(Hosted(folder.name, snapshot, module, game, inference.description, engine, info))
            with self._lock:
                if self._loaded.get((folder.name, snapshot)) is not future:  # a champion took its place meanwhile
                    engine.retire()
        except Exception as error:  # noqa: BLE001  # told to all who wait for it, and tried again by the next
            with self._lock:
                if self._loaded.get((folder.name, snapshot)) is future:
                    del self._loaded[folder.name, snapshot]
            future.set_exception(error)

    def _make_room(self, wanted: tuple[str, str]) -> None:
        # Puts away what nobody has a place at; for a champion also other snapshots. What was opened the longest ago
        # goes first.
        is_champion = self._is_champion(wanted)
        others = [key for key in self._loaded if not self._is_champion(key)]

        def too_many_others() -> bool:
            return not is_champion and sum(key in self._loaded for key in others) >= self._most_others

        def is_full() -> bool:
            return len(self._loaded) >= self._most_loaded or too_many_others()

        for key in list(self._loaded) if is_champion else sorted(self._loaded, key=lambda key: key not in others):
            future = self._loaded[key]
            helps = is_full() and (key in others or not too_many_others())
            if helps and future.done() and not future.exception() and future.result().engine.close_if_empty():
                del self._loaded[key]
        for key in others if is_champion else ():
            if is_full() and key in self._loaded:
                future = self._loaded.pop(key)
                if future.done() and not future.exception():  # else, it ends as soon as it is loaded
                    future.result().engine.retire()
        if is_full():
            raise CapacityError(f"server at capacity ({len(self._loaded)} models are in use): try again later")

    def _is_champion(self, key: tuple[str, str]) -> bool:
        model, snapshot = key
        try:
            return self._folder(model).champion().name == snapshot
        except SeraphimError:  # the model is gone
            return False


def _has_ended(future: Future[Hosted]) -> bool:
    return future.done() and not future.exception() and not future.result().engine.is_open
