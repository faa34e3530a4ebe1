"""The walk that compares two forms of one game, such as plain and batched rules; their states may differ."""

from collections.abc import Callable

import numpy as np

from seraphim.game import Array, Game
from seraphim.game.conformance.walk import ContractError, Counterexample, History, Inspected, name_actions, observed
from seraphim.game.features import has_chance
from seraphim.game.notation import banked_by_player, followers, labels_along


class AgreementWalk:
    """A `Walk` of the same games by both forms."""

    def __init__(self, games: tuple[Game, Game], names: tuple[str, str], batch: int) -> None:
        """Begin a batch of games by two forms, which have these names in messages.

        Raises:
            ContractError: they differ in a number, or in the label of an action.
        """
        self._games, self._names = games, names
        self._history = History()
        for name in ("num_actions", "observation_shape", "max_plies", "num_players", "num_chance_outcomes"):
            self._require_equal(f"{name} must be the same", *(getattr(game, name, None) for game in games))
        for action in range(games[0].num_actions):
            labels = (repr(game.action_label(action)) for game in games)
            self._require_equal(f"action {action} must have the same label", *labels)
        self._states = [game.initial(batch) for game in games]
        self._seen: tuple[set[bytes], set[bytes]] = set(), set()

    @property
    def positions(self) -> tuple[int, int]:
        """Return how many distinct states of each form were compared."""
        return len(self._seen[0]), len(self._seen[1])

    def states(self) -> Array:
        return np.concatenate(self._states, axis=1)

    def inspect(self) -> Inspected:
        for seen, states in zip(self._seen, self._states, strict=True):
            seen.update(state.tobytes() for state in states)
        self._same("legal actions", lambda game, states: game.legal(states), self._name_legal)
        ended = self._same("end of the game", lambda game, states: game.outcome(states)[0])
        results = self._same("result", lambda game, states: game.outcome(states)[1]).reshape(len(ended), -1)
        self._same("player to move", lambda game, states: game.to_play(states))
        self._same("banked result", banked_by_player)
        if has_chance(self._games[0]):
            self._same("chances", lambda game, states: game.chances(states), self._name_observations)  # type: ignore[attr-defined]
        self._same("observation", observed, self._name_observations)
        return Inspected(followers(self._games[0], self._states[0]), ended, results)

    def advance(self, rows: Array, actions: Array) -> None:
        self._history.select(rows)
        self._history.step(actions)
        self._states = [
            game.step(states[rows], actions) for game, states in zip(self._games, self._states, strict=True)
        ]

    def _same(
        self, what: str, rule: Callable[[Game, Array], Array], name: Callable[[Array, Array], str] | None = None
    ) -> Array:
        first, second = (rule(game, states) for game, states in zip(self._games, self._states, strict=True))
        same = (first == second).reshape(len(first), -1).all(axis=1)
        if not same.all():
            row = int(same.argmin())
            one, other = first[row], second[row]
            received = name(one, other) if name else self._versus(one.tolist(), other.tolist())
            self._fail(f"the {what} must be the same", received, self._example(row))
        return first

    def _require_equal(self, rule: str, first: object, second: object) -> None:
        if first != second:
            self._fail(rule, self._versus(first, second), None)

    def _fail(self, rule: str, received: str, example: Counterexample | None) -> None:
        raise ContractError(f"{self._names[1]} is another game than {self._names[0]}", rule, received, example)

    def _versus(self, first: object, second: object) -> str:
        return f"{self._names[0]} has {first} and {self._names[1]} {second}"

    def _name_legal(self, first: Array, second: Array) -> str:
        extra = [np.flatnonzero(one & ~other) for one, other in ((first, second), (second, first))]
        parts = zip(self._names, extra, strict=True)
        return " and ".join(
            f"only {name} has {name_actions(self._games[0], actions)}" for name, actions in parts if len(actions)
        )

    def _name_observations(self, first: Array, second: Array) -> str:
        cell = tuple(int(index) for index in np.argwhere(first != second)[0])
        return f"{self._versus(int(first[cell]), int(second[cell]))} at {list(cell)}"

    def _example(self, row: int) -> Counterexample:
        actions = self._history.to(row)
        drawings = [game.render(states[row]) for game, states in zip(self._games, self._states, strict=True)]
        if drawings[0] != drawings[1]:
            drawings = [f"{name}:\n{drawing}" for name, drawing in zip(self._names, drawings, strict=True)]
        drawing = "\n".join(dict.fromkeys(drawings))
        labels = labels_along(self._games[0], self._games[0].initial(1)[0], actions)
        return Counterexample(actions, tuple(labels), drawing)
