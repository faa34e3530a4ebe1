"""GNU Backgammon as a player: processes that answer positions over a socket.

They read boards as FIBS writes them, the First Internet Backgammon Server (in the manual: "external player"). They play
for points, without a doubling cube, and so without the Jacoby rule.
"""

import contextlib
import os
import re
import shlex
import shutil
import socket
import tempfile
import time
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple, TextIO

import numpy as np

from seraphim.errors import GameError, NotInstalledError, PlayerError, SettingsError
from seraphim.game import Array, Game
from seraphim.game.features import features_of
from seraphim.game.notation import label_in
from seraphim.players.external.player import EnginePlayer, Moves
from seraphim.players.external.process import THINKING_SECONDS, EngineLostError, EngineProcess, EngineSilentError

STARTING_SECONDS = 60.0
GAMES_FOLDER = "/usr/games"  # where Debian puts it, which root's path leaves out
MOST_PLIES = 4  # that it looks ahead
MOST_COMPARED, LARGEST_ERROR = 8, 0.16  # plays, and points, of those that are looked into, as in its own analyses
MOST_REMEMBERED = 50_000  # positions and unfinished plays

_DICE = slice(33, 35)  # fields of a board


class GnubgProcess:
    """A process of GNU Backgammon."""

    def __init__(self, plies: int) -> None:
        """Start it.

        Raises:
            NotInstalledError: it is not installed.
            EngineLostError: it does not start.
        """
        program = shutil.which("gnubg", path=os.pathsep.join([os.environ.get("PATH", ""), GAMES_FOLDER]))
        if program is None:
            raise NotInstalledError("GNU Backgammon is not installed, as gnubg: install it (Debian: apt install gnubg)")
        self._plies, folder = plies, tempfile.TemporaryDirectory()
        command = shlex.join([program, *"--tty --quiet --no-rc --prefsdir".split(), folder.name])
        self._process = EngineProcess(command, grace=0.0)  # while it listens, it does not notice the end of its input
        self._socket = socket.socket(socket.AF_UNIX)
        self._answers = self._socket.makefile(encoding="ascii")
        self.close = weakref.finalize(self, _end, self._process, self._socket, self._answers, folder)
        """Ends it."""
        try:
            self._connect(f"{folder.name}/socket")
        except BaseException:
            self.close()
            raise

    def _connect(self, address: str) -> None:
        for setting in ("cubeful off", f"plies {self._plies}"):
            self._process.send(f"set evaluation chequer evaluation {setting}")
        self._process.send(f"external {address}")
        deadline = time.monotonic() + STARTING_SECONDS
        while not self._process.receive(deadline).startswith("Waiting for a connection"):
            pass
        self._socket.settimeout(THINKING_SECONDS)
        self._socket.connect(address)

    def moves(self, board: str) -> list[str]:
        """Return the best play of a board with dice, such as bar/23 and 6/4, none if there is none."""
        names = [re.sub("^25/", "bar/", move.rstrip("*")) for move in self._ask(board).split()]
        return [re.sub("/0$", "/off", name) for name in names]

    def equity(self, board: str, plies: int | None = None) -> float:
        """Return the points that the player who is to roll expects, by default as far ahead as moves are."""
        plies = self._plies if plies is None else plies
        return float(self._ask(f"evaluation fibsboard {board} plies {plies} cube off").split()[-1])

    def _ask(self, request: str) -> str:
        try:
            self._socket.sendall(request.encode() + b"\n")
            answer = self._answers.readline()
        except TimeoutError as error:
            raise EngineSilentError("did not answer in time") from error
        except (OSError, ValueError):
            answer = ""
        if not answer:
            raise EngineLostError("has closed its connection")
        if answer.startswith("Error"):
            raise GameError(f"GNU Backgammon answered {answer.strip()!r} to {request}")
        return answer


def _end(
    process: EngineProcess, connection: socket.socket, answers: TextIO, folder: "tempfile.TemporaryDirectory[str]"
) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)  # wakes up a thread that waits for an answer
    process.close()
    answers.close()
    connection.close()
    folder.cleanup()


class _Games:
    # The games of a player, whichever of its processes chooses, and several of which may begin alike.

    def __init__(self, game: Game) -> None:
        self._game = game
        self._plays: dict[Moves, list[str]] = {}  # what is left of a play after some moves
        self._states: dict[Moves, Array] = {}

    def play(self, moves: Moves) -> list[str] | None:
        """Return what is left of the play that was begun, if it is known."""
        return self._plays.get(moves)

    def begin(self, moves: Moves, rest: list[str]) -> None:
        """Remember what is left of a play after some moves."""
        _remember(self._plays, moves, rest)

    def state(self, moves: Moves) -> Array:
        """Return the state [W] after some moves; goes on from where it was asked before in the same game."""
        known, state = len(moves), self._states.get(moves)
        while known and state is None:
            known -= 1
            state = self._states.get(moves[:known])
        state = self._game.initial(1)[0] if state is None else state
        for action in moves[known:]:
            (state,) = self._game.step(state[None], np.array([action]))
        _remember(self._states, moves, state)
        return state


def _remember(memory: dict[Moves, Any], moves: Moves, value: Any) -> None:
    memory[moves] = value
    if len(memory) > MOST_REMEMBERED:
        for old in list(memory)[: MOST_REMEMBERED // 2]:
            memory.pop(old, None)


class GnubgEngine:
    """A process that plays the games of a player; see `Engine`."""

    title = "GNU Backgammon"
    moves: Moves = ()  # it needs positions only

    def __init__(self, game: Game, games: _Games, plies: int) -> None:
        """Start a process.

        Raises:
            PlayerError: this is another game.
            NotInstalledError, EngineLostError: see `GnubgProcess`.
        """
        board = features_of(game).fibs_board
        if board is None:
            raise PlayerError(f"gnubg plays backgammon, not {game.name}")
        self._game, self._games, self._board = game, games, board
        self._process = GnubgProcess(plies)

    def is_rolled(self, state: Array) -> bool:
        """Return whether a whole roll is to be played in a state [W]."""
        return "0" not in self._board(state).split(":")[_DICE]

    def choose(self, moves: Moves) -> int:
        """Return its action after some moves from the initial position.

        A whole roll is asked about once, and played one checker at a time.
        """
        state = self._games.state(moves)
        actions = np.flatnonzero(self._game.legal(state[None])[0]).tolist()
        play = self._games.play(moves)
        if play is None:
            if self.is_rolled(state):
                play = self._process.moves(self._board(state))
            elif len(actions) > 1:
                return self._finish(state)
        if not play:
            return actions[0]  # roll or pass
        labels = {_plain(label_in(self._game, state, action)): action for action in actions}
        # From the rearmost checker, by the larger die: what is left of the play is legal then.
        action, label = max([(labels[move], move) for move in play if move in labels], default=(-1, ""))
        if not label:
            raise GameError(f"gnubg plays {' '.join(play)}, which is not legal here:\n{self._game.render(state)}")
        rest = play.copy()
        rest.remove(label)
        self._games.begin((*moves, action), rest)
        return action

    def _finish(self, state: Array) -> int:
        # Of a roll that others began to play, by the values of all positions that it can end in.
        ends = _ends(self._game, state)
        return ends[int(np.argmax([self.value(end.state, state) for end in ends]))].first

    def value(self, end: Array, state: Array, plies: int | None = None) -> float:
        """Return the points that the player to move in a state expects after a play that ends in another state [W]."""
        ended, results = self._game.outcome(end[None])
        if not ended[0]:
            return -self._process.equity(self._board(end), plies)
        sign = -1.0 if self._game.to_play(state[None])[0] else 1.0
        return sign * float(results[0]) * (features_of(self._game).points or 1.0)

    def lost(self, state: Array, end: Array) -> float:
        """Return how many points a play of a roll loses that leads from a state to another one [W].

        Plays are valued without looking ahead first, and the best of these, and this one, as far ahead as moves are.
        """
        plays = [each.state for each in _ends(self._game, state)]
        values = np.array([self.value(each, state, 0) for each in plays])
        best = np.argsort(-values)[:MOST_COMPARED]
        compared = [plays[row] for row in best if values[row] > values.max() - LARGEST_ERROR]
        own = self.value(end, state)
        return max(0.0, *(self.value(each, state) - own for each in compared))

    def close(self) -> None:
        """End the process."""
        self._process.close()


class _End(NamedTuple):
    state: Array  # where a roll can end, int64 [W]
    first: int  # an action that leads there


def _ends(game: Game, state: Array) -> list[_End]:
    # The ways to play a roll to its end, from a state in which a player moves.
    mover, firsts = game.to_play(state[None])[0], np.flatnonzero(game.legal(state[None])[0])
    states, found = game.step(np.repeat(state[None], len(firsts), axis=0), firsts), list[_End]()
    while len(states):
        over = game.outcome(states)[0] | (game.to_play(states) != mover)
        found += [_End(*pair) for pair in zip(states[over], firsts[over].tolist(), strict=True)]
        rows, actions = np.nonzero(game.legal(states[~over]))
        states, firsts = game.step(states[~over][rows], actions), firsts[~over][rows]
        states, kept = np.unique(states, axis=0, return_index=True)
        firsts = firsts[kept]
    return found


def _plain(move: str) -> str:
    # Without stars of hits, and dice that bear off.
    return re.sub(r"\*|\(\d\)", "", move)


def gnubg_player(game: Game, plies: str) -> EnginePlayer:
    """Return the player that asks GNU Backgammon, which looks some plies ahead; errors as `EnginePlayer`.

    Raises:
        SettingsError: it cannot look as far ahead.
        PlayerError: this is another game.
    """
    if plies not in [str(number) for number in range(MOST_PLIES + 1)]:
        raise SettingsError(f"gnubg:{plies}: expected the plies that it looks ahead, 0 to {MOST_PLIES}, as in gnubg:2")
    games = _Games(game)
    return EnginePlayer(f"gnubg:{plies}", lambda: GnubgEngine(game, games, int(plies)))


def lost_points(game: Game, moves: Sequence[int], plies: int = 2) -> list[tuple[int, int, float]]:
    """Return what each play of a roll lost in a game, by GNU Backgammon: its ply, the player, and the points.

    Rolls that can be played in one way are left out; errors as `GnubgEngine`.
    """
    found, (state,), begun, start = list[tuple[int, int, float]](), game.initial(1), None, 0
    with contextlib.closing(GnubgEngine(game, _Games(game), plies)) as engine:
        for ply, action in enumerate(moves):
            player = int(game.to_play(state[None])[0])
            if begun is None and engine.is_rolled(state):
                begun, start = state, ply
            (state,) = game.step(state[None], np.array([action]))
            if begun is not None and (game.to_play(state[None])[0] != player or game.outcome(state[None])[0][0]):
                if len(_ends(game, begun)) > 1:
                    found.append((start, player, engine.lost(begun, state)))
                begun = None
    return found
