"""Checks a proof by the rules of its game alone.

    python bin/check_proof.py FILE

A proof says: from this position, this player gets at least this result, whatever the other one plays. It is a move for
each position in which the player is to move, and nothing else: this program plays those moves against every reply, to
the end of every game. It trusts the rules (`seraphim.game`) with the symmetries that they state, and shares no code
with the program that made the proof.

    file       the line MAGIC; a line of JSON; the moves, little-endian, compressed by zlib; the SHA-256 of all that
    JSON       game, its name · position, the words of its state · symmetric, whether symmetric positions are one ·
               bits, of a move in the file · claims, a list, each with player (0 or 1), wins (true, or false: at least draws) and moves (how many)
    moves      claim after claim. The positions after n moves are a layer, each position once, sorted by its key. For
               each position of the player in the layer, in that order, comes a move.
    key        the player to move, then the words of the state; or if symmetric positions are one, the least of the
               observations under all symmetries, as bits. The first of equals in the layer, as the moves of the layer
               before made it, stands for all.
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

from seraphim.errors import GameError
from seraphim.game import Array, Game, load_game

MAGIC = b"seraphim proof 1\n"
AT_A_TIME = 1 << 16  # positions
GAME = flags.DEFINE_string("game", None, "The game that the proof must be of. Default: the one that it names.")


class RefusedError(Exception):
    """The file proves nothing; the text says why."""


def read(data: bytes) -> tuple[dict[str, Any], Array]:
    """Return the header and the moves, int64 [M]."""
    if not data.startswith(MAGIC):
        raise RefusedError("this is no proof, or a newer one")
    if hashlib.sha256(data[:-32]).digest() != data[-32:]:
        raise RefusedError("its checksum is wrong: it is damaged or cut off")
    header, _, body = data[len(MAGIC) : -32].partition(b"\n")
    facts = json.loads(header)
    return facts, np.frombuffer(zlib.decompress(body), f"<u{facts['bits'] // 8}").astype(np.int64)


def keys_of(game: Game, states: Array, symmetric: bool) -> Array:
    """Return the keys of states int64 [B, W], as bytes [B]; equal keys are one position."""
    players = game.to_play(states).astype(np.uint8)[:, None]
    if not symmetric:
        return as_bytes(np.concatenate([players, states.astype(">i8").view(np.uint8)], axis=1))
    seen = game.observe(states).reshape(len(states), -1)
    least = None
    for cells in game.symmetries().observations:
        turned = as_bytes(np.concatenate([players, np.packbits(seen[:, cells], axis=1)], axis=1))
        least = turned if least is None else np.where(turned < least, turned, least)
    return least


def as_bytes(rows: Array) -> Array:
    """Return each row uint8 [B, N] as one element, which compares like the row."""
    return np.ascontiguousarray(rows).view(f"S{rows.shape[1]}").ravel()


def distinct(game: Game, states: Array, symmetric: bool) -> Array:
    """Return the first of the states with each key, sorted by key."""
    chunks = range(0, len(states), AT_A_TIME)
    keys = [keys_of(game, states[start : start + AT_A_TIME], symmetric) for start in chunks]
    return states[np.unique(np.concatenate(keys), return_index=True)[1]] if keys else states


def check_claim(game: Game, header: dict[str, Any], claim: dict[str, Any], moves: Array) -> Iterator[int]:
    """Play all games of a claim with its moves; yield the number of positions after each ply.

    Raises:
        RefusedError: a game ends otherwise than claimed, or the moves do not fit.
    """
    player, sign, used = claim["player"], 1 - 2 * claim["player"], 0
    layer = np.array([header["position"]], np.int64)
    for _ in range(game.max_plies + 1):
        yield len(layer)
        if not len(layer):
            break
        legal = game.legal(layer)
        (mine,) = np.nonzero(game.to_play(layer) == player)
        chosen, used = moves[used : used + len(mine)], used + len(mine)
        if len(chosen) < len(mine) or not (chosen < game.num_actions).all() or not legal[mine, chosen].all():
            raise RefusedError("it lacks a move, or has an illegal one")
        legal[mine] = False
        legal[mine, chosen] = True
        if not legal.any(axis=1).all():
            raise RefusedError("it ends in a position where the game goes on")
        rows, actions = np.nonzero(legal)
        after = game.step(layer[rows], actions)
        ended, results = game.outcome(after)
        found = sign * results[ended]
        if not (found > 0 if claim["wins"] else found >= 0).all():
            raise RefusedError("a game with its moves ends worse than it claims")
        layer = distinct(game, after[~ended], header["symmetric"])
    if len(layer) or used != len(moves):
        raise RefusedError("its games do not end, or it has moves that nothing asks for")


def main(arguments: list[str]) -> None:
    """Check the proof, and print what it proves."""
    (path,) = arguments[1:]
    header, moves = read(Path(path).read_bytes())
    game, start = load_game(header["game"]), time.perf_counter()
    position = np.array(header["position"], np.int64)
    print(f"{header['game']}, from\n{game.render(position)}")
    for claim in header["claims"]:
        layers = list(check_claim(game, header, claim, moves[: claim["moves"]]))
        moves = moves[claim["moves"] :]
        result = "wins" if claim["wins"] else "at least draws"
        print(f"player {claim['player']} {result}: {sum(layers):,} positions, {claim['moves']:,} moves")
    print(f"checked in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    app.run(main)
