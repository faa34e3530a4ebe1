"""A session on a console: prints the game and what the search thinks, and shows a search while it goes on.

Knows what to print when, not how it looks, which is `seraphim.play.screen`, and not what a person may type.
"""

import contextlib
import io
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from seraphim.errors import SeraphimError
from seraphim.play import screen
from seraphim.play.opponent import Reading
from seraphim.play.session import Session

SECONDS_BETWEEN_LOOKS = 0.15  # at a search that goes on
ROWS_BELOW_BOARD = 4  # that should be on the screen with it


class Terminal:
    """Where a session is shown."""

    def __init__(self, session: Session, title: str, console: Console) -> None:
        """Show a session on a console; the title is what to call the computer."""
        self.title = title
        self.console = console
        self.marks = screen.marks_of(session.game)
        labels = [session.tree.label(action) for action in session.tree.legal()]
        # What tells the numbers of candidates from the names of moves, where these are numbers as well.
        self.numbered = "#" if any(label.isdecimal() for label in labels) else ""
        self._session = session

    def say(self, sentence: str, style: str = "") -> None:
        """Print a sentence; what cannot be printed of it is left out."""
        self.console.print(Text(printable(sentence), style))

    def complain(self, error: SeraphimError) -> None:
        """Print what a person did wrong."""
        self.say(str(error), "bold red")

    def show_hint(self, reading: Reading) -> None:
        """Print what the computer would play."""
        self.console.print(screen.draw_hint(self._session.tree, reading, self.marks[self._session.mover]))

    def prepare(self) -> None:
        """Let the search be compiled before somebody waits for it.

        Raises:
            ModelError: the model gives no numbers.
        """
        with self.console.status("preparing the search"):
            self._session.opponent.warm_up()

    def show_game(self) -> None:
        """Print the position."""
        self.console.print()
        self.console.print(self._draw_game())

    def show_reading(self, reading: Reading) -> None:
        """Print all that the search knows."""
        self.console.print(self._draw_reading(reading))

    def read(self, readouts: int, table: bool = False) -> Reading:
        """Add readouts to what the computer knows, and show at a terminal how they come.

        Ctrl-C at a terminal ends the search and not the program; then the computer waits to be told to move.

        Args:
            readouts: how many.
            table: show all that the search knows by then, and not the game.

        Raises:
            SeraphimError: see `Session.read`.
        """
        with Watch(self.console, self._draw_reading if table else self._draw_progress) as watch:
            reading = self._session.read(readouts, watch)
        if watch.interrupted:
            self._session.waiting = True
            self.say(f"stopped after {reading.readouts:,} readouts")
        return reading

    def _draw_progress(self, reading: Reading) -> RenderableType:
        status = f"thinking: {reading.readouts:,} readouts, {reading.seconds:.1f} s; Ctrl-C stops"
        return Group(self._draw_game(), Text(status, "dim"))

    def _draw_game(self) -> RenderableType:
        session = self._session
        compact = session.options.debug or not screen.rows_fit(self.console, session.tree, ROWS_BELOW_BOARD)
        play = session.opponent.play
        how = "raw network" if play.computer == "raw" else f"{session.opponent.search.readouts:,} readouts"
        first, second = ("you" if player in session.humans else f"{self.title}, {how}" for player in (0, 1))
        sides = screen.Sides((first, second), self.marks)
        return screen.draw_game(session.tree, sides, session.value, compact, self.console.width)

    def _draw_reading(self, reading: Reading) -> RenderableType:
        opponent = self._session.opponent
        if opponent.play.computer == "raw":
            how = "the computer plays by the raw network"
        else:
            how = "a move is drawn in proportion to visits" if reading.hot else "the best move is played"
        if opponent.play.temperature == "auto":
            how += f"; hot before move {opponent.search.tempering_point + 1}"
        noise = "noised priors" if opponent.play.noise else "no noise"
        session, mark = self._session, self.marks[self._session.mover]
        return screen.draw_reading(session.tree, reading, f"{how}; {noise}", mark, self.numbered, self.console.width)


class Watch:
    """Looks at a search that goes on: shows it at a terminal now and then, and ends it at Ctrl-C."""

    def __init__(self, console: Console, draw: Callable[[Reading], RenderableType]) -> None:
        """Show on a console what `draw` makes of a reading; on one that is no terminal, do nothing."""
        self.interrupted = False
        self._watches = console.is_terminal
        self._draw = draw
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._next_look = 0.0
        self._before: signal.Handlers | int | Callable[[int, FrameType | None], object] | None = None

    def __enter__(self) -> "Watch":
        """Begin."""
        self._next_look = time.perf_counter() + SECONDS_BETWEEN_LOOKS
        if self._watches and sys.stdin.isatty() and threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End, and leave nothing of it on the screen."""
        self._live.stop()
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def __call__(self, reading: Callable[[], Reading]) -> bool:
        """Look at the search, if it is time to, and return whether it is to end."""
        if self._watches and time.perf_counter() >= self._next_look:
            if not self._live.is_started:
                self._live.start()
            self._live.update(self._draw(reading()), refresh=True)
            self._next_look = time.perf_counter() + SECONDS_BETWEEN_LOOKS
        return self.interrupted

    def _interrupt(self, *_: object) -> None:
        self.interrupted = True


def printable(text: str) -> str:
    """Return a text without control characters, which could change a terminal's ways."""
    return "".join(character for character in text if character.isprintable() or character == "\n")


def line_reader(console: Console, words: Callable[[], list[str]]) -> Callable[[str], str]:
    """Return a function that takes a prompt and returns the line that is typed then, or raises EOFError at the end.

    At a terminal, lines can be edited, and completed to one of `words()`; lines from elsewhere are printed, so that
    what was said can be read afterwards.
    """
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    if not sys.stdin.isatty():

        def read_line(prompt: str) -> str:
            line = input()
            console.print(Text(f"{prompt}{printable(line)}"))
            return line

        return read_line
    with contextlib.suppress(ImportError):
        import readline

        def complete(start: str, state: int) -> str | None:
            fitting = [word for word in words() if word.startswith(start)]
            return fitting[state] if state < len(fitting) else None

        readline.set_completer(complete)
        readline.parse_and_bind("tab: complete")
    return input
