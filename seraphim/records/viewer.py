"""Shows the records of a file or folder to a person, ours or those of any foreign TFRecord file.

Knows which records are meant; how they look is `seraphim.records.display`.
"""

import contextlib
import mmap
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from seraphim.errors import GameError, RecordError
from seraphim.game import Game, load_game
from seraphim.records.display import draw_features, draw_position, draw_summary, hexdump, summarize
from seraphim.records.examples import Positions, concatenate, decode, is_cut_off
from seraphim.records.files import published_files
from seraphim.records.tfrecord import DamageError, Feature, frames, parse_example

FOREIGN_RECORDS = 3  # shown of a foreign file where nothing says how many


@dataclass(frozen=True)
class Choice:
    """Which records to show; by default the first game."""

    record: int | None = None
    """Number of the first one, counted from 0 in each file; alone, only that one."""
    limit: int | None = None
    """How many."""
    game_id: str | None = None
    """Only those of the game with this id."""


def show_records(path: Path, console: Console, choice: Choice, game: str | None = None) -> None:
    """Print single records of a file; a folder stands for its newest file, or the one that holds the game chosen.

    Args:
        path: a file or folder.
        console: where to print.
        choice: of the records.
        game: module of the game, if not the name in the records.

    Raises:
        RecordError: there is no such file, record or game.
        GameError: there is no game `game`.
    """
    files = record_files(path)
    shown = 0
    for file in reversed(files if choice.game_id else files[-1:]):
        try:
            for number, payload in _chosen(read_payloads(file), choice):
                console.print(Rule(Text(f"{file.name} · record {number}"), align="left"))
                console.print(draw_record(payload, game))
                shown += 1
        except DamageError as error:
            console.print(Text(f"{file} is damaged ({error}): training skips it", style="bold red"))
        if shown:
            return
    if choice.game_id:
        raise RecordError(f"no game {choice.game_id!r} in {path}: without --game_id, the first one is shown")
    if choice.record:
        raise RecordError(f"no record {choice.record} in {files[-1]}: records are counted from 0 in each file")


def show_summary(path: Path, console: Console, game: str | None = None) -> None:
    """Print counts of a file or folder: of games where the records are ours, of records and bytes where not.

    Raises:
        RecordError: there is no such file, or files of different games.
        GameError: there is no game `game`, or none of the name in the records.
    """
    rules: Game | None = None
    parts: list[Positions] = []
    table = Table("file", "games", "positions", "bytes", box=None)
    for file in record_files(path):
        games = "foreign"
        try:
            payloads = list(read_payloads(file))
            name = _game_name(_features(payloads[0])) if payloads else None
            if not payloads or (name and is_cut_off(payloads[-1])):
                raise DamageError("truncated: the end of the file is missing")
            if name:
                rules = rules or load_game(game or name)
                parts.append(decode(rules, payloads))
                games = f"{parts[-1].ends.sum():,}"
            table.add_row(file.name, games, f"{len(payloads):,}", f"{sum(map(len, payloads)):,}")
        except DamageError as error:
            table.add_row(file.name, Text(f"damaged ({error}): training skips it", style="bold red"))
        except RecordError as error:
            raise RecordError(f"{file} {error}") from error
    if rules and parts:
        console.print(draw_summary(rules, summarize(rules, concatenate(parts))))
    console.print(table)


def record_files(path: Path) -> list[Path]:
    """Return the file, or the files of a folder, oldest first.

    Raises:
        RecordError: there is no such file or folder, or the folder holds no TFRecord file.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise RecordError(f"there is no file or folder {path}: name one, such as gamedata/NAME")
    files = published_files(path) or sorted(file for file in path.glob("*tfrecord*") if file.is_file())
    if not files:
        raise RecordError(f"no TFRecord file in {path}: run bin/generate_games.py first, or name another folder")
    return files


def read_payloads(path: Path) -> Iterator[bytes]:
    """Yield the payload of each record of a TFRecord file, also of one compressed as gzip or zlib.

    Raises:
        DamageError: a record is damaged; those before it have been yielded.
    """
    if path.stat().st_size == 0:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        try:
            next(frames(content))
        except DamageError:
            with contextlib.suppress(zlib.error):
                yield from frames(zlib.decompress(content, wbits=zlib.MAX_WBITS | 32))
                return
        yield from frames(content)


def draw_record(payload: bytes, game: str | None = None) -> RenderableType:
    """Return a record as it is printed: a position, the features of a foreign example, or else its bytes.

    Raises:
        GameError: there is no game `game`.
        RecordError: the record is of another game than `game`.
    """
    features = _features(payload)
    if not features:
        return hexdump(payload)
    name = _game_name(features)
    if name is None:
        return draw_features(features)
    try:
        rules = load_game(game or name)
        return draw_position(rules, decode(rules, [payload]), features["game_id"].values[0].decode(errors="replace"))
    except (GameError, RecordError) as error:
        if game:
            raise
        return Group(draw_features(features), Text(f"{error}; --game names the game's module", style="bold red"))


def _chosen(payloads: Iterator[bytes], choice: Choice) -> Iterator[tuple[int, bytes]]:
    records: Iterator[tuple[int, bytes]] = islice(enumerate(payloads), choice.record or 0, None)
    if choice.game_id:
        records = (record for record in records if _game_id(record[1]) == choice.game_id)
    if choice.limit is not None or choice.game_id:
        return islice(records, choice.limit)
    if choice.record is not None:
        return islice(records, 1)
    return _first_game(records)


def _first_game(records: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    for game_id, game in groupby(records, lambda record: _game_id(record[1])):
        return islice(game, FOREIGN_RECORDS if game_id is None else None)
    return iter(())


def _features(payload: bytes) -> dict[str, Feature]:
    # None of them where the payload is no example.
    try:
        return parse_example(payload)
    except DamageError:
        return {}


def _game_name(features: dict[str, Feature]) -> str | None:
    # None where the record is not ours.
    return _text(features, "game") if "schema" in features else None


def _game_id(payload: bytes) -> str | None:
    features = _features(payload)
    return _text(features, "game_id") if "schema" in features else None


def _text(features: dict[str, Feature], name: str) -> str | None:
    feature = features.get(name)
    if feature is None or feature.kind != "bytes_list" or not feature.values:
        return None
    return str(feature.values[0].decode(errors="replace"))
