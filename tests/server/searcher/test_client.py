"""A client of a searcher, without a connection: every message gets an answer, and no client waits for others."""

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import games
import pytest
from reference import ArbitraryNetwork

import tictactoe
from seraphim.errors import ModelError
from seraphim.game import Array, Game, PlainRules
from seraphim.options import SearchOptions
from seraphim.proof.knowledge import ExactResults
from seraphim.server.searcher import messages
from seraphim.server.searcher.client import Client
from seraphim.server.searcher.limits import SearchLimits
from seraphim.server.searcher.model_host import LoadedModel, ModelHost
from seraphim.server.searcher.searcher import Searcher
from seraphim.server.searcher.shared import MAX_SOLVER_REQUESTS, Shared
from seraphim.server.searcher.shared_search import Line, SharedSearch

Message = dict[str, Any]

PATIENCE = 60
LIMITS = SearchLimits(trees=4, update_seconds=0.01)


class OneModel(ModelHost):
    """A host of one model, which it makes anew where its searcher has ended."""

    def __init__(self, game: Game, module: Any, search: type[SharedSearch] = SharedSearch) -> None:
        self.made = 0
        self._game, self._module, self._kind = game, module, search
        self._loaded: LoadedModel | None = None

    def load(self, model: str, snapshot: str | None = None) -> Future[LoadedModel]:
        if self._loaded is None or not self._loaded.searcher.is_open:
            self.made += 1
            search = self._kind(
                self._game, ArbitraryNetwork(self._game), SearchOptions(cache_megabytes=0, solver=False), LIMITS
            )
            info = messages.to_game_info(self._game, solved=True)
            knowledge = ExactResults(self._module, self._game, [])
            self._loaded = LoadedModel(
                "one", "only", self._module, self._game, "test", Searcher(search), info, knowledge
            )
        future: Future[LoadedModel] = Future()
        future.set_result(self._loaded)
        return future

    @property
    def searcher(self) -> Searcher:
        assert self._loaded is not None
        return self._loaded.searcher

    def close(self) -> None:
        if self._loaded is not None:
            self._loaded.searcher.close()


class Page:
    """What a client is told."""

    def __init__(self, shared: Shared, client: str = "somebody") -> None:
        self._answers: asyncio.Queue[Message] = asyncio.Queue()
        self._last = 0
        self.client = Client(shared, client, self._answers.put_nowait)

    async def send(self, kind: str, **fields: Any) -> int:
        self._last += 1
        await self.client.handle(json.dumps({"id": self._last, "type": kind, **fields}))
        return self._last

    async def answer(self, identity: int) -> Message:
        while True:
            found = await asyncio.wait_for(self._answers.get(), PATIENCE)
            if found["id"] == identity and found.get("done") is not False:
                return found

    async def ask(self, kind: str, **fields: Any) -> Message:
        return await self.answer(await self.send(kind, **fields))


def converse(host: OneModel, script: Callable[[Shared], Coroutine[Any, Any, None]], sessions: int = 8) -> None:
    """Let clients talk to a host."""

    async def run() -> None:
        shared = Shared(host, sessions)
        try:
            await asyncio.wait_for(script(shared), PATIENCE)
        finally:
            shared.close()

    asyncio.run(run())


# ---------------------------------------------------------------- failures


class FailingSearch(SharedSearch):
    """A search whose housekeeping fails once, where there is a tree to look after."""

    failures = 0

    def clean_up(self) -> None:
        if self.load.trees and FailingSearch.failures:
            FailingSearch.failures -= 1
            raise MemoryError("no room to make the trees compact")
        super().clean_up()


def test_a_failed_engine_is_reported_to_all_clients_and_replaced(caplog: pytest.LogCaptureFixture) -> None:
    host = OneModel(tictactoe.GAME, tictactoe, FailingSearch)

    async def script(shared: Shared) -> None:
        pages = [Page(shared, f"client {number}") for number in range(3)]
        for page in pages:
            await page.ask("open", model="one", snapshot=None)
        asked = [await page.send("think", readouts=100_000) for page in pages]
        first = host.searcher
        FailingSearch.failures = 1
        answers = [await page.answer(identity) for page, identity in zip(pages, asked, strict=True)]
        assert [answer["type"] for answer in answers] == ["error"] * 3
        assert all("the search failed" in answer["message"] for answer in answers)
        assert first.has_failed and not first.is_open
        with pytest.raises(ModelError):
            first.attach()
        for page in pages:
            assert (await page.ask("think", readouts=20))["readouts"] == 20
        assert host.made == 2
        for page in pages:
            page.client.close()

    with caplog.at_level(logging.ERROR):
        converse(host, script)
    assert "no room to make the trees compact" in caplog.text


def test_a_failed_command_is_reported_to_all_clients(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: SharedSearch) -> None:
        raise ZeroDivisionError("a mistake")

    with caplog.at_level(logging.ERROR):
        searcher = Searcher(
            SharedSearch(tictactoe.GAME, ArbitraryNetwork(tictactoe.GAME), SearchOptions(solver=False), LIMITS)
        )
        updates, ended = list[Any](), threading.Event()

        def receive(update: Any, is_last: bool) -> None:
            if is_last:
                updates.append(update)
                ended.set()

        line = Line(None, (), tictactoe.GAME.initial(1)[0])
        searcher.search(searcher.attach(), line, 10**6, receive)
        searcher.post(fail)
        session = None
        with pytest.raises(ModelError):  # noqa: PT012  # either may be the first to notice
            while True:
                session = session or searcher.attach()
                searcher.search(session, line, 10**6, lambda *_: None)
        assert ended.wait(PATIENCE)
    assert isinstance(updates[-1], ModelError)
    assert len(updates) == 1
    assert searcher.has_failed
    assert searcher.load == (0, 0, 0)
    assert "a mistake" in caplog.text
    searcher.close()


class Named(games.Nim):
    """Nim whose moves are called by what they leave."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.broken = False
        self.before_label: Callable[[], object] = lambda: None

    def label_in(self, state: tuple[int, ...], action: int) -> str:
        self.asked += 1
        self.before_label()
        if self.broken:
            raise ZeroDivisionError("a mistake in the rules")
        return f"leaves {state[0] - 1 - action}"


@pytest.fixture
def named() -> Named:
    return Named()


def test_an_update_that_cannot_be_encoded_is_answered_with_an_error(
    named: Named, caplog: pytest.LogCaptureFixture
) -> None:
    async def script(shared: Shared) -> None:
        page = Page(shared)
        await page.ask("open", model="one", snapshot=None)
        named.broken = True
        for kind, fields in (("think", {"readouts": 100_000}), ("position", {"start": None, "moves": [0]})):
            answer = await page.ask(kind, **fields)
            assert (answer["type"], answer["message"]) == ("error", "internal server error; see the server log")
        named.broken = False
        assert (await page.ask("think", readouts=20))["readouts"] >= 20
        page.client.close()

    with caplog.at_level(logging.ERROR):
        converse(OneModel(PlainRules(named), games), script)
    assert "a mistake in the rules" in caplog.text


# ---------------------------------------------------------------- slow rules


def test_slow_rules_of_one_client_do_not_delay_the_others(named: Named) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        assert go_on.wait(PATIENCE)

    async def script(shared: Shared) -> None:
        slow, other = Page(shared, "slow"), Page(shared, "other")
        for page in (slow, other):
            await page.ask("open", model="one", snapshot=None)
        named.before_label = wait
        placing = asyncio.create_task(slow.ask("position", start=None, moves=[0, 0, 0]))
        await asyncio.to_thread(begun.wait, PATIENCE)
        assert (await other.ask("stop"))["type"] == "stopped"
        assert not placing.done()
        go_on.set()
        assert (await placing)["played"] == ["leaves 14", "leaves 13", "leaves 12"]
        for page in (slow, other):
            page.client.close()

    converse(OneModel(PlainRules(named), games), script)


def test_another_move_needs_only_its_own_label(named: Named) -> None:
    async def script(shared: Shared) -> None:
        page = Page(shared)
        await page.ask("open", model="one", snapshot=None)
        moves = list[int]()
        for _ in range(14):
            moves.append(0)
            before = named.asked
            position = await page.ask("position", start=None, moves=moves)
            assert position["played"] == [f"leaves {14 - ply}" for ply in range(len(moves))]
            assert named.asked - before == 1 + len(position["legal"])
        # A move taken back, other moves, and the same ones again.
        for other in (moves[:-1], [1, 1], [], moves):
            position = await page.ask("position", start=None, moves=other)
            left = [14 - sum(other[: ply + 1]) - ply for ply in range(len(other))]
            assert position["played"] == [f"leaves {each}" for each in left]
            assert position["moves"] == other
        page.client.close()

    converse(OneModel(PlainRules(named), games), script)


def test_many_moves_are_replayed_in_a_separate_thread() -> None:
    threads = set[str]()

    class Watched(games.Chain):
        def step(self, state: tuple[int, ...], action: int) -> tuple[int, ...]:
            threads.add(threading.current_thread().name)
            return super().step(state, action)

    async def script(shared: Shared) -> None:
        page = Page(shared)
        await page.ask("open", model="one", snapshot=None)
        threads.clear()
        moves = [ply % 2 for ply in range(1000)]
        assert (await page.ask("position", start=None, moves=moves))["moves"] == moves
        assert {name.rpartition("_")[0] for name in threads} == {"rules"}
        page.client.close()

    converse(OneModel(PlainRules(Watched()), games), script)


def test_solver_requests_are_bounded_by_client_and_answered_in_turn() -> None:
    begun, go_on, order = threading.Event(), threading.Event(), list[str]()

    def perfect_actions(states: Array, _: float) -> Array:
        begun.set()
        assert go_on.wait(PATIENCE)
        return tictactoe.GAME.legal(states)

    async def script(shared: Shared) -> None:
        pages = [Page(shared, "greedy") for _ in range(MAX_SOLVER_REQUESTS)]
        pages.append(Page(shared, "modest"))
        for page in pages:
            await page.ask("open", model="one", snapshot=None)

        async def ask(page: Page, name: str) -> None:
            answer = await page.ask("solve")
            order.append(f"{name}: {answer.get('message', answer['type'])}")

        asked = [asyncio.create_task(ask(page, "greedy")) for page in pages[:-1]]
        await asyncio.to_thread(begun.wait, PATIENCE)
        asked.append(asyncio.create_task(ask(pages[-1], "modest")))
        while not order:
            await asyncio.sleep(0)
        go_on.set()
        await asyncio.gather(*asked)
        half = MAX_SOLVER_REQUESTS // 2
        refused = f"greedy: too many requests to the solver from your address (limit {half}): try again later"
        assert order[:half] == [refused] * half
        assert sorted(order[half : half + 2]) == ["greedy: solve", "modest: solve"]
        assert order[half + 2 :] == ["greedy: solve"] * (half - 1)
        for page in pages:
            page.client.close()

    converse(OneModel(tictactoe.GAME, SimpleNamespace(perfect_actions=perfect_actions)), script, sessions=64)


def test_an_idle_client_is_released_until_its_next_message() -> None:
    async def script(shared: Shared) -> None:
        page = Page(shared)
        assert shared.sessions.taken == 1
        await page.ask("open", model="one", snapshot=None)
        position = await page.ask("position", start=None, moves=[4])
        await page.send("think", readouts=100_000)
        assert not page.client.release_if_idle()  # it thinks
        await page.ask("stop")
        assert page.client.release_if_idle()
        assert shared.sessions.taken == 0
        assert (await page.ask("think", readouts=20))["readouts"] == 20
        assert shared.sessions.taken == 1
        assert page.client.release_if_idle()
        assert (await page.ask("position", start=None, moves=[4])) == position | {"id": 6}
        page.client.close()
        assert shared.sessions.taken == 0

    converse(OneModel(tictactoe.GAME, tictactoe), script)
