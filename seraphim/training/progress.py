"""The lap: what was done since the last line of a learning curve, on disk, so that a program may be killed at any time.

Without it, a curve would not count the time and the games of what was under way when its program was killed.
"""

import contextlib
import dataclasses
import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from seraphim.storage.atomic import replace_file
from seraphim.training.curve import LearningCurve

LAP = ".lap.json"
"""The file's name in a model's folder."""

_SECONDS_BETWEEN_LOOKS = 2.0


@dataclass(frozen=True)
class Done:
    """What was done."""

    lines: int
    """Lines of the curve before: of another number of lines, the lap is over."""
    seconds: float = 0.0
    """By the clock, while programs ran."""
    games: int = 0
    """Of finished streams."""
    evaluations: int = 0
    """By the network."""
    stream: str = ""
    """The last stream whose games are counted; none if empty."""


class Lap:
    """The lap under way; its clock runs from the start, and in a `with` statement it is kept on disk.

    Attributes:
        done: what was done so far, as of the last look at the clock.
    """

    def __init__(self, curve: LearningCurve, file: Path) -> None:
        """Go on with the lap in `file` if it belongs to the next line of the curve, else begin it."""
        self._curve = curve
        self._file = file
        self._looked = time.perf_counter()
        self._changing = threading.Lock()
        self._ended = threading.Event()
        self.done = _read(file) or Done(curve.lines)
        if self.done.lines != curve.lines:
            self.done = Done(curve.lines)

    def count_games(self, stream: str, games: int) -> None:
        """Add the games of a finished stream, if they are not counted yet."""
        if stream != self.done.stream:
            self._change(stream=stream, games=self.done.games + games)

    def count_evaluations(self, evaluations: int) -> None:
        """Add evaluations."""
        self._change(evaluations=self.done.evaluations + evaluations)

    def finish(self, step: int, figures: Mapping[str, float]) -> None:
        """Add a line to the curve, as `LearningCurve.add` does, and begin the next lap."""
        self._change()
        done = {"games": self.done.games, "evaluations": self.done.evaluations}
        self._curve.add(step, self.done.seconds, done, figures)
        with self._changing:
            self.done = Done(self._curve.lines)
        self._change()

    def __enter__(self) -> Self:
        """Begin to keep what is done."""
        threading.Thread(target=self._look_again_and_again, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Keep what was done at last."""
        self._ended.set()
        self._change()

    def _look_again_and_again(self) -> None:
        while not self._ended.wait(_SECONDS_BETWEEN_LOOKS):
            with contextlib.suppress(OSError):  # if that stays, the main thread meets it too
                self._change()

    def _change(self, **changes: object) -> None:
        # Also looks at the clock. The file is always whole.
        with self._changing:
            now = time.perf_counter()
            seconds = self.done.seconds + now - self._looked
            self.done, self._looked = dataclasses.replace(self.done, seconds=seconds, **changes), now  # type: ignore[arg-type]
            replace_file(self._file, json.dumps(dataclasses.asdict(self.done)).encode())


def _read(file: Path) -> Done | None:
    try:
        return Done(**json.loads(file.read_text()))
    except (OSError, ValueError, TypeError):  # there is none
        return None
