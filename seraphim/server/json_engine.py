"""Seraphim as an analysis engine: a JSON object a line in, one a line out, and many positions in one batch.

Fields are named as in KataGo's analysis engine where they mean the same (docs/analysis-engine.md). Answers come when
they are found, in any order: lines are read while earlier positions are searched. Knows one model and one client.
"""

import contextlib
import json
import math
import queue
import re
import threading
import time
from typing import IO, Annotated, Any, Literal

from seraphim.errors import GameError, SettingsError, shown, version
from seraphim.game import Game, board_of
from seraphim.game.features import check_two_players
from seraphim.game.notation import parse_move
from seraphim.game.tree import GameTree
from seraphim.options import Above0, Range, converted
from seraphim.players.model import Model
from seraphim.search.analysis import LEAVES, PositionAnalysis
from seraphim.search.tree import MOST_ACTIONS
from seraphim.server.searcher.limits import SearchLimits
from seraphim.server.searcher.messages import Message, error_text
from seraphim.server.searcher.shared_search import Line, OnUpdate, Session, Task
from seraphim.server.searcher.shared_turns import share

PROTOCOL = 1
"""Version of the protocol: a number that changes when a client must."""
MAX_BYTES = 64 * 1024  # of a line
MAX_VISITS = 100_000  # of a position
MAX_IN_FLIGHT = 1_000  # positions; further lines are read when there is room
LIMITS = SearchLimits(trees=128, max_wait=math.inf, variation=MOST_ACTIONS)

_LINES_AHEAD = 100  # that are read and not yet taken
_ID = re.compile(r'"id"\s*:\s*("[^"\\]*"|-?[1-9][0-9]{0,14}(?![.\w])|0(?![.\w]))')
_Id = str | int
_QUERY: dict[str, Any] = {
    "id": _Id,
    "moves": list,
    "analyzeTurns": list,
    "maxVisits": Annotated[int, Range(1, MAX_VISITS)],
    "priority": Annotated[int, Range(-MAX_VISITS, MAX_VISITS)],
    "includePolicy": bool,
    "reportDuringSearchEvery": Above0,
}
_ACTION: dict[str, Any] = {
    "id": _Id,
    "action": Literal["query_version", "clear_cache", "terminate", "terminate_all"],
    "terminateId": _Id,
    "turnNumbers": list,
}


class _QueryError(Exception):
    """A line that cannot be answered, and the field that is wrong."""

    def __init__(self, reason: str, field: str | None = None) -> None:
        super().__init__(reason)
        self.field = field


class JsonServer:
    """Answers lines about positions of one game."""

    def __init__(self, model: Model, lines: IO[bytes], out: IO[str], limits: SearchLimits = LIMITS) -> None:
        """Load and compile everything; `out` gets the answers to `lines`.

        Raises:
            GameError: it is a game of chance, or of one player.
            SettingsError: the game has too many actions.
            ModelError: the network returned NaN or infinity.
        """
        check_two_players(model.game)
        self._model, self._game, self._out = model, model.game, out
        board = board_of(model.game, model.game.initial(1)[0])
        self._players = "WB" if board is not None and board.players[:1] == ("White",) else "BW"
        inference = model.inferences(limits.trees * LEAVES)[0]
        self._search = share(model.game, inference, model.settings.search, limits)
        self._search.clear_cache()  # what the search was tried with
        self._under_way: dict[Session, tuple[object, int]] = {}  # the id and the turn that each position was sent with
        self._lines: queue.Queue[bytes] = queue.Queue(_LINES_AHEAD)
        threading.Thread(target=self._read, args=(lines,), daemon=True).start()

    def _read(self, lines: IO[bytes]) -> None:
        # Passes lines on, of a long one its beginning; and b"" at the end.
        with contextlib.suppress(OSError):
            while line := lines.readline(MAX_BYTES + 1):
                self._lines.put(line)
                while line and not line.endswith(b"\n"):
                    line = lines.readline(MAX_BYTES)
        self._lines.put(b"")

    def run(self) -> None:
        """Answer until the end of the input, and what is under way then."""
        line = b"\n"
        while line or self._under_way:
            while line and len(self._under_way) < MAX_IN_FLIGHT and not (self._under_way and self._lines.empty()):
                line = self._lines.get()
                self.answer(line)
            if self._search.is_busy:
                self._search.advance()

    def answer(self, line: bytes) -> None:
        """Answer a line, or begin to search the positions that it asks for; nothing answers an empty one."""
        message: Message = {}
        try:
            if line.strip():
                message = _object_in(line)
                if "action" in message:
                    self._carry_out(message)
                else:
                    self._begin(message)
        except _QueryError as error:
            found = _ID.search(line.decode(errors="replace"))  # in a broken line
            identity = message.get("id", found and json.loads(found[1], strict=False))
            identity = identity if isinstance(identity, _Id) else None
            self._say({"error": error_text(error), "field": error.field, "id": identity})

    def _say(self, message: Message) -> None:
        self._out.write(json.dumps(message) + "\n")
        self._out.flush()

    def _carry_out(self, message: Message) -> None:
        action = message["action"]
        _check_fields(message, _ACTION, "id", *(["terminateId"] if action == "terminate" else []))
        turns = _turns(message, "turnNumbers", self._game.max_plies)
        if action == "query_version":
            facts = {"version": version(), "protocol": PROTOCOL, "game": self._game.name, "model": self._model.name}
            message = message | facts
        elif action == "clear_cache":
            self._search.clear_cache()
        else:
            for session, (identity, turn) in [*self._under_way.items()]:
                is_wanted = action == "terminate_all" or identity == message["terminateId"]
                if is_wanted and (turns is None or turn in turns):
                    self._search.stop(session)
        self._say(message)

    def _begin(self, message: Message) -> None:
        _check_fields(message, _QUERY, "id", "moves")
        tree = _play(self._game, self._players, message["moves"])
        nodes = tree.path()
        turns = _turns(message, "analyzeTurns", tree.node.ply)
        visits = message.get("maxVisits", self._model.settings.search.readouts)
        priority, has_updates = message.get("priority", 0), "reportDuringSearchEvery" in message
        for turn in [tree.node.ply] if turns is None else sorted(turns):
            head, state = {"id": message["id"], "turnNumber": turn}, tree.go(nodes[turn]).state
            if not tree.legal():
                self._say(head | {"isDuringSearch": False} | _to_end(tree, self._players))
                continue
            session, line = Session(), Line(tuple(state.tolist()), (), state)
            self._under_way[session] = message["id"], turn
            report = self._to_report(session, head, message)
            self._search.submit(session, Task(line, visits, report, priority=priority, has_updates=has_updates))

    def _to_report(self, session: Session, head: Message, message: Message) -> OnUpdate:
        # Receives what the search of a position finds: answers with the result, and at intervals until then.
        seconds, last = message.get("reportDuringSearchEvery", math.inf), time.monotonic()

        def report(found: PositionAnalysis | Exception, is_last: bool) -> None:
            nonlocal last
            if is_last:
                del self._under_way[session]
                self._search.remove(session)
            elif time.monotonic() - last < seconds:
                return
            last = time.monotonic()
            if isinstance(found, Exception):
                self._say({"error": error_text(found), **head})
                return
            answer = head | {"isDuringSearch": not is_last} | _to_result(found, self._players)
            if message.get("includePolicy") and found.moves:  # as KataGo's: -1 where an action is illegal
                priors = {move.action: move.prior for move in found.moves}
                answer["policy"] = [priors.get(action, -1.0) for action in range(self._game.num_actions)]
            self._say(answer)

        return report


def _object_in(line: bytes) -> Message:
    if len(line) > MAX_BYTES:
        raise _QueryError(f"a line may have {MAX_BYTES:,} bytes")
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _QueryError(f"this line is not JSON: {error}") from error
    if not isinstance(message, dict):
        raise _QueryError('expected an object in each line, such as {"id": "a", "moves": []}')
    return message


def _checked(field: str, value: object, kind: Any) -> Any:
    try:
        return converted(field, value, kind)
    except SettingsError as error:
        raise _QueryError(str(error), field) from error


def _check_fields(message: Message, kinds: dict[str, Any], *required: str) -> None:
    for field in (*required, *message):
        if field not in kinds:
            raise _QueryError(f"unknown field: expected some of {', '.join(kinds)}", field)
        _checked(field, message.get(field), kinds[field])


def _turns(message: Message, field: str, last: int) -> set[int] | None:
    # Numbers of turns; None where the field is left out.
    turns = message.get(field)
    return None if turns is None else {_checked(field, turn, Annotated[int, Range(0, last)]) for turn in turns}


def _play(game: Game, players: str, moves: list[Any]) -> GameTree:
    tree = GameTree(game)
    for place, move in enumerate(moves, start=1):
        player, label = move if isinstance(move, list) and len(move) == 2 else (None, move)
        to_play = players[int(game.to_play(tree.node.state[None])[0])]
        try:
            if not isinstance(label, str) or player not in (None, to_play):
                raise GameError(f"expected a label or a list of {to_play} and a label, not {shown(move)}")
            tree.play(parse_move(game, label, tree.node.state))
        except GameError as error:
            raise _QueryError(f"move {place}: {error}", "moves") from error
    return tree


def _to_end(tree: GameTree, players: str) -> Message:
    # The result of a game that is over; one that is cut off counts as a draw, but by the rules it could go on.
    state = tree.node.state[None]
    to_play, (ended, results) = int(tree.game.to_play(state)[0]), tree.game.outcome(state)
    value = float(results[0]) * (1 - 2 * to_play) if ended[0] else 0.0
    return {"moveInfos": [], "rootInfo": _to_values(0, value, bool(ended[0])) | {"currentPlayer": players[to_play]}}


def _to_result(found: PositionAnalysis, players: str) -> Message:
    if not found.moves:  # it was stopped before it began
        return {"noResults": True}
    infos = [
        {"move": move.label, "order": order}
        | _to_values(move.visits, move.value, move.proven)
        | {"prior": move.prior, "pv": move.variation}
        for order, move in enumerate(found.moves)
        if move.visits or not order
    ]
    root = _to_values(found.readouts, found.value, found.proven)
    return {"moveInfos": infos, "rootInfo": root | {"currentPlayer": players[found.to_play]}}


def _to_values(visits: int, value: float, proven: bool) -> Message:
    return {"visits": visits, "winrate": (1 + value) / 2, "proven": proven}
