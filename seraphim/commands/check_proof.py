"""Checks a proof by the rules of its game alone.

    seraphim check-proof FILE

A proof says what a player gets at least from a position, whatever the other one plays. It is a move for each position
in which that player is to move, and nothing else. This program plays these moves against all replies to the end of
every game. It trusts the rules and the symmetries that they state; it shares no code with what made the proof.

    file     the line MAGIC · a line of JSON · the moves, little-endian, compressed by zlib · the SHA-256 of all that
    JSON     game, its name · start, the moves from the initial position to the position · symmetric, whether symmetric
             positions are one · bits, of a move · claims, a list, each with player (0 or 1), wins (true, or false: at
             least draws), and moves (how many)
    moves    claim after claim, ply after ply: one for each position of the player that play can have reached by then.
             Equal positions are one; they come in the order of their keys.
    key      the words of the state, big-endian; or if symmetric positions are one, the least words of the states to
             which the same moves lead from the initial position under the symmetries that leave that as it is. Then
             the first of them to be reached stands for all.
"""

import hashlib
import json
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from absl import app, flags

from seraphim.errors import SeraphimError
from seraphim.game import Array, Game, load_game
from seraphim.game.notation import format_moves

MAGIC = b"seraphim proof 2\n"
DIGEST = 32  # bytes of a SHA-256
MOST_MOVES, MOST_OF_A_BYTE = 1 << 16, 64  # of a file: the first, and the second for each packed byte
GAME = flags.DEFINE_string("game", None, "Game that the proof must be of. Default: the one that it names.")


class RefusedError(Exception):
    """The file proves nothing; the text says why."""


class MoveReader:
    """The moves of a file, unpacked as they are needed: a small file cannot fill the memory."""

    def __init__(self, packed: bytes, bits: int) -> None:
        self._packed, self._unpacker = packed, zlib.decompressobj()
        self._type = np.dtype({8: "u1", 32: "<u4"}[bits])

    def take(self, count: int) -> Array:
        """Return the next moves, int64 [count]; fewer at the end."""
        data = self._unpacker.decompress(self._packed, count * self._type.itemsize) if count else b""
        self._packed = self._unpacker.unconsumed_tail if count else self._packed
        return np.frombuffer(data, self._type).astype(np.int64)

    def is_used_up(self) -> bool:
        """Return whether nothing is left."""
        return not len(self.take(1)) and self._unpacker.eof and not self._unpacker.unused_data


def check(data: bytes, name: str | None = None) -> Iterator[str]:
    """Check the content of a file; yield what it proves, line by line; the claims when all of them are checked.

    Raises:
        RefusedError: it is no proof, or not of the game `name`.
    """
    if data.startswith(MAGIC.replace(b"2", b"1")):
        raise RefusedError("it is of format 1, which does not show that play leads to its position: prove it again")
    if not data.startswith(MAGIC):
        raise RefusedError("it is not a proof, or of a newer version")
    if hashlib.sha256(data[:-DIGEST]).digest() != data[-DIGEST:]:
        raise RefusedError("its checksum is wrong: it is damaged or cut off")
    header, _, body = data[len(MAGIC) : -DIGEST].partition(b"\n")
    try:
        facts = json.loads(header)
        expect(facts, game=str, start=list, symmetric=bool, bits=int, claims=list)
        if name not in (None, facts["game"]) or not facts["game"].isprintable():
            raise RefusedError(f"it is of {facts['game']!r}")
        for claim in facts["claims"]:
            expect(claim, player=int, wins=bool, moves=int)
        counts = [claim["moves"] for claim in facts["claims"]]
        if min(counts, default=0) < 0 or sum(counts) > MOST_MOVES + MOST_OF_A_BYTE * len(body):
            raise RefusedError("it claims more moves than such a file holds, or fewer than none")
        game, moves = load_game(facts["game"]), MoveReader(body, facts["bits"])
        turned = symmetries(game, facts["symmetric"])
        layer = replay(game, facts["start"], turned)
        start = f"after {format_moves(game, facts['start'])}" if facts["start"] else "from the initial position"
        yield f"{facts['game']}, {start}\n{game.render(layer[0, 0])}"
        proven = []
        for claim in facts["claims"]:
            player, result = {0: "first", 1: "second"}[claim["player"]], "wins" if claim["wins"] else "at least draws"
            positions = sum(play(game, layer, game.max_plies - len(facts["start"]), turned, claim, moves))
            proven.append(f"the {player} player {result}: {positions:,} positions, {claim['moves']:,} moves")
        if not proven or not moves.is_used_up():
            raise RefusedError("it claims nothing, or has moves that belong to no claim")
        yield from proven
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError, zlib.error, SeraphimError) as error:
        raise RefusedError(f"it cannot be read ({error})") from error


def expect(facts: Any, **kinds: type) -> None:
    """Check that facts of JSON are these, and of these kinds, and no others."""
    if type(facts) is not dict or {key: type(value) for key, value in facts.items()} != kinds:
        raise RefusedError(f"its header must have {', '.join(kinds)}, and nothing else")


def replay(game: Game, actions: list[Any], turned: Array) -> Array:
    """Return the states int64 [S, 1, W] after actions from the initial position, each under S symmetries [S, A]."""
    states = np.repeat(game.initial(1)[None], len(turned), axis=0)
    if len(actions) >= game.max_plies:
        raise RefusedError(f"its start is longer than a game of {game.max_plies} plies")
    for place, action in enumerate(actions, start=1):
        if type(action) is not int or not 0 <= action < game.num_actions or not game.legal(states[0])[0, action]:
            raise RefusedError(f"move {place} of its start is not legal")
        states = step(game, states, np.zeros(1, np.int64), np.array([action]), turned)
    if not game.legal(states[0]).any():
        raise RefusedError("the game is over where it begins")
    return states


def step(game: Game, layer: Array, rows: Array, actions: Array, turned: Array) -> Array:
    """Return the states [S, E, W] after legal actions [E] in rows of a layer [S, L, W], each under its symmetry."""
    for states, images in zip(layer[1:], turned[1:], strict=True):
        if not game.legal(states)[rows, images[actions]].all():
            raise RefusedError("a symmetry of the game leads to an illegal move")
    return np.stack([game.step(states[rows], images[actions]) for states, images in zip(layer, turned, strict=True)])


def play(
    game: Game, layer: Array, plies: int, turned: Array, claim: dict[str, Any], moves: MoveReader
) -> Iterator[int]:
    """Play all games of a claim, for `plies` plies at most; yield how many positions each ply reaches."""
    unused = claim["moves"]
    for _ in range(plies + 1):
        states = layer[0]
        yield len(states)
        if not len(states):
            break
        (own,) = np.nonzero(game.to_play(states) == claim["player"])
        unused -= len(own)
        chosen = moves.take(len(own)) if unused >= 0 else np.empty(0, np.int64)
        legal = game.legal(states)
        is_stuck = not legal.any(axis=1).all()  # as where chance moves, which no proof plays against
        if is_stuck or len(chosen) < len(own) or (chosen >= game.num_actions).any() or not legal[own, chosen].all():
            raise RefusedError("a move is missing or illegal")
        legal[own] = False
        legal[own, chosen] = True
        rows, actions = np.nonzero(legal)
        successors = step(game, layer, rows, actions, turned)
        ended, results = game.outcome(successors[0])
        results = results[ended] if claim["player"] == 0 else -results[ended]
        if not (results > 0 if claim["wins"] else results >= 0).all():
            raise RefusedError("a game ends otherwise than it claims")
        layer = distinct(successors[:, ~ended])
    if layer.shape[1] or unused:
        raise RefusedError("a game does not end, or there are moves that no position needs")


def distinct(states: Array) -> Array:
    """Return the first of the states [S, E, W] with each key, in the order of the keys."""
    keys = as_elements(states[0])
    for images in map(as_elements, states[1:]):
        keys = np.where(images < keys, images, keys)
    return states[:, np.unique(keys, return_index=True)[1]]


def symmetries(game: Game, symmetric: bool) -> Array:
    """Return what becomes of actions [S, A] under the symmetries that leave the initial position as it is."""
    orders, turned = game.symmetries()
    initial = game.observe(game.initial(1)).ravel()
    kept = [bool((initial[order] == initial).all()) for order in orders]
    return turned[kept] if symmetric else turned[:1]


def as_elements(states: Array) -> Array:
    """Return the words of each state int64 [B, W] as one element; elements compare like bytes."""
    return np.ascontiguousarray(states.astype(">i8")).view(f"S{8 * states.shape[1]}").ravel()


def main(arguments: list[str]) -> int:
    """Check a proof and print what it proves."""
    start = time.perf_counter()
    try:
        (path,) = arguments[1:] or [""]
        if Path(path).is_char_device() or Path(path).is_block_device():
            raise RefusedError("it is a device, which may have no end")
        for line in check(Path(path).read_bytes(), GAME.value):
            print(line.encode(by := getattr(sys.stdout, "encoding", None) or "utf-8", "replace").decode(by), flush=True)
    except Exception as error:  # noqa: BLE001  # of the rules, and of the module that the file names, too
        print(f"{arguments[0]}: {arguments[1:]} proves nothing: {error}", file=sys.stderr)
        return 1
    print(f"checked in {time.perf_counter() - start:.1f} s")
    return 0


if __name__ == "__main__":
    app.run(main)
