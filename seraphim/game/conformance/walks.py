"""Many games in lock step, which somebody looks at after each move: by chance, or by given moves."""

from typing import NamedTuple, Protocol

import numpy as np

from seraphim.game import Array

THOROUGH_PLIES = 300  # of each game; after that, every tenth ply is looked at thoroughly


class Look(NamedTuple):
    """What was seen of the positions where a walk is."""

    legal: Array  # bool [B, A]
    ended: Array  # bool [B]
    results: Array  # float32 [B], for player 0


class Walk(Protocol):
    """Games that are at some positions, all of them after the same number of moves."""

    def look(self) -> Look:
        """Look at the positions.

        Raises:
            ContractError: what must hold there does not.
        """

    def advance(self, rows: Array, actions: Array) -> None:
        """Go on from some rows, int [K], a row as often as it is named, by a legal action in each, int [K].

        Raises:
            ContractError: what must hold of a move does not.
        """

    def states(self) -> Array:
        """Return where the walk is, int64 [B, W]; rows are equal if the positions are."""


class Trail:
    """How the rows of a walk came where they are."""

    def __init__(self) -> None:
        self._links: list[tuple[bool, Array]] = []  # whether actions, or else the rows that were gone on from

    def select(self, rows: Array) -> None:
        """Note that the rows are now those that were at `rows` before, int [K]."""
        self._links.append((False, rows))

    def step(self, actions: Array) -> None:
        """Note the actions that were played, int [K]."""
        self._links.append((True, actions))

    def to(self, row: int) -> tuple[int, ...]:
        """Return the actions that led from the initial position to a row."""
        actions = []
        for are_actions, link in reversed(self._links):
            if are_actions:
                actions.append(int(link[row]))
            else:
                row = int(link[row])
        return tuple(reversed(actions))


class Played(NamedTuple):
    """What became of random games."""

    results: tuple[int, int, int, int]  # won by player 0, drawn, won by player 1, cut off
    longest: int  # plies


def play_randomly(walk: Walk, generator: np.random.Generator, most_plies: int) -> Played:
    """Walk by random moves until all games have ended, or for `most_plies`.

    Raises:
        ContractError: as the walk does.
    """
    counts = np.zeros(3, np.int64)
    ply = 0
    while True:
        look = walk.look()
        counts += [(look.ended & (np.sign(look.results) == sign)).sum() for sign in (1, 0, -1)]
        rows = np.flatnonzero(~look.ended)
        if not len(rows) or ply == most_plies:
            break
        walk.advance(rows, (generator.random(look.legal[rows].shape) * look.legal[rows]).argmax(axis=1))
        ply += 1
    won, drawn, lost = counts.tolist()
    return Played((won, drawn, lost, len(rows)), ply)


def replay(walk: Walk, actions: tuple[int, ...]) -> None:
    """Walk by the same moves in each row as long as they are legal, and at the end by every move.

    Raises:
        ContractError: as the walk does.
    """
    for action in actions:
        look = walk.look()
        if look.ended.any() or not look.legal[:, action].all():
            return
        walk.advance(np.arange(len(look.ended)), np.full(len(look.ended), action))
    walk.advance(*np.nonzero(walk.look().legal))
