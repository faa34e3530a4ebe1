"""Shows a session on a console: the game, the search's results, and a search while it runs.

Decides what to print and when. `screen`, beside it, decides how it looks; `repl` reads commands.
"""

import contextlib
import io
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from seraphim.players.opponent import Watch
from seraphim.search.analysis import PositionAnalysis
from seraphim.terminal import screen
from seraphim.terminal.session import GameSession

SECONDS_PER_UPDATE = 0.15  # of a running search
ROWS_BELOW_BOARD = 4  # to keep free on the screen


class Terminal:
    """Prints a session."""

    def __init__(self, session: GameSession, title: str, console: Console) -> None:
        """Show a session on a console; the title is the computer's name."""
        self.title = title
        self.console = console
        self.marks = screen.marks_of(session.game)
        labels = [session.tree.label(action) for action in session.tree.legal()]
        # Candidates are numbered #1, #2, ... if moves are numbers themselves.
        self.numbered = "#" if any(label.isdecimal() for label in labels) else ""
        self._session = session

    def say(self, sentence: str, style: str = "") -> None:
        """Print a sentence without its control characters."""
        self.console.print(Text(printable(sentence), style))

    def show_hint(self, found: PositionAnalysis) -> None:
        """Print what the computer would play."""
        self.console.print(screen.draw_hint(self._session.tree, found, self.marks[self._session.mover]))

    def show_game(self) -> None:
        """Print the position."""
        self.console.print()
        self.console.print(self._draw_game())

    def show_analysis(self, found: PositionAnalysis) -> None:
        """Print the search's results for each move."""
        self.console.print(self._draw_analysis(found))

    def read(self, readouts: int, table: bool = False) -> PositionAnalysis:
        """Search the position, and show the progress if the console is a terminal.

        There, Ctrl-C stops the search instead of the program; the computer then waits for a command.

        Args:
            readouts: how many to add.
            table: whether the progress shows the table of candidates instead of the game.

        Raises:
            SeraphimError: see `GameSession.read`.
        """
        draw = self._draw_analysis if table else self._draw_progress
        with _interruptible(self.console.is_terminal) as interrupted, self._live(draw, interrupted) as watch:
            found = self._session.read(readouts, watch)
        if interrupted.is_set():
            self._session.waiting = True
            self.say(f"stopped after {found.new_readouts:,} readouts")
        return found

    @contextlib.contextmanager
    def _live(
        self, draw: Callable[[PositionAnalysis], RenderableType], interrupted: threading.Event
    ) -> Iterator[Watch]:
        # Yields a function that draws a running search now and then, and stops it when interrupted.
        live = Live(console=self.console, auto_refresh=False, transient=True)
        next_update = time.perf_counter() + SECONDS_PER_UPDATE

        def watch(found: Callable[[], PositionAnalysis]) -> bool:
            nonlocal next_update
            if self.console.is_terminal and time.perf_counter() >= next_update:
                live.start()  # does nothing if it is started
                live.update(draw(found()), refresh=True)
                next_update = time.perf_counter() + SECONDS_PER_UPDATE
            return interrupted.is_set()

        try:
            yield watch
        finally:
            live.stop()

    def _draw_progress(self, found: PositionAnalysis) -> RenderableType:
        status = f"thinking: {found.new_readouts:,} readouts, {found.seconds:.1f} s; Ctrl-C stops"
        return Group(self._draw_game(), Text(status, "dim"))

    def _draw_game(self) -> RenderableType:
        session, console = self._session, self.console
        compact = session.options.debug or not screen.rows_fit(console, session.tree, ROWS_BELOW_BOARD)
        raw = session.opponent.play.computer == "raw"
        how = "raw network" if raw else session.opponent.search.effort
        computer = self.title if session.engine else f"{self.title}, {how}"
        names = tuple("you" if player in session.humans else computer for player in range(len(self.marks)))
        return screen.draw_game(session.tree, screen.Sides(names, self.marks), session.values, compact, console.width)

    def _draw_analysis(self, found: PositionAnalysis) -> RenderableType:
        session, opponent = self._session, self._session.opponent
        sampled = opponent.is_sampled(session.tree.node)
        if opponent.play.computer == "raw":
            how = "the computer plays the raw network's move"
        else:
            how = "the move is sampled in proportion to visits" if sampled else "the best move is played"
        if opponent.play.temperature == "auto":
            how += f"; hot before move {opponent.search.tempering_point + 1}"
        how += "; noised priors" if opponent.play.noise else "; no noise"
        shown = screen.draw_table(
            session.tree,
            found,
            session.visits_before,
            opponent.raw_priors(session.tree.node.state),
            self.numbered,
            self.console.width,
        )
        return Group(shown, screen.draw_summary(session.game, found, how, sampled, self.marks[session.mover]))


@contextlib.contextmanager
def _interruptible(is_terminal: bool) -> Iterator[threading.Event]:
    # At a terminal, Ctrl-C sets the event instead of raising KeyboardInterrupt.
    interrupted = threading.Event()
    if not (is_terminal and sys.stdin.isatty() and threading.current_thread() is threading.main_thread()):
        yield interrupted
        return
    before = signal.signal(signal.SIGINT, lambda *_: interrupted.set())
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)


def printable(text: str) -> str:
    """Return a text without control characters, which could change the state of a terminal."""
    return "".join(character for character in text if character.isprintable() or character == "\n")


def line_reader(console: Console, words: Callable[[], list[str]]) -> Callable[[str], str]:
    """Return a function that prints a prompt and returns the next line, or raises EOFError at the end of input.

    At a terminal, lines can be edited, and Tab completes to one of `words()`; other input is echoed.
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
            return dict(enumerate(word for word in words() if word.startswith(start))).get(state)

        readline.set_completer(complete)
        readline.parse_and_bind("tab: complete")
    return input
