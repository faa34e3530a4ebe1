"""The state of model and game-data folders: what is damaged, left over, locked, or will not fit on the disk.

Reads, and changes nothing, but that a runtime may be measured and remembered, as at the first use of a model.
"""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from seraphim.errors import SeraphimError
from seraphim.game import Game, load_game
from seraphim.inference import load_inference
from seraphim.network import safety, saved_model
from seraphim.records.examples import GameRecord, encode
from seraphim.records.files import PARTIAL, published_files, read_examples
from seraphim.records.index import index_files
from seraphim.records.schema import END_OF_GAME, end_of
from seraphim.records.tfrecord import FRAME_BYTES, DamageError, count_frames, frames
from seraphim.search.analysis import LEAVES
from seraphim.settings import Settings
from seraphim.storage import atomic
from seraphim.storage.models import ModelFolder, Snapshot

MIB = 1 << 20
SURPLUS = 1.1  # times the window: what is on disk before files are removed


@dataclass
class Diagnosis:
    """What was found out."""

    facts: dict[str, str] = field(default_factory=dict)
    """By name, for a person."""
    problems: list[str] = field(default_factory=list)
    """A sentence each, which names the cure."""

    @contextlib.contextmanager
    def checking(self) -> Iterator[None]:
        """Make a problem of whatever a person has to cure in the block."""
        try:
            yield
        except SeraphimError as error:
            if str(error) not in self.problems:
                self.problems.append(str(error))
        except OSError as error:
            self.problems.append(f"{error.filename}: {error.strerror}")


def check_model(folder: ModelFolder, free: int, thorough: bool, looked: Callable[[], None] = lambda: None) -> Diagnosis:
    """Return the state of a model and of its game data.

    Args:
        folder: of the model.
        free: bytes that are free on its disk.
        thorough: read every file whole, and compare the checksums.
        looked: called after each snapshot and each file of games.
    """
    diagnosis = Diagnosis()
    settings: Settings | None = None
    game: Game | None = None
    with diagnosis.checking():
        settings = folder.settings()
        game = load_game(settings.game)
        diagnosis.facts["game"] = settings.game
    _check_snapshots(folder, thorough, diagnosis, looked)
    champion: Snapshot | None = None
    with diagnosis.checking():
        champion = folder.champion()
        diagnosis.facts["champion"] = champion.name
        _check_parts(champion, diagnosis)
    if settings is not None and game is not None and champion is not None:
        with diagnosis.checking():
            if (champion.path / saved_model.ARCHIVE).is_file():
                safety.check_archive(champion.path / saved_model.ARCHIVE)
            _check_network(champion, settings, game, diagnosis)
    check_game_data(folder.game_data, thorough, diagnosis, looked)
    if settings is not None and game is not None:
        with diagnosis.checking():
            check_disk(folder, settings, game, free, diagnosis)
    _tell_locks(diagnosis, *folder.path.glob(".*"), *folder.game_data.glob(".*"))
    return diagnosis


def number_of_looks(folder: ModelFolder) -> int:
    """Return how often `check_model` calls `looked`."""
    return len(folder.folders()) + len(published_files(folder.game_data))


def check_game_data(
    folder: Path, thorough: bool, diagnosis: Diagnosis, looked: Callable[[], None] = lambda: None
) -> None:
    """Look at the files of a folder of games; those that are damaged are problems."""
    files = published_files(folder)
    for path in files:
        reason = _damage(path, thorough)
        if reason:
            diagnosis.problems.append(f"{path} is damaged ({reason}): training skips it; remove it")
        looked()
    size = sum(path.stat().st_size for path in files)
    diagnosis.facts["game data"] = f"{len(files)} files, {size / MIB:,.1f} MiB" if files else "none yet"
    games = sum(_games_left(path) for path in folder.glob(f".*{PARTIAL}") if not _is_locked(path))
    if games:
        diagnosis.facts["left by a killed writer"] = (
            f"{games} games: bin/generate_games.py publishes them when it starts"
        )


def check_disk(folder: ModelFolder, settings: Settings, game: Game, free: int, diagnosis: Diagnosis) -> None:
    """Compare what the settings let a model's folders grow by with the bytes that are free."""
    files = published_files(folder.game_data)
    present = sum(path.stat().st_size for path in files)
    positions = sum(int(index.positions.sum()) for index in index_files(folder.game_data))
    bytes_of_a_position = present / positions if positions else _bytes_of_a_position(game)
    most = round(settings.training.max_window * SURPLUS * bytes_of_a_position)
    snapshots = folder.snapshots()
    # As many as are kept, the champion, and the one that is written before the oldest goes.
    number = settings.training.max_snapshots + 2
    size = _size(snapshots[-1].path) if snapshots else 0
    growth = max(0, most - present) + max(0, number - len(snapshots)) * size
    diagnosis.facts["disk"] = (
        f"may grow by {growth / MIB:,.0f} MiB: games for a window of {settings.training.max_window:,} positions, "
        f"{number} snapshots of {size / MIB:,.1f} MiB; {free / MIB:,.0f} MiB are free"
    )
    if growth > free:
        diagnosis.problems.append(
            f"model {folder.name!r} may grow by {growth / MIB:,.0f} MiB, but {free / MIB:,.0f} MiB are free: make "
            "room, or lower max_window or max_snapshots in its settings.json"
        )


def _check_snapshots(folder: ModelFolder, thorough: bool, diagnosis: Diagnosis, looked: Callable[[], None]) -> None:
    whole = 0
    if unfinished := folder.unfinished():
        diagnosis.facts["unfinished"] = (
            f"{', '.join(unfinished)}: is being written, or is removed by the next program that writes"
        )
    for snapshot in folder.folders():
        fault = atomic.find_damage(snapshot.path, thorough)
        if fault is None:
            whole += 1
        else:
            diagnosis.problems.append(f"snapshot {snapshot.path} is damaged ({fault}): remove it")
        looked()
    diagnosis.facts["snapshots"] = f"{whole}"


def _check_parts(champion: Snapshot, diagnosis: Diagnosis) -> None:
    for part, consequence in (
        (saved_model.ARCHIVE, "it plays, but cannot be trained on"),
        (saved_model.LITERT, "LiteRT cannot run it"),
    ):
        if not (champion.path / part).is_file():
            diagnosis.facts[f"without {part.name}"] = consequence


def _check_network(champion: Snapshot, settings: Settings, game: Game, diagnosis: Diagnosis) -> None:
    load_inference(champion.path, game, "openvino")  # whatever plays, the SavedModel has to be whole
    # As the programs ask that play so.
    for use, batch in (("self-play by", settings.self_play.concurrent_games), ("single games by", LEAVES)):
        inference = load_inference(champion.path, game, batch=batch)
        diagnosis.facts[use] = inference.description
    logits, values = inference.infer(game.observe(game.initial(1)))
    if not (np.isfinite(logits).all() and np.isfinite(values).all()):
        diagnosis.problems.append(f"{champion.path} gives no numbers for the first position: promote another snapshot")


def _damage(path: Path, thorough: bool) -> str | None:
    try:
        if thorough:
            read_examples(path)
        elif not count_frames(path):
            return "the lengths of its records do not add up"
    except DamageError as error:
        return str(error)
    except OSError as error:
        return f"unreadable: {error.strerror}"
    return None


def _games_left(partial: Path) -> int:
    games = 0
    with contextlib.suppress(DamageError, OSError):
        for example in frames(partial.read_bytes()):
            games += end_of(example) >= END_OF_GAME
    return games


def _bytes_of_a_position(game: Game) -> int:
    states = game.initial(1)
    legal = game.legal(states)
    policies = (legal / legal.sum()).astype(np.float32)
    record = GameRecord("0" * 32, states, legal.argmax(axis=1), policies, np.zeros(1, np.float32), 0.0)
    return len(encode(game, record)[0]) + FRAME_BYTES


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _tell_locks(diagnosis: Diagnosis, *files: Path) -> None:
    held = [path for path in files if path.is_file() and _is_locked(path)]
    if held:
        diagnosis.facts["at work"] = ", ".join(f"{path.name} is held by {_holder(path)}" for path in held)


def _is_locked(path: Path) -> bool:
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(file)
    return False


def _holder(path: Path) -> str:
    # As Linux tells: "1: FLOCK  ADVISORY  WRITE 4711 fd:01:1234 0 EOF".
    inode = path.stat().st_ino
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/locks").read_text().splitlines():
            words = line.split()
            if words[1] == "FLOCK" and int(words[5].rpartition(":")[2]) == inode:
                return f"process {words[4]}"
    return "another program"
