"""Fewer moves that lead to the same finding, so that a person can follow them.

First all positions near the beginning are looked at, which finds the fewest moves there are, if those are few. Else
moves are left out of the game where the finding was made, as long as the others stay legal and the same rule breaks
(delta debugging: Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", 2002).
"""

from collections.abc import Callable

import numpy as np

from seraphim.game import Array
from seraphim.game.conformance.finding import ContractError
from seraphim.game.conformance.walks import Walk, replay

MOST_POSITIONS = 4_000  # that are looked at near the beginning
MOST_PLIES = 4_000  # that are replayed in search of moves to leave out
COPIES = 4  # of a game that is played again, as a rule may break only among others, or only alone

Begin = Callable[[int], Walk]
"""Begins the walk that made a finding anew, with so many games."""


def shrink(begin: Begin, found: ContractError) -> ContractError:
    """Return a finding after the fewest moves that can be found in a moment; one without a place stays as it is."""
    if found.place is None:
        return found
    nearest = _near_the_beginning(begin, len(found.place.actions))
    if nearest is None:
        return _without_detours(begin, found).instead_of(found)
    fewer = len(_actions(nearest)) < len(_actions(found))
    return nearest.instead_of(found) if fewer or nearest.rule == found.rule else found


def _near_the_beginning(begin: Begin, plies: int) -> ContractError | None:
    # The first rule that breaks there, be it another one.
    looked_at, known = 0, set[bytes]()
    try:
        walk = begin(COPIES)
        fresh = np.arange(COPIES) == 0
        for _ in range(plies + 1):
            rows, actions = np.nonzero(walk.look().legal & fresh[:, None])
            looked_at += len(rows)
            if not len(rows) or looked_at > MOST_POSITIONS:
                return None
            walk.advance(rows, actions)
            fresh = _fresh(walk.states(), known)
    except ContractError as nearest:
        return nearest if nearest.place else None
    return None


def _fresh(states: Array, known: set[bytes]) -> Array:
    # Which rows hold a position that was not there before, bool [B].
    fresh = np.zeros(len(states), np.bool_)
    for row, state in enumerate(states):
        key = state.tobytes()
        fresh[row] = key not in known
        known.add(key)
    return fresh


def _without_detours(begin: Begin, found: ContractError) -> ContractError:
    actions, plies = _actions(found), 0
    size = max(1, len(actions) // 2)
    while size:
        start = 0
        while start + size <= len(actions) and plies < MOST_PLIES:
            fewer = actions[:start] + actions[start + size :]
            plies += len(fewer) + 1
            again = _replayed(begin, fewer)
            if again is not None and again.place is not None and again.rule == found.rule:
                found, actions = again, _actions(again)
            else:
                start += 1
        size //= 2
    return found


def _actions(found: ContractError) -> tuple[int, ...]:
    return () if found.place is None else found.place.actions


def _replayed(begin: Begin, actions: tuple[int, ...]) -> ContractError | None:
    try:
        replay(begin(COPIES), actions)
    except ContractError as again:
        return again
    return None
