"""The walk that looks at batched rules: what must hold in each position, and of a game under every symmetry."""

from collections.abc import Callable

import numpy as np

from seraphim.game import EMPTY, Array, Game, Symmetries, board_of
from seraphim.game.conformance.calls import Calls, raised
from seraphim.game.conformance.finding import Place, kind_of, name_actions
from seraphim.game.conformance.members import IDENTITY
from seraphim.game.conformance.walks import THOROUGH_PLIES, Look, Trail
from seraphim.game.features import features_of
from seraphim.game.notation import label_in, labels_along

ReadBoard = Callable[[str], Array]
"""What a game may offer as `state_from_board`."""


class ContractWalk:
    """Games in lock step, each also under every symmetry; see `seraphim.game.conformance.walks.Walk`."""

    def __init__(
        self,
        game: Game,
        symmetries: Symmetries,
        generator: np.random.Generator,
        batch: int,
        read_board: ReadBoard | None = None,
    ) -> None:
        """Begin so many games.

        Args:
            game: the rules.
            symmetries: of the game.
            generator: chooses what is asked about again.
            batch: how many games.
            read_board: the game's `state_from_board`, if it offers one.

        Raises:
            ContractError: the initial position is none.
        """
        self._game = game
        self._symmetries = symmetries
        self._read_board = read_board
        self._calls = Calls(game, generator, self._place)
        self._trail = Trail()
        self._looks: dict[bytes, bytes] = {}  # all that can be told about each state
        self._ply = 0
        self._states = self._initial(batch)
        self._playable: Array | None = None  # the symmetries that games are played under
        self._mirrored = self._states[:0]  # int64 [playable, B, W]

    @property
    def positions(self) -> int:
        """Return how many distinct states were looked at."""
        return len(self._looks)

    @property
    def twins(self) -> int:
        """Return how many states differ from another one in nothing but their words."""
        return len(self._looks) - len(set(self._looks.values()))

    @property
    def playable(self) -> int:
        """Return how many symmetries, the identity not counted, the games are played under."""
        return 0 if self._playable is None else len(self._playable)

    def states(self) -> Array:
        """See `Walk.states`."""
        return self._states

    def look(self) -> Look:
        """See `Walk.look`."""
        thorough = self._is_thorough()
        look = self._look(thorough)
        if self._playable is None:  # at the initial position, which is now known to be one
            self._playable = self._find_playable()
            self._mirrored = np.repeat(self._states[None], len(self._playable), axis=0)
        elif thorough:
            self._compare(self._playable)
        return look

    def advance(self, rows: Array, actions: Array) -> None:
        """See `Walk.advance`."""
        self._trail.select(rows)
        self._states, self._mirrored = self._states[rows], self._mirrored[:, rows]
        if not len(rows):
            return
        call = self._calls.call_thoroughly if self._is_thorough() else self._calls.call
        (successors,) = call("step", self._states, actions)
        if self._playable is not None and len(self._playable):
            # Action a becomes the index at which the permutation of the policy has a.
            images = np.argsort(self._symmetries.actions[self._playable], axis=1)[:, actions]
            flat = self._game.step(self._mirrored.reshape(-1, self._mirrored.shape[2]), images.ravel())
            self._mirrored = flat.reshape(self._mirrored.shape)
        self._trail.step(actions)
        self._states = successors
        self._ply += 1

    def _is_thorough(self) -> bool:
        return self._ply < THOROUGH_PLIES or self._ply % 10 == 0

    def _place(self, row: int) -> Place:
        actions = self._trail.to(row)
        labels = labels_along(self._game, self._game.initial(1)[0], actions)
        return Place(actions, tuple(labels), self._game.render(self._states[row]))

    def _initial(self, batch: int) -> Array:
        first = self._game.initial(batch)
        expected = f"int64 [{batch}, {self._game.state_words}]"
        if kind_of(first) != expected:
            self._calls.fail(f"initial({batch}) is {expected}", f"it is {kind_of(first)}")
        states = first.copy()
        first[:] = -1  # which must not be the array that the next call gives
        again, one = self._game.initial(batch), self._game.initial(1)
        if (states != states[:1]).any() or not np.array_equal(again, states) or not np.array_equal(one, states[:1]):
            self._calls.fail("initial gives equal rows, the same at each call", "they differ")
        return states

    def _look(self, thorough: bool) -> Look:
        # Checks what is true of each single position.
        states, require = self._states, self._calls.require
        call = self._calls.call_thoroughly if thorough else self._calls.call
        (legal,), (ended, results) = call("legal", states), call("outcome", states)

        def state_of(row: int) -> str:
            actions = name_actions(self._game, np.flatnonzero(legal[row]))
            return f"ended is {ended[row]} and the legal actions are {actions}"

        require(legal.any(axis=1) != ended, "legal is all False if and only if the game has ended", state_of)
        require(abs(results) <= 1, "a result is from -1 to 1", lambda row: f"it is {results[row]}")
        rule = "the result of a game that goes on is 0"
        require(ended | (results == 0), rule, lambda row: f"it is {results[row]}")
        if thorough:
            (to_play,), _ = call("to_play", states), call("observe", states)
            require(np.isin(to_play, (0, 1)), "to_play is 0 or 1", lambda row: f"it is {to_play[row]}")
            self._check_drawings(legal[0])
            self._check_progress(call, ended)
            looks = self._looks_of(states)
            known = [
                self._looks.setdefault(state.tobytes(), look.tobytes())
                for state, look in zip(states, looks, strict=True)
            ]
            same = np.array([look.tobytes() == other for look, other in zip(looks, known, strict=True)])
            rule = "equal states have the same observation, player, legal actions and outcome"
            require(same, rule, lambda _: "this one had others before")
        return Look(legal, ended, results)

    def _check_drawings(self, legal: Array) -> None:
        # Of the first position: what a person sees of it.
        drawing = self._game.render(self._states[0])
        if not isinstance(drawing, str) or not drawing.strip():
            self._calls.fail("render gives a drawing as text", f"gave {drawing!r}")
        if self._read_board is not None:
            self._check_reading(self._read_board, drawing)
        labels = [label_in(self._game, self._states[0], action) for action in np.flatnonzero(legal).tolist()]
        if len(set(labels)) < len(labels):
            self._calls.fail("label_in gives each legal action a name of its own", f"gave {' '.join(labels)}", 0)
        board = board_of(self._game, self._states[0])
        if board is None:
            return
        cells = np.asarray(board.cells)
        if cells.ndim != 2 or ((cells != EMPTY) & ((cells < 0) | (cells >= len(board.marks)))).any():
            rule = f"board gives cells [R, C] that are {EMPTY} or number one of its {len(board.marks)} marks"
            self._calls.fail(rule, f"gave {cells.tolist()}", 0)
        actions = set(np.flatnonzero(legal).tolist())
        if actions != set(board.targets):
            missing = name_actions(self._game, sorted(actions - set(board.targets)))
            more = name_actions(self._game, sorted(set(board.targets) - actions))
            rule = "board gives targets for the legal actions and no others"
            self._calls.fail(rule, f"missing are: {missing}; not legal are: {more}", 0)
        rows, columns = cells.shape
        for action, places in board.targets.items():
            if not places or not all(0 <= row < rows and 0 <= column < columns for row, column in places):
                rule = f"board gives each action one cell or more, (row, column) on a board of {rows}×{columns}"
                self._calls.fail(rule, f"gave {places} for {self._game.action_label(action)}", 0)
        for names, length in ((board.row_names, rows), (board.column_names, columns)):
            if len(names) not in (0, length):
                self._calls.fail("board names all rows and columns or none", f"gave the names {names}", 0)

    def _check_reading(self, read_board: ReadBoard, drawing: str) -> None:
        try:
            state = read_board(drawing)
        except Exception as error:
            raise raised(self._game.name, "state_from_board", error, self._place(0)) from error
        expected = f"int64 [{self._game.state_words}]"
        if kind_of(state) != expected:
            self._calls.fail(f"state_from_board gives {expected}", f"gave {kind_of(state)}", 0)
        if (self._looks_of(state[None]) != self._looks_of(self._states[:1])).any():
            drawn = self._game.render(state)
            self._calls.fail("state_from_board reads what render draws", f"it read this:\n{drawn}", 0)

    def _check_progress(self, call: Callable[..., tuple[Array, ...]], ended: Array) -> None:
        if features_of(self._game).progress is None:
            return
        (progress,) = call("progress", self._states)
        in_range = ~ended | ((progress >= 0) & (progress <= 1))
        rule = "progress is from 0 to 1 where a game has ended"
        self._calls.require(in_range, rule, lambda row: f"it is {progress[row]}")

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

    def _find_playable(self) -> Array:
        # The symmetries other than the identity that leave the initial position as it is.
        (looks,) = self._looks_of(self._states[:1])
        same = (looks[self._permutations()] == looks).all(axis=1)
        same[IDENTITY] = False
        return np.flatnonzero(same)

    def _compare(self, playable: Array) -> None:
        # Games whose moves are mirrored must look mirrored.
        if not len(playable):
            return
        looks, permutations = self._looks_of(self._states), self._permutations()
        for symmetry, others in zip(playable, self._mirrored, strict=True):
            self._calls.require(
                (looks[:, permutations[symmetry]] == self._looks_of(others)).all(axis=1),
                f"symmetry {symmetry} makes a game of a game, in its observations, legal actions and outcomes",
                self._drawn(others),
            )

    def _drawn(self, states: Array) -> Callable[[int], str]:
        return lambda row: f"it makes this of the moves:\n{self._game.render(states[row])}"
