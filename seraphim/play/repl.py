"""A person at a terminal: plays the computer, walks through the branches of the game, sees what the search thinks.

Reads lines, from a person, a pipe or a test, and does what they say. What is typed wrong is told in one sentence.
"""

import contextlib
from collections.abc import Callable
from typing import NamedTuple

from rich.console import Console

from seraphim.errors import SeraphimError, SettingsError
from seraphim.game.notation import format_moves
from seraphim.game.tree import Node
from seraphim.play import screen
from seraphim.play.opponent import Reading
from seraphim.play.session import Session
from seraphim.play.terminal import Terminal, line_reader

ReadLine = Callable[[str], str]


class Command(NamedTuple):
    """What a person can type besides a move."""

    usage: str  # its name comes first
    meaning: str
    do: Callable[[str], None]  # takes the rest of the line
    aliases: tuple[str, ...] = ()


class Interactive:
    """The conversation with one person."""

    def __init__(self, session: Session, title: str, console: Console, read_line: ReadLine | None = None) -> None:
        """Prepare.

        Args:
            session: the game.
            title: what to call the computer.
            console: where to print.
            read_line: takes the prompt, returns the line typed, and raises EOFError at the end of input;
                by default, from the standard input.
        """
        self._session = session
        self._terminal = Terminal(session, title, console)
        self._read_line = read_line or line_reader(console, self.words)
        self._shown: Node | None = None  # the position that is on the screen
        self._leaving = False
        self._commands = self._make_commands()
        self._by_name = {name: each for each in self._commands for name in (each.usage.split()[0], *each.aliases)}

    def run(self) -> None:
        """Play until the person leaves, by a command, by Ctrl-C, or by the end of input."""
        terminal = self._terminal
        terminal.prepare()
        terminal.say(f"{terminal.title}: {self._session.opponent.inference.description}", "dim")
        if self._session.root_replaced:
            terminal.say("The root is searched by PUCT here: the model's own, Gumbel, cannot go on reading.", "dim")
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
        """Return what can be typed now: legal moves, and commands."""
        tree = self._session.tree
        return [*(tree.label(action) for action in tree.legal()), *self._by_name]

    def _turn(self) -> None:
        session = self._session
        automatic = session.computer_moves and not session.waiting and not session.options.debug
        try:
            # The person sees the board when it is the person's turn; of a game without one, every position.
            if not automatic or not session.humans:
                self._show()
            if automatic:
                self._computer_plays()
                return
        except SeraphimError as error:
            self._terminal.complain(error)
        line = self._read_line(self._prompt()).strip()
        try:
            self._obey(line)
        except SeraphimError as error:
            self._terminal.complain(error)

    def _prompt(self) -> str:
        session = self._session
        if session.ended:
            return "game over > "
        mark, enter = self._terminal.marks[session.mover], ""
        if session.options.debug or session.computer_moves:
            drawn = session.reading is None or session.reading.hot or session.opponent.play.computer == "raw"
            what = "lets the computer play"
            if session.options.debug and session.reading is not None and not drawn:
                what = f"plays {session.tree.label(session.reading.best)}"
            enter = f", Enter {what}"
        return f"{mark} to move{enter} > "

    def _obey(self, line: str) -> None:
        # A move if it is one, and else a command: `:undo` is a command though there be a move of that name.
        session = self._session
        word, _, rest = line.removeprefix(":").partition(" ")
        action = None if line.startswith(":") else session.find_action(line)
        command, number = self._by_name.get(word.lower()), line.removeprefix("#")
        if not line:
            self._enter()
        elif action is not None and (command is None or action in session.tree.legal()):
            session.play(action)
        elif command is not None:
            command.do(rest.strip())
        elif number.isdecimal() and (line.startswith("#") or not self._terminal.numbered):
            session.play(self._candidate(int(number)))
        else:
            moves = "undo, new or q" if session.ended else f"{session.tree.name_moves()}, or help"
            raise SettingsError(f"{line!r} is neither a move nor a command: expected {moves}")

    def _candidate(self, number: int) -> int:
        reading = self._session.reading
        if reading is None:
            raise SettingsError("no candidates are shown here: table shows them with their numbers")
        if not 1 <= number <= len(reading.candidates):
            raise SettingsError(
                f"there is no candidate {number}: expected a number from 1 to {len(reading.candidates)}"
            )
        return reading.candidates[number - 1].action

    def _enter(self) -> None:
        session = self._session
        if session.ended:
            self._terminal.say("The game is over: undo takes moves back, new begins another game, q leaves.")
        elif session.options.debug or session.computer_moves:
            self._computer_plays()
        else:
            example = session.tree.label(session.tree.legal()[0])
            self._terminal.say(f"It is your move, such as {example}: hint tells what the computer would play.")

    def _show(self) -> None:
        session = self._session
        if self._shown is session.tree.node:
            return
        self._shown = session.tree.node
        self._terminal.show_game()
        if session.options.debug and not session.ended:
            self._terminal.show_reading(self._known())

    def _known(self) -> Reading:
        # What is known of this position, which is read if it was not yet.
        session = self._session
        return session.reading or self._terminal.read(session.opponent.search.readouts, session.options.debug)

    # ------------------------------------------------------------ what the computer does

    def _computer_plays(self) -> None:
        # In debug mode by what is on the screen already; elsewhere it thinks first.
        session, terminal = self._session, self._terminal
        session.check_unfinished()
        if session.opponent.play.computer == "raw":
            self._raw_plays()
            return
        mark = terminal.marks[session.mover]
        session.waiting = False
        try:
            reading = self._known() if session.options.debug else terminal.read(session.opponent.search.readouts)
        except SeraphimError:
            session.waiting = True  # or it would be tried again and again
            raise
        if session.waiting and not session.options.debug:
            return  # it was stopped
        action = session.opponent.choose(session.tree)
        label = session.tree.label(action)
        session.play(action)
        chosen = next(each for each in reading.candidates if each.action == action)
        terminal.say(
            f"{mark} plays {label}: {chosen.share:.0%} of the visits ({reading.total:,}), "
            f"expects {chosen.q:+.2f}, {reading.seconds:.2f} s"
        )

    def _raw_plays(self) -> None:
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
        session = self._session
        return [
            Command("play", "let the computer make this move, whoever's turn it is", self._play, ("p",)),
            Command("raw", "let the network make this move without a search", lambda _: self._raw_plays()),
            Command("hint", "what the computer would play", self._hint, ("h",)),
            Command("table", "all that the search knows of each move", self._table, ("t",)),
            Command("more N", "N more readouts on the same tree", self._more, ("m",)),
            Command("undo [N]", "take back your last move, or N moves", lambda n: session.undo(_count(n)), ("u",)),
            Command("redo [N]", "play again what was taken back", lambda n: session.redo(_count(n)), ("r",)),
            Command("branches", "all lines of the game: what else was played", self._branches, ("b",)),
            Command("go PLACE", "start, end, a number of moves, or a line: B, B3", session.go, ("g",)),
            Command("new", "begin another game", lambda _: session.new(), ("n",)),
            Command("load WHAT", "moves, a drawing, a saved game, or FILE.tfrecord:RECORD", self._load, ("l",)),
            Command("save FILE", "write the game with its branches", self._save, ("s",)),
            Command("set [NAME VALUE]", "all options, or a change of one: set readouts 800", self._set),
            Command("debug", "show the search's insides before each move, or no longer", self._debug, ("d",)),
            Command("board", "show the board again", self._again),
            Command("help", "this list", self._help, ("?",)),
            Command("q", "leave, as do Ctrl-C and Ctrl-D", self._leave, ("quit", "exit")),
        ]

    def _play(self, _: str) -> None:
        self._computer_plays()

    def _hint(self, _: str) -> None:
        self._terminal.show_hint(self._known())

    def _table(self, _: str) -> None:
        self._terminal.show_reading(self._known())

    def _more(self, text: str) -> None:
        readouts = _count(text)
        if not readouts:
            raise SettingsError("how many readouts more? Try: more 1000")
        self._terminal.show_reading(self._terminal.read(readouts, table=True))

    def _branches(self, _: str) -> None:
        self._terminal.console.print(screen.draw_lines(self._session.tree))

    def _load(self, text: str) -> None:
        if not text:
            self._terminal.say("moves, or a drawing; an empty line ends it:", "dim")
            lines: list[str] = []
            with contextlib.suppress(EOFError):
                while line := self._read_line("").rstrip():
                    lines.append(line)
            text = "\n".join(lines)
        if not text:
            raise SettingsError("load what? Try: load and some moves, or the name of a file")
        self._session.load(text)
        self._again("")

    def _save(self, file: str) -> None:
        if not file:
            raise SettingsError("save where? Try: save game.txt")
        self._session.save(file)
        self._terminal.say(f"saved in {file}")

    def _set(self, text: str) -> None:
        words = text.replace("=", " ").split()
        if not words:
            self._terminal.console.print(screen.draw_options(self._session.settings()))
            return
        if len(words) != 2:
            raise SettingsError("expected the name of an option and its new value: set readouts 800")
        self._session.change(words[0].removeprefix("--"), words[1])
        self._again("")

    def _debug(self, _: str) -> None:
        self._session.change("debug", "off" if self._session.options.debug else "on")
        self._again("")

    def _again(self, _: str) -> None:
        self._shown = None

    def _help(self, _: str) -> None:
        debug = self._session.options.debug
        enter = (
            "the computer's move; a candidate's number plays that one"
            if debug
            else "lets the computer move if it waits"
        )
        commands = [(", ".join((each.usage, *each.aliases)), each.meaning) for each in self._commands]
        self._terminal.console.print(screen.draw_help([("a move", "plays it"), ("Enter", enter), *commands]))

    def _leave(self, _: str) -> None:
        self._leaving = True


def _count(text: str) -> int | None:
    # None if nothing was said.
    if text and not text.replace(",", "").isdecimal():
        raise SettingsError(f"expected a whole number, not {text!r}")
    return int(text.replace(",", "")) if text else None
