"""Game data made: the champion's games go from the workers into files, with progress, until enough or interrupted."""

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from seraphim.records import GameWriter
from seraphim.settings import Settings
from seraphim.store import ModelFolder
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
        total = self.work.seconds.total() or 1.0
        shares = ", ".join(f"{stage} {seconds / total:.0%}" for stage, seconds in self.work.seconds.most_common())
        return (
            f"{self.games:,} games, {self.positions:,} positions in {self.seconds:.1f} s: "
            f"{self.work.readouts / self.seconds:,.0f} readouts/s, "
            f"{self.work.evaluations / self.seconds:,.0f} evaluations/s ({shares})"
        )


def generate_games(
    pool: WorkerPool,
    folder: ModelFolder,
    settings: Settings,
    stream: str,
    first: int = 0,
    count: int = ENDLESS,
    announce: Callable[[str], None] = print,
) -> Generated:
    """Let the champion play games and write them to the model's game data, until `count` are played.

    When another snapshot becomes the champion, the games under way are finished, and it plays the next ones. On
    Ctrl-C (or SIGTERM) all finished games are written; a second one ends the program at once.

    Args:
        pool: the workers; not to be used again after an interrupt.
        folder: of the model.
        settings: of the model.
        stream: the name of the games' luck; no two calls should have the same stream and numbers in common.
        first: number of the first game.
        count: how many games.
        announce: takes a sentence for the person, such as which model plays on what.

    Raises:
        ModelError: the model has no champion, or it is damaged.
        WorkerError: a worker died.
    """
    started = time.perf_counter()
    games = positions = 0
    work, interrupted = Work(), []

    def interrupt() -> None:
        interrupted.append(True)
        pool.stop()

    with (
        GameWriter(folder.game_data, settings.records) as writer,
        _interrupts_call(interrupt),
        _progress() as progress,
    ):
        bar = progress.add_task("games", total=None if count == ENDLESS else count, rate="")
        while games < count and not interrupted:
            champion = folder.champion()
            announced = False
            for game in pool.play(champion.path, stream, first + games, count - games):
                if not announced:
                    announce(f"champion {champion.name} on {pool.num_workers} × {pool.work().runtime}")
                    announced = True
                writer.add(game.examples)
                games += 1
                positions += len(game.examples)
                progress.update(bar, advance=1, rate=_rate(work + pool.work(), started))
                if games % _GAMES_BETWEEN_LOOKS == 0 and folder.champion() != champion:
                    pool.finish()
            work += pool.work()
    return Generated(games, positions, time.perf_counter() - started, work, bool(interrupted))


def _rate(work: Work, started: float) -> str:
    return f"{work.readouts / (time.perf_counter() - started):,.0f} readouts/s"


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[rate]}"),
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

    def handle(number: int, frame: FrameType | None) -> None:
        restore()
        action()

    for number in signals:
        signal.signal(number, handle)
    try:
        yield
    finally:
        restore()
