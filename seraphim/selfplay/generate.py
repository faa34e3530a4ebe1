"""Generates game data: the champion's games go from the workers into files, until there are enough or on Ctrl-C."""

import contextlib
import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from seraphim import jit
from seraphim.machine import on_interrupt, same_random_state, say
from seraphim.records.index import played_numbers
from seraphim.records.writer import GameWriter
from seraphim.search import traversal
from seraphim.selfplay.pool import ENDLESS, Pool, Work
from seraphim.settings import Settings
from seraphim.storage.models import ModelFolder
from seraphim.tracking.tensorboard import Log

with same_random_state():  # of which Rich takes a number
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

_GAMES_BETWEEN_CHECKS = 100  # for a new champion
_SECONDS_BETWEEN_METRICS = 60


@dataclass(frozen=True)
class Generated:
    """The games that a call of `generate_games` added."""

    games: int
    positions: int
    seconds: float
    work: Work
    interrupted: bool
    earlier_games: int = 0
    """Games of the stream that were stored before."""

    def figures(self) -> dict[str, float]:
        """Return the metrics by name."""
        return {
            "self_play/games_per_hour": 3600 * self.games / self.seconds,
            "self_play/plies": self.positions / max(1, self.games),
            "self_play/readouts_per_second": self.work.readouts / self.seconds,
            "self_play/evaluations_per_second": self.work.evaluations / self.seconds,
            "self_play/cache_hits": self.work.hit_rate,
            **{f"self_play/share_of_{stage}": share for stage, share in self._shares().items()},
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
    notify: Callable[[str], None] = say,
    log: Log | None = None,
) -> Generated:
    """Let the champion play the first `count` games of a stream, and write them to the model's game data.

    Games of the stream that an interrupted call has stored are not played again. When another snapshot becomes the
    champion, the games under way are finished, and it plays the next ones. On Ctrl-C (or SIGTERM) all finished games
    are written; a second one ends the program at once.

    Args:
        pool: the workers; not to be used again after an interrupt.
        folder: of the model.
        settings: of the model.
        stream: seed string of the games' random streams.
        count: number of games.
        notify: receives a line on the workers, the snapshot and the runtime.
        log: receives the metrics, once a minute and at the end, at the champion's step.

    Raises:
        ModelError: the model has no champion, or it is damaged.
        RecordError: another program plays the same stream.
        WorkerError: a worker died.
    """
    champion, interrupted = folder.champion(), False

    def stop() -> None:
        nonlocal interrupted
        interrupted = True
        pool.stop()

    with (
        GameWriter(folder.game_data, settings.records, stream, settings.training.max_window, notify) as writer,
        on_interrupt(stop),
        _progress_bar() as progress,
    ):
        played = played_numbers(folder.game_data, stream)
        tally = _Tally(len(played), log)
        bar = progress.add_task("games", total=None if count == ENDLESS else count, completed=len(played), rate="")
        runtime, ended = "", False
        if not _is_compiled():
            notify("compiling the kernels, once; up to a minute")
        while not (ended or interrupted):
            champion = folder.champion()
            ended = True
            first, skip = played.first_missing, frozenset(played.above)
            with contextlib.closing(pool.play(champion.path, stream, first, count, skip, folder.game_data)) as games:
                for game in games:
                    writer.add(game.examples)
                    played.add(game.number)
                    tally.add(len(game.examples))
                    if not runtime:
                        runtime = pool.work().runtime
                        workers = f"{pool.num_workers} workers, snapshot {champion.name}, {runtime}"
                        search = settings.at_step(champion.step).self_play_search
                        readouts = f"{search.readouts:,} readouts a move"
                        moves = search.root if search.by_turns else readouts
                        notify(f"self-play: {workers}, {moves}")
                    if tally.games % _GAMES_BETWEEN_CHECKS == 0:
                        generated = tally.summarize(pool.work(), champion.step)
                        rate = f"{generated.work.readouts / generated.seconds:,.0f} readouts/s"
                        progress.update(bar, completed=len(played), rate=rate)
                        if folder.champion() != champion:
                            pool.finish()
                            ended = False
            tally.past_work += pool.work()
    for positions in writer.rescued:  # games that workers had finished when they were interrupted
        tally.add(positions)
    return dataclasses.replace(tally.summarize(Work(), champion.step, final=True), interrupted=interrupted)


def _is_compiled() -> bool:
    # Whether machine code of the search is kept, or none is made.
    folders = jit.folders(Path(traversal.__file__).parent)
    return bool(jit.config.DISABLE_JIT) or any(True for folder in folders for _ in folder.glob("*-*"))


class _Tally:
    # Counts what was generated so far, and logs it when that is due.
    def __init__(self, earlier_games: int, log: Log | None) -> None:
        self.games = 0
        self.past_work = Work()  # of calls of `play` that have ended
        self._positions = 0
        self._earlier_games = earlier_games
        self._log = log
        self._started = self._logged = time.perf_counter()

    def add(self, positions: int) -> None:
        self.games += 1
        self._positions += positions

    def summarize(self, work: Work, step: int, final: bool = False) -> Generated:
        # Adds the `work` of the call of `play` under way.
        now = time.perf_counter()
        generated = Generated(
            self.games, self._positions, now - self._started, self.past_work + work, False, self._earlier_games
        )
        if self._log and ((final and self.games) or now - self._logged > _SECONDS_BETWEEN_METRICS):
            self._logged = now
            self._log.write(step, generated.figures())
        return generated


def _progress_bar() -> Progress:
    console = Console()
    columns = BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[rate]}")
    name = TextColumn("{task.description}")
    return Progress(name, *columns, console=console, disable=not console.is_terminal, transient=True)
