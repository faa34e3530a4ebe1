"""Models and game data on disk: names, snapshots, the champion, atomic publication, retention.

    models/NAME/settings.json               every option of the model
    models/NAME/00001000-20250131T120000Z   a snapshot: step and time (UTC)
      snapshot.json                         its manifest
      figures.json                          figures of what was found out about it later
    models/NAME/champion                    a link to one of the snapshots
    models/NAME/.next-champion              the same, while the champion is replaced
    models/NAME/.unfinished-SNAPSHOT        a snapshot that is being written or removed
    models/NAME/logs                        TensorBoard's: a folder for each program
    gamedata/NAME                           the games that the model played against itself

A program may be killed at any moment (`seraphim.storage.atomic`): what has the name of a snapshot is whole, and what a
killed program left behind is removed by the next that writes. Writers of one model wait for each other; of two that
would train it for hours, the second is refused. Knows files, no network.
"""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from seraphim.errors import ModelError
from seraphim.settings import Settings, dump_settings, load_settings
from seraphim.storage import atomic
from seraphim.storage.atomic import Pointer
from seraphim.storage.locks import HeldError, hold
from seraphim.storage.snapshots import MAX_NAME, Snapshot, annotate, check_inside, check_name, to_snapshot

__all__ = ["MAX_NAME", "ModelFolder", "Snapshot", "check_name"]

_UNFINISHED = ".unfinished-"  # prefix of all that is not whole yet


class ModelFolder:
    """The folder of one model below `root`; nothing need exist yet."""

    def __init__(self, root: Path, name: str, trust: bool = False) -> None:
        """Prepare.

        Args:
            root: the folder that holds `models/` and `gamedata/`.
            name: of the model.
            trust: whether what lies outside `models/` is loaded as well; see docs/security.md.

        Raises:
            SettingsError: the name is not valid.
        """
        self.name = check_name(name)
        self._trust = trust
        self.path = root / "models" / name
        self.game_data = root / "gamedata" / name
        self._pointer = Pointer(self._champion, self._is_published)
        self._locks = 0
        self._checked = False  # whether the file system has what it takes

    def create(self, settings: Settings) -> None:
        """Make a new model, without a snapshot yet; what an unfinished start of it left is replaced.

        Raises:
            ModelError: the model exists.
        """
        with self.lock():
            self.check_new()
            for unfinished in self.folders():
                self._remove(unfinished.path)
            atomic.replace_file(self._settings, dump_settings(settings).encode())

    def is_new(self) -> bool:
        """Return whether there is no such model yet: none that has a champion or was ever trained."""
        return self._pointer.read() is None and all(each.step == 0 for each in self.folders())

    def check_new(self) -> None:
        """Raise a ModelError if the model exists."""
        if not self.is_new():
            raise ModelError(
                f"model {self.name!r} exists: leave --init out to train it on, or choose another name, "
                f"or remove {self.path}"
            )

    def settings(self, game: str | None = None) -> Settings:
        """Return the model's settings.

        Args:
            game: package or module of the game that the model must be for; any, if None.

        Raises:
            ModelError: there is no such model, or it is for another game.
            SettingsError: the file is not valid.
        """
        if not self._settings.is_file():
            raise ModelError(self._unknown())
        self._check_trust(self.path)
        settings = load_settings(self._settings)
        if game is not None and settings.game != game:
            raise ModelError(
                f"model {self.name!r} plays {settings.game}, not {game}: use {settings.game}'s train.py, "
                "or choose another name"
            )
        return settings

    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots, oldest first: by step, then by name, so that a clock put back does no harm."""
        return [each for each in self.folders() if atomic.fault(each.path) is None]

    def folders(self) -> list[Snapshot]:
        """Return the snapshots, and what is damaged but has the name of one, in the same order."""
        if not self.path.is_dir():
            return []
        found = [to_snapshot(entry) for entry in self.path.iterdir() if not entry.is_symlink() and entry.is_dir()]
        return sorted((each for each in found if each is not None), key=lambda each: (each.step, each.name))

    def unfinished(self) -> list[str]:
        """Return the names of snapshots that are being written or removed, or that a killed program has left so."""
        return sorted(path.name.removeprefix(_UNFINISHED) for path in self.path.glob(f"{_UNFINISHED}*"))

    def snapshot(self, name: str) -> Snapshot:
        """Return the snapshot of that name.

        Raises:
            ModelError: there is none.
        """
        self._check_trust(self.path)
        found = {snapshot.name: snapshot for snapshot in self.snapshots()}
        if name not in found:
            raise ModelError(f"model {self.name!r} has no snapshot {name!r}: expected one of {', '.join(found)}")
        return found[name]

    def choose(self, text: str | None) -> Snapshot:
        """Return what a person asks for: the champion, a snapshot by its name, or one anywhere by its path.

        Args:
            text: a name; a path, which has a `/`; or None for the champion.

        Raises:
            ModelError: there is none, or it lies outside `models/` and is not trusted.
        """
        if text is None:
            return self.champion()
        return self.elsewhere(Path(text)) if "/" in text else self.snapshot(text)

    def elsewhere(self, path: Path) -> Snapshot:
        """Return the snapshot in a folder that need not be one of this model.

        Raises:
            ModelError: it is damaged, or lies outside `models/` and is not trusted.
        """
        path = path.expanduser()
        self._check_trust(path)
        facts = atomic.read_manifest(path)
        if facts is None or atomic.fault(path):
            raise ModelError(f"{path} is no snapshot: {atomic.fault(path)}")
        step = facts.get("step")
        return Snapshot(path, step if isinstance(step, int) else 0)

    def champion(self) -> Snapshot:
        """Return the snapshot that generates games.

        Raises:
            ModelError: there is no such model, or it has no champion, or the champion is gone, or is not trusted.
        """
        name = self._pointer.read()
        if name is None:
            raise ModelError(self._unknown())
        snapshot = to_snapshot(self.path / name)
        if snapshot is None or not snapshot.path.is_dir():
            raise ModelError(
                f"the champion of model {self.name!r} is gone: {self._champion} leads nowhere; {self._cure()}"
            )
        self._check_trust(snapshot.path)
        if fault := atomic.fault(snapshot.path):
            raise ModelError(
                f"the champion of model {self.name!r} is damaged: {snapshot.path}: {fault}; {self._cure()}"
            )
        return snapshot

    def publish(
        self,
        step: int,
        write: Callable[[Path], None],
        metrics: Mapping[str, float] | None = None,
        promote: Callable[[], bool] = lambda: False,
    ) -> Snapshot:
        """Write a snapshot; it appears when all of it is on the disk.

        Args:
            step: batches that the model has been trained on.
            write: fills the folder that it is given, which gets its name afterwards.
            metrics: figures to be kept in the snapshot's `snapshot.json`; `write` may add some.
            promote: asked after `write`; whether the snapshot becomes the champion. If the program is killed between
                the two, it becomes that when the next program begins to write.

        Raises:
            ModelError: there is no such model, or `champion` is not a pointer.
        """
        if not self._settings.is_file():
            raise ModelError(self._unknown())
        with self.lock():
            snapshot = Snapshot(self._free(f"{step:08d}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"), step)
            unfinished = self._unfinished(snapshot.path)
            unfinished.mkdir()
            try:
                write(unfinished)
                created = datetime.now(UTC).isoformat(timespec="seconds")
                becomes_champion = promote()
                atomic.seal(unfinished, {"step": step, "created": created, "metrics": dict(metrics or {})})
                if becomes_champion:
                    self._check_champion()
                    self._pointer.announce(snapshot.name)
                atomic.move(unfinished, snapshot.path)
            except BaseException:
                shutil.rmtree(unfinished, ignore_errors=True)  # what stays is removed by the next that writes
                raise
            self._pointer.succeed()
            return snapshot

    def annotate(self, snapshot: Snapshot, metrics: Mapping[str, float]) -> None:
        """Add figures to those of a snapshot; if it is gone meanwhile, do nothing."""
        with self.lock(), contextlib.suppress(FileNotFoundError):
            annotate(snapshot, metrics)

    def promote(self, snapshot: Snapshot) -> None:
        """Make a snapshot the champion; whoever looks sees the old one or the new one.

        Raises:
            ModelError: the snapshot is gone or not whole, or `champion` is not a pointer.
        """
        with self.lock():
            if not snapshot.path.is_dir():
                raise ModelError(f"{snapshot.path} is gone: another program removed it; train again")
            if fault := atomic.fault(snapshot.path):
                raise ModelError(f"{snapshot.path} cannot become the champion: {fault}; train again")
            self._check_champion()
            self._pointer.announce(snapshot.name)
            self._pointer.succeed()

    def recover(self) -> None:
        """Finish what a program that was killed had begun: remove what is not whole, promote what it had to promote."""
        with self.lock():
            pass  # the rest is done by whoever has the lock

    def prune(self, keep: int) -> list[Snapshot]:
        """Remove all but the newest `keep` snapshots and the champion; return those removed."""
        with self.lock():
            champion = self._pointer.read()
            removed = [each for each in self.snapshots()[:-keep] if each.name != champion]
            for snapshot in removed:
                self._remove(snapshot.path)
            return removed

    @contextlib.contextmanager
    def learner(self) -> Iterator[None]:
        """Be the only one who trains this model while the block runs; games may be generated meanwhile.

        Raises:
            ModelError: another program trains it.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            with hold(self.path / ".learner"):
                yield
        except HeldError as error:
            raise ModelError(f"model {self.name!r} is being trained by {error}: wait for its end, or end it") from None

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other writers of this model waiting; a lock ends with its process. May be nested.

        Raises:
            SettingsError: the file system lacks what this takes.
        """
        if self._locks:
            yield
            return
        self.path.mkdir(parents=True, exist_ok=True)
        with atomic.locked(self.path / ".lock"):
            self._locks += 1
            try:
                if not self._checked:
                    atomic.check_links(self.path)
                    self._checked = True
                for leftover in self.path.glob(f"{_UNFINISHED}*"):
                    shutil.rmtree(leftover)
                self._pointer.succeed()
                yield
            finally:
                self._locks -= 1

    def _remove(self, folder: Path) -> None:
        unfinished = self._unfinished(folder)
        atomic.move(folder, unfinished)
        shutil.rmtree(unfinished)

    def _unfinished(self, folder: Path) -> Path:
        return folder.with_name(f"{_UNFINISHED}{folder.name}")

    def _check_champion(self) -> None:
        if self._champion.is_dir() and not self._champion.is_symlink():
            raise ModelError(f"{self._champion} must be a symbolic link to a snapshot: remove it, then run again")

    def _is_published(self, name: str) -> bool:
        return to_snapshot(Path(name)) is not None and atomic.fault(self.path / name) is None

    def _free(self, name: str) -> Path:
        path, count = self.path / name, 1
        while os.path.lexists(path):
            count += 1
            path = self.path / f"{name}-{count}"
        return path

    def _check_trust(self, path: Path) -> None:
        if not self._trust:
            check_inside(path, self.path.parent)

    def _cure(self) -> str:
        # Of a champion that cannot be used.
        others = self.snapshots()
        if not others:
            return f"try: rm -r {self.path}, then --init"
        return f"try: ln -sfn {others[-1].name} {self._champion}"

    def _unknown(self) -> str:
        what = "has no champion" if self._settings.is_file() else f"does not exist below {self.path.parent}"
        return f"model {self.name!r} {what}: start it with train.py {self.name} --init"

    @property
    def _settings(self) -> Path:
        return self.path / "settings.json"

    @property
    def _champion(self) -> Path:
        return self.path / "champion"
