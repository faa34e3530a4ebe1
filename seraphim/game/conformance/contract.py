"""The walk that checks the contract of batched rules, each game also under every symmetry."""

import re
from collections.abc import Callable

import numpy as np

from seraphim.game import CHANCE, EMPTY, Array, Game, Symmetries, board_of
from seraphim.game.conformance.calls import IDENTITY, Calls
from seraphim.game.conformance.walk import Counterexample, History, Inspected, describe, name_actions, observed, raised
from seraphim.game.features import features_of, has_chance, num_columns, num_players
from seraphim.game.interface import LOOKS_WITHOUT_CELLS, OFF_BOARD
from seraphim.game.notation import followers, label_in, labels_along, labels_vary

SAME_CHANCE, SAME_RESULT = 1e-9, 1e-6  # differences that are rounding
THOROUGH_PLIES = 300  # of each game; after that, every tenth ply is checked thoroughly
ReadBoard = Callable[[str], Array]  # `state_from_board`


class ContractWalk:
    """A `Walk` of batched rules, each game also under every symmetry."""

    def __init__(
        self,
        game: Game,
        symmetries: Symmetries,
        generator: np.random.Generator,
        batch: int,
        read_board: ReadBoard | None = None,
    ) -> None:
        """Begin a batch of games; the generator chooses rows and their order in repeated calls.

        Raises:
            ContractError: `initial` breaks the contract.
        """
        self._game, self._symmetries, self._read_board = game, symmetries, read_board
        self._calls = Calls(game, generator, self._example)
        self._history = History()
        self._facts: dict[bytes, bytes] = {}  # all that the rules tell about each state
        self._ply = 0
        self._states = self._initial(batch)
        self._moved: Array = np.zeros(batch, np.bool_)  # whether a player has moved
        self._playable: Array | None = None  # the symmetries that games are played under
        self._mirrored = self._states[:0]  # int64 [playable, B, W]

    @property
    def positions(self) -> int:
        """Return how many distinct states were checked."""
        return len(self._facts)

    @property
    def duplicates(self) -> int:
        """Return how many states differ from another one only in their words."""
        return len(self._facts) - len(set(self._facts.values()))

    @property
    def playable(self) -> int:
        """Return under how many symmetries, the identity not counted, the games are played."""
        return 0 if self._playable is None else len(self._playable)

    def states(self) -> Array:
        return self._states

    def inspect(self) -> Inspected:
        thorough = self._is_thorough()
        found = self._inspect(thorough)
        if self._playable is None:  # at the initial position, whose facts are known to be valid now
            self._playable = self._find_playable()
            self._mirrored = np.repeat(self._states[None], len(self._playable), axis=0)
        elif thorough:
            self._compare(self._playable)
        return found

    def advance(self, rows: Array, actions: Array) -> None:
        self._history.select(rows)
        self._states, self._mirrored = self._states[rows], self._mirrored[:, rows]
        self._moved = self._moved[rows] | self._game.legal(self._states).any(axis=1)
        if not len(rows):
            return
        call = self._calls.call_thoroughly if self._is_thorough() else self._calls.call
        (successors,) = call("step", self._states, actions)
        if self._playable is not None and len(self._playable):
            # Action a becomes the index at which the permutation of the policy has a.
            images = np.argsort(self._symmetries.actions[self._playable], axis=1)[:, actions]
            flat = self._game.step(self._mirrored.reshape(-1, self._mirrored.shape[2]), images.ravel())
            self._mirrored = flat.reshape(self._mirrored.shape)
        self._history.step(actions)
        self._states = successors
        self._ply += 1

    def _is_thorough(self) -> bool:
        return self._ply < THOROUGH_PLIES or self._ply % 10 == 0

    def _example(self, row: int) -> Counterexample:
        actions = self._history.to(row)
        labels = labels_along(self._game, self._game.initial(1)[0], actions)
        try:
            drawing = self._game.render(self._states[row])
        except Exception:  # noqa: BLE001  # rules that are broken may break the drawing, too
            drawing = f"state {self._states[row].tolist()}"
        return Counterexample(actions, tuple(labels), drawing)

    def _initial(self, batch: int) -> Array:
        first = self._game.initial(batch)
        expected = f"int64 [{batch}, {self._game.state_words}]"
        if describe(first) != expected:
            self._calls.fail(f"initial({batch}) must return {expected}", f"returned {describe(first)}")
        states = first.copy()
        first[:] = -1  # which must not be the array that the next call gives
        again, one = self._game.initial(batch), self._game.initial(1)
        if (states != states[:1]).any() or not np.array_equal(again, states) or not np.array_equal(one, states[:1]):
            self._calls.fail("initial must return equal rows, the same at each call", "they differ")
        return states

    def _inspect(self, thorough: bool) -> Inspected:
        # Checks each position by itself.
        states, require = self._states, self._calls.require
        call = self._calls.call_thoroughly if thorough else self._calls.call
        (legal,), (ended, results) = call("legal", states), call("outcome", states)
        results = results.reshape(len(ended), -1)
        features = features_of(self._game)
        by_chance = np.zeros(len(ended), np.bool_)
        if features.chances is not None:
            by_chance = ~ended & (call("to_play", states)[0] == CHANCE)
        or_chance = ", or chance moves" if features.chances is not None else ""

        def state_of(row: int) -> str:
            actions = name_actions(self._game, np.flatnonzero(legal[row]))
            return f"ended is {ended[row]} and the legal actions are {actions}"

        rule = f"legal must be all False exactly when the game has ended{or_chance}"
        require(legal.any(axis=1) != (ended | by_chance), rule, state_of)

        def result_of(row: int) -> str:
            return f"it is {results[row].tolist() if num_players(self._game) > 2 else results[row, 0]}"

        require(np.asarray((abs(results) <= 1).all(axis=1)), "a result must be from -1 to 1", result_of)
        require(ended | (results == 0).all(axis=1), "the result of an unfinished game must be 0", result_of)
        if features.chances is not None:
            (chances,) = call("chances", states)
            rule = "chances must be 0 or more, and their sum 1 where chance moves, else 0"
            sums = (chances >= 0).all(axis=1) & (abs(chances.sum(axis=1) - by_chance) < SAME_CHANCE)
            require(sums, rule, lambda row: f"they are {chances[row].tolist()}")
        over = np.logical_or(ended, self._ply >= self._game.max_plies)
        require(self._moved | ~over, "a player must move before the end", lambda _: "none does")
        if thorough:
            (to_play,) = call("to_play", states)
            if not by_chance.all():
                call("observe", states[~by_chance])
            expected = [*range(num_players(self._game)), *([CHANCE] if or_chance else [])]
            rule = f"to_play must be {' or '.join(map(str, expected))}"
            require(np.isin(to_play, expected), rule, lambda row: f"it is {to_play[row]}")
            if features.banked is not None:
                self._check_bank(ended, results)
            self._check_drawings(followers(self._game, states[:1])[0])
            if features_of(self._game).progress is not None:
                (progress,) = call("progress", states)
                rule = "progress must be from 0 to 1 where a game has ended"
                in_range = (progress >= 0) & (progress <= 1)
                require(~ended | in_range, rule, lambda row: f"it is {progress[row]}")
            if features_of(self._game).known_results is not None:
                self._check_known_results(legal, ended, np.where(to_play == 0, 1.0, -1.0))
            self._check_is_position()
            facts = [row.tobytes() for row in self._facts_of(states)]
            for row in np.flatnonzero(by_chance):  # which nobody observes: told apart by their words alone
                facts[row] += states[row].tobytes()
            known = [self._facts.setdefault(state.tobytes(), row) for state, row in zip(states, facts, strict=True)]
            same = np.array([row == other for row, other in zip(facts, known, strict=True)])
            rule = "equal states must have the same observation, player, legal actions and outcome"
            require(same, rule, lambda _: "this one had others before")
        return Inspected(followers(self._game, states), ended, results)

    def _check_bank(self, ended: Array, results: Array) -> None:
        # What is banked is all that depends on the last words of a state; a result counts it once.
        (banked,) = self._calls.call_thoroughly("banked", self._states)
        finite = np.asarray(np.isfinite(banked).all(axis=1))
        self._calls.require(finite, "banked must be finite", lambda row: f"it is {banked[row].tolist()}")
        words = features_of(self._game).bank_words or 0
        fair = (banked.sum(axis=1) == 0) | (banked.shape[1] != 2)
        self._calls.require(fair, "what two players have in the bank must add up to 0", lambda row: f"is {banked[row]}")
        if not words:
            return
        others = self._states.copy()
        others[:, -words:] += 1
        columns = results.shape[1]
        facts, of_others = (self._facts_of(each)[:, :-columns] for each in (self._states, others))  # without results
        rule = f"only banked and outcome may read the last {words} words of a state, as bank_words says"
        self._calls.require((facts == of_others).all(axis=1), rule, lambda _: "with other words there, more changed")
        of_others = self._game.outcome(others)[1].reshape(len(ended), -1)
        changed = of_others - self._game.banked(others)[:, :columns] - (results - banked[:, :columns])  # type: ignore[attr-defined]
        same = ~ended | (abs(changed) < SAME_RESULT).all(axis=1)
        rule = "a result must be what is banked and what does not depend on it"
        self._calls.require(same, rule, lambda row: f"it is {results[row].tolist()} with {banked[row].tolist()} banked")

    def _check_known_results(self, legal: Array, ended: Array, signs: Array) -> None:
        # Compares each known result with those of the moves, where these are all known; `signs` [B] are 1 where player
        # 0 moves, and -1 where player 1 does.
        told, results = self._calls.call_thoroughly("known_results", self._states)
        known = told & ~ended & legal.any(axis=1)  # where chance moves, there is no best move
        rows, actions = np.nonzero(legal & known[:, None])
        successors = self._game.step(self._states[rows], actions)
        over, outcomes = self._game.outcome(successors)
        after, values = self._game.known_results(successors)  # type: ignore[attr-defined]
        known[rows[~(over | after)]] = False
        best = np.full(len(known), -np.inf)
        np.maximum.at(best, rows, np.where(over, outcomes, values) * signs[rows])
        self._calls.require(
            ~known | (best == results * signs),
            "known_results must be the results under best play",
            lambda row: f"returned {results[row]:g}, and the best move leads to {best[row] * signs[row] + 0:g}",
        )

    def _check_is_position(self) -> None:
        is_position = features_of(self._game).is_position
        if is_position is None:
            return
        allowed = np.array([is_position(state) for state in self._states], np.bool_)
        self._calls.require(allowed, "is_position must be True wherever play leads", lambda _: "it is False")
        if is_position(np.full(self._game.state_words, -1, np.int64)):
            self._calls.fail("is_position must be False for words that play does not lead to", "it is True for -1 …")

    def _check_drawings(self, legal: Array) -> None:
        # Checks what people see of the first position.
        drawing = self._game.render(self._states[0])
        if not isinstance(drawing, str) or not drawing.strip():
            self._calls.fail("render must return a drawing as text", f"returned {drawing!r}")
        goal = features_of(self._game).goal
        if goal is not None and (not goal.strip() or "\n" in goal):
            self._calls.fail("goal must be a sentence, the rules in a line of text", f"it is {goal!r}", 0)
        if self._read_board is not None:
            self._check_reading(self._read_board, drawing)
        labels = {action: label_in(self._game, self._states[0], action) for action in np.flatnonzero(legal).tolist()}
        for label in labels.values() if labels_vary(self._game) else ():
            if not isinstance(label, str) or not re.fullmatch(r"[^\s,]+", label):
                self._calls.fail("a move must have a name without spaces or commas", f"{label!r} was given", 0)
        if len(set(labels.values())) < len(labels):
            given = " ".join(labels.values())
            self._calls.fail("label_in must give each legal action another name", f"returned {given}", 0)
        board = board_of(self._game, self._states[0])
        if board is None:
            return
        cells = np.asarray(board.cells)
        if cells.ndim != 2 or ((cells != EMPTY) & ((cells < 0) | (cells >= len(board.marks)))).any():
            rule = f"board must give cells [R, C] that are {EMPTY} or the index of one of its {len(board.marks)} marks"
            self._calls.fail(rule, f"gave {cells.tolist()}", 0)
        on_board = {action for action, label in labels.items() if not label.lower().endswith(OFF_BOARD)}
        if self._game.to_play(self._states[:1])[0] == CHANCE:
            on_board, labels = set(board.targets), dict.fromkeys(board.targets, "")  # dice need no cells
        elif board.look in LOOKS_WITHOUT_CELLS:
            on_board &= set(board.targets)
        if on_board - set(board.targets) or set(board.targets) - set(labels):
            missing = name_actions(self._game, sorted(on_board - set(board.targets)))
            more = name_actions(self._game, sorted(set(board.targets) - set(labels)))
            rule = "board must give targets for exactly the legal actions"
            self._calls.fail(rule, f"missing are: {missing}; not legal are: {more}", 0)
        rows, columns = cells.shape
        for action, places in board.targets.items():
            if not places or not all(0 <= row < rows and 0 <= column < columns for row, column in places):
                rule = f"board must give each action one cell or more, (row, column) on a board of {rows}×{columns}"
                self._calls.fail(rule, f"gave {places} for {self._game.action_label(action)}", 0)
        for names, length in ((board.row_names, rows), (board.column_names, columns)):
            if len(names) not in (0, length):
                self._calls.fail("board must name all rows and columns or none", f"gave the names {names}", 0)

    def _check_reading(self, read_board: ReadBoard, drawing: str) -> None:
        try:
            state = read_board(drawing)
        except Exception as error:
            raise raised(self._game.name, "state_from_board", error, self._example(0)) from error
        expected = f"int64 [{self._game.state_words}]"
        if describe(state) != expected:
            self._calls.fail(f"state_from_board must return {expected}", f"returned {describe(state)}", 0)
        if (self._facts_of(state[None]) != self._facts_of(self._states[:1])).any():
            drawn = self._game.render(state)
            self._calls.fail("state_from_board must read what render draws", f"it read this:\n{drawn}", 0)

    def _facts_of(self, states: Array) -> Array:
        # All that the rules tell about each state, float32 [B, prod(O) + A + 2 + V]; with chance, the chances too.
        legal, player = self._game.legal(states), self._game.to_play(states)
        ended, results = self._game.outcome(states)
        seen = observed(self._game, states)
        columns = np.column_stack([player, ended, results])
        chances = features_of(self._game).chances
        facts = [seen.reshape(len(states), -1), legal, *([] if chances is None else [chances(states)]), columns]
        return np.concatenate(facts, axis=1, dtype=np.float32)

    def _permutations(self) -> Array:
        # What each symmetry does to the facts about a state, int [S, prod(O) + A + 2 + V].
        observations, actions = self._symmetries
        num_symmetries, cells = observations.shape
        rest = np.tile(np.arange(2 + num_columns(self._game)), (num_symmetries, 1))
        return np.concatenate([observations, cells + actions, cells + self._game.num_actions + rest], axis=1)

    def _find_playable(self) -> Array:
        # The symmetries other than the identity that leave the initial position as it is; none where chance moves, as
        # they do not say what they do to its outcomes.
        if has_chance(self._game):
            return np.empty(0, np.int64)
        (facts,) = self._facts_of(self._states[:1])
        same = (facts[self._permutations()] == facts).all(axis=1)
        same[IDENTITY] = False
        return np.flatnonzero(same)

    def _compare(self, playable: Array) -> None:
        # A game with mirrored moves must be the mirrored game.
        if not len(playable):
            return
        facts, permutations = self._facts_of(self._states), self._permutations()
        for symmetry, others in zip(playable, self._mirrored, strict=True):
            self._calls.require(
                (facts[:, permutations[symmetry]] == self._facts_of(others)).all(axis=1),
                f"symmetry {symmetry} must map a game to a game: observations, legal actions and outcomes",
                self._drawn(others),
            )

    def _drawn(self, states: Array) -> Callable[[int], str]:
        return lambda row: f"the mapped moves lead here:\n{self._game.render(states[row])}"
