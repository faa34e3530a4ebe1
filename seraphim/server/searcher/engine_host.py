"""Another engine that clients can play against, as `serve --engine` names it, such as `gtp:COMMAND`.

Each client that plays against it has its own process, which ends when the client leaves. No message of a client can
choose the command.
"""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

from seraphim.errors import GameError, SeraphimError
from seraphim.game import Game
from seraphim.players.external.load import load_engine
from seraphim.players.external.player import EnginePlayer
from seraphim.server.quotas import Quota, call_in
from seraphim.server.searcher.shared_search import Line

MAX_ENGINES = 16  # processes at a time


class EngineHost:
    """The processes of one external engine, for all clients."""

    def __init__(self, game: Game, name: str) -> None:
        """Start the engine once, to see that it works.

        Args:
            game: that it plays.
            name: `gnubg:PLIES`, `gtp:COMMAND` or `uci:COMMAND`.

        Raises:
            SettingsError, NotInstalledError, PlayerError, GameError: see `load_engine`.
        """
        self.game, self.name = game, name
        player = load_engine(game, name)
        self.title = player.title
        """What the engine calls itself."""
        player.close()
        self.places = Quota(MAX_ENGINES, f"games with {self.title}")
        self.threads = ThreadPoolExecutor(MAX_ENGINES, "engine")

    def close(self) -> None:
        """End the threads; clients end their processes."""
        self.threads.shutdown(wait=False, cancel_futures=True)


class HostedEngine:
    """The process of one client, which starts with the first move; used in the thread of one event loop."""

    def __init__(self, engines: EngineHost, client: str) -> None:
        """Take a place for it.

        Raises:
            CapacityError: there are too many processes, in total or of this client.
        """
        self._engines, self._client = engines, client
        self._working = threading.Lock()  # while a thread starts the process, or waits for its move
        self._closed = False
        self._player: EnginePlayer | None = None
        engines.places.take(client)

    async def choose(self, line: Line) -> int:
        """Return the action that the engine chooses in an unfinished position; only one call at a time.

        Raises:
            GameError: the game did not begin at the initial position, or the engine failed or broke the rules.
            NotInstalledError: it is not installed any more.
        """
        title = self._engines.title
        if line.start is not None:
            raise GameError(f"{title} follows games from the initial position only: begin a new game")
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._engines.threads, self._choose, line.moves)
        except SeraphimError as error:  # the command is nobody's business but the owner's
            raise type(error)(str(error).replace(self._engines.name, title)) from error

    def _choose(self, moves: tuple[int, ...]) -> int:
        with self._working:
            player = self._player = self._player or load_engine(self._engines.game, self._engines.name)
            if self._closed:  # perhaps before there was a process to end
                raise GameError(f"the game with {self._engines.title} has ended")
            return int(player.choose([moves])[0])

    def close(self) -> None:
        """End the process, soon; then its place is free."""
        self._closed = True
        threading.Thread(target=self._end, args=(asyncio.get_running_loop(),), name="ends an engine").start()

    def _end(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._player:
            self._player.close()  # so that a thread that waits for its move does so no longer
        with self._working:
            if self._player:  # it may have been started again meanwhile
                self._player.close()
        call_in(loop, lambda: self._engines.places.give_back(self._client))
