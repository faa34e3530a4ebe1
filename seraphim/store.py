"""Models and game data on disk: names, snapshots, the champion, atomic publication, retention.

    models/NAME/settings.json              every option of the model
    models/NAME/00001000-20250131T120000Z  a snapshot: step and time (UTC); `snapshot.json` in it has the figures
    models/NAME/champion                   a symbolic link to one of the snapshots
    models/NAME/logs                       TensorBoard's: a folder for each program
    gamedata/NAME                          the games that the model played against itself

A program may be killed at any moment: whatever bears one of these names is whole, and what a killed program left
behind is removed by the next that writes. Writers of one model wait for each other; of two that would train it for
hours, the second is refused. Knows files, no network.
"""

import contextlib
import fcntl
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from seraphim.errors import ModelError, SettingsError
from seraphim.holding import HeldError, hold
from seraphim.settings import Settings, dump_settings, load_settings

MAX_NAME = 64

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_SNAPSHOT = re.compile(r"([0-9]{8,})-[0-9]{8}T[0-9]{6}Z(-[0-9]+)?")
_UNFINISHED = ".unfinished-"  # prefix of all that is not whole yet


def check_name(name: str) -> str:
    """Return a model's name if it is one: letters, digits, `-`, `_` and `.`, not starting with `.` or `-`.

    Raises:
        SettingsError: it is not.
    """
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        raise SettingsError(
            f"{name!r} cannot be the name of a model: use up to {MAX_NAME} letters, digits, '-', '_' and '.', "
            "not starting with '.' or '-'"
        )
    return name


@dataclass(frozen=True)
class Snapshot:
    """One trained generation of a model on disk."""

    path: Path
    """Its folder."""
    step: int
    """Batches that the model had been trained on."""

    @property
    def name(self) -> str:
        """Return the folder's name."""
        return self.path.name

    def metrics(self) -> dict[str, float]:
        """Return the figures in its `snapshot.json`; none if that is missing or damaged."""
        try:
            return dict(json.loads((self.path / "snapshot.json").read_text())["metrics"])
        except (OSError, ValueError, KeyError, TypeError):
            return {}


class ModelFolder:
    """The folder of one model below `root`; nothing need exist yet."""

    def __init__(self, root: Path, name: str) -> None:
        """Raise a SettingsError if the name is not valid."""
        self.name = check_name(name)
        self.path = root / "models" / name
        self.game_data = root / "gamedata" / name
        self._locks = 0

    def create(self, settings: Settings) -> None:
        """Make a new model, without a snapshot yet; what an unfinished start of it left is replaced.

        Raises:
            ModelError: the model exists.
        """
        with self.lock():
            self.check_new()
            for unfinished in self.snapshots():
                _remove(unfinished.path)
            with self._unfinished() as folder:
                file = folder / self._settings.name
                file.write_text(dump_settings(settings))
                _sync(file)
                file.replace(self._settings)
                _sync(self.path)

    def is_new(self) -> bool:
        """Return whether there is no such model yet: none that has a champion or was ever trained."""
        return not os.path.lexists(self._champion) and all(snapshot.step == 0 for snapshot in self.snapshots())

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
        settings = load_settings(self._settings)
        if game is not None and settings.game != game:
            raise ModelError(
                f"model {self.name!r} plays {settings.game}, not {game}: use {settings.game}'s train.py, "
                "or choose another name"
            )
        return settings

    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots, oldest first: by step, then by name, so that a clock put back does no harm."""
        if not self.path.is_dir():
            return []
        found = [_to_snapshot(entry) for entry in self.path.iterdir() if not entry.is_symlink() and entry.is_dir()]
        return sorted((each for each in found if each is not None), key=lambda each: (each.step, each.name))

    def snapshot(self, name: str) -> Snapshot:
        """Return the snapshot of that name.

        Raises:
            ModelError: there is none.
        """
        found = {snapshot.name: snapshot for snapshot in self.snapshots()}
        if name not in found:
            raise ModelError(f"model {self.name!r} has no snapshot {name!r}: expected one of {', '.join(found)}")
        return found[name]

    def champion(self) -> Snapshot:
        """Return the snapshot that generates games.

        Raises:
            ModelError: there is no such model, or it has no champion, or the champion is gone.
        """
        if not os.path.lexists(self._champion):
            raise ModelError(self._unknown())
        link = self._champion.readlink() if self._champion.is_symlink() else ""
        snapshot = _to_snapshot(self.path / link)
        if snapshot is None or not snapshot.path.is_dir():
            others = self.snapshots()
            cure = f"ln -sfn {others[-1].name} {self._champion}" if others else f"rm -r {self.path}, then --init"
            raise ModelError(
                f"the champion of model {self.name!r} is gone: {self._champion} leads nowhere; try: {cure}"
            )
        return snapshot

    def publish(
        self,
        step: int,
        write: Callable[[Path], None],
        metrics: Mapping[str, float] | None = None,
        promote: Callable[[], bool] = lambda: False,
    ) -> Snapshot:
        """Write a snapshot into a hidden folder, and give it its name when it is whole.

        Args:
            step: batches that the model has been trained on.
            write: fills the folder that it is given.
            metrics: figures to be kept in the snapshot's `snapshot.json`; `write` may add some.
            promote: asked after `write`; whether the snapshot becomes the champion. If the program is killed between
                the two, it becomes that when the next program begins to write.

        Raises:
            ModelError: there is no such model, or `champion` is not a link.
        """
        if not self._settings.is_file():
            raise ModelError(self._unknown())
        with self.lock(), self._unfinished() as folder:
            write(folder)
            created = datetime.now(UTC)
            facts = {"step": step, "created": created.isoformat(timespec="seconds"), "metrics": dict(metrics or {})}
            (folder / "snapshot.json").write_text(json.dumps(facts, indent=2) + "\n")
            _sync_tree(folder)
            path = self._free(f"{step:08d}-{created:%Y%m%dT%H%M%SZ}")
            if promote():
                self._check_champion()
                self._next_champion.symlink_to(path.name)
                _sync(self.path)
            folder.rename(path)
            _sync(self.path)
            self._succeed()
            return Snapshot(path, step)

    def annotate(self, snapshot: Snapshot, metrics: Mapping[str, float]) -> None:
        """Add figures to those in a snapshot's `snapshot.json`; if it is gone meanwhile, do nothing."""
        file = snapshot.path / "snapshot.json"
        with self.lock(), contextlib.suppress(FileNotFoundError):
            facts = json.loads(file.read_text())
            facts["metrics"] |= metrics
            changed = file.with_name(".snapshot.json")
            changed.write_text(json.dumps(facts, indent=2) + "\n")
            _sync(changed)
            changed.replace(file)

    def promote(self, snapshot: Snapshot) -> None:
        """Make a snapshot the champion; whoever looks sees the old one or the new one.

        Raises:
            ModelError: the snapshot is gone, or `champion` is not a link.
        """
        with self.lock():
            if not snapshot.path.is_dir():
                raise ModelError(f"{snapshot.path} is gone: another program removed it; train again")
            self._check_champion()
            self._next_champion.symlink_to(snapshot.name)
            self._succeed()

    def recover(self) -> None:
        """Finish what a program that was killed had begun: remove what is not whole, promote what it had to promote."""
        with self.lock():
            pass  # the rest is done by whoever has the lock

    def _check_champion(self) -> None:
        if os.path.lexists(self._champion) and not self._champion.is_symlink():
            raise ModelError(f"{self._champion} must be a symbolic link to a snapshot: remove it, then run again")

    def _succeed(self) -> None:
        # The next champion, if there is one, becomes the champion; if its snapshot did not get there, nothing does.
        if self._next_champion.is_symlink():
            if self._next_champion.is_dir():
                self._next_champion.replace(self._champion)
            else:
                self._next_champion.unlink()
            _sync(self.path)

    def prune(self, keep: int) -> list[Snapshot]:
        """Remove all but the newest `keep` snapshots and the champion; return those removed."""
        with self.lock():
            champion = self._champion.resolve()
            removed = [each for each in self.snapshots()[:-keep] if each.path.resolve() != champion]
            for snapshot in removed:
                _remove(snapshot.path)
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
        """Keep other writers of this model waiting; a lock ends with its process. May be nested."""
        if self._locks:
            yield
            return
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / ".lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self._locks += 1
            try:
                # Nobody else holds the lock, so whoever was not finished never will be.
                for leftover in self.path.glob(f"{_UNFINISHED}*"):
                    shutil.rmtree(leftover)
                self._succeed()
                yield
            finally:
                self._locks -= 1

    @contextlib.contextmanager
    def _unfinished(self) -> Iterator[Path]:
        folder = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=self.path))
        folder.chmod(0o755)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)  # renamed by now, if all went well

    def _free(self, name: str) -> Path:
        path, count = self.path / name, 1
        while os.path.lexists(path):
            count += 1
            path = self.path / f"{name}-{count}"
        return path

    def _unknown(self) -> str:
        what = "has no champion" if self._settings.is_file() else f"does not exist below {self.path.parent}"
        return f"model {self.name!r} {what}: start it with train.py {self.name} --init"

    @property
    def _settings(self) -> Path:
        return self.path / "settings.json"

    @property
    def _champion(self) -> Path:
        return self.path / "champion"

    @property
    def _next_champion(self) -> Path:
        # A link that is there only while a snapshot is promoted.
        return self.path / ".next-champion"


def _to_snapshot(path: Path) -> Snapshot | None:
    match = _SNAPSHOT.fullmatch(path.name)
    return Snapshot(path, int(match[1])) if match else None


def _remove(folder: Path) -> None:
    # Hidden first: a snapshot that is half removed must not be taken for one.
    hidden = folder.with_name(f"{_UNFINISHED}{folder.name}")
    folder.rename(hidden)
    shutil.rmtree(hidden)


def _sync_tree(folder: Path) -> None:
    for path in folder.rglob("*"):
        _sync(path)
    _sync(folder)


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
