"""Damages files of games in every way that a disk or a killed program may damage them."""

import io
from functools import cache
from pathlib import Path

import numpy as np
from pairs import play
from rich.console import Console

from seraphim.errors import RecordError
from seraphim.game import load_game
from seraphim.options import RecordOptions
from seraphim.records.examples import Positions, decode, encode
from seraphim.records.files import published_files, read_examples
from seraphim.records.index import total_positions
from seraphim.records.viewer import RecordFilter, show_records, show_summary
from seraphim.records.window import read_window
from seraphim.records.writer import GameWriter

GAME = load_game("tictactoe")
ALL = 1_000_000


def write_games(folder: Path) -> tuple[Path, Path]:
    """Write two files of a game each, and return them."""
    with GameWriter(folder, RecordOptions(games_per_file=1)) as writer:
        for seed in range(2):
            writer.add(encode(GAME, play(seed, GAME)))
    good, victim = published_files(folder)
    return good, victim


def every_length(content: bytes) -> list[bytes]:
    """Return the content, truncated at every length."""
    return [content[:size] for size in range(len(content))]


def every_byte(content: bytes, seed: int) -> list[bytes]:
    """Return the content with one byte changed, each in turn."""
    changes = np.random.default_rng(seed).integers(1, 256, len(content))
    return [_changed(content, [place], [change]) for place, change in enumerate(changes)]


def random_flips(content: bytes, count: int, seed: int) -> list[bytes]:
    """Return the content with up to four bytes changed, `count` times."""
    rng = np.random.default_rng(seed)
    damaged = []
    for _ in range(count):
        places = rng.choice(len(content), rng.integers(1, 5), replace=False)
        damaged.append(_changed(content, places, rng.integers(1, 256, len(places))))
    return damaged


def look_at(good: Path, victim: Path, damaged: bytes) -> str:
    """Damage a file, read its folder as training and the viewer do, and return what goes wrong.

    Empty if all is well: the other file is read, and this one is skipped and named.
    """
    victim.write_bytes(damaged)
    output = Console(file=io.StringIO(), width=200)
    try:
        positions, report = read_window(good.parent, GAME, ALL)
        total_positions(good.parent)
        show_summary(good.parent, output)
        try:
            show_records(victim, output, RecordFilter())
        except RecordError:  # there is nothing to show of an empty file
            if damaged:
                raise
    except Exception as error:  # noqa: BLE001 (none is expected)
        return f"{len(damaged)} bytes: {error!r}"
    if [path for path, _ in report.damaged] != [victim]:
        return f"{len(damaged)} bytes: training names {report.damaged}"
    if not all(map(np.array_equal, positions, _read(good))):
        return f"{len(damaged)} bytes: training reads other positions than those of the other file"
    line = next(line for line in output.file.getvalue().splitlines() if victim.name in line)
    return "" if "damaged" in line else f"{len(damaged)} bytes: the viewer says {line!r}"


@cache
def _read(path: Path) -> Positions:
    return decode(GAME, read_examples(path))


def _changed(content: bytes, places: object, changes: object) -> bytes:
    damaged = np.frombuffer(content, np.uint8).copy()
    damaged[places] ^= np.asarray(changes, np.uint8)
    return damaged.tobytes()
