"""Shows the records of a file or folder: ours, or those of any TFRecord file.

Knows which records to show; `seraphim.records.display` formats them.
"""

import contextlib
import mmap
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from seraphim.errors import GameError, NotInstalledError, RecordError
from seraphim.game import Game, load_game
from seraphim.records.display import draw_features, draw_position, draw_summary, hexdump, summarize
from seraphim.records.examples import Positions, check_by_rules, concatenate, decode
from seraphim.records.files import published_files
from seraphim.records.schema import is_cut_off
from seraphim.records.tfrecord import DamageError, Feature, frames, parse_example

_MOST_UNPACKED = 1 << 30  # bytes of a compressed file
_FOREIGN_RECORDS = 3  # shown of a foreign file by default


@dataclass(frozen=True)
class RecordFilter:
    """Which records to show; by default the first game."""

    record: int | None = None
    """Number of the first one, counted from 0 in each file; without a limit, the only one."""
    limit: int | None = None
    """How many at most."""
    game_id: str | None = None
    """Only those of the game with this id."""

    def select(self, payloads: Iterator[bytes]) -> Iterator[tuple[int, bytes]]:
        """Yield the selected records of a file with their numbers."""
        records: Iterator[tuple[int, bytes]] = islice(enumerate(payloads), self.record or 0, None)
        if self.game_id:
            records = (record for record in records if _game_id(record[1]) == self.game_id)
        if self.limit is not None or self.game_id:
            return islice(records, self.limit)
        if self.record is not None:
            return islice(records, 1)
        for game_id, game in groupby(records, lambda record: _game_id(record[1])):
            return islice(game, _FOREIGN_RECORDS if game_id is None else None)
        return iter(())


def show_records(path: Path, console: Console, selected: RecordFilter, game: str | None = None) -> None:
    """Print single records of a file, or of a folder's newest file, or of the one that holds the selected game.

    `game` is the module of the game, by default the name in the records.

    Raises:
        RecordError: there is no such file, record or game.
        GameError: there is no game `game`.
    """
    files = record_files(path)
    shown = 0
    for file in reversed(files if selected.game_id else files[-1:]):
        try:
            for number, payload in selected.select(read_payloads(file)):
                console.print(Rule(Text(f"{file.name} · record {number}"), align="left"))
                console.print(_draw_record(payload, game))
                shown += 1
        except DamageError as error:
            console.print(Text(f"{file} is damaged ({error}): training skips it", style="bold red"))
        if shown:
            return
    if selected.game_id:
        raise RecordError(f"no game {selected.game_id!r} in {path}: omit --game_id to show the first game")
    if selected.record:
        raise RecordError(f"no record {selected.record} in {files[-1]}: records are counted from 0 in each file")
    if not any(file.stat().st_size for file in files):
        raise RecordError(f"no records in {path}: the file is empty")


def show_summary(path: Path, console: Console, game: str | None = None) -> None:
    """Print counts over a file or folder: of games for our records, of records and bytes for foreign ones.

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
            name = _read_text(_parse(payloads[0]), "game") if payloads else None
            if not payloads or (name and is_cut_off(payloads[-1])):
                raise DamageError("truncated: the end of the file is missing")
            if name:
                rules = rules or load_game(game or name)
                parts.append(_decode(rules, payloads))
                games = f"{parts[-1].ends.sum():,}"
            table.add_row(Text(file.name), games, f"{len(payloads):,}", f"{sum(map(len, payloads)):,}")
        except DamageError as error:
            table.add_row(Text(file.name), Text(f"damaged ({error}): training skips it", style="bold red"))
        except RecordError as error:
            raise RecordError(f"{file} {error}") from error
    if rules and parts:
        console.print(draw_summary(rules, summarize(rules, concatenate(parts))))
    console.print(table)


def find_records(root: Path, text: str) -> Path:
    """Return the folder of the games of the model that a text names, or else the text as a path.

    Where it is both, a name alone means the model: `./NAME` is the path.

    Raises:
        RecordError: it is neither.
    """
    path, games = Path(text), root / "gamedata" / text
    if path.name != text or text.startswith("."):
        return path
    if games.is_dir():
        return games
    if not path.is_file() and not any(path.glob("*tfrecord*")):
        cure = f"run seraphim generate {text} first, or name another model, file or folder"
        raise RecordError(f"there are no games in {games}, and no records in {text}: {cure}")
    return path


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
        raise RecordError(f"no TFRecord file in {path}: run seraphim generate first, or name another folder")
    return files


def read_payloads(path: Path) -> Iterator[bytes]:
    """Yield the payload of each record of a TFRecord file, which may be compressed as gzip or zlib.

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
                unpacked = zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(content, _MOST_UNPACKED + 1)
                if len(unpacked) > _MOST_UNPACKED:
                    raise DamageError(f"it unpacks to more than {_MOST_UNPACKED:,} bytes") from None
                yield from frames(unpacked)
                return
        yield from frames(content)


def _draw_record(payload: bytes, game: str | None) -> RenderableType:
    # A position, the features of a foreign example, or else bytes.
    features = _parse(payload)
    if not features:
        return hexdump(payload)
    name = _read_text(features, "game")
    if name is None:
        return draw_features(features)
    try:
        rules = load_game(game or name)
        return draw_position(rules, _decode(rules, [payload]), features["game_id"].values[0].decode(errors="replace"))
    except (GameError, NotInstalledError, RecordError) as error:
        if game:
            raise
        cure = "" if isinstance(error, DamageError) else "; --game names the game's module"
        return Group(draw_features(features), Text(f"{error}{cure}", style="bold red"))


def _decode(rules: Game, payloads: Sequence[bytes]) -> Positions:
    positions = decode(rules, payloads)
    check_by_rules(rules, positions)
    return positions


def _parse(payload: bytes) -> dict[str, Feature]:
    # The features of an example; none if the payload is not an example.
    try:
        return parse_example(payload)
    except DamageError:
        return {}


def _game_id(payload: bytes) -> str | None:
    return _read_text(_parse(payload), "game_id")


def _read_text(features: dict[str, Feature], name: str) -> str | None:
    # The value of a feature of our own records; None in foreign ones.
    feature = features.get(name)
    if "schema" not in features or feature is None or feature.kind != "bytes_list" or not feature.values:
        return None
    return str(feature.values[0].decode(errors="replace"))
