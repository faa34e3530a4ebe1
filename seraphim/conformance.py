"""Checks a game against the contract of `seraphim.game`, by playing random games and comparing what must be equal.

Knows the contract and no game. Rules that break it make a search wrong without a sign, so each finding names the
rule, draws the position, and tells the moves that lead there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from seraphim.errors import GameError
from seraphim.game import Array, Game, PlainGame, PlainRules, Symmetries

THOROUGH_PLIES = 300  # of each game; after that, every tenth ply is looked at
IDENTITY = 0  # the first symmetry
MEMBERS = (
    *("name", "num_actions", "observation_shape", "state_words", "max_plies"),
    *("initial", "step", "legal", "to_play", "outcome", "observe"),
    *("symmetries", "render", "action_label", "parse_action"),
)


@dataclass(frozen=True)
class Report:
    """What was played while nothing broke the contract; prints as one line."""

    game: str
    games: int
    positions: int
    """Distinct states that were looked at."""
    longest: int
    """Plies of the longest game."""
    results: tuple[int, int, int, int]
    """Games that player 0 won, drawn games, games that player 1 won, and those cut off at `max_plies`."""
    symmetries: int
    unchecked_symmetries: int
    """Those that change the initial position, so that games cannot be replayed under them."""
    twins: int
    """States that differ from another one in nothing but their words: a history that is not seen, or a mistake."""

    def __str__(self) -> str:
        won, drawn, lost, cut_off = self.results
        text = (
            f"{self.game} keeps the contract: {self.games:,} random games of up to {self.longest:,} plies, "
            f"{self.positions:,} positions; {won:,} won by player 0, {lost:,} by player 1, {drawn:,} drawn, "
            f"{cut_off:,} cut off; symmetries: {self.symmetries}"
        )
        if self.unchecked_symmetries:
            text += f", {self.unchecked_symmetries} of them unchecked because they change the initial position"
        if self.twins:
            text += f"; {self.twins:,} states differ from another one in nothing but their words"
        return text


def check_game(game: Game | PlainGame, games: int = 200, seed: int = 0) -> Report:
    """Play random games, many at once, and check every identity of the contract.

    Args:
        game: batched rules, or plain ones, which are checked by themselves and then through their adapter.
        games: how many games.
        seed: of the random moves.

    Raises:
        GameError: the game breaks the contract; the message says where.
    """
    generator = np.random.default_rng(seed)
    if isinstance(game, PlainGame):
        for _ in range(games):
            _check_plain(game, generator)
        game = PlainRules(game)
    _check_members(game)
    _check_labels(game)
    return _RandomPlay(game, _checked_symmetries(game), generator).run(games)


def _fail(game: Any, rule: str, received: str, where: str = "") -> NoReturn:
    raise GameError(f"{game.name} breaks the contract: {rule}, but {received}{where}")


def _check_members(game: Game) -> None:
    missing = [name for name in MEMBERS if not hasattr(game, name)]
    if missing:
        raise GameError(f"{type(game).__name__} is no game: it lacks {', '.join(missing)}; see seraphim.game.Game")
    for name in ("num_actions", "state_words", "max_plies"):
        value = getattr(game, name)
        if not isinstance(value, int) or value < 1:
            _fail(game, f"{name} is an int of at least 1", f"it is {value!r}")
    shape = game.observation_shape
    if not isinstance(shape, tuple) or not all(isinstance(length, int) and length >= 1 for length in shape):
        _fail(game, "observation_shape is a tuple of ints of at least 1", f"it is {shape!r}")


def _check_labels(game: Game) -> None:
    for action in range(game.num_actions):
        label = game.action_label(action)
        parsed = game.parse_action(label)
        if parsed != action:
            rule = "parse_action is the inverse of action_label"
            _fail(game, rule, f"action {action} has the label {label!r}, which is parsed as {parsed}")
    try:
        parsed = game.parse_action("?!")
    except GameError:
        return
    _fail(game, "parse_action raises a GameError for a text that names no action", f"'?!' gave {parsed!r}")


def _checked_symmetries(game: Game) -> Symmetries:
    symmetries = game.symmetries()
    for name, length in (("observations", int(np.prod(game.observation_shape))), ("actions", game.num_actions)):
        rows = np.asarray(getattr(symmetries, name))
        if rows.shape != (len(symmetries.actions), length) or not np.issubdtype(rows.dtype, np.integer):
            _fail(game, f"symmetries().{name} is int [S, {length}]", f"it is {_kind(rows)}")
        for symmetry, row in enumerate(rows):
            if not np.array_equal(np.sort(row), np.arange(length)):
                _fail(game, f"each row of symmetries().{name} is a permutation", f"row {symmetry} is {row.tolist()}")
        if not np.array_equal(rows[IDENTITY], np.arange(length)):
            _fail(game, f"row 0 of symmetries().{name} is the identity", f"it is {rows[IDENTITY].tolist()}")
    return symmetries


def _check_plain(plain: PlainGame, generator: np.random.Generator) -> None:
    # Plays one game and checks what the adapter hides: it keeps no more of a state than its words, and its arrays take
    # whatever is put into them.
    state: Any = plain.initial()
    for _ in range(min(plain.max_plies, THOROUGH_PLIES)):
        where = f"\nposition:\n{plain.render(state)}"
        words = tuple(int(word) for word in plain.to_words(state))
        if plain.from_words(words) != state:
            rule = "from_words gives the state back that to_words was given"
            _fail(plain, rule, f"{state!r} became {words}, and that {plain.from_words(words)!r}", where)
        seen = np.asarray(plain.observe(state))
        if seen.shape != tuple(plain.observation_shape) or not np.array_equal(seen, seen.astype(np.uint8)):
            rule = f"observe gives ints from 0 to 255 of shape {list(plain.observation_shape)}"
            _fail(plain, rule, f"gave {seen.tolist()}", where)
        if plain.outcome(state) is not None:
            return
        actions = list(plain.legal(state))
        if not actions or not set(actions) <= set(range(plain.num_actions)):
            _fail(plain, f"legal gives actions below {plain.num_actions} until the end", f"gave {actions}", where)
        state = plain.step(state, int(generator.choice(actions)))


def _kind(array: Any) -> str:
    return f"{array.dtype} {list(array.shape)}" if isinstance(array, np.ndarray) else f"a {type(array).__name__}"


class _RandomPlay:
    # Plays random games in lock step, each also under every symmetry, and looks at each position on the way.

    def __init__(self, game: Game, symmetries: Symmetries, generator: np.random.Generator) -> None:
        self._game = game
        self._generator = generator
        self._results: dict[str, list[tuple[type, tuple[int, ...]]]] = {
            "step": [(np.int64, (game.state_words,))],
            "legal": [(np.bool_, (game.num_actions,))],
            "to_play": [(np.int8, ())],
            "outcome": [(np.bool_, ()), (np.float32, ())],
            "observe": [(np.uint8, tuple(game.observation_shape))],
        }
        self._came_by: dict[bytes, tuple[bytes, int] | None] = {}  # each state's predecessor, and the action
        self._looks: dict[bytes, bytes] = {}  # all that can be told about each state
        self._symmetries = symmetries

    def run(self, games: int) -> Report:
        states = self._initial(games)
        self._look(states, thorough=True)  # before anything is made of what the game says
        playable = self._playable(states[:1])
        mirrored = np.repeat(states[None], len(playable), axis=0)
        counts = np.zeros(3, np.int64)
        ply = 0
        while True:
            thorough = ply < THOROUGH_PLIES or ply % 10 == 0
            legal, ended, results = self._look(states, thorough)
            if thorough and len(playable):
                self._compare(playable, states, mirrored)
            counts += [(ended & (np.sign(results) == sign)).sum() for sign in (1, 0, -1)]
            if ended.all() or ply == self._game.max_plies:
                break
            states, legal, mirrored = states[~ended], legal[~ended], mirrored[:, ~ended]
            actions = (self._generator.random(legal.shape) * legal).argmax(axis=1)
            states, mirrored = self._step(states, actions, thorough), self._step_all(playable, mirrored, actions)
            ply += 1
        won, drawn, lost = counts.tolist()
        num_symmetries = len(self._symmetries.actions)
        return Report(
            game=self._game.name,
            games=games,
            positions=len(self._looks),
            longest=ply,
            results=(won, drawn, lost, int((~ended).sum())),
            symmetries=num_symmetries,
            unchecked_symmetries=num_symmetries - 1 - len(playable),
            twins=len(self._looks) - len(set(self._looks.values())),
        )

    def _initial(self, games: int) -> Array:
        first = self._game.initial(games)
        if _kind(first) != f"int64 [{games}, {self._game.state_words}]":
            rule = f"initial({games}) is int64 [{games}, {self._game.state_words}]"
            _fail(self._game, rule, f"it is {_kind(first)}")
        states = first.copy()
        first[:] = -1  # which must not be the array that the next call gives
        again, one = self._game.initial(games), self._game.initial(1)
        if (states != states[:1]).any() or not np.array_equal(again, states) or not np.array_equal(one, states[:1]):
            _fail(self._game, "initial gives equal rows, the same at each call", "they differ")
        self._came_by[states[0].tobytes()] = None
        return states

    def _look(self, states: Array, thorough: bool) -> tuple[Array, Array, Array]:
        # Checks what is true of each single position.
        call = self._call_thoroughly if thorough else self._call
        (legal,), (ended, results) = call("legal", states), call("outcome", states)
        rule = "legal is all False if and only if the game has ended"
        self._require(
            legal.any(axis=1) != ended,
            rule,
            lambda row: f"ended is {ended[row]} and the legal actions are {np.flatnonzero(legal[row]).tolist()}",
            states,
        )
        self._require(abs(results) <= 1, "a result is from -1 to 1", lambda row: f"it is {results[row]}", states)
        rule = "the result of a game that goes on is 0"
        self._require(ended | (results == 0), rule, lambda row: f"it is {results[row]}", states)
        if thorough:
            (to_play,), _ = call("to_play", states), call("observe", states)
            self._require(np.isin(to_play, (0, 1)), "to_play is 0 or 1", lambda row: f"it is {to_play[row]}", states)
            drawing = self._game.render(states[0])
            if not isinstance(drawing, str) or not drawing.strip():
                _fail(self._game, "render gives a drawing as text", f"gave {drawing!r}")
            looks = self._looks_of(states)
            known = [
                self._looks.setdefault(state.tobytes(), look.tobytes())
                for state, look in zip(states, looks, strict=True)
            ]
            same = np.array([look.tobytes() == other for look, other in zip(looks, known, strict=True)])
            rule = "equal states have the same observation, player, legal actions and outcome"
            self._require(same, rule, lambda _: "this one had others before", states)
        return legal, ended, results

    def _looks_of(self, states: Array) -> Array:
        # All that can be told about each state, float32 [B, prod(O) + A + 3].
        seen, legal = self._game.observe(states), self._game.legal(states)
        player, outcome = self._game.to_play(states), self._game.outcome(states)
        columns = np.stack([player, *outcome], axis=1)
        return np.concatenate([seen.reshape(len(states), -1), legal, columns], axis=1, dtype=np.float32)

    def _permutations(self) -> Array:
        # What each symmetry does to the looks of a state, int [S, prod(O) + A + 3].
        observations, actions = self._symmetries
        num_symmetries, cells = observations.shape
        rest = np.tile(np.arange(3), (num_symmetries, 1))
        return np.concatenate([observations, cells + actions, cells + self._game.num_actions + rest], axis=1)

    def _playable(self, initial: Array) -> Array:
        # The symmetries other than the identity that leave the initial position as it is.
        (looks,) = self._looks_of(initial)
        same = (looks[self._permutations()] == looks).all(axis=1)
        same[IDENTITY] = False
        return np.flatnonzero(same)

    def _compare(self, playable: Array, states: Array, mirrored: Array) -> None:
        # Games whose moves are mirrored must look mirrored.
        looks, permutations = self._looks_of(states), self._permutations()
        for symmetry, others in zip(playable, mirrored, strict=True):
            self._require(
                (looks[:, permutations[symmetry]] == self._looks_of(others)).all(axis=1),
                f"symmetry {symmetry} makes a game of a game, in its observations, legal actions and outcomes",
                lambda row, others=others: f"it makes this of the moves:\n{self._game.render(others[row])}",  # type: ignore[misc]
                states,
            )

    def _step_all(self, playable: Array, mirrored: Array, actions: Array) -> Array:
        if not len(playable):
            return mirrored
        # Action a becomes the index at which the permutation of the policy has a.
        images = np.argsort(self._symmetries.actions[playable], axis=1)[:, actions]
        flat = self._game.step(mirrored.reshape(-1, mirrored.shape[2]), images.ravel())
        return flat.reshape(mirrored.shape)

    def _step(self, states: Array, actions: Array, thorough: bool) -> Array:
        (successors,) = (
            self._call_thoroughly("step", states, actions) if thorough else self._call("step", states, actions)
        )
        for state, action, successor in zip(states, actions, successors, strict=True):
            self._came_by.setdefault(successor.tobytes(), (state.tobytes(), int(action)))
        return successors

    def _call(self, method: str, *inputs: Array) -> tuple[Array, ...]:
        # Calls a method of the game and checks what one call tells.
        copies = [array.copy() for array in inputs]
        returned = getattr(self._game, method)(*inputs)
        arrays: tuple[Array, ...] = returned if isinstance(returned, tuple) else (returned,)
        expected = " and ".join(f"{np.dtype(kind)} {[len(inputs[0]), *shape]}" for kind, shape in self._results[method])
        received = " and ".join(_kind(array) for array in arrays)
        if received != expected:
            _fail(self._game, f"{method} gives {expected}", f"gave {received}")
        for array, copy in zip(inputs, copies, strict=True):
            unchanged = (array == copy).reshape(len(copy), -1).all(axis=1)
            self._require(unchanged, f"{method} does not modify its arguments", lambda _: "did here", copies[0])
        if any(np.may_share_memory(array, given) for array in arrays for given in inputs):
            _fail(self._game, f"{method} gives arrays of its own", "gave its argument, or a part of it")
        return arrays

    def _call_thoroughly(self, method: str, *inputs: Array) -> tuple[Array, ...]:
        # Checks also that what a row gives is a function of that row, and not of the rows around it or of time.
        order = self._generator.permutation(len(inputs[0]))
        row = int(self._generator.integers(len(order)))
        arrays = self._call(method, *inputs)
        again = self._call(method, *inputs)
        shuffled = self._call(method, *(array[order] for array in inputs))
        alone = self._call(method, *(array[row : row + 1] for array in inputs))
        for first, second, third, single in zip(arrays, again, shuffled, alone, strict=True):
            if np.may_share_memory(first, second):
                _fail(self._game, f"{method} gives a new array at each call", "gave the same one twice")
            self._require_same(f"{method} gives the same at each call", first, second, inputs[0])
            self._require_same(f"{method} gives the same in any order", first[order], third, inputs[0][order])
            rule = f"{method} gives for a batch of one what it gives for a row of many"
            self._require_same(rule, first[row : row + 1], single, inputs[0][row : row + 1])
        return arrays

    def _require_same(self, rule: str, first: Array, second: Array, states: Array) -> None:
        equal = (first == second) | (np.isnan(first) & np.isnan(second))
        same = equal.reshape(len(first), -1).all(axis=1)
        self._require(same, rule, lambda row: f"gave {first[row].tolist()} and {second[row].tolist()}", states)

    def _require(self, holds: Array, rule: str, received: Callable[[int], str], states: Array) -> None:
        # Reports the first of some states [B, W] for which a rule does not hold, bool [B].
        if holds.all():
            return
        row = int(holds.argmin())
        labels: list[str] = []
        came_by = self._came_by.get(states[row].tobytes())
        while came_by is not None:
            state, action = came_by
            labels.append(self._game.action_label(action))
            came_by = self._came_by[state]
        moves = " ".join(reversed(labels)) or "no moves"
        _fail(self._game, rule, received(row), f"\nposition after {moves}:\n{self._game.render(states[row])}")
