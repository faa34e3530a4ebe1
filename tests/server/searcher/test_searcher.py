"""The shared search and its searcher: every session gets the result of a search alone, and none starves others."""

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import games
import numpy as np
import pairs
import pytest
from reference import ArbitraryNetwork

from seraphim.errors import GameError, ModelError, SettingsError
from seraphim.game import Array, Game, PlainRules
from seraphim.options import SearchOptions
from seraphim.search.analysis import Analysis, PositionAnalysis, TurnAnalysis
from seraphim.search.evaluator import Uniform
from seraphim.server.searcher import messages
from seraphim.server.searcher.limits import SearchLimits
from seraphim.server.searcher.searcher import Searcher
from seraphim.server.searcher.shared_search import Line, Session, SharedSearch, Task
from seraphim.server.searcher.shared_turns import share
from tictactoe.game import TicTacToe

GAME = TicTacToe()
NETWORK = ArbitraryNetwork(GAME, 2)
# Without a cache, what several leaves at a time find does not depend on what others searched before.
OPTIONS = SearchOptions(readouts=100, cache_megabytes=0, solver=False)
LIMITS = SearchLimits(trees=4)
QUIET = replace(LIMITS, update_seconds=60.0)


def line(*moves: int, game: Game = GAME) -> Line:
    states = game.initial(1)
    for move in moves:
        states = game.step(states, np.array([move]))
    return Line(None, moves, states[0])


class Updates:
    """What was reported of one thought."""

    def __init__(self) -> None:
        self.earlier: list[PositionAnalysis] = []
        self.last: PositionAnalysis | Exception | None = None
        self.ended = threading.Event()

    def __call__(self, thought: PositionAnalysis | Exception, is_last: bool) -> None:
        assert not self.ended.is_set()
        if isinstance(thought, PositionAnalysis) and not is_last:
            self.earlier.append(thought)
        else:
            assert is_last
            self.last = thought
            self.ended.set()

    @property
    def result(self) -> PositionAnalysis:
        assert self.ended.wait(30)
        assert isinstance(self.last, PositionAnalysis), self.last
        return self.last

    @property
    def visits(self) -> dict[int, int]:
        return {each.action: each.visits for each in self.result.moves}


class Table:
    """A shared search that a test advances by itself."""

    def __init__(
        self,
        limits: SearchLimits = QUIET,
        options: SearchOptions = OPTIONS,
        game: Game = GAME,
        network: object = NETWORK,
    ) -> None:
        self.search = SharedSearch(game, network, options, limits)  # type: ignore[arg-type]

    def begin(self, session: Session, position: Line, readouts: int) -> Updates:
        heard = Updates()
        self.search.submit(session, Task(position, readouts, heard, submitted=time.monotonic()))
        return heard

    def run(self) -> None:
        while self.search.is_busy:
            self.search.advance()

    def think(self, session: Session, position: Line, readouts: int) -> Updates:
        heard = self.begin(session, position, readouts)
        self.run()
        return heard


def alone(position: Line, *readouts: int) -> dict[int, int]:
    """The visits of an analysis of its own."""
    analysis = Analysis(GAME, NETWORK, OPTIONS)
    analysis.start(position.state)
    for count in readouts:
        analysis.more(count)
    return {each.action: each.visits for each in analysis.result().moves}


# ---------------------------------------------------------------- results


def test_a_search_equals_an_analysis_alone() -> None:
    table, position = Table(), line(4)
    heard = table.think(Session(), position, 300)
    analysis = Analysis(GAME, NETWORK, OPTIONS)
    analysis.start(position.state)
    analysis.more(300)
    assert heard.visits == alone(position, 300)
    assert heard.result == analysis.result()
    assert (heard.result.readouts, heard.result.new_readouts) == (300, 300)


def test_concurrent_sessions_find_what_each_would_alone() -> None:
    table = Table()
    positions = [line(), line(4), line(0, 4), line(8, 0, 1)]
    budgets = [40, 300, 7, 120]
    heard = []
    for position, readouts in zip(positions, budgets, strict=True):  # they join while others are at work
        heard.append(table.begin(Session(), position, readouts))
        table.search.advance()
    table.run()
    assert [each.visits for each in heard] == [alone(*each) for each in zip(positions, budgets, strict=True)]


def test_positions_of_sessions_are_evaluated_together() -> None:
    class Watched(ArbitraryNetwork):
        def infer(self, observations: Array) -> tuple[Array, Array]:
            batches.append(len(observations))
            return super().infer(observations)

    batches: list[int] = []
    table = Table(replace(QUIET, trees=32), network=Watched(GAME, 2))
    batches.clear()
    for move in range(9):
        table.begin(Session(), line(move), 100)
        table.begin(Session(), line(move, (move + 1) % 9), 100)
    table.run()
    assert np.median(batches) > 50


def test_a_single_session_does_not_wait_for_a_full_batch() -> None:
    table = Table(replace(QUIET, trees=64))
    heard = table.begin(Session(), line(), 8)
    steps = 0
    while not heard.ended.is_set():
        table.search.advance()
        steps += 1
    assert steps < 12


def test_the_tree_is_kept_if_the_next_position_follows() -> None:
    table, session = Table(), Session()
    first = table.think(session, line(), 300)
    reply = first.result.moves[0]
    kept = {each.action: each.actions for each in first.result.moves}[reply.action]
    second = table.think(session, line(*kept[:2]), 1)
    assert second.result.readouts > 2
    assert second.result.new_readouts == 1
    analysis = Analysis(GAME, NETWORK, OPTIONS)
    analysis.more(300)
    for action in kept[:2]:
        analysis.play(action)
    analysis.more(1)
    assert second.visits == {each.action: each.visits for each in analysis.result().moves}


def test_more_readouts_are_added_to_the_same_tree() -> None:
    table, session = Table(), Session()
    table.think(session, line(4), 100)
    heard = table.think(session, line(4), 50)
    assert heard.visits == alone(line(4), 100, 50)
    assert (heard.result.new_readouts, heard.result.readouts) == (50, 150)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (line(4, 0), line(4)),  # a move taken back
        (line(4, 0), line(0, 4)),  # other moves
        (line(4), Line((1, 2), (4,), line(0, 1).state)),  # another start
    ],
)
def test_a_position_that_does_not_follow_gets_a_new_tree(before: Line, after: Line) -> None:
    table, session = Table(), Session()
    table.think(session, before, 200)
    assert table.think(session, after, 60).visits == alone(after, 60)


def test_a_root_of_gumbel_is_searched_by_puct() -> None:
    heard = Table(options=replace(OPTIONS, root="gumbel")).think(Session(), line(), 100)
    assert heard.visits == alone(line(), 100)


def test_a_proven_position_ends_at_once() -> None:
    heard = Table(options=replace(OPTIONS, solver=True)).think(Session(), line(0, 3, 1, 4), 100_000)
    assert heard.result.proven
    assert heard.result.value == 1.0
    assert heard.result.best_action == 2
    assert heard.result.new_readouts < 1000


# ---------------------------------------------------------------- trees


def test_the_least_recently_used_tree_is_freed() -> None:
    table = Table(replace(QUIET, trees=2))
    sessions = [Session(), Session(), Session()]
    for session in sessions:
        table.think(session, line(), 20)
    assert [session.tree is None for session in sessions] == [True, False, False]
    # Who lost a tree begins anew, and who kept it goes on.
    assert table.think(sessions[2], line(), 20).result.readouts == 40
    assert table.think(sessions[0], line(), 20).result.readouts == 20
    assert [session.tree is None for session in sessions] == [False, True, False]


def test_many_more_sessions_than_trees_are_all_served() -> None:
    table = Table(replace(QUIET, trees=3))
    heard = [table.begin(Session(), line(move % 9), 30 + move) for move in range(40)]
    table.run()
    assert [each.result.new_readouts for each in heard] == [30 + move for move in range(40)]
    assert heard[11].visits == alone(line(2), 41)


def test_a_long_wait_ends_the_longest_search() -> None:
    table = Table(replace(QUIET, trees=2, max_wait=0.05))
    long = [table.begin(Session(), line(), 10**6) for _ in range(2)]
    short = table.begin(Session(), line(4), 50)
    while not short.ended.is_set():
        table.search.advance()
    assert short.result.new_readouts == 50
    assert [each.ended.is_set() for each in long] == [True, False]
    assert 0 < long[0].result.new_readouts < 10**6


def test_an_idle_tree_is_freed_after_a_while() -> None:
    table, session = Table(replace(QUIET, idle_seconds=0.0)), Session()
    table.think(session, line(), 50)
    assert table.search.load.trees in (0, 1)
    table.search.clean_up()
    assert table.search.load.trees == 0
    assert table.think(session, line(), 50).visits == alone(line(), 50)


def test_a_session_removed_during_a_search_frees_its_tree_and_gets_no_update() -> None:
    table, session = Table(), Session()
    heard = table.begin(session, line(), 10**6)
    other = table.begin(Session(), line(4), 200)
    for _ in range(3):
        table.search.advance()
    table.search.remove(session)
    table.run()
    assert heard.last is None
    assert session.tree is None
    assert other.visits == alone(line(4), 200)
    assert table.search.load == (1, 0, 0)


def test_a_session_removed_while_waiting_is_forgotten() -> None:
    table = Table(replace(QUIET, trees=1))
    table.begin(Session(), line(), 500)
    waiting = Session()
    heard = table.begin(waiting, line(), 50)
    table.search.advance()
    assert table.search.load.waiting == 1
    table.search.remove(waiting)
    assert table.search.load.waiting == 0
    table.run()
    assert heard.last is None


# ---------------------------------------------------------------- how searches end


def test_a_stopped_search_returns_its_result() -> None:
    table, session = Table(), Session()
    heard = table.begin(session, line(), 10**6)
    for _ in range(10):
        table.search.advance()
    table.search.stop(session)
    steps = 0
    while not heard.ended.is_set():
        table.search.advance()
        steps += 1
    assert steps <= 3
    assert 0 < heard.result.new_readouts < 200
    assert heard.result.new_readouts == sum(heard.visits.values())


def test_a_search_stopped_before_it_has_a_tree_ends_at_once() -> None:
    table = Table(replace(QUIET, trees=1))
    table.begin(Session(), line(), 100)
    table.search.advance()
    waiting = Session()
    heard = table.begin(waiting, line(4), 50)
    table.search.stop(waiting)
    assert heard.ended.is_set()
    assert heard.result.readouts == 0
    assert GAME.legal(line(4).state[None])[0, heard.result.best_action]


def test_a_new_task_ends_the_current_one() -> None:
    table, session = Table(), Session()
    first = table.begin(session, line(8), 10**6)
    for _ in range(5):
        table.search.advance()
    second = table.begin(session, line(4), 60)
    third = table.begin(session, line(0), 80)
    table.run()
    assert 0 < first.result.new_readouts < 10**6
    assert second.result.new_readouts == 0  # never begun
    assert third.visits == alone(line(0), 80)


def test_updates_come_during_a_search_and_grow() -> None:
    table = Table(replace(LIMITS, update_seconds=0.0))
    heard = table.think(Session(), line(), 3000)
    readouts = [thought.readouts for thought in heard.earlier]
    assert len(readouts) >= 2
    assert readouts == sorted(readouts)


def test_a_full_tree_gets_no_more_readouts() -> None:
    table, session = Table(replace(QUIET, tree_nodes=200)), Session()
    first = table.think(session, line(), 10_000)
    assert 190 <= first.result.new_readouts <= 210
    second = table.think(session, line(), 10_000)
    assert second.result.new_readouts <= 210 - first.result.new_readouts + 10
    assert second.visits.keys() == first.visits.keys()


class WideNim(games.Nim):
    """Nim, whose few legal actions are spread over many."""

    name = "wide nim"
    num_actions = 20_000

    def step(self, state: tuple[int, ...], action: int) -> tuple[int, ...]:
        return super().step(state, action // 5000)

    def legal(self, state: tuple[int, ...]) -> list[int]:
        return [5000 * action for action in super().legal(state)]


def test_a_game_of_many_actions_gets_the_readouts_that_were_asked_for() -> None:
    game = PlainRules(WideNim(40))
    table = Table(replace(QUIET, trees=64), game=game, network=Uniform(game))
    assert table.think(Session(), line(game=game), 3000).result.new_readouts == 3000


def test_a_tree_ends_before_it_has_more_edges_than_there_is_room_for() -> None:
    table = Table(replace(QUIET, edges=2**20), game=pairs.GAME, network=Uniform(pairs.GAME))
    heard = table.think(Session(), line(game=pairs.GAME), 100_000)
    assert 1000 < heard.result.new_readouts <= 2**20 / 4 / 2 / 100  # each leads to a node of 100 edges


def test_more_trees_than_there_is_room_for_are_refused() -> None:
    with pytest.raises(SettingsError, match="65536 trees have no room for the 20000 actions of wide nim: use fewer"):
        Table(replace(QUIET, trees=2**16), game=PlainRules(WideNim()))


def test_full_memory_frees_idle_trees_and_then_ends_the_largest_search() -> None:
    table = Table(replace(QUIET, update_seconds=0.0, megabytes=0.35))
    resting = Session()
    table.think(resting, line(), 2000)
    heard = [table.begin(Session(), line(), 100_000), table.begin(Session(), line(4), 100_000)]
    while not any(each.ended.is_set() for each in heard):
        table.search.advance()
        table.search.clean_up()  # which `advance` does from time to time
    assert resting.tree is None
    (ended,) = [each for each in heard if each.ended.is_set()]
    assert 0 < ended.result.new_readouts < 100_000


# ---------------------------------------------------------------- failures


class Breaking(ArbitraryNetwork):
    """A network that breaks when it is told to."""

    broken = False

    def infer(self, observations: Array) -> tuple[Array, Array]:
        logits, values = super().infer(observations)
        return logits, values * np.nan if self.broken else values


def test_a_broken_model_ends_searches_with_an_error_and_they_can_be_repeated() -> None:
    network = Breaking(GAME, 2)
    table = Table(network=network)
    sessions = [Session(), Session()]
    rested = table.think(sessions[0], line(), 50)
    assert rested.result.new_readouts == 50
    network.broken = True
    heard = [table.begin(session, line(4), 50) for session in sessions]
    table.run()
    assert all(isinstance(each.last, ModelError) for each in heard)
    network.broken = False
    assert [table.think(session, line(4), 50).visits for session in sessions] == [alone(line(4), 50)] * 2


def test_failing_rules_end_searches_but_not_the_engine() -> None:
    class Failing(games.Nim):
        def step(self, state: tuple[int, ...], action: int) -> tuple[int, ...]:
            if failing:
                raise ZeroDivisionError("a mistake in the rules")
            return super().step(state, action)

    failing: list[bool] = []
    game = PlainRules(Failing())
    table = Table(game=game, network=ArbitraryNetwork(game))
    failing.append(True)
    heard = table.think(Session(), Line(None, (), game.initial(1)[0]), 50)
    assert isinstance(heard.last, GameError)
    assert "ZeroDivisionError" in str(heard.last)
    failing.clear()
    assert table.think(Session(), Line(None, (), game.initial(1)[0]), 50).result.new_readouts == 50


# ---------------------------------------------------------------- the searcher's thread


@pytest.fixture
def searcher() -> Iterator[Searcher]:
    searcher = Searcher(SharedSearch(GAME, NETWORK, OPTIONS, replace(LIMITS, trees=8, update_seconds=0.01)))
    yield searcher
    searcher.close()


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.002)


def test_fifty_sessions_search_at_once(searcher: Searcher) -> None:
    expected = {move: alone(line(move), 60) for move in range(9)}
    wrong: queue.Queue[object] = queue.Queue()

    def play(number: int) -> None:
        session, moves = searcher.attach(), ()
        for _ in range(3):
            heard = Updates()
            searcher.search(session, line(number % 9), 60, heard)
            if not moves and heard.visits != expected[number % 9]:
                wrong.put(heard.visits)
            moves = (*moves, number)
        searcher.detach(session)

    threads = [threading.Thread(target=play, args=(number,)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert wrong.empty()
    until(lambda: searcher.load.trees == 0)
    assert searcher.num_sessions == 0


def test_a_search_can_be_stopped_while_others_continue(searcher: Searcher) -> None:
    sessions = [searcher.attach() for _ in range(4)]
    heard = [Updates() for _ in sessions]
    for session, each in zip(sessions, heard, strict=True):
        searcher.search(session, line(), 10**6, each)
    until(lambda: all(each.earlier for each in heard))
    searcher.stop(sessions[2])
    assert 0 < heard[2].result.new_readouts < 10**6
    assert searcher.load.searching == 3
    for session in sessions:
        searcher.detach(session)
    until(lambda: searcher.load.searching == 0 and searcher.load.trees == 0)


def test_a_searcher_with_sessions_is_not_closed_as_unused(searcher: Searcher) -> None:
    session = searcher.attach()
    assert not searcher.close_if_unused()
    searcher.detach(session)
    assert searcher.close_if_unused()
    with pytest.raises(ModelError, match="open it again"):
        searcher.attach()


def test_a_searcher_can_be_closed_during_a_search() -> None:
    searcher = Searcher(SharedSearch(GAME, NETWORK, OPTIONS, LIMITS))
    heard = Updates()
    searcher.search(searcher.attach(), line(), 10**6, heard)
    until(lambda: searcher.load.searching == 1)
    searcher.close()
    assert not heard.ended.is_set()


# ---------------------------------------------------------------- positions


@pytest.mark.parametrize(
    ("start", "moves", "said"),
    [
        (None, [0, 0], "move 2, a1, is not legal"),
        (None, [9], "move 1, 9, is not legal"),
        (None, [-1], "move 1, -1, is not legal"),
        (None, [0, 3, 1, 4, 2, 5], "move 6, c2, is not legal"),
        (None, list(range(10)), "has 9 moves at most, not 10"),
        ((1, 1), [], "not a position of tictactoe"),
        ((7, 0), [], "not a position of tictactoe"),
        ((1 << 40, 0), [], "not a position of tictactoe"),
        ((-1, 0), [], "not a position of tictactoe"),
        ((1,), [], "a state of 2 whole numbers"),
    ],
)
def test_invalid_positions_are_refused(start: tuple[int, ...] | None, moves: Sequence[int], said: str) -> None:
    with pytest.raises(GameError, match=said):
        messages.to_line(GAME, start, moves)


def test_a_start_may_be_any_position_that_can_be_drawn() -> None:
    state = line(4, 0).state
    found = messages.to_line(GAME, tuple(state.tolist()), [1])
    assert found.state.tolist() == line(4, 0, 1).state.tolist()
    assert found.moves == (1,)


def test_a_game_without_drawings_starts_at_its_initial_position() -> None:
    nim = PlainRules(games.Nim())
    with pytest.raises(GameError, match="nim cannot check a position that is given as a board or as words"):
        messages.to_line(nim, (3, 0), [])  # type: ignore[arg-type]
    assert messages.to_line(nim, None, [2]).state.tolist() == [12, 1]  # type: ignore[arg-type]


def test_a_game_that_is_cut_off_is_over() -> None:
    endless = PlainRules(games.Endless())
    cut = messages.to_line(endless, None, [0] * 20)  # type: ignore[arg-type]
    position = messages.to_position(endless, cut)
    assert (position["ended"], position["result"], position["legal"]) == (True, None, [])
    with pytest.raises(GameError, match="over"):
        messages.check_unfinished(endless, cut)


def test_sessions_are_independent(searcher: Searcher) -> None:
    first, second = searcher.attach(), searcher.attach()
    heard: list[tuple[Session, Updates]] = []
    for session in (first, second):
        heard.append((session, Updates()))
        searcher.search(session, line(4), 50, heard[-1][1])
    assert [each.result.readouts for _, each in heard] == [50, 50]


# ---------------------------------------------------------------- afterstates


def test_a_model_that_plays_by_afterstates_answers_each_position_at_once() -> None:
    options = SearchOptions(root="afterstates")
    search, alone = share(GAME, NETWORK, options, LIMITS), TurnAnalysis(GAME, NETWORK, options)
    one, other, gone = Session(), Session(), Session()
    heard = {}
    for session, position in ((one, line(4)), (other, line(4)), (gone, line()), (one, line(4, 0))):
        heard[session, position.moves] = Updates()
        search.submit(session, Task(position, 100, heard[session, position.moves], submitted=time.monotonic()))
    search.stop(one)
    search.remove(gone)
    search.submit(gone, Task(line(), 100, heard[gone, ()], submitted=time.monotonic()))
    assert search.load.waiting == 3
    while search.is_busy:
        search.advance()
    for (session, moves), updates in heard.items():
        assert updates.ended.is_set() == (session is not gone)
        if session is not gone:
            alone.start(line(*moves).state)
            assert updates.result == alone.result()
    assert isinstance(share(GAME, NETWORK, OPTIONS, LIMITS), SharedSearch)


def test_an_error_of_the_rules_ends_that_task_alone() -> None:
    class Broken(TicTacToe):
        broken = False

        def step(self, states: Array, actions: Array) -> Array:
            if self.broken:
                raise ValueError("no such move")
            return super().step(states, actions)

    search, failed, later = share(Broken(), NETWORK, SearchOptions(root="afterstates"), LIMITS), Updates(), Updates()
    search.submit(Session(), Task(line(4), 1, failed, submitted=time.monotonic()))
    Broken.broken = True
    search.advance()
    assert isinstance(failed.last, GameError)
    assert "failed while it was searched: ValueError('no such move')" in str(failed.last)
    Broken.broken = False
    search.submit(Session(), Task(line(4), 1, later, submitted=time.monotonic()))
    search.advance()
    assert later.result.moves
