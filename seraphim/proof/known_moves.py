"""The moves of proofs by position, for players and for exact results."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from seraphim.errors import GameError, RecordError
from seraphim.game import AnyGame, Array, Game, load_game, name_of
from seraphim.proof.certificate import ENDED, Certificate, Level, Strategy, read_certificate
from seraphim.proof.claims import Claim
from seraphim.proof.keys import Keys, playable_symmetries

NO_ACTION = -1


class KnownMove(NamedTuple):
    """What a proof says about a position."""

    claim: Claim
    action: int  # NO_ACTION if the claim's player is not to move
    plies: int  # to the end of the game, at most, if that player follows the proof


class _Table(NamedTuple):
    # The P positions of a proof, by key, and how the proof leads to them.
    claim: Claim
    keys: Array  # uint64 [P, 2], the first words in ascending order
    actions: Array  # int32 [P], the proof's moves; NO_ACTION if its player is not to move
    plies: Array  # int32 [P]
    parents: Array  # int32 [P], the row of the position before; -1 for the first position
    arrivals: Array  # int32 [P], the action that leads from there


class KnownMoves:
    """The moves of a certificate by position.

    Positions are found by key, and compared word by word: the moves that the proof has to a position, under each
    symmetry, are played from the initial position, and one of them must lead to the words that were asked about.
    """

    def __init__(self, game: Game, certificate: Certificate) -> None:
        """Play through the proofs, which takes a few seconds for a million positions.

        Raises:
            GameError: the moves do not prove the claims.
        """
        self._game = game
        self._keys = Keys(game)
        self._start = certificate.start
        self._turned = playable_symmetries(game).actions  # [S, A], what becomes of each action
        self._tables = [self._table(claim, levels) for claim, levels in certificate.walk(game)]

    def find(self, state: Array) -> list[KnownMove]:
        """Return what the proofs say about an unfinished state int64 [W]; nothing if they do not lead to it."""
        found = []
        for table in self._tables:
            (row,) = _rows(table.keys, self._keys.of(state[None])).tolist()
            turned = self._turned_to(table, row, state) if row >= 0 else None
            if turned is not None:
                action = int(table.actions[row])
                action = int(turned[action]) if action != NO_ACTION else NO_ACTION
                found.append(KnownMove(table.claim, action, int(table.plies[row])))
        return found

    def _turned_to(self, table: _Table, row: int, state: Array) -> Array | None:
        # What becomes of actions under the symmetry that turns the position of a row into a state; None without one.
        path: list[int] = []
        while table.parents[row] >= 0:
            path.append(int(table.arrivals[row]))
            row = int(table.parents[row])
        turned, states = self._turned, self._game.initial(len(self._turned))
        for action in (*self._start, *reversed(path)):
            actions = turned[:, action]
            legal = self._game.legal(states)[np.arange(len(states)), actions]
            turned, states = turned[legal], self._game.step(states[legal], actions[legal])
        (same,) = np.nonzero((states == state).all(axis=1))
        return turned[same[0]] if len(same) else None

    def _table(self, claim: Claim, levels: list[Level]) -> _Table:
        ends = np.cumsum([len(level.states) for level in levels])
        keys, actions = np.empty((ends[-1], 2), np.uint64), np.full(ends[-1], NO_ACTION, np.int32)
        plies, parents, arrivals = (np.full(ends[-1], -1, np.int32) for _ in range(3))
        for level, end in zip(reversed(levels), reversed(ends.tolist()), strict=True):
            rows = slice(end - len(level.states), end)
            keys[rows] = self._keys.of(level.states)
            actions[rows][self._game.to_play(level.states) == claim.player] = level.moves
            below = np.where(level.following == ENDED, 0, plies[np.minimum(end + level.following, ends[-1] - 1)])
            plies[rows] = 1 + np.maximum.reduceat(below, np.flatnonzero(np.diff(level.owners, prepend=-1)))
            after = slice(end, end + len(level.origins))
            parents[after] = rows.start + level.owners[level.origins]
            arrivals[after] = level.actions[level.origins]
        # Of equal positions the latest comes first: following the proof from row to row, levels only grow.
        order = len(keys) - 1 - np.argsort(keys[::-1, 0], kind="stable")
        places = np.append(np.empty_like(order), -1)  # of row -1, too
        places[order] = np.arange(len(order))
        return _Table(claim, keys[order], actions[order], plies[order], places[parents[order]], arrivals[order])


def _rows(sorted_keys: Array, keys: Array) -> Array:
    # Where each key is among the sorted ones, int64 [B]; -1 if it is not there.
    rows = np.minimum(np.searchsorted(sorted_keys[:, 0], keys[:, 0]), len(sorted_keys) - 1)
    return np.where((sorted_keys[rows] == keys).all(axis=1), rows, -1)


def read_moves(name: str, game: Game, path: Path) -> KnownMoves:
    """Return the moves of a proof.

    Args:
        name: the name by which `load_game` finds the game.
        game: the game.
        path: the file.

    Raises:
        RecordError: the file cannot be read, is damaged, is of another game, or does not prove what it claims.
    """
    certificate = read_certificate(path)
    if certificate.game != name:
        raise RecordError(f"{path} is a proof of {certificate.game}, not of {name}")
    try:
        return KnownMoves(game, certificate)
    except GameError as error:
        raise RecordError(f"{path} does not prove what it claims: {error}") from error


def proof_player(name: AnyGame, path: Path) -> Strategy:
    """Return the player that plays the moves of a proof; elsewhere it knows none.

    It raises a GameError in a position to which the proof does not lead, or in which its player is not to move. For the
    arguments and errors see `read_moves`.
    """
    known = read_moves(name_of(name), load_game(name), path)

    def action_in(state: Array) -> int:
        for found in known.find(state):
            if found.action != NO_ACTION:
                return found.action
        raise GameError(
            f"{path} has no move for {state.tolist()}: its player must play from where the proof begins "
            "(seraphim arena --from_start)"
        )

    return lambda states: np.array([action_in(state) for state in states])
