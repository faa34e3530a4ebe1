"""One call of one rule of a batched game, and what it tells by itself: types, shapes, that the rule is a function."""

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import numpy as np

from seraphim.game import Array, Game
from seraphim.game.conformance.finding import ContractError, Place, kind_of


class Calls:
    """The rules of a game, whose results are checked."""

    def __init__(self, game: Game, generator: np.random.Generator, place: Callable[[int], Place]) -> None:
        """Remember whom to ask.

        Args:
            game: the rules.
            generator: chooses the order of rows that are asked about again.
            place: tells what is at a row of the batch that is asked about.
        """
        self._game = game
        self._generator = generator
        self._place = place
        self._results: dict[str, list[tuple[type, tuple[int, ...]]]] = {
            "step": [(np.int64, (game.state_words,))],
            "legal": [(np.bool_, (game.num_actions,))],
            "to_play": [(np.int8, ())],
            "outcome": [(np.bool_, ()), (np.float32, ())],
            "observe": [(np.uint8, tuple(game.observation_shape))],
            "progress": [(np.float64, ())],
        }

    def fail(self, rule: str, received: str, row: int | None = None) -> NoReturn:
        """Raise the finding that a rule is broken, everywhere or at a row."""
        subject = f"{self._game.name} breaks the contract"
        raise ContractError(subject, rule, received, None if row is None else self._place(row))

    def require(self, holds: Array, rule: str, received: Callable[[int], str]) -> None:
        """Fail at the first row for which a rule does not hold, bool [B]."""
        if not holds.all():
            row = int(holds.argmin())
            self.fail(rule, received(row), row)

    def call(self, method: str, *inputs: Array) -> tuple[Array, ...]:
        """Return what a method gives for inputs [B, …], checked as far as one call tells."""
        given = [array.copy() for array in inputs]
        try:
            returned = getattr(self._game, method)(*given)
        except Exception as error:
            raise self._blamed(method, inputs, error) from error
        arrays: tuple[Array, ...] = returned if isinstance(returned, tuple) else (returned,)
        expected = " and ".join(f"{np.dtype(kind)} {[len(inputs[0]), *shape]}" for kind, shape in self._results[method])
        received = " and ".join(kind_of(array) for array in arrays)
        if received != expected:
            self.fail(f"{method} gives {expected}", f"gave {received}")
        for array, copy in zip(inputs, given, strict=True):
            unchanged = (array == copy).reshape(len(copy), -1).all(axis=1)
            self.require(unchanged, f"{method} does not modify its arguments", lambda _: "did here")
        if any(np.may_share_memory(array, one) for array in arrays for one in given):
            self.fail(f"{method} gives arrays of its own", "gave its argument, or a part of it")
        return arrays

    def call_thoroughly(self, method: str, *inputs: Array) -> tuple[Array, ...]:
        """Return the same, checked to be a function of each row, and not of the rows around it or of time."""
        order = self._generator.permutation(len(inputs[0]))
        row = int(self._generator.integers(len(order)))
        arrays = self.call(method, *inputs)
        again = self.call(method, *inputs)
        shuffled = self.call(method, *(array[order] for array in inputs))
        alone = self.call(method, *(array[row : row + 1] for array in inputs))
        for first, second, third, single in zip(arrays, again, shuffled, alone, strict=True):
            if np.may_share_memory(first, second):
                self.fail(f"{method} gives a new array at each call", "gave the same one twice")
            self._require_same(f"{method} gives the same at each call", first, second)
            self._require_same(f"{method} gives the same in any order", first, third[np.argsort(order)])
            others = first.copy()
            others[row] = single[0]
            self._require_same(f"{method} gives for a batch of one what it gives for a row of many", first, others)
        return arrays

    def _require_same(self, rule: str, first: Array, second: Array) -> None:
        equal = (first == second) | (np.isnan(first) & np.isnan(second))
        same = equal.reshape(len(first), -1).all(axis=1)
        self.require(same, rule, lambda row: f"gave {first[row].tolist()} and {second[row].tolist()}")

    def _blamed(self, method: str, inputs: tuple[Array, ...], error: Exception) -> ContractError:
        # Names the first row for which the method raises an error by itself; none, if it takes several rows.
        for row in range(len(inputs[0])):
            try:
                getattr(self._game, method)(*(array[row : row + 1].copy() for array in inputs))
            except Exception as alone:  # noqa: BLE001  # rules may raise anything
                return raised(self._game.name, method, alone, self._place(row))
        return raised(self._game.name, method, error, None)


def raised(name: str, method: str, error: Exception, place: Place | None) -> ContractError:
    """Return the finding that a method of a game raised an error, with the line where it did."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{type(error).__name__}: {error} ({Path(frame.filename).name}, line {frame.lineno})"
    return ContractError(f"{name} breaks the contract", f"{method} raises no error", f"raised {where}", place)
