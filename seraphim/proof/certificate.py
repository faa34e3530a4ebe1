"""A proof as a file, and the positions that follow from its moves.

`seraphim/commands/check_proof.py` defines the file, and checks it with code of its own. A proof has a move for each
position that its player can be led to; the positions follow from the moves, and the first of them from the moves that
lead to it.
"""

import hashlib
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from seraphim.errors import GameError, RecordError
from seraphim.game import Array, Game
from seraphim.game.saved_games import Position, check_moves
from seraphim.proof.claims import Claim
from seraphim.proof.keys import playable_symmetries
from seraphim.storage.atomic import check_regular, replace_file

MAGIC = b"seraphim proof 2\n"
_OF_FORMAT_1 = b"seraphim proof 1\n"
_DIGEST = 32  # bytes
_AT_A_TIME = 1 << 16  # positions

Strategy = Callable[[Array], Array]
"""Chooses a move in each of some positions: int64 [P, W] -> int [P]."""


@dataclass(frozen=True)
class Certificate:
    """Claims about a position, and the moves that prove them."""

    game: str  # its name, for `load_game`
    start: tuple[int, ...]  # the actions that lead from the initial position to the position
    is_symmetric: bool  # whether symmetric positions count as one
    bytes_of_move: int  # in the file
    claims: tuple[Claim, ...] = ()
    counts: tuple[int, ...] = ()  # of the moves of each claim
    packed: bytes = zlib.compress(b"")  # the moves, in the order in which `walk` asks for them

    def with_proof(self, claim: Claim, moves: Array) -> Self:
        """Return the same with one more proof, by moves int [M]. What there is must have been walked."""
        content = zlib.decompress(self.packed) + moves.astype(f"<u{self.bytes_of_move}").tobytes()
        counts, packed = (*self.counts, len(moves)), zlib.compress(content, 9)
        if sum(counts) > _most_moves(packed):
            packed = zlib.compress(content, 0)
        return replace(self, claims=(*self.claims, claim), counts=counts, packed=packed)

    def walk(self, game: Game) -> Iterator[tuple[Claim, list["Level"]]]:
        """Yield each claim with all positions of its proof, ply by ply.

        Raises:
            GameError: the moves do not prove the claims.
        """
        check_moves(game, list(self.start))
        start, moves = Position(None, list(self.start), []), _Moves(self)
        for claim, count in zip(self.claims, self.counts, strict=True):
            moves.left = count
            levels = list(walk(game, start, claim, self.is_symmetric, lambda states: moves.take(len(states))))
            if moves.left:
                raise GameError(f"this is no proof that {claim}: it has too many moves")
            yield claim, levels
        if not moves.is_used_up():
            raise GameError("there are moves that belong to no claim")


def _most_moves(packed: bytes) -> int:
    # What a file may claim: a small one cannot make its readers hold millions of positions.
    return (1 << 16) + 64 * len(packed)


class _Moves:
    # The moves of a certificate, unpacked as they are needed.
    def __init__(self, certificate: Certificate) -> None:
        self.left = 0  # of a claim
        self._type = np.dtype(f"<u{certificate.bytes_of_move}")
        self._packed, self._unpacker = certificate.packed, zlib.decompressobj()

    def take(self, count: int) -> Array:
        # int64 [count]; fewer where the claim has no more.
        count = min(count, self.left)
        self.left -= count
        if not count:
            return np.empty(0, np.int64)
        try:
            content = self._unpacker.decompress(self._packed, count * self._type.itemsize)
            self._packed = self._unpacker.unconsumed_tail
            return np.frombuffer(content, self._type).astype(np.int64)
        except (zlib.error, ValueError) as error:  # it is no content of zlib, or ends within a move
            raise GameError(f"the moves of the proof are damaged ({error})") from error

    def is_used_up(self) -> bool:
        self.left = 1
        return not len(self.take(1)) and self._unpacker.eof and not self._unpacker.unused_data


class Level(NamedTuple):
    """The positions after some moves of a proof, and what follows."""

    states: Array  # int64 [L, W], one of each class of symmetric positions
    moves: Array  # int64 [M], of those in which the proof's player moves, in their order
    owners: Array  # int64 [E], indices of the states that the edges leave, in ascending order
    actions: Array  # int64 [E]
    following: Array  # int64 [E], the state of the next level that stands for where each edge leads; ENDED
    origins: Array  # int64 [L'], the edge that leads to each state of the next level itself


ENDED = -1  # where the game has ended


def walk(game: Game, start: Position, claim: Claim, is_symmetric: bool, choose: Strategy) -> Iterator[Level]:
    """Yield all positions of a proof, ply by ply.

    Symmetric positions are those to which the same moves lead from the initial position under the symmetries that
    leave that as it is. So where only the words of the first position are known, none are.

    Args:
        game: the rules.
        start: where the proof begins, unfinished.
        claim: what is proven.
        is_symmetric: whether symmetric positions count as one.
        choose: returns the moves of the proof int [P] in states int64 [P, W]; asked in the order of the file.

    Raises:
        GameError: a move is illegal, or a game ends otherwise than claimed, or not at all.
    """
    turned = playable_symmetries(game).actions
    turned = turned if is_symmetric and start.start is None else turned[:1]
    images = _replay(game, start, turned)
    for _ in range(game.max_plies - len(start.actions) + 1):
        states = images[0]
        if not len(states):
            return
        movers = np.flatnonzero(game.to_play(states) == claim.player)
        parts = [choose(states[movers[begin : begin + _AT_A_TIME]]) for begin in range(0, len(movers), _AT_A_TIME)]
        moves = np.concatenate([np.empty(0, np.int64), *parts])
        legal = game.legal(states)
        if not legal.any(axis=1).all():
            raise GameError(f"this is no proof that {claim}: the game is over where it begins")
        if len(moves) < len(movers) or (moves >= game.num_actions).any() or not legal[movers, moves].all():
            raise GameError(f"this is no proof that {claim}: a move is missing or illegal")
        legal[movers] = False
        legal[movers, moves] = True
        owners, actions = np.nonzero(legal)
        successors = _step(game, images[:, owners], actions, turned)
        ended, results = game.outcome(successors[0])
        if not claim.holds(results[ended]).all():
            raise GameError(f"this is no proof that {claim}: a game ends otherwise")
        going_on, following = np.flatnonzero(~ended), np.full(len(ended), ENDED)
        keys = _keys(successors[:, going_on])
        _, firsts, following[going_on] = np.unique(keys, return_index=True, return_inverse=True)
        origins = going_on[firsts]
        yield Level(states, moves, owners, actions, following, origins)
        images = successors[:, origins]
    raise GameError(f"a game of {game.name} is longer than its max_plies, {game.max_plies}")


def _replay(game: Game, start: Position, turned: Array) -> Array:
    # The first position int64 [S, 1, W], under each symmetry.
    if start.start is not None:
        return np.asarray(start.start)[None, None]
    images = np.repeat(game.initial(1)[None], len(turned), axis=0)
    for action in start.actions:
        images = _step(game, images, np.array([action]), turned)
    return images


def _step(game: Game, images: Array, actions: Array, turned: Array) -> Array:
    # The states int64 [S, E, W] after legal actions [E] of images [S, E, W], each under its symmetry.
    for states, turn in zip(images[1:], turned[1:], strict=True):
        if not game.legal(states)[np.arange(len(states)), turn[actions]].all():
            raise GameError(f"the symmetries of {game.name} lead to illegal moves: seraphim check-game says where")
    return np.stack([game.step(states, turn[actions]) for states, turn in zip(images, turned, strict=True)])


def _keys(images: Array) -> Array:
    # Of states int64 [S, E, W] the least words under all symmetries, [E]; elements that compare like bytes.
    least, *others = (
        np.ascontiguousarray(states.astype(">i8")).view(f"S{8 * states.shape[1]}").ravel() for states in images
    )
    for keys in others:
        least = np.where(keys < least, keys, least)
    return least


def write_certificate(path: Path, certificate: Certificate) -> None:
    """Write the file."""
    pairs = zip(certificate.claims, certificate.counts, strict=True)
    header = {
        "game": certificate.game,
        "start": list(certificate.start),
        "symmetric": certificate.is_symmetric,
        "bits": 8 * certificate.bytes_of_move,
        "claims": [{**claim._asdict(), "moves": count} for claim, count in pairs],
    }
    data = MAGIC + json.dumps(header).encode() + b"\n" + certificate.packed
    replace_file(path, data + hashlib.sha256(data).digest())


def read_certificate(path: Path) -> Certificate:
    """Read a file; whether it proves what it claims shows when it is walked.

    Raises:
        RecordError: it cannot be read, is damaged, or is no such file.
    """
    try:
        check_regular(path)
        data = path.read_bytes()
    except OSError as error:
        raise RecordError(f"cannot read the proof {path}: {error.strerror}") from error
    if data.startswith(_OF_FORMAT_1):
        raise RecordError(
            f"the proof {path} is of format 1, which does not show that play leads to its position: remove it, and "
            "prove it again (seraphim prove)"
        )
    if not data.startswith(MAGIC):
        raise RecordError(f"{path} is no proof: expected a file that seraphim prove wrote")
    if hashlib.sha256(data[:-_DIGEST]).digest() != data[-_DIGEST:]:
        raise RecordError(f"the proof {path} is damaged: copy it again, or prove it again")
    first, _, packed = data[len(MAGIC) : -_DIGEST].partition(b"\n")
    try:
        header = json.loads(first)
        _expect(header, game=str, start=list, symmetric=bool, bits=int, claims=list)
        for claim in header["claims"]:
            _expect(claim, player=int, wins=bool, moves=int)
        claims = tuple(Claim(claim["player"], claim["wins"]) for claim in header["claims"])
        counts = tuple(claim["moves"] for claim in header["claims"])
        if sum(counts) > _most_moves(packed) or not header["game"].isprintable():
            raise ValueError("it has more moves than such a file holds, or no name")
        if min(counts, default=0) < 0 or {claim.player for claim in claims} - {0, 1}:
            raise ValueError("a claim has no player, or fewer than no moves")
        if {type(action) for action in header["start"]} - {int}:
            raise ValueError("start must be a list of actions")
        bytes_of_move = {8: 1, 32: 4}[header["bits"]]
    except (LookupError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise RecordError(f"{path} is no proof that seraphim prove wrote: it cannot be read ({error!r})") from error
    return Certificate(
        header["game"], tuple(header["start"]), header["symmetric"], bytes_of_move, claims, counts, packed
    )


def _expect(facts: Any, **kinds: type) -> None:
    if type(facts) is not dict or {key: type(value) for key, value in facts.items()} != kinds:
        raise ValueError(f"expected {', '.join(kinds)}, and nothing else")
