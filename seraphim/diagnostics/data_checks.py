"""Checks of model and game-data folders: damage, leftovers, locks, and whether their growth fits on the disk.

They only read.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from seraphim.errors import RecordError, SeraphimError
from seraphim.game import Game, load_game
from seraphim.game.notation import first_position
from seraphim.inference import SavedNetwork
from seraphim.network import safety, saved_model
from seraphim.records.examples import GameRecord, decode, encode
from seraphim.records.files import PARTIAL, published_files, read_examples, rescued_games
from seraphim.records.index import index_files
from seraphim.records.tfrecord import FRAME_BYTES, DamageError, count_frames
from seraphim.search.analysis import LEAVES
from seraphim.settings import Settings
from seraphim.storage import atomic
from seraphim.storage.models import ModelFolder, Snapshot

MIB = 1 << 20
SURPLUS = 1.1  # times the window: the most on disk before files are removed


@dataclass
class Diagnosis:
    """Results of the checks."""

    facts: dict[str, str] = field(default_factory=dict)
    """By name."""
    problems: list[str] = field(default_factory=list)
    """Each says what to do."""

    @contextlib.contextmanager
    def checking(self) -> Iterator[None]:
        """Record an error in the block as a problem."""
        try:
            yield
        except SeraphimError as error:
            if str(error) not in self.problems:
                self.problems.append(str(error))
        except OSError as error:
            self.problems.append(f"{error.filename}: {error.strerror}")


def check_model(folder: ModelFolder, free: int, thorough: bool) -> Diagnosis:
    """Check a model and its game data, with `free` bytes on its disk; a thorough check compares checksums."""
    diagnosis = Diagnosis()
    settings: Settings | None = None
    game: Game | None = None
    champion: Snapshot | None = None
    with diagnosis.checking():
        settings = folder.settings()
        game = load_game(settings.game)
        diagnosis.facts["game"] = settings.game
    _check_snapshots(folder, thorough, diagnosis)
    with diagnosis.checking():
        champion = folder.champion()
        diagnosis.facts["champion"] = champion.name
        _check_parts(champion, diagnosis)
    if settings is not None and game is not None:
        if champion is not None:
            with diagnosis.checking():
                _check_network(champion, settings, game, diagnosis)
        with diagnosis.checking():
            check_disk(folder, settings, game, free, diagnosis)
    check_game_data(folder.game_data, thorough, diagnosis, game)
    held = [path for each in (folder.path, folder.game_data) for path in each.glob(".*") if atomic.is_locked(path)]
    if held:
        diagnosis.facts["at work"] = ", ".join(f"{path.name} is held by {_find_owner(path)}" for path in held)
    return diagnosis


def check_game_data(folder: Path, thorough: bool, diagnosis: Diagnosis, game: Game | None = None) -> None:
    """Check the files of a folder of games; a thorough check reads them as training does, if the game is known."""
    files = published_files(folder)
    for path in files:
        with diagnosis.checking():
            if damage := _find_damage(path, thorough, game):
                diagnosis.problems.append(f"{path} is damaged ({damage}): training skips it; remove it")
    size = sum(path.stat().st_size for path in files)
    diagnosis.facts["game data"] = f"{len(files)} files, {size / MIB:,.1f} MiB" if files else "none yet"
    partial = [path for path in folder.glob(f".*{PARTIAL}") if path.is_file() and not atomic.is_locked(path)]
    with diagnosis.checking():
        if games := sum(len(rescued_games(path.read_bytes())[0]) for path in partial):
            diagnosis.facts["left by a killed writer"] = f"{games} games, which seraphim generate will publish"


def check_disk(folder: ModelFolder, settings: Settings, game: Game, free: int, diagnosis: Diagnosis) -> None:
    """Check that a model's folders may grow as far as its settings allow."""
    files = published_files(folder.game_data)
    present = sum(path.stat().st_size for path in files)
    positions = sum(int(index.positions.sum()) for index in index_files(folder.game_data))
    bytes_of_a_position = present / positions if positions else _bytes_of_a_position(game)
    most = round(settings.training.max_window * SURPLUS * bytes_of_a_position)
    snapshots = folder.snapshots()
    # Those that are kept, the champion, and one that is written before the oldest is removed.
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


def _check_snapshots(folder: ModelFolder, thorough: bool, diagnosis: Diagnosis) -> None:
    intact = 0
    if unfinished := folder.unfinished():
        diagnosis.facts["unfinished"] = (
            f"{', '.join(unfinished)}: either being written, or left over and removed by the next program that writes"
        )
    for snapshot in folder.folders():
        damage = atomic.find_damage(snapshot.path, thorough)
        if damage is None:
            intact += 1
        else:
            diagnosis.problems.append(f"snapshot {snapshot.path} is damaged ({damage}): remove it")
    diagnosis.facts["snapshots"] = f"{intact}"


def _check_parts(champion: Snapshot, diagnosis: Diagnosis) -> None:
    for part, consequence in (
        (saved_model.ARCHIVE, "it plays, but cannot be trained on"),
        (saved_model.LITERT, "LiteRT cannot run it"),
    ):
        if not (champion.path / part).is_file():
            diagnosis.facts[f"without {part.name}"] = consequence


def _check_network(champion: Snapshot, settings: Settings, game: Game, diagnosis: Diagnosis) -> None:
    if (champion.path / saved_model.ARCHIVE).is_file():
        safety.check_archive(champion.path / saved_model.ARCHIVE)
    SavedNetwork(champion.path, "openvino").load(game, LEAVES)  # it must be intact, whichever runtime plays
    # With the batch sizes of the programs.
    for use, batch in (("self-play by", settings.self_play.concurrent_games), ("single games by", LEAVES)):
        inference = SavedNetwork(champion.path).load(game, batch)
        diagnosis.facts[use] = inference.description
    logits, values = inference.infer(game.observe(first_position(game)))
    if not (np.isfinite(logits).all() and np.isfinite(values).all()):
        diagnosis.problems.append(f"{champion.path} returns NaN or infinity: promote another snapshot")


def _find_damage(path: Path, thorough: bool, game: Game | None) -> str | None:
    try:
        if thorough:
            examples = read_examples(path)
            if game is not None:
                decode(game, examples)
        elif not count_frames(path):
            return "the lengths of its records do not add up"
    except DamageError as error:
        return str(error)
    except RecordError as error:
        raise RecordError(f"{path} {error}") from error
    except OSError as error:
        return f"unreadable: {error.strerror}"
    return None


def _bytes_of_a_position(game: Game) -> int:
    states = first_position(game)
    legal = game.legal(states)
    policies = (legal / legal.sum()).astype(np.float32)
    record = GameRecord("0" * 32, states, legal.argmax(axis=1), policies, np.zeros(1, np.float32), 0.0)
    return len(encode(game, record)[0]) + FRAME_BYTES


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _find_owner(path: Path) -> str:
    # A line of Linux: "1: FLOCK  ADVISORY  WRITE 4711 fd:01:1234 0 EOF".
    inode = path.stat().st_ino
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/locks").read_text().splitlines():
            words = line.split()
            if words[1] == "FLOCK" and int(words[5].rpartition(":")[2]) == inode:
                return f"process {words[4]}"
    return "another program"
