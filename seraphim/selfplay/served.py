"""One network for several processes, whose positions meet in batches as large as a GPU wants.

A process has seats: memory that it shares with the server, and a pipe that says whose turn it is. It writes the
observations of a batch there, and reads what the network found.
"""

import contextlib
import threading
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np

from seraphim.errors import SeraphimError, WorkerError
from seraphim.game import Array, Game
from seraphim.game.features import num_columns
from seraphim.inference.interface import FIXED_SIZES, split
from seraphim.search.evaluator import Inference

IN_FLIGHT = 3
"""Batches that a server evaluates at a time: one computes, while others travel."""
GONE = (EOFError, BrokenPipeError, ConnectionResetError)
"""What a pipe raises when the process at its other end is gone."""


class Seat(NamedTuple):
    """One end of a seat, which travels to the process that uses it; for `R` positions at a time."""

    connection: Connection
    observations: Any  # bytes that are uint8 [R, *O]
    outputs: Any  # bytes that are float32 [R, A + V]: the logits, and the values

    def arrays(self, game: Game) -> tuple[Array, Array]:
        """Return the memory as two arrays."""
        observations = np.frombuffer(self.observations, np.uint8).reshape(-1, *game.observation_shape)
        return observations, np.frombuffer(self.outputs, np.float32).reshape(len(observations), -1)


def make_seat(context: SpawnContext, game: Game, size: int) -> tuple[Seat, Seat]:
    """Return both ends of a seat for `size` positions: the player's and the server's."""
    observations = context.RawArray("B", size * int(np.prod(game.observation_shape)))
    outputs = context.RawArray("f", size * (game.num_actions + num_columns(game)))
    ours, theirs = context.Pipe()
    return Seat(ours, observations, outputs), Seat(theirs, observations, outputs)


class ServedNetwork:
    """The network as a process with seats sees it; see `Inference`."""

    overlaps = True

    def __init__(self, game: Game, name: str, description: str, seats: Sequence[Seat]) -> None:
        """Take the network's `name` and `description`, and one seat for each thread that asks it."""
        self.name, self.description, self._num_actions = name, description, game.num_actions
        self._free: SimpleQueue[tuple[Connection, Array, Array]] = SimpleQueue()
        for seat in seats:
            self._free.put((seat.connection, *seat.arrays(game)))

    def infer(self, observations: Array) -> tuple[Array, Array]:
        """See `Inference.infer`.

        Raises:
            WorkerError: the server is gone.
        """
        seat = self._free.get()
        try:
            size = len(seat[1])
            parts = [
                self._ask(*seat, observations[start : start + size]) for start in range(0, len(observations), size)
            ]
        finally:
            self._free.put(seat)
        outputs = parts[0] if len(parts) == 1 else np.concatenate(parts)
        logits, values = split(outputs, self._num_actions)
        return logits.copy(), values.copy()

    def _ask(self, connection: Connection, inputs: Array, outputs: Array, observations: Array) -> Array:
        inputs[: len(observations)] = observations
        try:
            connection.send(len(observations))
            error = connection.recv()
        except GONE as gone:
            raise WorkerError(
                "the process that runs the network died; finished games are kept: if the GPU's memory ran out, lower "
                "--concurrent_games, then run again"
            ) from gone
        if error is not None:
            raise error
        return outputs[: len(observations)].copy()


class NetworkServer:
    """Evaluates what the processes at the other ends of seats ask for.

    All batches have the same size, so that what the network finds in a position does not depend on whose positions meet
    in a batch. That size depends on the number of seats, and a runtime rounds each size in its own way.
    """

    def __init__(self, game: Game, seats: Sequence[Seat], inference: Inference) -> None:
        """Begin to serve these seats, which have the same size, in threads of this process."""
        self.inference = inference
        # The one served longest ago is the first.
        self._seats: dict[Any, tuple[Array, Array]] = {seat.connection: seat.arrays(game) for seat in seats}
        size = len(next(iter(self._seats.values()))[0])
        self._most = max(1, min(len(seats), FIXED_SIZES[-1] // size))  # seats of a batch
        self._taking = threading.Lock()
        for _ in range(IN_FLIGHT):
            batch = np.zeros((self._most * size, *game.observation_shape), np.uint8)
            threading.Thread(target=self._serve, args=[batch], daemon=True).start()

    def _serve(self, batch: Array) -> None:
        while asked := self._take():
            ends = np.cumsum([request.size for request in asked])
            for request, end in zip(asked, ends, strict=True):
                batch[end - request.size : end] = request.observations[: request.size]
            error: SeraphimError | None = None
            try:
                logits, values = self.inference.infer(batch)
                for request, end in zip(asked, ends, strict=True):
                    rows = slice(end - request.size, end)
                    request.outputs[: request.size, : logits.shape[1]] = logits[rows]
                    request.outputs[: request.size, logits.shape[1] :] = values[rows].reshape(request.size, -1)
            except SeraphimError as found:
                error = found
            except Exception:  # noqa: BLE001 (those that asked have to know of any error)
                error = WorkerError(f"the network failed:\n{traceback.format_exc()}")
            for request in asked:
                with contextlib.suppress(*GONE):
                    request.connection.send(error)

    def _take(self) -> list["_SeatRequest"]:
        # Waits for requests and returns those of a batch; none if nobody is left to ask.
        with self._taking:
            asked: list[_SeatRequest] = []
            while self._seats and not asked:
                ready: list[Any] = wait(list(self._seats))
                for connection in ready[: self._most]:
                    arrays = self._seats.pop(connection)
                    with contextlib.suppress(*GONE):
                        asked.append(_SeatRequest(connection, connection.recv(), *arrays))
                        self._seats[connection] = arrays
            return asked


class _SeatRequest(NamedTuple):
    connection: Any
    size: int  # positions
    observations: Array
    outputs: Array
