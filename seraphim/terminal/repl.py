"""The commands of a person at a terminal: play the computer, explore the branches of a game, inspect the search.

Reads lines from a terminal, a pipe or a test. Invalid input is answered with one sentence.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from seraphim.errors import SeraphimError, SettingsError
from seraphim.game.features import has_chance, value_text
from seraphim.game.notation import format_moves
from seraphim.game.tree import GameNode
from seraphim.players.choose import HistoryPlayer
from seraphim.search.analysis import PositionAnalysis
from seraphim.terminal import game_files, screen
from seraphim.terminal.session import GameSession
from seraphim.terminal.terminal import Terminal, line_reader

ReadLine = Callable[[str], str]

_MOST_DIGITS = 9  # of a number that a person types


class Command(NamedTuple):
    """A command other than a move."""

    usage: str  # starts with the name
    meaning: str
    run: Callable[[str], None]  # takes the rest of the line
    aliases: tuple[str, ...] = ()


class Interactive:
    """A read-eval-print loop over a session."""

    def __init__(self, session: GameSession, title: str, console: Console, read_line: ReadLine | None = None) -> None:
        """Create the loop.

        Args:
            session: the game.
            title: the computer's name.
            console: where to print.
            read_line: takes the prompt, returns the next line, and raises EOFError at the end of input;
                by default, reads standard input.
        """
        self._session = session
        self._terminal = Terminal(session, title, console)
        self._read_line = read_line or line_reader(console, self.words)
        self._shown: GameNode | None = None  # the position on the screen
        self._leaving = False
        self._commands = self._make_commands()
        self._by_name = {name: each for each in self._commands for name in (each.usage.split()[0], *each.aliases)}

    def run(self) -> None:
        """Play until the user leaves by a command, Ctrl-C or the end of input."""
        terminal, opponent = self._terminal, self._session.opponent
        with terminal.console.status("preparing the search"):
            opponent.warm_up()
        terminal.say(f"{terminal.title}: {opponent.inference.description}", "dim")
        if self._session.root_replaced:
            root = self._session.root_replaced
            terminal.say(f"The search is by PUCT here: with root={root}, none can be resumed.", "dim")
        terminal.say("Type a move or a command; help lists the commands, q leaves.", "dim")
        try:
            while not self._leaving:
                self._turn()
        except (EOFError, KeyboardInterrupt):
            terminal.console.print()
        tree = self._session.tree
        if tree.node.ply and tree.starts_afresh:
            terminal.say(f"moves: {format_moves(tree.game, tree.actions())}", "dim")

    def words(self) -> list[str]:
        """Return the words that can be typed now: legal moves and commands."""
        tree = self._session.tree
        return [*(tree.label(action) for action in tree.legal()), *self._by_name]

    def _turn(self) -> None:
        session = self._session
        if session.rolls_itself:
            self._roll()
            return
        automatic = session.computer_moves and not session.waiting and not session.options.debug
        with self._errors_shown():
            # The board is shown at the user's turns; if the user plays neither side, at every position.
            if not automatic or not session.humans:
                self._show()
            if automatic:
                self._play_computer()
                return
        line = self._read_line(self._prompt()).strip()
        with self._errors_shown():
            self._execute(line)

    @contextlib.contextmanager
    def _errors_shown(self) -> Iterator[None]:
        try:
            yield
        except SeraphimError as error:
            self._terminal.say(str(error), "bold red")

    def _prompt(self) -> str:
        session = self._session
        if session.ended:
            return "game over > "
        if session.chance_moves:
            return f"chance moves, such as {session.example}, Enter rolls > "
        enter = ""
        if session.options.debug or session.computer_moves:
            enter = ", Enter lets the computer play"
            others_move = session.proven is not None or session.engine is not None
            others_move = others_move or session.opponent.play.computer == "raw"
            sampled = session.opponent.is_sampled(session.tree.node)
            if session.options.debug and session.analysis and not sampled and not others_move:
                enter = f", Enter plays {session.analysis.best}"
        return f"{self._terminal.marks[session.mover]} to move{enter} > "

    def _execute(self, line: str) -> None:
        # A legal move takes precedence over a command; with a colon, as in `:undo`, it is always a command.
        session = self._session
        word, _, rest = line.removeprefix(":").partition(" ")
        action = None if line.startswith(":") else session.find_action(line)
        command, number = self._by_name.get(word.lower()), line.removeprefix("#")
        is_number = number.isdecimal() and len(number) <= _MOST_DIGITS
        if not line:
            self._enter()
        elif action is not None and (command is None or action in session.tree.legal()):
            session.play(action)
        elif command is not None:
            command.run(rest.strip())
        elif is_number and not session.chance_moves and (line.startswith("#") or not self._terminal.numbered):
            session.play(self._candidate(int(number)))
        else:
            moves = "undo, new or q" if session.ended else f"{session.tree.name_moves()}, or help"
            raise SettingsError(f"{line!r} is neither a move nor a command: expected {moves}")

    def _candidate(self, number: int) -> int:
        found = self._session.analysis
        if found is None:
            raise SettingsError("no candidates are shown here: table shows them with their numbers")
        count = len(found.moves)
        if not 1 <= number <= count:
            raise SettingsError(f"there is no candidate {number}: expected a number from 1 to {count}")
        return found.moves[number - 1].action

    def _enter(self) -> None:
        session = self._session
        if session.ended:
            self._terminal.say("The game is over: undo takes moves back, new begins another game, q leaves.")
        elif session.chance_moves:
            self._roll()
        elif session.options.debug or session.computer_moves:
            self._play_computer()
        else:
            self._terminal.say(f"It is your move, such as {session.example}; hint shows what the computer would play.")

    def _roll(self) -> None:
        # As often as chance moves in a row.
        session, outcomes = self._session, [self._session.roll()]
        while session.rolls_itself:
            outcomes.append(session.roll())
        self._terminal.say(f"chance: {' '.join(outcomes)}", "bold")

    def _show(self) -> None:
        session = self._session
        if self._shown is session.tree.node:
            return
        self._shown = session.tree.node
        self._terminal.show_game()
        if session.options.debug and not (session.ended or session.chance_moves):
            self._terminal.show_analysis(self._analysis())

    def _analysis(self) -> PositionAnalysis:
        # The search's results for this position, which is searched first if necessary.
        session = self._session
        return session.analysis or self._terminal.read(session.opponent.search.readouts, session.options.debug)

    # ------------------------------------------------------------ the computer's moves

    def _play_computer(self) -> None:
        # In debug mode the computer uses the results on the screen; otherwise it searches first.
        session, terminal = self._session, self._terminal
        session.check_unfinished()
        mark = terminal.marks[session.mover]
        if (proven := session.proven) is not None:
            label = session.tree.label(proven.action)
            session.play(proven.action)
            terminal.say(f"{mark} plays {label}: it is proven that {proven.claim}, in at most {proven.plies} plies")
            return
        if session.engine is not None:
            self._play_engine(session.engine)
            return
        if session.opponent.play.computer == "raw":
            self._play_raw()
            return
        session.waiting = False
        try:
            found = self._analysis() if session.options.debug else terminal.read(session.opponent.search.readouts)
        except SeraphimError:
            session.waiting = True  # or it would fail again and again
            raise
        if session.waiting and not session.options.debug:
            return  # the search was stopped
        action = session.opponent.choose(session.tree)
        label = session.tree.label(action)
        session.play(action)
        chosen = next(each for each in found.moves if each.action == action)
        visits = "" if session.opponent.search.by_turns else f"{chosen.share:.0%} of the visits ({found.readouts:,}), "
        terminal.say(
            f"{mark} plays {label}: {visits}expects {value_text(chosen.value, found.points)}, {found.seconds:.2f} s"
        )

    def _play_engine(self, engine: HistoryPlayer) -> None:
        session, terminal = self._session, self._terminal
        mark, began = terminal.marks[session.mover], time.perf_counter()
        session.waiting = True  # where it fails
        with terminal.console.status("the other program thinks"):
            action = session.choose_by_engine(engine)
        label = session.tree.label(action)
        session.play(action)
        terminal.say(f"{mark} plays {label}: {terminal.title}, {time.perf_counter() - began:.2f} s")

    def _play_raw(self) -> None:
        session = self._session
        session.check_unfinished()
        mark = self._terminal.marks[session.mover]
        action = session.opponent.choose_raw(session.tree)
        prior = session.opponent.raw_priors(session.tree.node.state)[action]
        label = session.tree.label(action)
        session.play(action)
        self._terminal.say(f"{mark} plays {label}: the raw network's choice, with a prior of {prior:.0%}")

    # ------------------------------------------------------------ commands

    def _make_commands(self) -> list[Command]:
        session, terminal, show = self._session, self._terminal, self._terminal.console.print
        return [
            Command("play", "let the computer make this move", lambda _: self._play_computer(), ("p",)),
            Command("raw", "let the network make this move without a search", lambda _: self._play_raw()),
            Command("hint", "what the computer would play", lambda _: terminal.show_hint(self._analysis()), ("h",)),
            Command("table", "search results of all moves", lambda _: terminal.show_analysis(self._analysis()), ("t",)),
            Command("more N", "search N more readouts", self._more, ("m",)),
            Command("undo [N]", "take back your last move, or N moves", lambda n: session.undo(_count(n)), ("u",)),
            Command("redo [N]", "replay what was taken back", lambda n: session.redo(_count(n)), ("r",)),
            Command("branches", "all lines of the game", lambda _: show(screen.draw_lines(session.tree)), ("b",)),
            Command("go PLACE", "start, end, a number of moves, or a line: B, B3", session.go, ("g",)),
            Command("new", "start a new game", lambda _: session.new(), ("n",)),
            Command("load WHAT", "moves, a board diagram, a saved game, or FILE.tfrecord:RECORD", self._load, ("l",)),
            Command("save FILE", "write the game with its branches", self._save, ("s",)),
            Command("set [NAME VALUE]", "list the options, or set one: set readouts 800", self._set),
            Command("debug", "turn search results before each move on or off", self._debug, ("d",)),
            Command("board", "show the board again", self._redraw),
            Command("help", "this list", self._help, ("?",)),
            Command("q", "leave, as do Ctrl-C and Ctrl-D", self._leave, ("quit", "exit")),
        ]

    def _more(self, text: str) -> None:
        readouts = _count(text)
        if not readouts:
            raise SettingsError("how many more readouts? Try: more 1000")
        if self._session.opponent.search.by_turns:
            raise SettingsError("more changes nothing where whole turns are valued: set turns 2, or set root puct")
        self._terminal.show_analysis(self._terminal.read(readouts, table=True))

    def _load(self, text: str) -> None:
        if not text:
            self._terminal.say("moves or a board diagram; end with an empty line:", "dim")
            lines: list[str] = []
            with contextlib.suppress(EOFError):
                while line := self._read_line("").rstrip():
                    lines.append(line)
            text = "\n".join(lines)
        if not text:
            raise SettingsError("load what? Try: load and some moves, or the name of a file")
        self._session.load(text)
        self._redraw()

    def _save(self, file: str) -> None:
        if not file:
            raise SettingsError("save where? Try: save game.txt")
        game_files.save(self._session.tree, Path(file))
        self._terminal.say(f"saved in {file}")

    def _set(self, text: str) -> None:
        words = text.replace("=", " ").split()
        if not words:
            self._terminal.console.print(screen.draw_options(self._session.settings()))
            return
        if len(words) != 2:
            raise SettingsError("expected the name of an option and its new value: set readouts 800")
        self._session.change(words[0].removeprefix("--"), words[1])
        self._redraw()

    def _debug(self, _: str) -> None:
        self._set(f"debug {'off' if self._session.options.debug else 'on'}")

    def _redraw(self, _: str = "") -> None:
        self._shown = None

    def _help(self, _: str) -> None:
        enter = "let the computer move if it is waiting"
        if self._session.options.debug:
            enter = "play the computer's move; a candidate's number plays that candidate"
        if has_chance(self._session.game):
            enter += "; roll, where the program does not by itself (set rolls enter|program)"
        commands = [(", ".join((each.usage, *each.aliases)), each.meaning) for each in self._commands]
        self._terminal.console.print(screen.draw_help([("a move", "play it"), ("Enter", enter), *commands]))

    def _leave(self, _: str) -> None:
        self._leaving = True


def _count(text: str) -> int | None:
    # None for an empty text.
    digits = text.replace(",", "")
    if text and not digits.isdecimal():
        raise SettingsError(f"expected a whole number, not {text[:20]!r}")
    if len(digits) > _MOST_DIGITS:
        raise SettingsError(f"expected a number of at most {_MOST_DIGITS} digits, not {text[:20]!r}")
    return int(digits) if text else None
