"""Single members of a game, and single calls of single rules: types, shapes, and that a rule is a pure function."""

from collections.abc import Callable
from typing import NoReturn

import numpy as np

from seraphim.errors import GameError
from seraphim.game import Array, Game, PlainGame, Symmetries
from seraphim.game.conformance.walk import ContractError, Counterexample, describe, raised
from seraphim.game.features import MOST_PLAYERS, features_of, num_players

IDENTITY = 0  # the first symmetry
MOST_OUTCOMES = 2**16  # of chance, in one state: that a search has room for
RULES = ("initial", "step", "legal", "to_play", "outcome", "observe")
MEMBERS = (
    *("name", "num_actions", "observation_shape", "state_words", "max_plies"),
    *RULES,
    *("symmetries", "render", "action_label", "parse_action"),
)


def check_presence(game: Game | PlainGame) -> None:
    """Raise a GameError if a game lacks a member."""
    unwritten = [name for name in RULES if getattr(type(game), name, None) is getattr(PlainGame, name)]
    missing = [name for name in MEMBERS if name in unwritten or not hasattr(game, name)]
    if missing:
        raise GameError(f"{type(game).__name__} is not a game: it lacks {', '.join(missing)}; see seraphim.game")


def check_members(game: Game) -> None:
    """Raise a GameError if a game lacks a member, a number is of the wrong kind, or labels are not understood."""
    check_presence(game)
    check_numbers(game)
    shape = game.observation_shape
    if not isinstance(shape, tuple) or not all(isinstance(length, int) and length >= 1 for length in shape):
        _fail(game, "observation_shape must be a tuple of ints of at least 1", f"it is {shape!r}")
    for action in range(game.num_actions):
        label = game.action_label(action)
        parsed = game.parse_action(label)
        if parsed != action:
            rule = "parse_action must be the inverse of action_label"
            _fail(game, rule, f"action {action} has the label {label!r}, which is parsed as {parsed}")
    try:
        parsed = game.parse_action("?!")
    except GameError:
        return
    _fail(game, "parse_action must raise a GameError for a text that names no action", f"'?!' gave {parsed!r}")


def check_numbers(game: Game | PlainGame) -> None:
    """Raise a GameError if one of a game's numbers is of the wrong kind, or out of range."""
    for name in ("num_actions", "state_words", "max_plies"):
        value = getattr(game, name)
        if not isinstance(value, int) or value < 1:
            _fail(game, f"{name} must be an int of at least 1", f"it is {value!r}")
    features = features_of(game)
    ranges: dict[str, tuple[type, float, float]] = {
        "num_players": (int, 1, MOST_PLAYERS),
        "num_chance_outcomes": (int, 1, MOST_OUTCOMES),
        "bank_words": (int, 0, game.state_words - 1),
        "value_scale": (float, 0.0001, 10_000),
        "points": (float, 0.0001, 1_000_000_000),
    }
    for name, (kind, least, most) in ranges.items():
        value = getattr(features, name)
        if value is None:
            continue
        kinds = (int,) if kind is int else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not least <= value <= most:
            rule = f"{name} must be {'an int' if kind is int else 'a number'} from {least} to {most}"
            _fail(game, rule, f"it is {value!r}")
    for one, other in (("chances", "num_chance_outcomes"), ("bank_words", "banked")):
        if getattr(features, one) is not None and getattr(features, other) is None:
            _fail(game, f"a game that offers {one} must offer {other}", "does not")
    if num_players(game) > 2 and features.known_results is not None:
        _fail(game, "known_results are for one or two players", f"num_players is {features.num_players}")


def checked_symmetries(game: Game) -> Symmetries:
    """Return the symmetries of a game; raise a ContractError unless they are permutations, the identity first."""
    symmetries = game.symmetries()
    for name, length in (("observations", int(np.prod(game.observation_shape))), ("actions", game.num_actions)):
        rows = np.asarray(getattr(symmetries, name))
        if rows.shape != (len(symmetries.actions), length) or not np.issubdtype(rows.dtype, np.integer):
            _fail(game, f"symmetries().{name} must be int [S, {length}]", f"it is {describe(rows)}")
        for symmetry, row in enumerate(rows):
            if not np.array_equal(np.sort(row), np.arange(length)):
                rule = f"each row of symmetries().{name} must be a permutation"
                _fail(game, rule, f"row {symmetry} is {row.tolist()}")
        if not np.array_equal(rows[IDENTITY], np.arange(length)):
            _fail(game, f"row 0 of symmetries().{name} must be the identity", f"it is {rows[IDENTITY].tolist()}")
    return symmetries


def _fail(game: Game | PlainGame, rule: str, received: str) -> NoReturn:
    raise ContractError(f"{game.name} breaks the contract", rule, received)


class Calls:
    """The rules of a batched game, with checks of what they return."""

    def __init__(self, game: Game, generator: np.random.Generator, example: Callable[[int], Counterexample]) -> None:
        """Take the rules, what chooses the order of rows in repeated calls, and what returns the position at a row."""
        self._game, self._generator, self._example = game, generator, example
        features = features_of(game)
        players = num_players(game)
        self._results: dict[str, list[tuple[type, tuple[int, ...]]]] = {
            "step": [(np.int64, (game.state_words,))],
            "legal": [(np.bool_, (game.num_actions,))],
            "to_play": [(np.int8, ())],
            "outcome": [(np.bool_, ()), (np.float32, () if players == 2 else (players,))],
            "observe": [(np.uint8, tuple(game.observation_shape))],
            "progress": [(np.float64, ())],
            "known_results": [(np.bool_, ()), (np.float32, ())],
            "chances": [(np.float64, (features.num_chance_outcomes or 0,))],
            "banked": [(np.float32, (players,))],
        }

    def fail(self, rule: str, received: str, row: int | None = None) -> NoReturn:
        """Raise the error that a rule is broken, everywhere or at a row."""
        subject = f"{self._game.name} breaks the contract"
        raise ContractError(subject, rule, received, None if row is None else self._example(row))

    def require(self, holds: Array, rule: str, received: Callable[[int], str]) -> None:
        """Fail at the first row for which a rule does not hold, bool [B]."""
        if not holds.all():
            row = int(holds.argmin())
            self.fail(rule, received(row), row)

    def call(self, method: str, *inputs: Array) -> tuple[Array, ...]:
        """Return what a method returns for inputs [B, …], checked as far as one call allows."""
        given = [array.copy() for array in inputs]
        try:
            returned = getattr(self._game, method)(*given)
        except Exception as error:
            raise self._first_error(method, inputs, error) from error
        arrays: tuple[Array, ...] = returned if isinstance(returned, tuple) else (returned,)
        expected = " and ".join(f"{np.dtype(kind)} {[len(inputs[0]), *shape]}" for kind, shape in self._results[method])
        received = " and ".join(describe(array) for array in arrays)
        if received != expected:
            self.fail(f"{method} must return {expected}", f"returned {received}")
        for array, copy in zip(inputs, given, strict=True):
            unchanged = (array == copy).reshape(len(copy), -1).all(axis=1)
            self.require(unchanged, f"{method} must not modify its arguments", lambda _: "did here")
        if any(np.may_share_memory(array, one) for array in arrays for one in given):
            self.fail(f"{method} must return new arrays", "returned its argument, or a part of it")
        return arrays

    def call_thoroughly(self, method: str, *inputs: Array) -> tuple[Array, ...]:
        """Return the same, checked to depend on each row alone: not on earlier calls, or on the rows around it."""
        order = self._generator.permutation(len(inputs[0]))
        row = int(self._generator.integers(len(order)))
        arrays = self.call(method, *inputs)
        again = self.call(method, *inputs)
        shuffled = self.call(method, *(array[order] for array in inputs))
        alone = self.call(method, *(array[row : row + 1] for array in inputs))
        for first, second, third, single in zip(arrays, again, shuffled, alone, strict=True):
            if np.may_share_memory(first, second):
                self.fail(f"{method} must return a new array at each call", "returned the same one twice")
            self._require_same(f"{method} must return the same at each call", first, second)
            self._require_same(f"{method} must return the same in any order", first, third[np.argsort(order)])
            others = first.copy()
            others[row] = single[0]
            self._require_same(f"{method} must return the same for a row alone as in a batch", first, others)
        return arrays

    def _require_same(self, rule: str, first: Array, second: Array) -> None:
        equal = (first == second) | (np.isnan(first) & np.isnan(second))
        same = equal.reshape(len(first), -1).all(axis=1)
        self.require(same, rule, lambda row: f"returned {first[row].tolist()} and {second[row].tolist()}")

    def _first_error(self, method: str, inputs: tuple[Array, ...], error: Exception) -> ContractError:
        # Names the first row for which the method raises an error by itself; none, if it takes several rows.
        for row in range(len(inputs[0])):
            try:
                getattr(self._game, method)(*(array[row : row + 1].copy() for array in inputs))
            except Exception as alone:  # noqa: BLE001  # rules may raise anything
                return raised(self._game.name, method, alone, self._example(row))
        return raised(self._game.name, method, error, None)
