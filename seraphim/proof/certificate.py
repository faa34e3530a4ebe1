"""A proof as a file, and as a player.

`bin/check_proof.py` defines the file, and checks it with code of its own. A proof has a move for each position that its
player can be led to; the positions follow from the moves.
"""

import hashlib
import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from seraphim.errors import GameError, RecordError
from seraphim.game import Array, Game
from seraphim.proof.claims import Claim
from seraphim.proof.keys import Keys
from seraphim.storage.atomic import replace_file

MAGIC = b"seraphim proof 1\n"
_DIGEST = 32  # bytes
_AT_A_TIME = 1 << 16  # positions


@dataclass(frozen=True)
class Certificate:
    """Claims about a position, and the moves that prove them."""

    game: str  # its name, for `load_game`
    position: Array  # int64 [W]
    is_symmetric: bool  # whether symmetric positions count as one
    proofs: tuple[tuple[Claim, Array], ...]  # with the moves uint16 [M], in the order in which `walk` asks for them


class Layer(NamedTuple):
    """The positions after some moves of a proof."""

    states: Array  # int64 [L, W]
    movers: Array  # int64 [M], indices of those in which the proof's player moves
    moves: Array  # int64 [M], that player's moves


def walk(game: Game, position: Array, claim: Claim, is_symmetric: bool, choose: Callable[[Array], Array]) -> list[Layer]:
    """Return all positions of a proof, with the moves int [M] that `choose` gives for states int64 [M, W].

    Raises:
        GameError: a game of the proof ends otherwise than claimed, or not at all.
    """
    states, layers = position[None], []
    while len(states):
        if len(layers) > game.max_plies:
            raise GameError(f"a game of {game.name} is longer than its max_plies, {game.max_plies}")
        movers = np.flatnonzero(game.to_play(states) == claim.player)
        parts = [choose(states[movers[start : start + _AT_A_TIME]]) for start in range(0, len(movers), _AT_A_TIME)]
        moves = np.concatenate([np.empty(0, np.int64), *parts])
        layers.append(Layer(states, movers, moves))
        legal = game.legal(states)
        legal[movers] = False
        legal[movers, moves] = True
        rows, actions = np.nonzero(legal)
        successors = game.step(states[rows], actions)
        ended, results = game.outcome(successors)
        if not claim.holds(results[ended]).all():
            raise GameError(f"this is no proof that {claim}")
        states = _distinct(game, successors[~ended], is_symmetric)
    return layers


def _distinct(game: Game, states: Array, is_symmetric: bool) -> Array:
    starts = range(0, len(states), _AT_A_TIME)
    keys = [_order(game, states[start : start + _AT_A_TIME], is_symmetric) for start in starts]
    return states[np.unique(np.concatenate(keys), return_index=True)[1]] if keys else states


def _order(game: Game, states: Array, is_symmetric: bool) -> Array:
    # Bytes [B], equal where positions count as one.
    players = game.to_play(states).astype(np.uint8)
    if not is_symmetric:
        return _join(players, states.astype(">i8").view(np.uint8))
    seen = game.observe(states).reshape(len(states), -1)
    least = _join(players, np.packbits(seen, axis=1))
    for cells in game.symmetries().observations[1:]:
        turned = _join(players, np.packbits(seen[:, cells], axis=1))
        least = np.where(turned < least, turned, least)
    return least


def _join(players: Array, rows: Array) -> Array:
    joined = np.column_stack([players, rows])
    return np.ascontiguousarray(joined).view(f"S{joined.shape[1]}").ravel()


def write_certificate(path: Path, certificate: Certificate) -> None:
    """Write the file."""
    claims = [{**claim._asdict(), "moves": len(moves)} for claim, moves in certificate.proofs]
    header = {
        "game": certificate.game,
        "position": certificate.position.tolist(),
        "symmetric": certificate.is_symmetric,
        "claims": claims,
    }
    moves = np.concatenate([moves for _, moves in certificate.proofs]).astype("<u2")
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
        raise RecordError(f"{path} is no proof: expected a file that bin/prove.py wrote")
    if hashlib.sha256(data[:-_DIGEST]).digest() != data[-_DIGEST:]:
        raise RecordError(f"the proof {path} is damaged: copy it again, or prove it again")
    first, _, body = data[len(MAGIC) : -_DIGEST].partition(b"\n")
    header, moves = json.loads(first), np.frombuffer(zlib.decompress(body), "<u2")
    proofs, start = [], 0
    for claim in header["claims"]:
        proofs.append((Claim(claim["player"], claim["wins"]), moves[start : start + claim["moves"]]))
        start += claim["moves"]
    return Certificate(header["game"], np.array(header["position"], np.int64), header["symmetric"], tuple(proofs))


class KnownMoves:
    """The moves of a proof by position, and how long games can last with them."""

    def __init__(self, game: Game, certificate: Certificate) -> None:
        """Play through the proof, which takes seconds for millions of positions.

        Raises:
            GameError: the moves prove nothing.
        """
        self._game = game
        self._keys = Keys(game)
        self._tables = [self._table(certificate, claim, moves) for claim, moves in certificate.proofs]
