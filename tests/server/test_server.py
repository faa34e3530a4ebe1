"""The server as pages and programs use it, over real connections; errors are answered with a sentence."""

import asyncio
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import programs
import pytest
import schemathesis
import websockets
from hypothesis import settings as hypothesis_settings
from schemathesis.checks import CHECKS
from serving_tests import PATIENCE, UPDATE_SECONDS, Client, Message, Running, sentence, until
from websockets.asyncio.client import connect as connect_async
from websockets.exceptions import ConnectionClosed

import connectfour
from seraphim.errors import CapacityError, GameError, ModelError, RecordError, SettingsError
from seraphim.evaluation import match_csv
from seraphim.evaluation.match import MatchResult, Tally
from seraphim.evaluation.ratings import Match
from seraphim.game import Game
from seraphim.game.saved_games import to_text
from seraphim.game.tree import GameTree
from seraphim.inference import load_inference
from seraphim.options import RecordOptions
from seraphim.records.examples import GameRecord, encode
from seraphim.records.tfrecord import Feature, parse_example, to_example
from seraphim.records.writer import GameWriter
from seraphim.search.analysis import Analysis
from seraphim.server import history, middleware
from seraphim.server.searcher import messages, model_host
from seraphim.server.searcher.limits import SearchLimits
from seraphim.server.searcher.model_host import ModelHost
from seraphim.server.service import ServerLimits
from seraphim.storage.models import ModelFolder
from tictactoe.game import GAME


@pytest.fixture(scope="module")
def served(fresh_root: Path) -> Iterator[Running]:
    # Without a bound on requests, as there are many from one address.
    limits = ServerLimits(requests=middleware.RequestLimits(rate=1e6, burst=1e6, message_rate=1e6, message_burst=1e6))
    running = Running(fresh_root, limits)
    yield running
    running.close()


@pytest.fixture
def client(served: Running) -> Iterator[Client]:
    client = served.opened()
    yield client
    client.close()


# ---------------------------------------------------------------- the protocol


def test_opening_a_model_returns_what_a_page_needs(served: Running) -> None:
    client = served.client()
    opened = client.ask("open", model="fresh", snapshot=None)
    assert (opened["type"], opened["model"]) == ("opened", "fresh")
    assert opened["snapshot"] == ModelFolder(served.root, "fresh").champion().name
    assert opened["game"] == {
        "name": "tictactoe",
        "goal": GAME.goal,
        "num_players": 2,
        "chance": False,
        "points": None,
        "num_actions": 9,
        "max_plies": 9,
        "labels": [GAME.action_label(action) for action in range(9)],
        "reads_drawings": True,
        "labels_vary": False,
        "solved": True,
        "by_turns": False,
    }
    assert opened["engine"]
    assert opened["program"] is None
    assert "this server has no program that plays tictactoe" in client.ask("move")["message"]
    assert client.ask("open", model="fresh", snapshot=opened["snapshot"])["snapshot"] == opened["snapshot"]
    client.close()


def test_a_position_follows_the_rules(client: Client) -> None:
    position = client.place(4, 0)
    assert (position["start"], position["moves"], position["to_play"], position["last"]) == (None, [4, 0], 0, 0)
    assert (position["ended"], position["result"], position["line"]) == (False, None, [])
    assert position["legal"] == [1, 2, 3, 5, 6, 7, 8]
    assert position["labels"]["1"] == "b1"
    assert position["board"]["cells"] == [[1, -1, -1], [-1, 0, -1], [-1, -1, -1]]
    assert position["board"]["marks"] == ["X", "O"]
    assert position["board"]["targets"]["5"] == [[1, 2]]
    assert position["text"].splitlines()[1] == "1 O · ·"
    ended = client.place(0, 3, 1, 4, 2)
    assert (ended["ended"], ended["result"], ended["legal"], ended["labels"]) == (True, 1.0, [], {})
    assert ended["line"] == [[0, 0], [0, 1], [0, 2]]


@pytest.mark.parametrize("moves", [[], [4], [0, 4, 8]])
def test_a_search_equals_an_analysis_with_the_same_settings(served: Running, client: Client, moves: list[int]) -> None:
    client.place(*moves)
    found = client.think(100)
    folder = ModelFolder(served.root, "fresh")
    analysis = Analysis(GAME, load_inference(folder.champion().path, GAME, batch=8), folder.settings().search)
    for move in moves:
        analysis.play(move)
    analysis.more(100)
    expected = analysis.result()
    assert [(each["action"], each["visits"]) for each in found["candidates"]] == [
        (each.action, each.visits) for each in expected.moves
    ]
    assert found["value"] == pytest.approx(expected.value)
    assert found["value_first"] == pytest.approx(expected.value * (-1) ** len(moves))
    assert (found["best"], found["readouts"], found["done"], found["proven"]) == (
        expected.best_action,
        100,
        True,
        False,
    )
    favourite = found["candidates"][0]
    assert favourite["variation"][0] == favourite["label"] == GAME.action_label(favourite["action"])
    assert sum(each["share"] for each in found["candidates"]) == pytest.approx(1)


def test_the_tree_is_kept_between_moves(client: Client) -> None:
    client.place()
    first = client.think(300)
    best = first["candidates"][0]["action"]
    client.place(best)
    followed = client.think(10)
    assert followed["readouts"] > 10 + 50
    assert client.think(25)["readouts"] == followed["readouts"] + 25
    client.place()  # taken back
    assert client.think(10)["readouts"] == 10


def test_updates_grow_during_a_search(client: Client) -> None:
    client.place()
    identity = client.send("think", readouts=5000)
    readouts = []
    while True:
        message = client.receive()
        assert (message["id"], message["type"]) == (identity, "analysis")
        readouts.append(message["readouts"])
        if message["done"]:
            break
    assert len(readouts) >= 2
    assert readouts == sorted(readouts)
    assert readouts[-1] == 5000


def test_a_stopped_search_ends_before_the_stop_is_answered(client: Client) -> None:
    client.place()
    thinking = client.begin()
    stop = client.send("stop")
    last = client.answer(thinking)
    assert last["done"]
    assert 0 < last["readouts"] < 100_000
    assert client.receive() == {"id": stop, "type": "stopped"}
    assert client.ask("stop")["type"] == "stopped"


@pytest.mark.parametrize(
    "fields", [{"type": "think", "readouts": 50}, {"type": "position", "start": None, "moves": [4]}]
)
def test_a_new_request_ends_the_current_search(client: Client, fields: Message) -> None:
    client.place()
    thinking = client.begin()
    fields = dict(fields)
    following = client.send(fields.pop("type"), **fields)
    last = client.answer(thinking)
    assert last["done"]
    assert last["readouts"] < 100_000
    answer = client.answer(following)
    assert answer["type"] in ("analysis", "position")


def test_moves_and_boards_are_loaded(client: Client) -> None:
    assert client.ask("load", text="b2, a1") == {"id": client.last_id, "type": "loaded", "start": None, "moves": [4, 0]}
    loaded = client.ask("load", text="  a b c\n1 O . .\n2 . X .\n3 . . .")
    assert loaded["moves"] == []
    position = client.ask("position", start=loaded["start"], moves=[8])
    assert position["start"] == loaded["start"]
    assert position["board"]["cells"] == [[1, -1, -1], [-1, 0, -1], [-1, -1, 0]]
    assert client.think(30)["readouts"] == 30
    for start in (None, np.array(loaded["start"], np.int64)):
        tree = GameTree(GAME, start)
        tree.play(8)
        saved = client.ask("load", text=to_text(tree))
        assert saved["start"] == (None if start is None else loaded["start"])
        assert saved["moves"] == [8]
    assert client.ask("load", text="b2 b2")["type"] == "error"
    assert "the Smart Game Format has Go, Othello and Hex" in client.ask("load", text="(;GM[2];B[b2])")["message"]
    assert client.ask("load", text="\x00" * 1000)["type"] == "error"


def test_the_exact_result_of_each_move_is_returned(client: Client) -> None:
    client.place(0, 1, 3)  # X threatens a3
    actions = client.ask("solve")["actions"]
    assert {int(action) for action in actions} == {2, 4, 5, 6, 7, 8}
    assert actions["6"] == {"result": -1, "best": True, "plies": 4, "proven": False}
    assert actions["2"] == {"result": -1, "best": False, "plies": 2, "proven": False}
    client.place()
    draw = {"result": 0, "best": True, "plies": 9, "proven": False}
    assert all(each == draw for each in client.ask("solve")["actions"].values())


# ---------------------------------------------------------------- invalid messages


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must be a JSON object"),
        ("{", "must be a JSON object"),
        ("[1]", "must be a JSON object"),
        ("null", "must be a JSON object"),
        ("[" * 60_000, "must be a JSON object"),
        ("{}", "using discriminator 'type'"),
        ('{"id": 1.5, "type": "stop"}', "id is not valid"),
        ('{"id": true, "type": "stop"}', "id is not valid"),
        ('{"id": 1e999, "type": "stop"}', "id is not valid"),
        (f'{{"id": {"9" * 5000}, "type": "stop"}}', "must be a JSON object"),
        (f'{{"id": {10**30}, "type": "stop"}}', "id is not valid"),
        ('{"id": 7}', "using discriminator 'type'"),
        ('{"id": 7, "type": ["stop"]}', "expected tags: 'open', 'position', 'think'"),
        ('{"id": 7, "type": "stop", "more": 1}', "more is not valid: Extra inputs are not permitted"),
        ('{"id": 7, "type": "think"}', "readouts is not valid: Field required"),
        (
            '{"id": 7, "type": "think", "readouts": 0}',
            "Input should be greater than or equal to 1",
        ),
        (
            '{"id": 7, "type": "think", "readouts": 100001}',
            "Input should be less than or equal to 100000",
        ),
        ('{"id": 7, "type": "think", "readouts": "5"}', "readouts is not valid: Input should be a valid integer"),
        ('{"id": 7, "type": "think", "readouts": NaN}', "readouts is not valid: Input should be a valid integer"),
        ('{"id": 7, "type": "position", "moves": [0.5]}', "moves.0 is not valid: Input should be a valid integer"),
        ('{"id": 7, "type": "position", "moves": "0"}', "moves is not valid"),
        ('{"id": 7, "type": "position", "moves": [9]}', "not legal"),
        ('{"id": 7, "type": "position", "moves": [0, 0]}', "not legal"),
        ('{"id": 7, "type": "position", "moves": [0,1,2,3,4,5,6,7,8,9]}', "9 moves at most"),
        (
            '{"id": 7, "type": "position", "moves": [], "start": [1, 2]}',
            "start.0 is not valid: Input should be a",
        ),
        ('{"id": 7, "type": "position", "moves": [], "start": ["1", "1"]}', "not a position of tictactoe"),
        ('{"id": 7, "type": "position", "moves": [], "start": ["99999999999999999999", "0"]}', "64 bits"),
        ('{"id": 7, "type": "position", "moves": [], "start": ["x", "0"]}', "in decimal"),
        ('{"id": 7, "type": "open", "model": "../fresh", "snapshot": null}', "is not a valid model name"),
        ('{"id": 7, "type": "open", "model": "fresh", "snapshot": "../../secret"}', "has no snapshot"),
        ('{"id": 7, "type": "open", "model": "nobody", "snapshot": null}', "does not exist"),
        (
            '{"id": 7, "type": "open", "model": 5, "snapshot": null}',
            "Input should be a valid string",
        ),
        ('{"id": 7, "type": "load", "text": "z9"}', "z9"),
        ('{"id": 7, "type": "load", "text": "game: \\ud800"}', "\\ud800"),  # which UTF-8 does not have
    ],
)
def test_an_invalid_message_is_answered_with_an_error(client: Client, text: str, said: str) -> None:
    client.socket.send(text)
    answer = client.receive()
    assert answer["type"] == "error"
    assert said in answer["message"]
    assert len(answer["message"]) < 600
    assert answer["id"] == (7 if '"id": 7' in text else None)
    assert client.place(4)["type"] == "position"  # the connection stays open


def test_nothing_is_possible_before_a_model_is_open(served: Running) -> None:
    client = served.client()
    for kind, fields in (("think", {"readouts": 5}), ("solve", {}), ("position", {"moves": []})):
        assert "open" in client.ask(kind, **fields)["message"]
    client.close()


def test_a_finished_game_cannot_be_searched(client: Client) -> None:
    client.place(0, 3, 1, 4, 2)
    assert "over" in client.think(10)["message"]
    assert "over" in client.ask("solve")["message"]


def test_a_large_message_is_answered_and_a_huge_one_ends_the_connection(served: Running, client: Client) -> None:
    client.socket.send(json.dumps({"id": 3, "type": "load", "text": "x" * 65_600}))
    assert "65,536 bytes" in client.receive()["message"]
    assert client.place()["type"] == "position"
    other = served.opened()
    other.socket.send("x" * (2**20 + 100))
    with pytest.raises(ConnectionClosed):
        other.receive_until_closed()
    assert client.think(10)["readouts"] == 10


def test_malformed_frames_end_only_their_own_connection(served: Running, client: Client) -> None:
    client.place()
    thinking = client.begin()
    generator = np.random.default_rng(1)
    frames = [
        b"\xc1\x80\x00\x00\x00\x00",  # compressed, which was not agreed on
        b"\x81\x05hello",  # not masked
        b"\x81\x82\x00\x00\x00\x00\xff\xfe",  # no UTF-8
        b"\x83\x80\x00\x00\x00\x00",  # an opcode that there is not
        b"\x89\xff" + b"\xff" * 12,  # a ping of 2^64 bytes
        b"\x88\x81\x00\x00\x00\x00\x01",  # a close of one byte
        *(generator.bytes(200) for _ in range(20)),
    ]
    for frame in frames:
        other = served.client()
        other.socket.socket.sendall(frame)
        other.vanish()
    until(lambda: served.health()["sessions"] == 1)
    client.send("stop")
    assert client.answer(thinking)["readouts"] > 0
    assert client.ask("stop")["type"] == "stopped"


# ---------------------------------------------------------------- sessions


def test_the_text_of_an_error_can_be_sent_whatever_it_quotes() -> None:
    text = messages.error_text(GameError("\ud800" * 1000))
    assert text.startswith("\\ud800")
    assert len(text.encode()) < 600


def test_an_answer_that_cannot_be_sent_ends_the_connection(served: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    until(lambda: served.health()["sessions"] == 0)
    client = served.opened()
    monkeypatch.setattr(messages, "error_text", lambda _: "\ud800")
    client.send("load", text="z9")
    with pytest.raises(ConnectionClosed):
        client.receive()
    until(lambda: served.health()["sessions"] == 0)


def test_clients_are_independent(served: Running) -> None:
    clients = [served.opened() for _ in range(3)]
    lines = [[], [4], [0, 4]]
    for client, moves in zip(clients, lines, strict=True):
        client.place(*moves)
    thoughts = [client.begin() for client in clients]
    clients[1].send("stop")
    assert clients[1].answer(thoughts[1])["done"]
    clients[0].place(8)
    clients[2].send("stop")
    last = clients[2].answer(thoughts[2])
    assert {each["action"] for each in last["candidates"]} == set(range(9)) - {0, 4}
    clients[0].ask("stop")
    assert {each["action"] for each in clients[0].think(20)["candidates"]} == set(range(8))
    clients[1].ask("stop")
    assert {each["action"] for each in clients[1].think(20)["candidates"]} == set(range(9)) - {4}
    for client in clients:
        client.close()


def test_a_client_that_vanishes_frees_its_search(served: Running) -> None:
    until(lambda: served.health()["sessions"] == 0)
    client = served.opened()
    client.place()
    client.begin()
    assert served.health()["thinking"] == 1
    client.vanish()
    until(lambda: served.health() == {**served.health(), "sessions": 0, "thinking": 0, "trees": 0})


def test_an_idle_client_loses_its_tree_and_gets_a_new_one(serve: Callable[..., Running]) -> None:
    running = serve(search=SearchLimits(idle_seconds=0.0, update_seconds=UPDATE_SECONDS))
    client = running.opened()
    client.place(4)
    visits = [(each["action"], each["visits"]) for each in client.think(60)["candidates"]]
    until(lambda: client.ask("stop") and running.health()["trees"] == 0)
    again = client.think(60)
    assert again["readouts"] == 60
    assert [(each["action"], each["visits"]) for each in again["candidates"]] == visits
    client.close()


def test_the_number_of_sessions_is_bounded(serve: Callable[..., Running]) -> None:
    running = serve(ServerLimits(sessions=2))
    clients = [running.opened(f"127.0.0.{number}") for number in (2, 3)]
    third = running.client()
    assert "server at capacity (2 sessions)" in third.receive()["message"]
    with pytest.raises(ConnectionClosed) as closed:
        third.receive()
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1013
    refused = running.http.post("api/analyze", json={"model": "fresh"})
    assert refused.status_code == 503
    assert "2 sessions" in sentence(refused.text)
    clients[0].close()
    until(lambda: running.health()["sessions"] == 1)
    assert running.opened().place()["type"] == "position"


def test_fifty_clients_at_once_play_whole_games(served: Running) -> None:
    async def play(number: int) -> int:
        generator = np.random.default_rng(number)
        async with connect_async(f"ws://127.0.0.1:{served.port}/api/engine") as client:

            async def ask(kind: str, **fields: Any) -> Message:
                await client.send(json.dumps({"id": 1, "type": kind, **fields}))
                while (message := json.loads(await client.recv())).get("done") is False:
                    pass
                return message

            assert (await ask("open", model="fresh", snapshot=None))["type"] == "opened"
            moves: list[int] = []
            while not (position := await ask("position", start=None, moves=moves))["ended"]:
                if len(moves) % 2 == number % 2:
                    found = await ask("think", readouts=20)
                    assert {each["action"] for each in found["candidates"]} == set(position["legal"])
                    moves.append(found["best"])
                else:
                    moves.append(int(generator.choice(position["legal"])))
            return len(moves)

    async def play_all() -> list[int]:
        return await asyncio.gather(*(play(number) for number in range(50)))

    assert all(5 <= plies <= 9 for plies in asyncio.run(play_all()))
    until(lambda: served.health()["sessions"] == 0)


# ---------------------------------------------------------------- HTTP


def test_a_position_is_analyzed_over_http(served: Running, client: Client) -> None:
    answer = served.http.post("api/analyze", json={"model": "fresh", "moves": [4], "readouts": 80})
    assert answer.status_code == 200
    found = answer.json()
    assert (found["readouts"], found["to_play"], found["done"], found["moves"]) == (80, 1, True, [4])
    client.place(4)
    assert [(each["action"], each["visits"]) for each in client.think(80)["candidates"]] == [
        (each["action"], each["visits"]) for each in found["candidates"]
    ]
    assert found["engine"]


@pytest.mark.parametrize(
    ("content", "status", "said"),
    [
        ({}, 422, "model is not valid"),
        ({"model": "fresh", "readouts": 0}, 422, "readouts is not valid"),
        ({"model": "fresh", "readouts": 10**9}, 422, "readouts is not valid"),
        ({"model": "fresh", "more": 1}, 422, "more is not valid"),
        ({"model": "fresh", "moves": [0, 0]}, 400, "not legal"),
        ({"model": "fresh", "moves": [10**40]}, 400, "not legal"),
        ({"model": "fresh", "moves": [0, 3, 1, 4, 2]}, 400, "over"),
        ({"model": "fresh", "start": ["5"]}, 400, "a state of 2 whole numbers"),
        ({"model": "..", "moves": []}, 400, "is not a valid model name"),
        ({"model": "nobody"}, 404, "does not exist"),
        ({"model": "fresh", "snapshot": "../fresh"}, 404, "has no snapshot"),
    ],
)
def test_an_invalid_request_is_answered_with_an_error(
    served: Running, content: Message, status: int, said: str
) -> None:
    answer = served.http.post("api/analyze", json=content)
    assert answer.status_code == status, answer.text
    assert said in sentence(answer.text)


def test_a_search_stops_when_its_http_client_disconnects(served: Running) -> None:
    until(lambda: served.health()["trees"] == 0)
    body = json.dumps({"model": "fresh", "readouts": 100_000})
    connection = http.client.HTTPConnection("127.0.0.1", served.port)
    connection.request("POST", "/api/analyze", body, {"content-type": "application/json"})
    until(lambda: served.health()["thinking"] == 1)
    connection.close()
    until(lambda: served.health() == {**served.health(), "sessions": 0, "thinking": 0, "trees": 0})


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/static/../../secret.txt",
        "/static/..%2f..%2fsecret.txt",
        "/static//etc/passwd",
        "/static/%00",
        "/..%5c..%5csecret.txt",
        "/api/models/../games",
        "/api/models/%2e%2e/games",
        "/api/models/..%2f..%2fsecret.txt/games",
        "/api/models/fresh%00/games",
        "/api/models/.lock/curves",
        "/api/models/fresh/games/..%2f..%2fsettings.json",
        "/api/models/fresh/games/%FF",
        "/api/models/" + "x" * 3000 + "/curves",
        "/api/models/fresh/games?offset=-1",
        "/api/models/fresh/games?limit=99999999999999999999999",
        "/api/models/fresh/games?offset=x",
        "//",
        "/nowhere",
    ],
)
def test_no_path_leaves_the_folders_of_the_server(served: Running, path: str) -> None:
    status, text = served.raw(path)
    assert 400 <= status < 500
    sentence(text)
    assert "not for pages" not in text


@pytest.mark.parametrize(("method", "path"), [("DELETE", "/api/models"), ("POST", "/"), ("PUT", "/api/analyze")])
def test_other_methods_are_refused(served: Running, method: str, path: str) -> None:
    answer = served.http.request(method, path)
    assert answer.status_code == 405
    assert "not possible" in sentence(answer.text)


@pytest.mark.parametrize("chunked", [False, True])
def test_large_bodies_are_refused(served: Running, chunked: bool) -> None:
    def parts() -> Iterator[bytes]:
        for _ in range(100):
            yield b" " * 1000

    content: Any = parts() if chunked else b" " * 100_000
    answer = served.http.post("api/analyze", content=content, headers={"content-type": "application/json"})
    assert answer.status_code == 413
    assert "65,536 bytes" in sentence(answer.text)


def test_a_body_that_does_not_arrive_times_out(serve: Callable[..., Running]) -> None:
    running = serve(ServerLimits(requests=middleware.RequestLimits(body_seconds=0.05)))
    with socket.create_connection(("127.0.0.1", running.port), PATIENCE) as raw:
        raw.sendall(b"POST /api/analyze HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        assert raw.recv(1000).startswith(b"HTTP/1.1 408")


def test_a_refusal_arrives_though_the_body_comes_late(served: Running) -> None:
    # A connection that the server closed before would be reset by the body.
    with socket.create_connection(("127.0.0.1", served.port), PATIENCE) as raw:
        raw.sendall(b"POST /api/analyze HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\n")
        raw.sendall(b"Content-Length: 3\r\n\r\n")
        time.sleep(0.2)
        raw.sendall(b"{")
        time.sleep(0.1)
        raw.sendall(b" }")
        answer = b""
        while part := raw.recv(1000):
            answer += part
    assert answer.startswith(b"HTTP/1.1 403")


def test_a_refusal_does_not_wait_for_a_body_that_never_arrives(serve: Callable[..., Running]) -> None:
    running = serve(ServerLimits(requests=middleware.RequestLimits(body_seconds=10 * PATIENCE)))
    with socket.create_connection(("127.0.0.1", running.port), PATIENCE) as raw:
        raw.sendall(b"POST /api/analyze HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 3\r\n\r\n{")
        assert raw.recv(1000).startswith(b"HTTP/1.1 400")


def test_too_many_requests_are_refused(serve: Callable[..., Running]) -> None:
    running = serve(ServerLimits(requests=middleware.RequestLimits(rate=1.0, burst=5)))
    answers = [running.http.get("api/health") for _ in range(12)]
    codes = [answer.status_code for answer in answers]
    assert codes[0] == 200
    assert codes[-1] == 429
    assert "too many requests" in sentence(answers[-1].text)


def test_too_many_messages_are_delayed(serve: Callable[..., Running]) -> None:
    running = serve(ServerLimits(requests=middleware.RequestLimits(message_rate=50, message_burst=3)))
    client = running.opened()
    began = time.monotonic()
    identities = [client.send("stop") for _ in range(20)]
    for identity in identities:  # none is lost
        client.answer(identity)
    assert time.monotonic() - began > 0.3
    client.close()


@pytest.mark.parametrize("path", ["/api/health", "/config.js", "/nowhere", "/api/models/nobody/games"])
def test_every_answer_has_security_headers(served: Running, path: str) -> None:
    headers = served.http.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe-inline" not in policy and "'unsafe-eval'" not in policy and "http" not in policy


def test_pages_of_other_origins_cannot_use_the_server(served: Running) -> None:
    foreign = {"origin": "https://evil.example", "content-type": "application/json"}
    answer = served.http.post("api/analyze", content=b'{"model":"fresh"}', headers=foreign)
    assert answer.status_code == 403
    assert "evil.example" in sentence(answer.text)
    with pytest.raises(websockets.exceptions.InvalidStatus) as refused:
        served.client(origin="https://evil.example")
    assert refused.value.response.status_code == 403
    # Nor those of other ports: any program of this machine may serve some.
    for origin in (
        f"http://127.0.0.1:{served.port + 1}",
        "http://127.0.0.1",
        f"https://127.0.0.1:{served.port}0",
        "null",
    ):
        answer = served.http.post("api/analyze", content=b'{"model":"fresh"}', headers=foreign | {"origin": origin})
        assert answer.status_code == 403, origin
        with pytest.raises(websockets.exceptions.InvalidStatus):
            served.client(origin=origin)
    own = {"origin": f"http://127.0.0.1:{served.port}"}
    assert served.http.post("api/analyze", json={"model": "fresh", "readouts": 5}, headers=own).status_code == 200
    # A name that leads here, but is not ours (DNS rebinding).
    status, text = served.raw("/api/models", Host="evil.example")
    assert status == 400
    assert "evil.example" in sentence(text)
    assert served.raw("/api/models", Host="localhost:1")[0] == 200


def test_pages_of_allowed_origins_may_use_the_server(serve: Callable[..., Running]) -> None:
    running = serve(access=middleware.Access(origins=frozenset({"https://Play.example.org:8443", "http://127.0.0.1"})))
    for origin in ("https://play.example.org:8443", "http://127.0.0.1:80"):
        client = running.client(origin=origin)
        assert client.ask("open", model="fresh", snapshot=None)["type"] == "opened"
        client.close()
    for origin in ("https://play.example.org", "http://play.example.org:8443"):
        with pytest.raises(websockets.exceptions.InvalidStatus):
            running.client(origin=origin)
    # Behind a proxy that speaks HTTPS, neither the page nor the request names the port.
    headers = {"host": "localhost", "origin": "https://localhost"}
    assert running.http.post("api/analyze", json={"model": "fresh", "readouts": 5}, headers=headers).status_code == 200


def test_the_pages_and_their_empty_configuration_are_there(served: Running) -> None:
    for path in ("/", "/history", "/history.html", "/static/index.html"):
        answer = served.http.get(path)
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/html")
    for path in ("/config.js", "/static/config.js"):
        answer = served.http.get(path)
        assert (answer.status_code, answer.text) == (200, "")
        assert "javascript" in answer.headers["content-type"]


def test_models_are_listed(served: Running) -> None:
    (model,) = served.http.get("api/models").json()
    name = ModelFolder(served.root, "fresh").champion().name
    assert model == {"name": "fresh", "game": "tictactoe", "champion": name, "snapshots": [name], "card": False}


# The server runs in a thread of this process, and what it imports may draw from `random` meanwhile.
@pytest.mark.filterwarnings("ignore:Do not use the `random` module")
@pytest.mark.slow
def test_requests_generated_from_the_schema_cause_no_server_errors(served: Running) -> None:
    schema = schemathesis.openapi.from_url(f"{served.server.url}api/openapi.json")
    checks = (
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_schema_conformance",
    )
    chosen = CHECKS.get_by_names(checks)
    operations = [result.ok() for result in schema.get_all_operations()]
    assert len(operations) >= 6
    for operation in operations:

        @hypothesis_settings(max_examples=25, deadline=None, database=None)
        @schemathesis_given(operation)
        def check(case: Any) -> None:
            if isinstance(case.body, dict) and isinstance(case.body.get("readouts"), int):
                case.body["readouts"] %= 200  # those that are valid are to take no time
            case.call_and_validate(checks=chosen, timeout=PATIENCE)

        check()
    assert served.health()["status"] == "ok"


def schemathesis_given(operation: Any) -> Any:
    from hypothesis import given
    from hypothesis import strategies as st
    from schemathesis import GenerationMode

    modes = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]
    return given(case=st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in modes)))


# ---------------------------------------------------------------- history


def record(number: int, seed: int, *, cut_off: bool = False) -> GameRecord:
    """A game of random moves."""
    generator = np.random.default_rng(seed)
    state, states, actions, policies = GAME.initial(1), [], [], []
    while not GAME.outcome(state)[0][0] and not (cut_off and len(actions) == 3):
        legal = GAME.legal(state)[0]
        states.append(state[0])
        policies.append((legal / legal.sum()).astype(np.float32))
        actions.append(int(generator.choice(np.flatnonzero(legal))))
        state = GAME.step(state, np.array(actions[-1:]))
    result = None if cut_off else float(GAME.outcome(state)[1][0])
    values = generator.uniform(-1, 1, len(actions)).astype(np.float32)
    return GameRecord(f"stream-{number}", np.array(states), np.array(actions), np.array(policies), values, result)


@pytest.fixture(scope="module")
def recorded(served: Running) -> list[GameRecord]:
    """Games of `fresh` in files of seven, oldest first, and a damaged file."""
    records = [record(number, number, cut_off=number == 20) for number in range(30)]
    folder = ModelFolder(served.root, "fresh").game_data
    with GameWriter(folder, RecordOptions(games_per_file=7)) as writer:
        for each in records:
            writer.add(encode(GAME, each))
    (folder / "batch-0000099.tfrecord").write_bytes(b"no record at all, but of some length")
    return records


def test_games_are_listed_newest_first_a_page_at_a_time(served: Running, recorded: list[GameRecord]) -> None:
    found: list[Message] = []
    while len(found) < 30:
        page = served.http.get("api/models/fresh/games", params={"offset": len(found), "limit": 4}).json()
        assert page["total"] == 30
        assert len(page["games"]) == min(4, 30 - len(found))
        found += page["games"]
    assert [game["game_id"] for game in found] == [each.game_id for each in reversed(recorded)]
    for game, each in zip(found, reversed(recorded), strict=True):
        assert game["result"] == each.result
        assert game["plies"] == len(each.actions)
        assert game["moves"] == [GAME.action_label(action) for action in each.actions.tolist()]
    kind = {"num_players": 2, "chance": False, "points": None}
    assert served.http.get("api/models/fresh/games", params={"offset": 30}).json() == {"total": 30, "games": [], **kind}
    assert len(served.http.get("api/models/fresh/games", params={"limit": 10**6}).json()["games"]) == 30


@pytest.mark.parametrize("number", [0, 1, 11, 20, 29])
def test_a_game_is_shown_position_by_position(served: Running, recorded: list[GameRecord], number: int) -> None:
    each = recorded[number]
    game = served.http.get(f"api/models/fresh/games/{each.game_id}").json()
    assert (game["game_id"], game["result"], len(game["positions"])) == (each.game_id, each.result, len(each.actions))
    for ply, position in enumerate(game["positions"]):
        assert (position["ply"], position["to_play"], position["action"]) == (ply, ply % 2, each.actions[ply])
        assert position["label"] == GAME.action_label(int(each.actions[ply]))
        assert position["text"] == GAME.render(each.states[ply])
        assert position["root_value"] == pytest.approx(float(each.root_values[ply]))
        assert position["value"] == (None if each.result is None else each.result * (-1) ** ply)
        assert sum(position["policy"].values()) == pytest.approx(1)
        assert len(position["board"]["targets"]) == len(position["policy"]) == 9 - ply


def test_a_missing_game_is_an_error(served: Running, recorded: list[GameRecord]) -> None:
    answer = served.http.get("api/models/fresh/games/stream-2999")
    assert answer.status_code == 404
    assert "has no game" in sentence(answer.text)


def test_a_request_for_a_game_does_not_read_the_others(served: Running, recorded: list[GameRecord]) -> None:
    # What occurs in every id is none; games of other rules, which cannot be read, show what is read.
    folder = ModelFolder(served.root, "fresh").game_data
    games = [encode(connectfour.GAME, each) for each in random_games(connectfour.GAME, 5)]
    with GameWriter(folder, RecordOptions(games_per_file=5)) as writer:
        for each in games:
            writer.add(each)
    (foreign,) = sorted(folder.glob("*.tfrecord"))[-1:]
    try:
        for name in ("0", "stream", "stream-", "-", "strea", "s"):
            answer = served.http.get(f"api/models/fresh/games/{name}")
            assert answer.status_code == 404
            assert "has no game" in sentence(answer.text)
        assert served.http.get(f"api/models/fresh/games/{recorded[5].game_id}").status_code == 200
    finally:
        foreign.unlink()


def random_games(game: Game, count: int) -> Iterator[GameRecord]:
    """Games of random moves."""
    for number in range(count):
        generator, state = np.random.default_rng(number), game.initial(1)
        states, actions, policies = [], [], []
        while not game.outcome(state)[0][0]:
            legal = game.legal(state)[0]
            states.append(state[0])
            policies.append((legal / legal.sum()).astype(np.float32))
            actions.append(int(generator.choice(np.flatnonzero(legal))))
            state = game.step(state, np.array(actions[-1:]))
        values = np.zeros(len(actions), np.float32)
        result = float(game.outcome(state)[1][0])
        yield GameRecord(
            f"stream-{1000 + number}", np.array(states), np.array(actions), np.array(policies), values, result
        )


def test_a_game_with_an_illegal_move_in_its_list_is_an_error(root: Path) -> None:
    folder = ModelFolder(root, "fresh")
    with GameWriter(folder.game_data, RecordOptions()) as writer:
        for game in random_games(GAME, 1):
            writer.add([_with_all_legal(example) for example in encode(GAME, game)])
    for show in (lambda: history.list_games(folder, 0, 1), lambda: history.show_game(folder, "stream-1000")):
        with pytest.raises(RecordError, match="tfrecord holds .*: its legal actions are not those of the rules"):
            show()


def _with_all_legal(example: bytes) -> bytes:
    return to_example({**parse_example(example), "legal": Feature("bytes_list", [bytes([1] * GAME.num_actions)])})


def test_curves_come_from_snapshots_and_the_learning_curve(served: Running) -> None:
    folder = ModelFolder(served.root, "fresh")
    folder.annotate(folder.champion(), {"loss": 1.5, "policy_loss": float("nan")})
    (folder.path / "curve.csv").write_text(
        "step,seconds,games,all/positions,all/searched_mistakes\n8,1.5,30,200,50\n16,3,60,200,20\n"
    )
    curves = served.http.get("api/models/fresh/curves").json()
    assert curves["steps"] == [0, 8, 16]
    assert curves["series"]["training/loss"] == [[0, 1.5]]
    assert curves["series"]["training/policy_loss"] == []
    assert curves["series"]["learning/games"] == [[8, 30], [16, 60]]
    assert curves["series"]["searched_mistakes/all"] == [[8, 0.25], [16, 0.1]]


def test_ratings_of_snapshots_come_with_their_intervals(folder: ModelFolder) -> None:
    champion = folder.champion()
    won = MatchResult((Tally(5, 0, 1), Tally(4, 0, 2)), (0, 1, 1, 0, 4), 12)
    match = Match(f"fresh/{champion.name}", "random", won)
    match_csv.write_matches(folder.path / match_csv.RESULTS, [match], match_csv.Conditions(games=12))
    series = history.show_curves(folder)["series"]
    (low, elo, high) = (series[f"rating/{part}"] for part in ("low", "elo", "high"))
    assert low[0][0] == elo[0][0] == high[0][0] == champion.step
    assert low[0][1] < elo[0][1] < high[0][1]


# ---------------------------------------------------------------- the program


class Program:
    """bin/serve.py."""

    def __init__(self, root: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "bin/serve.py", *arguments],
            env={**os.environ, "SERAPHIM_DATA": str(root)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def url(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"http://\S+", line)
        assert found, line + self.process.communicate()[1]
        return found[0]


@pytest.mark.parametrize("sign", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_signal_ends_the_program_cleanly_during_a_search(fresh_root: Path, sign: int) -> None:
    program = Program(fresh_root, "fresh", "--port=0")
    client = Client(program.url().replace("http", "ws") + "api/engine")
    client.ask("open", model="fresh", snapshot=None)
    client.place()
    client.begin()
    program.process.send_signal(sign)
    out, errors = program.process.communicate(timeout=PATIENCE)
    assert (program.process.returncode, out, errors) == (0, "", "")
    with pytest.raises(ConnectionClosed):
        client.receive_until_closed()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nobody"], "model 'nobody' does not exist"),
        (["../fresh"], "is not a valid model name"),
        (["fresh", "more"], "expected one model NAME"),
        (["fresh", "--host=999.1.1.1"], "cannot serve at 999.1.1.1"),
        (["fresh", "--port={taken}"], "choose others with --host and --port"),
        (["fresh", "--engine=gtp:no-such-program"], "there is no program 'no-such-program': install it"),
        (["fresh", "--engine=no-such-program"], "expected gnubg:PLIES, gtp:COMMAND or uci:COMMAND"),
        (["--engine=gtp:gnugo"], "--engine plays the game of one model: name it"),
    ],
)
def test_the_program_fails_with_a_one_line_error(served: Running, arguments: list[str], said: str) -> None:
    arguments = [argument.replace("{taken}", str(served.port)) for argument in arguments]
    environment = {**os.environ, "SERAPHIM_DATA": str(served.root)}
    done = programs.run([sys.executable, "bin/serve.py", *arguments], env=environment, timeout=PATIENCE)
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""


def test_without_a_model_those_that_come_with_it_are_served(tmp_path: Path, fresh_root: Path) -> None:
    served = [model.name for model in ModelHost(tmp_path).models()]
    there = (model_host.SHIPPED / "models").glob("*/champion")  # of a clone, with those that it has learned itself
    assert served == sorted(path.parent.name for path in there)
    assert {"connectfour", "cube", "hex", "othello", "pig", "threes", "tictactoe", "twenty48-2x3"} <= set(served)
    assert [model.name for model in ModelHost(tmp_path, "tictactoe").models()] == ["tictactoe"]
    assert [model.name for model in ModelHost(fresh_root).models()] == ["fresh"]
    assert [model.name for model in ModelHost(fresh_root, "tictactoe").models()] == ["tictactoe", "fresh"]


def test_without_any_model_it_is_said_how_to_make_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_host, "SHIPPED", tmp_path)
    with pytest.raises(SettingsError, match="make one with seraphim learn"):
        ModelHost(tmp_path)


# ---------------------------------------------------------------- models


def test_a_damaged_model_does_not_affect_the_others(served: Running, client: Client) -> None:
    fresh = served.root / "models" / "fresh"
    broken = served.root / "models" / "broken"
    shutil.copytree(fresh, broken, symlinks=True)
    try:
        for file in (broken / "champion" / "saved_model.pb", *(broken / "champion").rglob("*.tflite")):
            file.write_bytes(bytes(file.stat().st_size))  # of another size, it would be no snapshot
        other = served.client()
        for _ in range(2):
            assert other.ask("open", model="broken", snapshot=None)["type"] == "error"
        other.close()
        assert client.place()["type"] == "position"
        assert client.think(10)["readouts"] == 10
        assert [model["name"] for model in served.http.get("api/models").json()] == ["fresh", "broken"]
    finally:
        shutil.rmtree(broken)


def test_unused_models_are_unloaded_for_others(fresh_root: Path, tmp_path: Path) -> None:
    shutil.copytree(fresh_root, tmp_path / "data", symlinks=True)
    models = tmp_path / "data" / "models"
    shutil.copytree(models / "fresh", models / "second", symlinks=True)
    host = ModelHost(tmp_path / "data", limits=SearchLimits(trees=2), max_loaded=1)
    first = host.load("fresh").result(PATIENCE)
    session = first.searcher.attach()
    with pytest.raises(CapacityError, match="1 models in use"):
        host.load("second")
    first.searcher.detach(session)
    second = host.load("second").result(PATIENCE)
    with pytest.raises(ModelError, match="open it again"):
        first.searcher.attach()
    assert host.loaded == [second]
    assert host.load("second").result(PATIENCE) is second
    host.close()
