"""The walk that compares two forms of one game, such as plain and batched rules; their states may differ."""

from collections.abc import Callable

import numpy as np

from seraphim.game import Array, Game
from seraphim.game.conformance.walk import ContractError, Counterexample, History, Inspected, name_actions

MEMBERS = ("num_actions", "observation_shape", "max_plies")


class Pair:
    """Two forms of one game, with their names in messages."""

    def __init__(self, first: Game, second: Game, names: tuple[str, str]) -> None:
        self.games = (first, second)
        self.names = names

    @property
    def subject(self) -> str:
        """Return the beginning of a sentence about what differs."""
        return f"{self.names[1]} is another game than {self.names[0]}"

    def check_members(self) -> None:
        """Raise a ContractError unless both have the same numbers and the same labels of actions."""
        first, second = self.games
        for name in MEMBERS:
            values = [getattr(game, name) for game in self.games]
            if values[0] != values[1]:
                raise ContractError(self.subject, f"{name} must be the same", self.versus(*values))
        for action in range(first.num_actions):
            labels = (first.action_label(action), second.action_label(action))
            if labels[0] != labels[1]:
                raise ContractError(
                    self.subject, f"action {action} must have the same label", self.versus(*map(repr, labels))
                )

    def versus(self, first: object, second: object) -> str:
        """Return the value of each, in words."""
        return f"{self.names[0]} has {first} and {self.names[1]} {second}"


class AgreementWalk:
    """A `Walk` of the same games by both forms."""

    def __init__(self, pair: Pair, batch: int) -> None:
        self._pair = pair
        self._history = History()
        self._states = [game.initial(batch) for game in pair.games]
        self._seen: list[set[bytes]] = [set(), set()]

    @property
    def positions(self) -> tuple[int, int]:
        """Return how many distinct states of each form were compared."""
        return len(self._seen[0]), len(self._seen[1])

    def states(self) -> Array:
        return np.concatenate(self._states, axis=1)

    def inspect(self) -> Inspected:
        for seen, states in zip(self._seen, self._states, strict=True):
            seen.update(state.tobytes() for state in states)
        legal = self._same("legal actions", lambda game, states: game.legal(states), self._name_legal)
        ended = self._same("end of the game", lambda game, states: game.outcome(states)[0])
        results = self._same("result", lambda game, states: game.outcome(states)[1])
        self._same("player to move", lambda game, states: game.to_play(states))
        self._same("observation", lambda game, states: game.observe(states), self._name_observations)
        return Inspected(legal, ended, results)

    def advance(self, rows: Array, actions: Array) -> None:
        self._history.select(rows)
        self._history.step(actions)
        games = zip(self._pair.games, self._states, strict=True)
        self._states = [game.step(states[rows], actions) for game, states in games]

    def _same(
        self, what: str, ask: Callable[[Game, Array], Array], name: Callable[[Array, Array], str] | None = None
    ) -> Array:
        first, second = (ask(game, states) for game, states in zip(self._pair.games, self._states, strict=True))
        same = (first == second).reshape(len(first), -1).all(axis=1)
        if not same.all():
            row = int(same.argmin())
            describe = name or (lambda first, second: self._pair.versus(first.item(), second.item()))
            raise ContractError(
                self._pair.subject,
                f"the {what} must be the same",
                describe(first[row], second[row]),
                self._example(row),
            )
        return first

    def _name_legal(self, first: Array, second: Array) -> str:
        game, names = self._pair.games[0], self._pair.names
        alone = [np.flatnonzero(mine & ~other) for mine, other in ((first, second), (second, first))]
        parts = [
            f"only {name} has {name_actions(game, some)}" for name, some in zip(names, alone, strict=True) if len(some)
        ]
        return " and ".join(parts)

    def _name_observations(self, first: Array, second: Array) -> str:
        cell = tuple(int(index) for index in np.argwhere(first != second)[0])
        return f"{self._pair.versus(int(first[cell]), int(second[cell]))} at {list(cell)}"

    def _example(self, row: int) -> Counterexample:
        actions = self._history.to(row)
        drawings = [game.render(states[row]) for game, states in zip(self._pair.games, self._states, strict=True)]
        if drawings[0] == drawings[1]:
            drawing = drawings[0]
        else:
            drawing = "\n".join(f"{name}:\n{one}" for name, one in zip(self._pair.names, drawings, strict=True))
        labels = tuple(self._pair.games[0].action_label(action) for action in actions)
        return Counterexample(actions, labels, drawing)
