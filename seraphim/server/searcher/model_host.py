"""The models that are served: found in `models/`, loaded when a client opens them, unloaded when others need room.

Where there is none, those that come with Seraphim are served.

Models without sessions are unloaded first. One place is for champions alone; a champion also replaces another snapshot
that is in use, whose clients open it again with their next search.

Knows models and searchers; knows nothing of connections.
"""

import threading
from collections import OrderedDict
from collections.abc import Collection
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from seraphim.errors import CapacityError, SeraphimError, SettingsError
from seraphim.game import Game, load_game, load_game_module
from seraphim.inference import SavedNetwork
from seraphim.proof.knowledge import ExactResults
from seraphim.search.analysis import LEAVES
from seraphim.server.searcher import messages
from seraphim.server.searcher.limits import SearchLimits
from seraphim.server.searcher.messages import Message
from seraphim.server.searcher.searcher import Searcher
from seraphim.server.searcher.shared_turns import share
from seraphim.storage.models import ModelFolder
from seraphim.storage.shipped import SHIPPED, find_model

CARD = "README.md"
"""The description in a model's folder."""


@dataclass(frozen=True)
class LoadedModel:
    """A snapshot of a model, ready to search."""

    model: str
    snapshot: str
    module: ModuleType
    """Of its game."""
    game: Game
    description: str
    """What runs the network."""
    searcher: Searcher
    info: Message
    """What a page needs to know about the game."""
    knowledge: ExactResults
    """Exact values of moves, from the proofs in the model's folder and the game's solver."""


@dataclass(frozen=True)
class ModelInfo:
    """A model that can be opened."""

    name: str
    game: str
    champion: str
    snapshots: list[str]
    """The newest first."""
    card: bool
    """Whether it has a description."""


class ModelHost:
    """Loads models: each snapshot once, for all clients that open it."""

    def __init__(
        self,
        root: Path,
        first: str | None = None,
        limits: SearchLimits | None = None,
        max_loaded: int = 4,
        trust: bool = False,
    ) -> None:
        """Check that there is a model, below `root` or with Seraphim; nothing is loaded yet.

        The model `first` is listed first; `limits` hold for each searcher; `max_loaded` snapshots are loaded at a time;
        `trust` allows links to models elsewhere.

        Raises:
            SettingsError: the name is not valid, or there is no model.
            ModelError: the first model does not exist, or has no champion.
        """
        self.root = root
        self._trust = trust
        self._first = first
        self._limits = limits or SearchLimits()
        self._max_loaded = max_loaded
        self._max_others = max(1, max_loaded - 1)  # that are not champions
        self._loaded: OrderedDict[tuple[str, str], Future[LoadedModel]] = OrderedDict()
        self._lock = threading.Lock()
        if first is not None:
            self._folder(first).champion()
        elif not self.models():
            raise SettingsError(f"there is no model in {root / 'models'}: make one with seraphim learn, then serve it")

    def models(self) -> list[ModelInfo]:
        """Return the models that have a champion, by name, the first one first."""
        names = {path.name for path in (self.root / "models").glob("*")} | ({self._first} if self._first else set())
        own = self._openable(names)
        found = own or self._openable({path.name for path in (SHIPPED / "models").glob("*")})
        return sorted(found, key=lambda model: model.name != self._first)

    def _openable(self, names: Collection[str]) -> list[ModelInfo]:
        found = []
        for name in sorted(names):
            try:
                folder = self._folder(name)
                snapshots = [snapshot.name for snapshot in reversed(folder.snapshots())]
                card, game = (folder.path / CARD).is_file(), folder.settings().game
                found.append(ModelInfo(folder.name, game, folder.champion().name, snapshots, card))
            except (SeraphimError, OSError):
                continue  # a model that cannot be opened is not listed
        return found

    def folder(self, model: str) -> ModelFolder:
        """Return the folder of a model that exists.

        Raises:
            SettingsError: the name is not valid.
            ModelError: there is no such model.
        """
        folder = self._folder(model)
        folder.settings()
        return folder

    def load(self, model: str, snapshot: str | None = None) -> Future[LoadedModel]:
        """Start to load a snapshot, by default the champion, unless it is loaded already.

        Raises:
            SettingsError: the name is not valid.
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
            future: Future[LoadedModel] = Future()
            future.set_running_or_notify_cancel()  # no client can cancel it any more
            self._loaded[key] = future
        threading.Thread(target=self._load, args=(folder, chosen.name, future), name=f"loads {model}").start()
        return future

    @property
    def loaded(self) -> list[LoadedModel]:
        """Return the models that are loaded."""
        with self._lock:
            futures = list(self._loaded.values())
        return [future.result() for future in futures if _is_ready(future)]

    def close(self) -> None:
        """End all searchers."""
        for loaded in self.loaded:
            loaded.searcher.close()

    def _folder(self, model: str) -> ModelFolder:
        return find_model(self.root, model, self._trust)

    def _load(self, folder: ModelFolder, snapshot: str, future: Future[LoadedModel]) -> None:
        key = (folder.name, snapshot)
        try:
            settings = folder.settings()
            module, game = load_game_module(settings.game), load_game(settings.game)
            inference = SavedNetwork(folder.path / snapshot, trust=self._trust).load(game, LEAVES)
            exact = ExactResults(module, game, sorted(folder.path.glob("*.proof")))
            info = messages.to_game_info(game, solved=exact.available, by_turns=settings.search.by_turns)
            searcher = Searcher(share(game, inference, settings.search, self._limits))
            future.set_result(LoadedModel(*key, module, game, inference.description, searcher, info, exact))
            with self._lock:
                if self._loaded.get(key) is not future:  # a champion has taken its place
                    searcher.retire()
        except Exception as error:  # noqa: BLE001  # reported to all clients that wait for it; the next one tries again
            with self._lock:
                if self._loaded.get(key) is future:
                    del self._loaded[key]
            future.set_exception(error)

    def _make_room(self, wanted: tuple[str, str]) -> None:
        # Unloads models without sessions, and for a champion also other snapshots; the least recently opened first.
        is_champion = self._is_champion(wanted)
        others = [key for key in self._loaded if not self._is_champion(key)]

        def too_many_others() -> bool:
            return not is_champion and sum(key in self._loaded for key in others) >= self._max_others

        def is_full() -> bool:
            return len(self._loaded) >= self._max_loaded or too_many_others()

        for key in list(self._loaded) if is_champion else sorted(self._loaded, key=lambda key: key not in others):
            future = self._loaded[key]
            helps = is_full() and (key in others or not too_many_others())
            if helps and _is_ready(future) and future.result().searcher.close_if_unused():
                del self._loaded[key]
        for key in others if is_champion else ():
            if is_full() and key in self._loaded:
                future = self._loaded.pop(key)
                if _is_ready(future):  # otherwise its searcher is retired as soon as it is loaded
                    future.result().searcher.retire()
        if is_full():
            raise CapacityError(f"server at capacity ({len(self._loaded)} models in use): try again later")

    def _is_champion(self, key: tuple[str, str]) -> bool:
        model, snapshot = key
        try:
            return self._folder(model).champion().name == snapshot
        except SeraphimError:  # the model is gone
            return False


def _is_ready(future: Future[LoadedModel]) -> bool:
    return future.done() and not future.exception()


def _has_ended(future: Future[LoadedModel]) -> bool:
    return _is_ready(future) and not future.result().searcher.is_open
