"""Measures the server with many simultaneous players: games, answers per second, latency, and errors.

    python benchmarks/players.py [NAME] [--players=200 --readouts=100 --seconds=60]

starts a server for the model NAME in models/, by default tictactoe. Clients, in another process, play whole games
against it over WebSockets: each sends its position, requests a search, plays the best move, answers it with a random
one, and so on, without a pause. The latency of an answer is the time from the request to the final result of the
search. A game that could not be finished, although it began before the time was up, counts as lost.
"""

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from websockets.asyncio.client import connect

ROOT = Path(__file__).parents[1]


class Tally:
    """Counts of all players."""

    def __init__(self) -> None:
        self.begun = self.finished = 0
        self.seconds: list[float] = []  # of each answer
        self.errors: list[str] = []

    def __str__(self) -> str:
        return f"{self.finished:,} games, {self.begun - self.finished} lost, {len(self.errors)} errors"


async def ask(socket: Any, kind: str, **fields: Any) -> dict[str, Any]:
    """Send a message and return its last answer."""
    await socket.send(json.dumps({"id": 1, "type": kind, **fields}))
    while True:
        message: dict[str, Any] = json.loads(await socket.recv())
        if message["type"] == "error":
            raise RuntimeError(message["message"])
        if message.get("done") is not False:
            return message


async def play(url: str, name: str, readouts: int, end: float, number: int, tally: Tally) -> None:
    """Play games until the time is up, and finish the last one."""
    generator = np.random.default_rng(number)
    try:
        async with connect(url, compression=None, open_timeout=60) as socket:
            await ask(socket, "open", model=name, snapshot=None)
            while time.perf_counter() < end:
                tally.begun += 1
                await play_game(socket, readouts, generator, tally)
                tally.finished += 1
    except Exception as error:  # noqa: BLE001  # any failure is counted
        tally.errors.append(repr(error))


async def play_game(socket: Any, readouts: int, generator: np.random.Generator, tally: Tally) -> None:
    """Play one game, in which the server moves first or second."""
    moves: list[int] = []
    own = int(generator.integers(2))
    while True:
        began = time.perf_counter()
        position = await ask(socket, "position", start=None, moves=moves)
        if position["ended"]:
            return
        if len(moves) % 2 == own:
            found = await ask(socket, "think", readouts=readouts)
            tally.seconds.append(time.perf_counter() - began)
            moves.append(found["best"])
        else:
            moves.append(int(generator.choice(position["legal"])))


async def run(url: str, options: argparse.Namespace) -> Tally:
    """Let all players play."""
    tally = Tally()
    end = time.perf_counter() + options.seconds
    names = (play(url, options.name, options.readouts, end, number, tally) for number in range(options.players))
    await asyncio.gather(*names)
    return tally


def main() -> int:
    """Measure and print; return 1 if there were errors or lost games."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", default="tictactoe")
    parser.add_argument("--players", type=int, default=200)
    parser.add_argument("--readouts", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    command = [sys.executable, str(ROOT / "bin" / "serve.py"), options.name, "--port=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as server:
        try:
            line = server.stdout.readline() if server.stdout else ""
            found = re.search(r"http(://\S+)", line)
            if not found:
                return 1
            url = f"ws{found[1]}api/engine"
            warm = argparse.Namespace(**{**vars(options), "players": 1, "seconds": 0.1})
            asyncio.run(run(url, warm))  # the model is loaded
            began = time.perf_counter()
            tally = asyncio.run(run(url, options))
            seconds = time.perf_counter() - began
        finally:
            server.terminate()
    print(f"{options.name}, {options.players} players, {options.readouts} readouts per move, {seconds:.0f} s: {tally}")
    if tally.seconds:
        shares = np.percentile(1e3 * np.array(tally.seconds), [50, 95, 99, 100])
        print(
            f"{len(tally.seconds) / seconds:,.0f} answers/s; latency: median {shares[0]:.0f} ms, "
            f"95 % {shares[1]:.0f} ms, 99 % {shares[2]:.0f} ms, maximum {shares[3]:.0f} ms"
        )
    for error in sorted(set(tally.errors))[:10]:
        print(f"{tally.errors.count(error)} times: {error}")
    return int(bool(tally.errors or tally.begun > tally.finished))


if __name__ == "__main__":
    sys.exit(main())
