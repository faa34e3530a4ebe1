"""The folders of a model: names, snapshots, the champion, atomic publication, retention.

    models/NAME/settings.json               every option of the model
    models/NAME/00001000-20250131T120000Z   a snapshot: step and time (UTC)
      snapshot.json                         its manifest
      figures.json                          metrics that were added later
    models/NAME/champion                    a symbolic link to one of the snapshots; or a file with its name, which Git
                                            makes where there are no links, and wheels have
    models/NAME/.next-champion              the next champion, while the link is being replaced
    models/NAME/.unfinished-SNAPSHOT        a snapshot that is being written or removed
    models/NAME/logs                        TensorBoard's, a folder for each program
    gamedata/NAME                           the games that the model played against itself

A program may be killed at any moment (see `seraphim.storage.atomic`): a folder with the name of a snapshot is complete,
and the next program that writes removes what a killed one left behind. Writers of one model wait for each other; only
one process may train it. Knows files, no network.
"""

import contextlib
import os
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from seraphim.errors import ModelError, shown
from seraphim.settings import Settings, dump_settings, load_settings
from seraphim.storage import atomic
from seraphim.storage.snapshots import Snapshot, check_name, step_of, to_snapshot

__all__ = ["ModelFolder", "Snapshot"]

_UNFINISHED = ".unfinished-"  # prefix of folders that are not complete


class ModelFolder:
    """The folder of one model below `root`; it need not exist yet."""

    def __init__(self, root: Path, name: str, trust: bool = False) -> None:
        """Prepare; with `trust`, models outside `models/` may be loaded as well, see docs/security.md.

        Raises:
            SettingsError: the name is not valid.
        """
        self.name = check_name(name)
        self.path = root / "models" / name
        self.game_data = root / "gamedata" / name
        self.trust = trust
        self._settings = self.path / "settings.json"
        self._champion = self.path / "champion"
        self._next_champion = self.path / ".next-champion"
        self._locks = 0  # nested blocks that hold the lock
        self._checked = False  # whether the file system supports what this needs

    def create(self, settings: Settings) -> None:
        """Create a new model, without a snapshot; replaces what an interrupted start left behind.

        Raises:
            ModelError: the model exists.
        """
        with self.lock():
            self.check_new()
            for leftover in self.folders():
                self._remove(leftover.path)
            atomic.replace_file(self._settings, dump_settings(settings).encode())

    def is_new(self) -> bool:
        """Return whether the model does not exist yet: it has no champion and was never trained."""
        return _read_link(self._champion) is None and all(each.step == 0 for each in self.folders())

    def check_new(self) -> None:
        """Raise a ModelError if the model exists."""
        if not self.is_new():
            raise ModelError(
                f"model {self.name!r} exists: go on with it (omit --init), or choose another name, "
                f"or remove {self._paths(' and ')}"
            )

    def settings(self, game: str | None = None, cure: str | None = None) -> Settings:
        """Return the model's settings; with `game`, check that the model is for that package or module.

        `cure` is the command that makes the model, for the message if there is none.

        Raises:
            ModelError: there is no such model, or it is for another game.
            SettingsError: the file is not valid.
        """
        if not self._settings.is_file():
            raise ModelError(self._describe_missing(cure or self._creation(game)))
        self._check_trust(self.path)
        settings = load_settings(self._settings)
        if game is not None and settings.game != game:
            raise ModelError(
                f"model {self.name!r} plays {settings.game}, not {game}: use seraphim train {self.name}, "
                "or choose another name"
            )
        return settings

    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots, oldest first: by step, then by name, so that a clock set back does no harm."""
        return [each for each in self.folders() if atomic.find_damage(each.path) is None]

    def folders(self) -> list[Snapshot]:
        """Return the snapshots in the same order, damaged ones included."""
        if not self.path.is_dir():
            return []
        found = [to_snapshot(entry) for entry in self.path.iterdir() if not entry.is_symlink() and entry.is_dir()]
        return sorted((each for each in found if each is not None), key=lambda each: (each.step, each.name))

    def unfinished(self) -> list[str]:
        """Return the names of snapshots that are being written or removed, or that a killed program left so."""
        return sorted(path.name.removeprefix(_UNFINISHED) for path in self.path.glob(f"{_UNFINISHED}*"))

    def snapshot(self, name: str) -> Snapshot:
        """Return the snapshot of that name.

        Raises:
            ModelError: there is none.
        """
        self._check_trust(self.path)
        found = {snapshot.name: snapshot for snapshot in self.snapshots()}
        if name not in found:
            raise ModelError(f"model {self.name!r} has no snapshot {shown(name)}: expected one of {', '.join(found)}")
        return found[name]

    def choose(self, text: str | None) -> Snapshot:
        """Return the champion (None), a snapshot by its name, or one anywhere by its path, which contains a `/`.

        Raises:
            ModelError: there is none, or it lies outside `models/` and is not trusted.
        """
        if text is None:
            return self.champion()
        return self.external_snapshot(Path(text)) if "/" in text else self.snapshot(text)

    def external_snapshot(self, path: Path) -> Snapshot:
        """Return the snapshot in a folder that need not belong to this model.

        Raises:
            ModelError: it is damaged, or lies outside `models/` and is not trusted.
            SettingsError: no folder can have that name.
        """
        atomic.check_path(snapshot=path)
        with contextlib.suppress(RuntimeError):  # no such user
            path = path.expanduser()
        self._check_trust(path)
        if damage := atomic.find_damage(path):
            raise ModelError(f"{path} is not a snapshot: {damage}")
        return Snapshot(path, step_of(path))

    def champion(self) -> Snapshot:
        """Return the snapshot that plays.

        Raises:
            ModelError: the model does not exist or has no champion, or the champion is gone, damaged or not trusted.
        """
        name = _read_link(self._champion)
        if name is None:
            raise ModelError(self._describe_missing())
        snapshot = to_snapshot(self.path / name)
        if snapshot is None or not snapshot.path.is_dir():
            raise ModelError(
                f"the champion of model {self.name!r} is gone: {self._champion} leads nowhere; {self._recovery_hint()}"
            )
        self._check_trust(snapshot.path)
        if damage := atomic.find_damage(snapshot.path):
            raise ModelError(
                f"the champion of model {self.name!r} is damaged: {snapshot.path}: {damage}; {self._recovery_hint()}"
            )
        return snapshot

    def publish(
        self,
        step: int,
        write: Callable[[Path], None],
        metrics: Mapping[str, float] | None = None,
        promote: Callable[[], bool] = lambda: False,
    ) -> Snapshot:
        """Write a snapshot; it appears once all of it is on disk.

        Args:
            step: batches that the model has been trained on.
            write: fills the folder it is given, which is renamed afterwards.
            metrics: are kept in the manifest; `write` may add some.
            promote: called after `write`; returns whether the snapshot becomes the champion. If the program is killed
                before that has happened, the next program that writes completes it.

        Raises:
            ModelError: there is no such model, or `champion` is not a link.
        """
        if not self._settings.is_file():
            raise ModelError(self._describe_missing())
        with self.lock():
            snapshot = Snapshot(self._unused(f"{step:08d}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"), step)
            unfinished = self._unfinished(snapshot.path)
            unfinished.mkdir()
            try:
                write(unfinished)
                created = datetime.now(UTC).isoformat(timespec="seconds")
                becomes_champion = promote()
                atomic.seal(unfinished, {"step": step, "created": created, "metrics": dict(metrics or {})})
                if becomes_champion:
                    self._announce_champion(snapshot)
                unfinished.rename(snapshot.path)
                atomic.sync(self.path)
            except BaseException:
                shutil.rmtree(unfinished, ignore_errors=True)  # the next program that writes removes the rest
                raise
            self._complete_promotion()
            return snapshot

    def annotate(self, snapshot: Snapshot, metrics: Mapping[str, float]) -> None:
        """Add metrics to those of a snapshot; does nothing if it was removed in the meantime."""
        with self.lock(), contextlib.suppress(FileNotFoundError):
            snapshot.annotate(metrics)

    def promote(self, snapshot: Snapshot) -> None:
        """Make a snapshot the champion, atomically.

        Raises:
            ModelError: the snapshot is gone or damaged, or `champion` is not a link.
        """
        with self.lock():
            if not snapshot.path.is_dir():
                raise ModelError(f"{snapshot.path} is gone: another program removed it; train again")
            if damage := atomic.find_damage(snapshot.path):
                raise ModelError(f"{snapshot.path} cannot become the champion: {damage}; train again")
            self._announce_champion(snapshot)
            self._complete_promotion()

    def recover(self) -> None:
        """Finish what a killed program began: remove incomplete folders, complete a promotion."""
        with self.lock():  # which does that
            pass

    def prune(self, keep: int, spared: str = "") -> list[Snapshot]:
        """Remove all but the newest `keep` snapshots, the champion and the one `spared`; return those removed."""
        with self.lock():
            champion = _read_link(self._champion)
            removed = [each for each in self.snapshots()[:-keep] if each.name not in (champion, spared)]
            for snapshot in removed:
                self._remove(snapshot.path)
            return removed

    @contextlib.contextmanager
    def learner(self) -> Iterator[None]:
        """Be the only process that trains this model during the block; games may be generated at the same time.

        Raises:
            ModelError: another process trains it.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            with atomic.hold(self.path / ".learner"):
                yield
        except atomic.HeldError as error:
            raise ModelError(
                f"model {self.name!r} is being trained by {error}: wait for it to finish, or stop it"
            ) from None

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Make other writers of this model wait during the block, which may be nested; recovers first.

        Raises:
            SettingsError: the file system lacks what this needs.
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
                self._complete_promotion()
                yield
            finally:
                self._locks -= 1

    def _remove(self, folder: Path) -> None:
        unfinished = self._unfinished(folder)
        folder.rename(unfinished)
        atomic.sync(self.path)
        shutil.rmtree(unfinished)

    def _unfinished(self, folder: Path) -> Path:
        return folder.with_name(f"{_UNFINISHED}{folder.name}")

    def _announce_champion(self, snapshot: Snapshot) -> None:
        # Names the next champion, whose folder need not be there yet; `_complete_promotion` makes it the champion.
        if self._champion.is_dir() and not self._champion.is_symlink():
            raise ModelError(f"{self._champion} must be a symbolic link to a snapshot: remove it, then run again")
        self._next_champion.unlink(missing_ok=True)
        self._next_champion.symlink_to(snapshot.name)
        atomic.sync(self.path)

    def _complete_promotion(self) -> None:
        # Promotes the announced snapshot if it was published; can be interrupted anywhere and repeated.
        name = _read_link(self._next_champion)
        if name is None:
            return
        if to_snapshot(Path(name)) is not None and atomic.find_damage(self.path / name) is None:
            self._next_champion.replace(self._champion)
        else:
            self._next_champion.unlink()
        atomic.sync(self.path)

    def _unused(self, name: str) -> Path:
        path, count = self.path / name, 1
        while os.path.lexists(path):
            count += 1
            path = self.path / f"{name}-{count}"
        return path

    def _check_trust(self, path: Path) -> None:
        models = self.path.parent.resolve()
        if not self.trust and not path.resolve().is_relative_to(models):
            raise ModelError(
                f"{path} lies outside {models}, and a model can run code that its author put into it: "
                "if you trust the source, add --trust"
            )

    def _recovery_hint(self) -> str:
        # What to do about a champion that cannot be used.
        others = self.snapshots()
        if others:
            return f"try: ln -sfn {others[-1].name} {self._champion}"
        return f"restore it from a copy, or try: rm -r {self._paths(' ')}, then {self._creation()}"

    def _paths(self, separator: str) -> str:
        return separator.join(shlex.quote(str(path)) for path in (self.path, self.game_data) if path.exists())

    def _describe_missing(self, cure: str | None = None) -> str:
        what = "has no champion" if self._settings.is_file() else f"does not exist in {self.path.parent}/"
        return f"model {self.name!r} {what}: create it with {cure or self._creation()}"

    def _creation(self, game: str | None = None) -> str:
        return f"seraphim train {self.name} --init --game={game or 'GAME'}"


def _read_link(path: Path) -> str | None:
    # The name that a link, or a file in its place, holds; empty for something else, None for nothing.
    if path.is_symlink():
        return str(path.readlink())
    if path.is_file():
        name = path.read_text(errors="replace").strip()
        return name if to_snapshot(Path(name)) and Path(name).name == name else ""
    return "" if path.exists() else None
