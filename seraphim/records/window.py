"""The window of the newest positions that training reads: the same games give the same window, however stored.

Knows the files and the order of their games (`seraphim.records.index`), and the schema (`seraphim.records.examples`).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from seraphim.errors import RecordError
from seraphim.game import Game
from seraphim.records.examples import Positions, concatenate, decode, num_bytes, pick
from seraphim.records.files import number_of, read_examples, reading
from seraphim.records.index import FileIndex, Selection, index_files, kept_files, select_newest
from seraphim.records.tfrecord import DamageError

MOST_KEPT = 2**31
"""Bytes of decoded files that a reader keeps."""


class WindowReport(NamedTuple):
    """What `read_window` read."""

    files: int
    games: int  # with at least one position in the window
    positions: int
    damaged: tuple[tuple[Path, str], ...]  # files that were skipped, and why
    newest: int  # number of the newest file that was read


def read_window(folder: Path, game: Game, max_positions: int) -> tuple[Positions, WindowReport]:
    """Return the newest positions of a folder, at most `max_positions`; see `WindowReader.read`."""
    return WindowReader(folder, game).read(max_positions)


class WindowReader:
    """Reads the window of a folder again and again; what it has decoded before it keeps, up to MOST_KEPT bytes."""

    def __init__(self, folder: Path, game: Game) -> None:
        """Read from a folder the records of a game."""
        self._folder, self._game = folder, game
        self._kept: list[tuple[FileIndex, Positions]] = []

    def read(self, max_positions: int) -> tuple[Positions, WindowReport]:
        """Return the newest positions of the folder, at most `max_positions`, oldest first.

        The games of a stream come in the order of their numbers, however they were stored: see
        `seraphim.records.index`. Damaged files are skipped as a whole, and named in the report.

        Raises:
            RecordError: there is no game data, all of it is damaged, or it is of another game.
        """
        folder = self._folder
        with reading(folder):
            files = kept_files(folder)
            indices = {index.path: index for index in index_files(folder)}
            # A file that has changed has another index.
            parts = {index.path: part for index, part in self._kept if indices.get(index.path) is index}
            damaged: dict[Path, str] = {}
            while True:
                intact = [index for path, index in indices.items() if path not in damaged]
                chosen = select_newest(intact, max_positions)
                unread = {intact[file].path for file in np.unique(chosen.files).tolist()} - parts.keys()
                if not unread:
                    break
                for path in unread:
                    _read_file(self._game, path, parts, damaged)
            has_all = sum(int(index.positions.sum()) for index in intact) < max_positions
            for path in files:  # name those without an index that the window would have needed
                if path not in indices and (has_all or number_of(path) > number_of(intact[chosen.oldest].path)):
                    _read_file(self._game, path, {}, damaged)
                    damaged.setdefault(path, "its games cannot be told apart")
        skipped = tuple((path, damaged[path]) for path in reversed(files) if path in damaged)
        if not len(chosen.files):
            if not skipped:
                raise RecordError(f"no game data in {folder}: run seraphim generate {folder.name} first")
            path, reason = skipped[0]
            raise RecordError(
                f"all {len(skipped)} files in {folder} are damaged ({path.name}: {reason}): "
                f"remove them and run seraphim generate {folder.name}"
            )
        self._keep([intact[file] for file in np.unique(chosen.files).tolist()], parts)
        window = _assemble(intact, chosen, parts)
        used = np.unique(chosen.files)
        newest = number_of(intact[int(used[-1])].path)
        return window, WindowReport(len(used), len(chosen.files), len(window.plies), skipped, newest)

    def _keep(self, files: Sequence[FileIndex], parts: dict[Path, Positions]) -> None:
        self._kept, room = [], MOST_KEPT
        for index in reversed(files):  # the newest stay in the window longest
            room -= num_bytes(parts[index.path])
            if room < 0:
                break
            self._kept.append((index, parts[index.path]))


def _read_file(game: Game, path: Path, parts: dict[Path, Positions], damaged: dict[Path, str]) -> None:
    try:
        parts[path] = decode(game, read_examples(path))
    except DamageError as error:
        damaged[path] = str(error)
    except RecordError as error:
        raise RecordError(f"{path} {error}") from error


def _assemble(files: Sequence[FileIndex], chosen: Selection, parts: dict[Path, Positions]) -> Positions:
    # The games in order, each a range of positions in its file.
    bounds = {file: np.cumsum([0, *files[file].positions]).tolist() for file in np.unique(chosen.files).tolist()}
    games = list[Positions]()
    for file, place in zip(chosen.files.tolist(), chosen.places.tolist(), strict=True):
        start, stop = bounds[file][place : place + 2]
        games.append(pick(parts[files[file].path], slice(start, stop)))
    games[0] = pick(games[0], slice(chosen.cut, None))
    return concatenate(games)
