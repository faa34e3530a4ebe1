"""A proof as a file, and as a player.

`bin/check_proof.py` defines the file, and checks it with code of its own. A proof has a move for each position that its
player can be led to; the positions follow from the moves.
"""

import hashlib
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

from seraphim.errors import GameError, RecordError
from seraphim.game import AnyGame, Array, Game, load_game, name_of
from seraphim.proof.claims import Claim
from seraphim.proof.keys import Keys
from seraphim.storage.atomic import replace_file

MAGIC = b"seraphim proof 1\n"
_DIGEST = 32  # bytes
_AT_A_TIME = 1 << 16  # positions

Choose = Callable[[Array], Array]


@dataclass(frozen=True)
class Certificate:
    """Claims about a position, and the moves that prove them."""

    game: str  # its name, for `load_game`
    position: Array  # int64 [W]
    is_symmetric: bool  # whether symmetric positions count as one
    bytes_of_move: int  # in the file
    proofs: tuple[tuple[Claim, Array], ...] = ()  # with the moves int64 [M], in the order in which `walk` asks for them

    def with_proof(self, claim: Claim, moves: Array) -> Self:
        """Return the same with one more proof."""
        return replace(self, proofs=(*self.proofs, (claim, moves)))


class Layer(NamedTuple):
    """The positions after some moves of a proof, and what follows."""

    states: Array  # int64 [L, W], one of each class of symmetric positions
    moves: Array  # int64 [M], of those in which the proof's player moves, in their order
    owners: Array  # int64 [E], indices of the states that the successors follow, in ascending order
    successors: Array  # int64 [E, W]
    ended: Array  # bool [E]


def walk(game: Game, position: Array, claim: Claim, is_symmetric: bool, choose: Choose) -> Iterator[Layer]:
    """Yield all positions of a proof, ply by ply.

    Args:
        game: the rules.
        position: where the proof begins, an unfinished state int64 [W].
        claim: what is proven.
        is_symmetric: whether symmetric positions count as one.
        choose: returns the moves of the proof int [P] in states int64 [P, W]; asked in the order of the file.

    Raises:
        GameError: a move is illegal, or a game ends otherwise than claimed, or not at all.
    """
    states = position[None]
    for _ in range(game.max_plies + 1):
        if not len(states):
            return
        movers = np.flatnonzero(game.to_play(states) == claim.player)
        parts = [choose(states[movers[start : start + _AT_A_TIME]]) for start in range(0, len(movers), _AT_A_TIME)]
        moves = np.concatenate([np.empty(0, np.int64), *parts])
        legal = game.legal(states)
        if len(moves) < len(movers) or not legal[movers, np.minimum(moves, game.num_actions - 1)].all():
            raise GameError(f"this is no proof that {claim}: a move is missing or illegal")
        legal[movers] = False
        legal[movers, moves] = True
        owners, actions = np.nonzero(legal)
        successors = game.step(states[owners], actions)
        ended, results = game.outcome(successors)
        if not claim.holds(results[ended]).all():
            raise GameError(f"this is no proof that {claim}: a game ends otherwise")
        yield Layer(states, moves, owners, successors, ended)
        states = _distinct(game, successors[~ended], is_symmetric)
    raise GameError(f"a game of {game.name} is longer than its max_plies, {game.max_plies}")


def _distinct(game: Game, states: Array, is_symmetric: bool) -> Array:
    if not len(states):
        return states
    starts = range(0, len(states), _AT_A_TIME)
    parts = [_keys(game, states[start : start + _AT_A_TIME], is_symmetric) for start in starts]
    keys, own = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    if is_symmetric and len(np.unique(own)) < len(np.unique(_as_bytes(states.view(np.uint8)))):
        raise GameError(
            f"symmetric positions of {game.name} cannot count as one, because observations do not tell all positions "
            "apart: let observe() show all that decides the game, or offer no symmetries"
        )
    return states[np.unique(keys, return_index=True)[1]]


def _keys(game: Game, states: Array, is_symmetric: bool) -> tuple[Array, Array]:
    # Bytes [B], equal where positions count as one, and those of each position by itself.
    players = game.to_play(states).astype(np.uint8)
    if not is_symmetric:
        own = _join(players, states.astype(">i8").view(np.uint8))
        return own, own
    seen = game.observe(states).reshape(len(states), -1)
    own = least = _join(players, seen)
    for cells in game.symmetries().observations[1:]:
        turned = _join(players, seen[:, cells])
        least = np.where(turned < least, turned, least)
    return least, own


def _join(players: Array, rows: Array) -> Array:
    return _as_bytes(np.column_stack([players, rows]))


def _as_bytes(rows: Array) -> Array:
    return np.ascontiguousarray(rows).view(f"S{rows.shape[1]}").ravel()


def write_certificate(path: Path, certificate: Certificate) -> None:
    """Write the file."""
    claims = [{**claim._asdict(), "moves": len(moves)} for claim, moves in certificate.proofs]
    header = {
        "game": certificate.game,
        "position": certificate.position.tolist(),
        "symmetric": certificate.is_symmetric,
        "bits": 8 * certificate.bytes_of_move,
        "claims": claims,
    }
    moves = np.concatenate([moves for _, moves in certificate.proofs]).astype(f"<u{certificate.bytes_of_move}")
    data = MAGIC + json.dumps(header).encode() + b"\n" + zlib.compress(moves.tobytes(), 9)
    replace_file(path, data + hashlib.sha256(data).digest())


def read_certificate(path: Path) -> Certificate:
    """Read a file; whether it proves what it claims shows when it is walked.

    Raises:
        RecordError: it cannot be read, is damaged, or is no such file.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RecordError(f"cannot read the proof {path}: {error.strerror}") from error
    if not data.startswith(MAGIC):
        raise RecordError(f"{path} is no proof: expected a file that seraphim prove wrote")
    if hashlib.sha256(data[:-_DIGEST]).digest() != data[-_DIGEST:]:
        raise RecordError(f"the proof {path} is damaged: copy it again, or prove it again")
    first, _, body = data[len(MAGIC) : -_DIGEST].partition(b"\n")
    try:
        header = json.loads(first)
        bytes_of_move = {8: 1, 32: 4}[header["bits"]]
        moves = np.frombuffer(zlib.decompress(body), f"<u{bytes_of_move}").astype(np.int64)
        proofs, start = [], 0
        for claim in header["claims"]:
            proofs.append((Claim(claim["player"], claim["wins"]), moves[start : start + claim["moves"]]))
            start += claim["moves"]
        position = np.array(header["position"], np.int64)
        return Certificate(header["game"], position, header["symmetric"], bytes_of_move, tuple(proofs))
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError, zlib.error) as error:
        raise RecordError(f"{path} is no proof that seraphim prove wrote: it cannot be read ({error!r})") from error


class KnownMove(NamedTuple):
    """What a proof says about a position."""

    claim: Claim
    action: int  # NO_ACTION if the claim's player is not to move
    plies: int  # to the end of the game, at most, if that player follows the proof


NO_ACTION = -1


class _Table(NamedTuple):
    # The P positions of a proof, by key.
    claim: Claim
    keys: Array  # uint64 [P, 2], the first words in ascending order
    following: Array  # uint64 [P, 2], the key of the successor by the proof's move; 0 if that ends the game
    plies: Array  # int32 [P]


class KnownMoves:
    """The moves of a certificate by position."""

    def __init__(self, game: Game, certificate: Certificate) -> None:
        """Play through the proofs, which takes a few seconds for a million positions.

        Raises:
            GameError: the moves do not prove the claims.
        """
        self._game = game
        self._keys = Keys(game)
        self._tables = [self._table(certificate, claim, moves) for claim, moves in certificate.proofs]

    def find(self, state: Array) -> list[KnownMove]:
        """Return what the proofs say about an unfinished state int64 [W]; nothing if they do not lead to it."""
        found = []
        for table in self._tables:
            (row,) = _rows(table.keys, self._keys.of(state[None]))
            if row >= 0:
                is_mover = self._game.to_play(state[None])[0] == table.claim.player
                action = self._action(table, int(row), state) if is_mover else NO_ACTION
                found.append(KnownMove(table.claim, action, int(table.plies[row])))
        return found

    def _action(self, table: _Table, row: int, state: Array) -> int:
        actions = np.flatnonzero(self._game.legal(state[None])[0])
        successors = self._game.step(np.repeat(state[None], len(actions), axis=0), actions)
        ended, results = self._game.outcome(successors)
        works = ended & table.claim.holds(results)
        if table.following[row].any():
            works = ~ended & (self._keys.of(successors) == table.following[row]).all(axis=1)
        return int(actions[works.argmax()])

    def _table(self, certificate: Certificate, claim: Claim, moves: Array) -> _Table:
        start = 0

        def choose(states: Array) -> Array:
            nonlocal start
            start += len(states)
            return moves[start - len(states) : start]

        layers = list(walk(self._game, certificate.position, claim, certificate.is_symmetric, choose))
        if start != len(moves):
            raise GameError(f"this is no proof that {claim}: it has too many moves")
        parts: list[tuple[Array, Array, Array]] = []
        below = np.empty((0, 2), np.uint64), np.empty(0, np.int32)  # of the layer after this one
        for layer in reversed(layers):
            going_on = np.flatnonzero(~layer.ended)
            keys, plies = np.zeros((len(layer.ended), 2), np.uint64), np.zeros(len(layer.ended), np.int32)
            keys[going_on] = self._keys.of(layer.successors[going_on])
            plies[going_on] = below[1][_rows(below[0], keys[going_on])]
            firsts = np.flatnonzero(np.diff(layer.owners, prepend=-1))
            plies = 1 + np.maximum.reduceat(plies, firsts)
            own = self._keys.of(layer.states)
            order = np.argsort(own[:, 0])
            below = own[order], plies[order]
            parts.append((own, keys[firsts], plies))
        keys, following, plies = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        order = np.argsort(keys[:, 0], kind="stable")
        return _Table(claim, keys[order], following[order], plies[order])


def _rows(sorted_keys: Array, keys: Array) -> Array:
    # Where each key is among the sorted ones, int64 [B]; -1 if it is not there.
    rows = np.minimum(np.searchsorted(sorted_keys[:, 0], keys[:, 0]), len(sorted_keys) - 1)
    return np.where((sorted_keys[rows] == keys).all(axis=1), rows, -1)


def read_moves(name: AnyGame, path: Path) -> KnownMoves:
    """Return the moves of a proof.

    Args:
        name: the game that is played.
        path: the file.

    Raises:
        RecordError: the file cannot be read, is damaged, or is of another game.
        GameError: the moves prove nothing.
    """
    certificate = read_certificate(path)
    if certificate.game != name_of(name):
        raise RecordError(f"{path} is a proof of {certificate.game}, not of {name_of(name)}")
    return KnownMoves(load_game(name), certificate)


def proof_player(name: AnyGame, path: Path) -> Choose:
    """Return the player that plays the moves of a proof; elsewhere it knows none.

    It raises a GameError in a position to which the proof does not lead, or in which its player is not to move. For the
    arguments and errors see `read_moves`.
    """
    known = read_moves(name, path)

    def action_in(state: Array) -> int:
        for found in known.find(state):
            if found.action != NO_ACTION:
                return found.action
        raise GameError(
            f"{path} has no move for {state.tolist()}: its player must play from where the proof begins "
            "(arena.py --from_start)"
        )

    return lambda states: np.array([action_in(state) for state in states])
