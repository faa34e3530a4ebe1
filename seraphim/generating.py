"""Game data made: the champion's games go from the workers into files, with progress, until enough or interrupted."""

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from seraphim.examples import end_of
from seraphim.gamefiles import published_files, read_examples
from seraphim.records import GameWriter
from seraphim.selfplay import number_in
from seraphim.settings import Settings
from seraphim.store import ModelFolder
from seraphim.tfrecord import DamageError, parse_example
from seraphim.workers import ENDLESS, Work, WorkerPool

# Games between two looks at whether there is a new champion.
_GAMES_BETWEEN_LOOKS = 100


@dataclass(frozen=True)
class Generated:
    """What came of generating games."""

    games: int
    positions: int
    seconds: float
    work: Work
    interrupted: bool

    def __str__(self) -> str:
        total = sum(self.work.seconds.values()) or 1.0
        shares = ", ".join(f"{stage} {seconds / total:.0%}" for stage, seconds in self.work.seconds.items())
        return (
            f"{self.games:,} games, {self.positions:,} positions in {self.seconds:.1f} s: "
            f"{self.work.readouts / self.seconds:,.0f} readouts/s, "
            f"{self.work.evaluations / self.seconds:,.0f} evaluations/s, cache hits {self.work.hit_rate:.0%} ({shares})"
        )


def generate_games(
    pool: WorkerPool,
    folder: ModelFolder,
    settings: Settings,
    stream: str,
    count: int = ENDLESS,
    announce: Callable[[str], None] = print,
) -> Generated:
    """Let the champion play the first `count` games of a stream, and write them to the model's game data.

    Games of the stream that are there already, because an earlier call was interrupted, are not played again. When
    another snapshot becomes the champion, the games under way are finished, and it plays the next ones. On Ctrl-C (or
    SIGTERM) all finished games are written; a second one ends the program at once.

    Args:
        pool: the workers; not to be used again after an interrupt.
        folder: of the model.
        settings: of the model.
        stream: the name of the games' luck.
        count: how many games.
        announce: takes a sentence for the person, such as which model plays on what.

    Raises:
        ModelError: the model has no champion, or it is damaged.
        WorkerError: a worker died.
    """
    started = time.perf_counter()
    games = positions = 0
    work, interrupted, ended = Work(), [], False

    def interrupt() -> None:
        interrupted.append(True)
        pool.stop()

    with (
        GameWriter(folder.game_data, settings.records) as writer,
        _interrupts_call(interrupt),
        _progress() as progress,
    ):
        played = played_numbers(folder, stream)
        bar = progress.add_task("games", total=None if count == ENDLESS else count, completed=len(played), rate="")
        first, runtime = 0, ""
        while not ended:
            champion = folder.champion()
            ended = True
            for game in pool.play(champion.path, stream, first, count, played):
                if not runtime:
                    runtime = pool.work().runtime
                    announce(f"{pool.num_workers} workers play {champion.name} by {runtime}")
                writer.add(game.examples)
                games += 1
                positions += len(game.examples)
                first = game.number + 1
                if games % _GAMES_BETWEEN_LOOKS == 0:
                    progress.update(bar, completed=len(played) + games, rate=_rate(work + pool.work(), started))
                    if folder.champion() != champion:
                        pool.finish()
                        ended = False
            work += pool.work()
    return Generated(games, positions, time.perf_counter() - started, work, bool(interrupted))


def played_numbers(folder: ModelFolder, stream: str) -> set[int]:
    """Return the numbers of the games of a stream that are in a model's game data; the stream must be its newest."""
    numbers: set[int] = set()
    for path in reversed(published_files(folder.game_data)):
        try:
            last_positions = [parse_example(example) for example in read_examples(path) if end_of(example)]
        except DamageError:
            continue  # named when it is trained on
        ids = [features["game_id"].values[0].decode() for features in last_positions]
        own = {number_in(identity) for identity in ids if identity.rpartition("-")[0] == stream}
        if not own:
            break
        numbers |= own
    return numbers


def _rate(work: Work, started: float) -> str:
    return f"{work.readouts / (time.perf_counter() - started):,.0f} readouts/s"


def _progress() -> Progress:
    console = Console()
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[rate]}"),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    )


@contextlib.contextmanager
def _interrupts_call(action: Callable[[], None]) -> Iterator[None]:
    # While the block runs, the first interrupt calls `action`; the next one is a KeyboardInterrupt again.
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in signals}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def handle(*_: int | FrameType | None) -> None:
        restore()
        action()

    for number in signals:
        signal.signal(number, handle)
    try:
        yield
    finally:
        restore()
