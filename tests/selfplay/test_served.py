"""A network that serves several processes gives each what it asked for, and tells it of errors."""

import multiprocessing
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from seraphim.errors import ModelError, SeraphimError, WorkerError
from seraphim.game import Array, load_game
from seraphim.inference.interface import FIXED_SIZES
from seraphim.selfplay.served import NetworkServer, Seat, ServedNetwork, make_seat

GAME = load_game("tictactoe")


class Sums:
    """Evaluates positions by the sums of their observations, which are not those of positions."""

    name, description, overlaps = "sums", "NumPy", True

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.error: Exception | None = None

    def infer(self, observations: Array) -> tuple[Array, Array]:
        self.sizes.append(len(observations))
        if self.error:
            raise self.error
        sums = observations.reshape(len(observations), -1).sum(axis=1).astype(np.float32)
        return sums[:, None] + np.arange(GAME.num_actions, dtype=np.float32), -sums


def make_seats(count: int, size: int) -> tuple[list[Seat], list[Seat]]:
    context = multiprocessing.get_context("spawn")
    pairs = [make_seat(context, GAME, size) for _ in range(count)]
    return [ours for ours, _ in pairs], [theirs for _, theirs in pairs]


def observations(count: int, seed: int) -> Array:
    return np.random.default_rng(seed).integers(0, 256, (count, *GAME.observation_shape), np.uint8)


@pytest.mark.parametrize(("seats", "size"), [(1, 4), (5, 4), (3, FIXED_SIZES[-1] - 1)])
def test_everyone_gets_what_it_asked_for(seats: int, size: int) -> None:
    network = Sums()
    ours, theirs = make_seats(seats, size)
    NetworkServer(GAME, theirs, network)
    served = ServedNetwork(GAME, network.name, network.description, ours)

    def ask(seed: int) -> bool:
        asked = observations(1 + seed % 11, seed)
        found, expected = served.infer(asked), Sums().infer(asked)
        return all(np.array_equal(*pair) and pair[0].flags.writeable for pair in zip(found, expected, strict=True))

    with ThreadPoolExecutor(seats + 2) as threads:  # more than have a seat
        assert all(threads.map(ask, range(200)))
    (batch,) = set(network.sizes)  # of one size
    assert batch == size * min(seats, max(1, FIXED_SIZES[-1] // size))


@pytest.mark.parametrize(
    ("error", "expected"), [(ModelError("damaged"), ModelError), (ZeroDivisionError("oh"), WorkerError)]
)
def test_errors_reach_those_who_asked(error: Exception, expected: type[SeraphimError]) -> None:
    network = Sums()
    ours, theirs = make_seats(2, 4)
    NetworkServer(GAME, theirs, network)
    served = ServedNetwork(GAME, network.name, network.description, ours)
    network.error = error
    with pytest.raises(expected, match=str(error)):
        served.infer(observations(3, 0))
    network.error = None
    assert served.infer(observations(3, 0))[1].shape == (3,)


def test_the_server_goes_on_without_those_who_left_and_ends_without_anybody() -> None:
    before = set(threading.enumerate())  # other servers' threads among them, which may end meanwhile
    ours, theirs = make_seats(2, 4)
    NetworkServer(GAME, theirs, Sums())
    serving = set(threading.enumerate()) - before
    assert serving
    ours[0].connection.close()
    assert ServedNetwork(GAME, "", "", ours[1:]).infer(observations(3, 0))[1].shape == (3,)
    ours[1].connection.close()
    wait_until(lambda: not any(thread.is_alive() for thread in serving))


def test_without_the_server_there_is_an_error() -> None:
    ours, theirs = make_seats(1, 4)
    theirs[0].connection.close()
    with pytest.raises(WorkerError, match="lower --concurrent_games"):
        ServedNetwork(GAME, "", "", ours).infer(observations(3, 0))


def wait_until(holds: Callable[[], bool]) -> None:
    for _ in range(1000):
        if holds():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it never came to be")
