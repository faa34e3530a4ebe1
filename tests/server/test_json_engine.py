"""One JSON line in, one out: lines in this process and by Node.js, and answers compared with `Model.analyze`."""

import contextlib
import io
import itertools
import json
import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from games import ENDLESS
from node import NODE, needs_node, random_games
from reference import ArbitraryNetwork

from seraphim.game import Array, Game, load_game
from seraphim.players.model import Model
from seraphim.search.analysis import LEAVES, PositionAnalysis
from seraphim.server import json_engine
from seraphim.server.json_engine import LIMITS, MAX_BYTES, MAX_VISITS, JsonServer
from seraphim.server.searcher.limits import SearchLimits

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/analysis-engine.md"
PATIENCE = 60.0  # seconds, with a busy machine

Answer = dict[str, Any]


class Network(ArbitraryNetwork):
    """Notes the sizes of its batches; returns NaN while it is broken."""

    def __init__(self, game: Game) -> None:
        super().__init__(game)
        self.batches: list[int] = []
        self.is_broken = False

    def infer(self, observations: Array) -> tuple[Array, Array]:
        self.batches.append(len(observations))
        logits, values = super().infer(observations)
        return logits, np.full_like(values, np.nan) if self.is_broken else values


def model_of(name: str, **options: object) -> Model:
    options = {"cache_megabytes": 0, "readouts": 20, **options}
    return Model(name, Network(load_game(name)), **options)  # type: ignore[arg-type]


def network_of(model: Model) -> Network:
    network = model.inference
    assert isinstance(network, Network)
    return network


def ask(model: Model, *queries: object, limits: SearchLimits = LIMITS) -> list[Answer]:
    """The answers to lines, or to queries, after which the input ends."""
    lines = [query if isinstance(query, bytes) else json.dumps(query).encode() for query in queries]
    out = io.StringIO()
    JsonServer(model, io.BytesIO(b"\n".join(lines)), out, limits).run()
    return [json.loads(line) for line in out.getvalue().splitlines()]


class Conversation:
    """A server in a thread, whose lines come when they are sent."""

    def __init__(self, model: Model, limits: SearchLimits = LIMITS) -> None:
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._answers: queue.Queue[str] = queue.Queue()
        server = JsonServer(model, self, self, limits)  # type: ignore[arg-type]  # these methods are enough
        self.thread = threading.Thread(target=server.run, daemon=True)
        self.thread.start()

    def readline(self, _: int) -> bytes:
        return self._lines.get()

    def write(self, text: str) -> None:
        self._answers.put(text)

    def flush(self) -> None:
        pass

    def send(self, **query: object) -> None:
        self._lines.put(json.dumps(query).encode() + b"\n")

    def next(self) -> Answer:
        answer = json.loads(self._answers.get(timeout=PATIENCE))
        assert isinstance(answer, dict)
        return answer

    def end(self) -> list[Answer]:
        """The answers that are left."""
        self._lines.put(b"")
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()
        answers = []
        with contextlib.suppress(queue.Empty):
            while True:
                answers.append(json.loads(self._answers.get_nowait()))
        return answers


def expected(found: PositionAnalysis, player: str) -> Answer:
    return {
        "moveInfos": [
            {
                "move": move.label,
                "order": order,
                "visits": move.visits,
                "winrate": (1 + move.value) / 2,
                "proven": move.proven,
                "prior": move.prior,
                "pv": list(move.variation),
            }
            for order, move in enumerate(found.moves)
            if move.visits or order == 0
        ],
        "rootInfo": {
            "visits": found.readouts,
            "winrate": (1 + found.value) / 2,
            "proven": found.proven,
            "currentPlayer": player,
        },
    }


def positions(model: Model, count: int, seed: int = 0) -> list[tuple[list[str], Array]]:
    """The moves that lead to unfinished positions, and these."""
    game, rng, found = model.game, np.random.default_rng(seed), []
    for actions in random_games(game, count, seed):
        kept = actions[: rng.integers(len(actions))]
        state = game.initial(1)
        for action in kept:
            state = game.step(state, np.array([action]))
        found.append(([game.action_label(action) for action in kept], state[0]))
    return found


# ---------------------------------------------------------------- what is found


@pytest.mark.parametrize("name", ["tictactoe", "connectfour", "othello"])
@pytest.mark.parametrize("solver", [False, True])
def test_answers_are_those_of_a_model_whatever_else_is_in_flight(name: str, solver: bool) -> None:
    model = model_of(name, solver=solver)
    wanted = dict(enumerate(itertools.product(positions(model, 8), (1, 9, 200))))
    queries = [{"id": key, "moves": moves, "maxVisits": visits} for key, ((moves, _), visits) in wanted.items()]
    answers = ask(model, *queries)
    assert len(answers) == len(wanted)
    for answer in answers:
        (moves, state), visits = wanted.pop(answer["id"])
        player = "BW"[int(model.game.to_play(state[None])[0])]
        head = {"id": answer["id"], "turnNumber": len(moves), "isDuringSearch": False}
        assert answer == head | expected(model.analyze(state, visits), player)
    assert not wanted


def test_with_a_cache_positions_that_are_asked_one_at_a_time_are_answered_as_by_a_model() -> None:
    model = model_of("connectfour", cache_megabytes=1)
    server = Conversation(model)
    for moves, state in [([], model.game.initial(1)[0]), *positions(model, 5)]:
        server.send(id="a", moves=moves, maxVisits=300)
        assert server.next()["moveInfos"] == expected(model.analyze(state, 300), "")["moveInfos"]
        server.send(id="c", action="clear_cache")
        assert server.next() == {"id": "c", "action": "clear_cache"}


def test_evaluations_are_shared_by_the_positions_of_a_game_until_the_cache_is_cleared() -> None:
    model = model_of("connectfour", cache_megabytes=1)
    network, server = network_of(model), Conversation(model)
    evaluated = []
    for action in ("query_version", "query_version", "clear_cache"):
        server.send(id="c", action=action)
        server.next()
        before = sum(network.batches)
        server.send(id="a", moves=[])
        server.next()
        evaluated.append(sum(network.batches) - before)
    assert evaluated[0] == evaluated[2] > 10
    assert evaluated[1] < evaluated[0] / 4


def test_the_turns_of_a_game_are_analyzed_up_to_its_result_which_is_that_of_the_player_to_move() -> None:
    model = model_of("tictactoe", solver=True, readouts=500)
    moves = ["a1", ["W", "a2"], ["B", "b1"], "b2", "c1"]
    answers = ask(model, {"id": "g", "moves": moves, "analyzeTurns": [5, 0, 4, 3, 4]})
    found = {answer["turnNumber"]: answer for answer in answers}
    assert len(answers) == len(found) == 4
    assert found[5]["rootInfo"] == {"visits": 0, "winrate": 0.0, "proven": True, "currentPlayer": "W"}
    assert found[5]["moveInfos"] == []
    assert {turn: found[turn]["rootInfo"]["currentPlayer"] for turn in (0, 3, 4)} == {0: "B", 3: "W", 4: "B"}
    root, best = found[4]["rootInfo"], found[4]["moveInfos"][0]
    assert (root["winrate"], root["proven"], best["move"], best["proven"]) == (1.0, True, "c1", True)
    assert (found[3]["rootInfo"]["winrate"], found[3]["rootInfo"]["proven"]) == (0.0, True)
    (last,) = ask(model, {"id": "g", "moves": moves})
    assert last == {**found[5], "id": "g"}


def test_a_draw_counts_half() -> None:
    moves = "a1 b1 c1 b2 a2 c2 b3 a3 c3".split()
    (answer,) = ask(model_of("tictactoe"), {"id": 1, "moves": moves})
    assert (answer["rootInfo"]["winrate"], answer["rootInfo"]["proven"]) == (0.5, True)


def test_white_moves_first_in_chess_and_black_in_go() -> None:
    for name, player, first in (("chess", "W", "e4"), ("go(board_size=5)", "B", "B_c3"), ("breakthrough", "B", "a7a6")):
        model = Model(f"openspiel:{name}", readouts=2, cache_megabytes=0)
        (answer,) = ask(model, {"id": 1, "moves": [[player, first]], "analyzeTurns": [0]})
        assert answer["rootInfo"]["currentPlayer"] == player


def test_the_policy_has_the_network_s_probability_of_every_action() -> None:
    model = model_of("othello")
    (moves, state), *_ = positions(model, 1, seed=3)
    (answer,) = ask(model, {"id": 1, "moves": moves, "includePolicy": True})
    (policy,), _ = model.network([state])
    legal = model.game.legal(state[None])[0]
    np.testing.assert_allclose(answer["policy"], np.where(legal, policy, -1), rtol=1e-5)


# ---------------------------------------------------------------- many at a time


def test_two_hundred_positions_share_their_batches() -> None:
    model = model_of("othello", solver=False)
    queries = [{"id": key, "moves": moves} for key, (moves, _) in enumerate(positions(model, 200))]
    network = network_of(model)
    network.batches.clear()
    for query in queries[:20]:
        ask(model, query)
    alone = len(network.batches) * 10
    network.batches.clear()
    assert {answer["id"] for answer in ask(model, *queries)} == set(range(200))
    assert max(network.batches) > LIMITS.trees * LEAVES / 2
    assert len(network.batches) < alone / 20


def test_a_short_query_does_not_wait_for_a_long_one() -> None:
    server = Conversation(model_of("othello", solver=False))
    server.send(id="long", moves=[], maxVisits=MAX_VISITS, reportDuringSearchEvery=1e-6)
    first = server.next()
    assert (first["id"], first["isDuringSearch"]) == ("long", True)
    server.send(id="wrong", moves=["a1"])
    server.send(id="short", moves=["d3"], maxVisits=10)
    before = list(iter_until(server, "wrong"))
    between = list(iter_until(server, "short"))
    assert all(answer["id"] == "long" and answer["isDuringSearch"] for answer in [*before, *between])
    server.send(id="stop", action="terminate", terminateId="long")
    last = server.end()[-1]
    assert (last["id"], last["isDuringSearch"]) == ("long", False)
    assert first["rootInfo"]["visits"] < last["rootInfo"]["visits"] < MAX_VISITS


def iter_until(server: Conversation, identity: object) -> Iterator[Answer]:
    answer = server.next()
    while answer["id"] != identity:
        yield answer
        answer = server.next()


def test_short_queries_are_answered_before_a_long_one_that_came_first() -> None:
    model = model_of("othello", solver=False)
    queries = [{"id": visits, "moves": [], "maxVisits": visits} for visits in (3000, 30, 10)]
    assert [answer["id"] for answer in ask(model, *queries)] == [10, 30, 3000]


def test_of_those_that_wait_the_highest_priority_is_searched_first() -> None:
    one_tree = replace(LIMITS, trees=1)
    queries = [{"id": key, "moves": [], "priority": key % 3} for key in range(6)]
    answers = ask(model_of("tictactoe"), *queries, limits=one_tree)
    assert [answer["id"] for answer in answers] == [2, 5, 1, 4, 0, 3]
    assert {answer["rootInfo"]["visits"] for answer in answers} == {20}  # however long others wait


def test_the_end_of_the_input_waits_for_what_is_in_flight() -> None:
    server = Conversation(model_of("othello", solver=False))
    for key in range(30):
        server.send(id=key, moves=[], maxVisits=300)
    assert sorted(answer["id"] for answer in server.end()) == list(range(30))


def test_no_more_lines_are_taken_while_many_positions_are_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_engine, "MAX_IN_FLIGHT", 3)
    queries = [{"id": key, "moves": [], "maxVisits": 3 + key} for key in range(8)]
    answers = ask(model_of("othello"), *queries, {"id": "v", "action": "query_version"})
    assert sorted(str(answer["id"]) for answer in answers) == [*map(str, range(8)), "v"]
    assert [answer["id"] for answer in answers].index("v") >= 6


# ---------------------------------------------------------------- what ends early


def test_terminated_positions_are_answered_with_what_was_found() -> None:
    model, one_tree = model_of("othello", solver=False), replace(LIMITS, trees=1)
    long = {"moves": ["d3", "c3"], "maxVisits": MAX_VISITS}
    end = {"id": "t", "action": "terminate", "terminateId": "a", "turnNumbers": [1]}
    everything = {"id": "u", "action": "terminate_all"}
    answers = ask(
        model,
        {"id": "a", "analyzeTurns": [0, 1, 2], **long},
        {"id": "b", "analyzeTurns": [1, 2], **long},
        end,
        {"id": "s", "moves": [], "maxVisits": 5, "priority": 1},
        everything,
        {"id": "later", "moves": [], "maxVisits": 5},
        limits=one_tree,
    )
    by_place = {(answer["id"], answer.get("turnNumber")): answer for answer in answers}
    assert len(answers) == len(by_place) == 9
    nothing = {"id": "a", "turnNumber": 1, "isDuringSearch": False, "noResults": True}
    assert answers[:2] == [nothing, end]
    assert by_place["u", None] == everything
    assert all("noResults" in by_place[place] for place in (("a", 0), ("a", 2), ("b", 1), ("b", 2), ("s", 0)))
    assert by_place["later", 0]["rootInfo"]["visits"] == 5


def test_a_running_search_is_terminated() -> None:
    server = Conversation(model_of("othello", solver=False))
    server.send(id=1, moves=[], analyzeTurns=[0], maxVisits=MAX_VISITS, reportDuringSearchEvery=0.001)
    reports = [server.next() for _ in range(3)]
    visits = [report["rootInfo"]["visits"] for report in reports]
    assert visits == sorted({*visits})
    server.send(id=2, action="terminate", terminateId=1, turnNumbers=[1])
    assert all(answer["isDuringSearch"] for answer in iter_until(server, 2))
    assert server.next()["isDuringSearch"]
    server.send(id=3, action="terminate_all")
    last = server.end()[-1]
    assert (last["id"], last["isDuringSearch"]) == (1, False)
    assert visits[-1] <= last["rootInfo"]["visits"] < MAX_VISITS


@pytest.mark.parametrize(("every", "num_answers"), [(None, [1]), (1000, [1]), (1e-9, range(5, 102))])
def test_there_are_reports_during_a_search_as_often_as_is_asked(
    every: float | None, num_answers: Sequence[int]
) -> None:
    query = {"id": 1, "moves": [], "maxVisits": 800} | ({"reportDuringSearchEvery": every} if every else {})
    answers = ask(model_of("othello", solver=False), query, limits=replace(LIMITS, update_seconds=0.0))
    assert len(answers) in num_answers
    assert [answer["isDuringSearch"] for answer in answers] == [True] * (len(answers) - 1) + [False]
    visits = [answer["rootInfo"]["visits"] for answer in answers]
    assert visits == sorted(visits)
    assert visits[-1] == 800


def test_a_network_that_fails_is_an_error_of_each_position_and_of_no_later_one() -> None:
    model = model_of("tictactoe")
    server = Conversation(model)
    network_of(model).is_broken = True
    server.send(id="a", moves=["a1", "a2"], analyzeTurns=[0, 1, 2])
    answers = [server.next() for _ in range(3)]
    assert sorted(answer["turnNumber"] for answer in answers) == [0, 1, 2]
    assert all(answer["id"] == "a" and "finite numbers are expected" in answer["error"] for answer in answers)
    network_of(model).is_broken = False
    server.send(id="b", moves=["a1", "a2"])
    assert server.next()["rootInfo"]["visits"] == 20
    assert server.end() == []


# ---------------------------------------------------------------- what cannot be answered


@pytest.mark.parametrize(
    ("line", "error", "field", "identity"),
    [
        ('{"id": "x", "moves": ["a1"', "this line is not JSON", None, "x"),
        (r'{"id": "\"x", "moves": [}', "this line is not JSON", None, None),
        (r'{"id": "\"\u00e9x", "moves": 1}', "moves must be list", "moves", '"éx'),
        ('{"id": NaN, "moves": []}', "id must be str or int, not nan", "id", None),
        ('{"id": 12.5, "moves": [}', "this line is not JSON", None, None),
        (r'{"id": "\q", "moves": [}', "this line is not JSON", None, None),
        ('{"moves": [}', "this line is not JSON", None, None),
        ("[" * 50_000, "this line is not JSON", None, None),
        ('{"id": -12, "moves"}', "this line is not JSON", None, -12),
        ('["id"]', "expected an object", None, None),
        ('{"moves": []}', "id must be str or int, not None", "id", None),
        ('{"id": true, "moves": []}', "id must be str or int, not True", "id", True),
        ('{"id": {"id": 4}, "moves": []}', "id must be str or int, not {'id': 4}", "id", None),
        ('{"id": "x"}', "moves must be list, not", "moves", "x"),
        ('{"id": "x", "moves": "a1"}', "moves must be list, not 'a1'", "moves", "x"),
        ('{"id": "x", "moves": ["a1", 3]}', "move 2: expected a label or a list of W and a label", "moves", "x"),
        ('{"id": "x", "moves": ["a1", ["B", "a2"]]}', "move 2: expected a label or a list of W", "moves", "x"),
        ('{"id": "x", "moves": [["B", "a1", "a2"]]}', "move 1: expected a label or a list of B", "moves", "x"),
        ('{"id": "x", "moves": ["a1", "a1"]}', "move 2: a1 is not legal here", "moves", "x"),
        ('{"id": "x", "moves": ["a1", "z9"]}', "move 2: ", "moves", "x"),
        ('{"id": "x", "moves": ["a1", "a2", "b1", "b2", "c1", "c2"]}', "move 6: the game is over", "moves", "x"),
        (
            '{"id": "x", "moves": [], "komi": 7}',
            "unknown field: expected some of id, moves, analyzeTurns,",
            "komi",
            "x",
        ),
        ('{"id": "x", "moves": [], "maxVisits": 0}', "maxVisits must be from 1 to 100,000, not 0", "maxVisits", "x"),
        ('{"id": "x", "moves": [], "maxVisits": 100001}', "from 1 to 100,000, not 100001", "maxVisits", "x"),
        ('{"id": "x", "moves": [], "maxVisits": 1.5}', "maxVisits must be int, not 1.5", "maxVisits", "x"),
        ('{"id": "x", "moves": [], "maxVisits": true}', "not True", "maxVisits", "x"),
        ('{"id": "x", "moves": [], "priority": "1"}', "priority must be int, not '1'", "priority", "x"),
        ('{"id": "x", "moves": ["a1"], "analyzeTurns": [2]}', "from 0 to 1, not 2", "analyzeTurns", "x"),
        ('{"id": "x", "moves": [], "analyzeTurns": 0}', "analyzeTurns must be list, not 0", "analyzeTurns", "x"),
        ('{"id": "x", "moves": [], "analyzeTurns": null}', "analyzeTurns must be list, not None", "analyzeTurns", "x"),
        ('{"id": "x", "moves": [], "includePolicy": 1}', "includePolicy must be bool, not 1", "includePolicy", "x"),
        (
            '{"id": "x", "moves": [], "reportDuringSearchEvery": 0}',
            "must be above 0, not 0",
            "reportDuringSearchEvery",
            "x",
        ),
        (
            '{"id": "x", "moves": [], "reportDuringSearchEvery": NaN}',
            "must be above 0, not nan",
            "reportDuringSearchEvery",
            "x",
        ),
        (
            '{"id": "x", "action": "dance"}',
            "action must be one of query_version, clear_cache, terminate",
            "action",
            "x",
        ),
        ('{"id": "x", "action": []}', "action must be one of query_version, clear_cache, terminate", "action", "x"),
        ('{"id": "x", "action": "query_version", "moves": []}', "unknown field", "moves", "x"),
        ('{"id": "x", "action": "terminate"}', "terminateId must be str or int, not None", "terminateId", "x"),
        ('{"id": "x", "action": "terminate_all", "turnNumbers": [-1]}', "from 0 to 9, not -1", "turnNumbers", "x"),
    ],
)
def test_a_line_that_cannot_be_answered_gets_an_error_and_the_others_an_answer(
    line: str, error: str, field: str | None, identity: object
) -> None:
    first, last = {"id": 1, "moves": ["a1"]}, {"id": 2, "moves": ["b2"]}
    answers = ask(model_of("tictactoe"), first, line.encode(), last)
    assert [answer["rootInfo"]["visits"] for answer in answers if "error" not in answer] == [20, 20]
    (found,) = [answer for answer in answers if "error" in answer]
    assert error in found.pop("error")
    assert found == {"field": field, "id": identity}


def test_a_line_that_is_too_long_is_skipped() -> None:
    longest = json.dumps({"id": "most", "moves": []}).encode().ljust(MAX_BYTES - 1)
    too_long = json.dumps({"id": "more", "moves": ["a1"] * (MAX_BYTES // 4)}).encode()
    cut = json.dumps({"id": "end", "moves": []}).encode().ljust(MAX_BYTES + 1)
    answers = ask(model_of("tictactoe"), longest, too_long, b"", b"\xff", b" \r", {"id": "ok", "moves": []}, cut)
    errors = [answer for answer in answers if "error" in answer]
    assert [answer["id"] for answer in errors] == ["more", None, "end"]
    assert errors[0]["error"] == errors[2]["error"] == "a line may have 65,536 bytes"
    assert {answer["id"] for answer in answers if "error" not in answer} == {"most", "ok"}


def test_an_id_may_be_any_text() -> None:
    for identity in ("", "é\ud800\n", "0", -(10**30)):
        (answer,) = ask(model_of("tictactoe"), {"id": identity, "moves": []})
        assert answer["id"] == identity


# ---------------------------------------------------------------- as a program


def run_engine(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    program = [sys.executable, str(ROOT / "bin/engine.py"), *arguments]
    return subprocess.run(program, input=text, capture_output=True, text=True, timeout=120)


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)


def test_the_page_shows_what_is_answered() -> None:
    (queries,) = blocks("json")
    (session,) = [block for block in blocks("") if "queries.jsonl" in block]
    command, *shown = session.splitlines()
    arguments = command.removeprefix("$ seraphim engine ").partition(" <")[0].split()
    done = run_engine(*arguments, text=queries)
    assert (done.returncode, done.stderr) == (0, "")
    answers = done.stdout.splitlines()
    assert len(answers) == 4
    for line in shown:
        start, _, end = line.partition("…")
        assert any(answer.startswith(start) and answer.endswith(end) for answer in answers), (line, answers)


@needs_node
@pytest.mark.slow
def test_the_client_of_the_page_matches_two_hundred_answers(tmp_path: Path) -> None:
    (client,) = blocks("js")
    (tmp_path / "analyze.mjs").write_text(client)
    assert len([line for line in client.splitlines() if line]) <= 36
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for number in ("1", "200"):
        done = subprocess.run(
            [str(NODE), "analyze.mjs", number],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        assert re.fullmatch(r"[0-9]+ positions/s\n", done.stderr)
        rows = [line.split() for line in done.stdout.splitlines()]
        assert len({moves for moves, *_ in rows}) == len(rows) == 200
        assert all(re.fullmatch("[1-7]{6} [1-7] [01][.][0-9]{3}", " ".join(row)) for row in rows)


def test_no_input_is_no_answer() -> None:
    done = run_engine("tictactoe", "--protocol=json")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_game_that_is_cut_off_counts_as_a_draw_that_nothing_proves() -> None:
    model = Model(ENDLESS, readouts=20)
    (answer,) = ask(model, {"id": "end", "moves": ["0"] * ENDLESS.max_plies})
    assert answer["moveInfos"] == []
    assert (answer["rootInfo"]["winrate"], answer["rootInfo"]["proven"]) == (0.5, False)
