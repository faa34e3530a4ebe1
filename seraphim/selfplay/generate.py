"""Game data made: the champion's games go from the workers into files, with progress, until enough or interrupted."""

import contextlib
import dataclasses
import math
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from seraphim.records.index import played_numbers
from seraphim.records.writer import GameWriter
from seraphim.selfplay.pool import ENDLESS, Pool, Work
from seraphim.settings import Settings
from seraphim.storage.models import ModelFolder
from seraphim.tracking.tensorboard import Log

# Games between two looks at whether there is a new champion.
_GAMES_BETWEEN_LOOKS = 100
_SECONDS_BETWEEN_FIGURES = 60


@dataclass(frozen=True)
class Generated:
    """What came of generating games."""

    games: int
    positions: int
    seconds: float
    work: Work
    interrupted: bool
    earlier_games: int = 0
    """Games of the stream that were there already."""

    def figures(self) -> dict[str, float]:
        """Return the figures by name."""
        stages = {f"self_play/share_of_{stage}": share for stage, share in self._shares().items()}
        return {
            "self_play/games_per_hour": 3600 * self.games / self.seconds,
            "self_play/plies": self.positions / max(1, self.games),
            "self_play/readouts_per_second": self.work.readouts / self.seconds,
            "self_play/evaluations_per_second": self.work.evaluations / self.seconds,
            "self_play/cache_hits": self.work.hit_rate,
            **stages,
        }

    def _shares(self) -> dict[str, float]:
        total = sum(self.work.seconds.values()) or 1.0
        return {stage: seconds / total for stage, seconds in self.work.seconds.items()}

    def __str__(self) -> str:
        shares = ", ".join(f"{stage} {share:.0%}" for stage, share in self._shares().items())
        return (
            f"{self.games:,} games, {self.positions:,} positions in {self.seconds:.1f} s: "
            f"{self.work.readouts / self.seconds:,.0f} readouts/s, "
            f"{self.work.evaluations / self.seconds:,.0f} evaluations/s, cache hits {self.work.hit_rate:.0%} ({shares})"
        )


def generate_games(
    pool: Pool,
    folder: ModelFolder,
    settings: Settings,
    stream: str,
    count: int = ENDLESS,
    announce: Callable[[str], None] = print,
    log: Log | None = None,
    count_evaluations: Callable[[int], None] | None = None,
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
        log: takes the figures, once a minute and at the end, at the step of the champion.
        count_evaluations: takes how many positions the network has evaluated since it was called last.

    Raises:
        ModelError: the model has no champion, or it is damaged.
        RecordError: another program plays the same stream.
        WorkerError: a worker died.
    """
    interrupted: list[bool] = []

    def interrupt() -> None:
        interrupted.append(True)
        pool.stop()

    with (
        GameWriter(folder.game_data, settings.records, stream, settings.training.max_window) as writer,
        _interrupts_call(interrupt),
        _progress() as progress,
    ):
        played = played_numbers(folder.game_data, stream)
        tally = _Tally(len(played), log, count_evaluations)
        bar = progress.add_task("games", total=None if count == ENDLESS else count, completed=len(played), rate="")
        runtime, ended = "", False
        while not ended:
            champion = folder.champion()
            ended = True
            numbers = played.first_missing, count, frozenset(played.above)
            with contextlib.closing(pool.play(champion.path, stream, *numbers, folder.game_data)) as games:
                for game in games:
                    writer.add(game.examples)
                    played.add(game.number)
                    tally.add(len(game.examples))
                    if not runtime:
                        runtime = pool.work().runtime
                        announce(f"{pool.num_workers} workers play {champion.name} by {runtime}")
                    if tally.games % _GAMES_BETWEEN_LOOKS == 0:
                        so_far = tally.look(champion.step, pool.work())
                        rate = f"{so_far.work.readouts / so_far.seconds:,.0f} readouts/s"
                        progress.update(bar, completed=len(played), rate=rate)
                        if folder.champion() != champion:
                            pool.finish()
                            ended = False
            tally.end_of_play(pool.work())
    for positions in writer.rescued:  # games that workers had finished when they were interrupted
        tally.add(positions)
    return dataclasses.replace(tally.end(champion.step), interrupted=bool(interrupted))


class _Tally:
    # What was generated so far, and who is told about it.
    def __init__(self, earlier_games: int, log: Log | None, count_evaluations: Callable[[int], None] | None) -> None:
        self.games = 0
        self._positions = 0
        self._work = Work()  # of calls of `play` that have ended
        self._earlier_games = earlier_games
        self._log = log
        self._count_evaluations = count_evaluations
        self._counted = 0
        self._started = self._logged = time.perf_counter()

    def add(self, positions: int) -> None:
        self.games += 1
        self._positions += positions

    def look(self, step: int, work: Work) -> Generated:
        # Tells what is due; `work` is that of the call of `play` under way.
        now = time.perf_counter()
        total = self._work + work
        if self._count_evaluations:
            self._count_evaluations(total.evaluations - self._counted)
            self._counted = total.evaluations
        seconds = now - self._started
        generated = Generated(self.games, self._positions, seconds, total, False, self._earlier_games)
        if self._log and now - self._logged > _SECONDS_BETWEEN_FIGURES:
            self._logged = now
            self._log.write(step, generated.figures())
        return generated

    def end_of_play(self, work: Work) -> None:
        self._work += work

    def end(self, step: int) -> Generated:
        if self.games:
            self._logged = -math.inf
        return self.look(step, Work())


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
