"""Checks a proof by the rules of its game alone.

    seraphim check-proof FILE

A proof says what a player gets at least from a position, whatever the other one plays. It is a move for each position
in which that player is to move, and nothing else. This program plays these moves against all replies to the end of
every game. It trusts the rules: what they say, the symmetries that they state, and that observations tell positions
apart. It shares no code with what made the proof.

    file     the line MAGIC · a line of JSON · the moves, little-endian, compressed by zlib · the SHA-256 of all that
    JSON     game, its name · position, the words of its state · symmetric, whether symmetric positions are one ·
             bits, of a move · claims, a list, each with player (0 or 1), wins (true, or false: at least draws), and
             moves (how many)
    moves    claim after claim, ply after ply: one for each position of the player that play can have reached by then.
             Equal positions are one; they come in the order of their keys.
    key      the player to move, then the words of the state; or if symmetric positions are one, the least of the
             observations under all symmetries. Then the first of them to be reached stands for all.
"""

import hashlib
import json
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from absl import app, flags

from seraphim.errors import GameError
from seraphim.game import Array, Game, load_game

MAGIC = b"seraphim proof 1\n"
DIGEST = 32  # bytes of a SHA-256
AT_A_TIME = 1 << 16  # positions
GAME = flags.DEFINE_string("game", None, "Game that the proof must be of. Default: the one that it names.")


class RefusedError(Exception):
    """The file proves nothing; the text says why."""


def check(data: bytes, name: str | None = None) -> Iterator[str]:
    """Check the content of a file; yield what it proves, line by line.

    Raises:
        RefusedError: it is no proof, or not of the game `name`.
    """
    if not data.startswith(MAGIC):
        raise RefusedError("it is no proof, or a newer one")
    if hashlib.sha256(data[:-DIGEST]).digest() != data[-DIGEST:]:
        raise RefusedError("its checksum is wrong: it is damaged or cut off")
    header, _, body = data[len(MAGIC) : -DIGEST].partition(b"\n")
    try:
        facts = json.loads(header)
        if name not in (None, facts["game"]):
            raise RefusedError(f"it is of {facts['game']}")
        moves = np.frombuffer(zlib.decompress(body), {8: "u1", 32: "<u4"}[facts["bits"]]).astype(np.int64)
        game, symmetric, claims = load_game(str(facts["game"])), bool(facts["symmetric"]), facts["claims"]
        position = np.array(facts["position"], np.int64).reshape(game.state_words)
        counts = [int(claim["moves"]) for claim in claims]
        results = [(int(claim["player"]), bool(claim["wins"])) for claim in claims]
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError, zlib.error, GameError) as error:
        raise RefusedError(f"it cannot be read ({error})") from error
    if min(counts, default=-1) < 0 or sum(counts) != len(moves) or not {player for player, _ in results} <= {0, 1}:
        raise RefusedError("it claims nothing, or its moves are not those of its claims")
    start = "the initial position" if (position == game.initial(1)[0]).all() else f"the state {position.tolist()}"
    yield f"{facts['game']}, from {start}\n{game.render(position)}"
    for (player, wins), count in zip(results, counts, strict=True):
        positions = sum(play(game, position, symmetric, (player, wins), moves[:count]))
        moves = moves[count:]
        result = "wins" if wins else "at least draws"
        yield f"the {('first', 'second')[player]} player {result}: {positions:,} positions, {count:,} moves"


def play(game: Game, position: Array, symmetric: bool, claim: tuple[int, bool], moves: Array) -> Iterator[int]:
    """Play all games of a claim; yield how many positions each ply reaches."""
    player, wins = claim
    layer, used = position[None], 0
    for _ in range(game.max_plies + 1):
        yield len(layer)
        if not len(layer):
            break
        (own,) = np.nonzero(game.to_play(layer) == player)
        chosen, used = moves[used : used + len(own)], used + len(own)
        legal = game.legal(layer)
        if len(chosen) < len(own) or (chosen >= game.num_actions).any() or not legal[own, chosen].all():
            raise RefusedError("a move is missing or illegal")
        if not legal.any(axis=1).all():
            raise RefusedError("the game is over where it begins")
        legal[own] = False
        legal[own, chosen] = True
        rows, actions = np.nonzero(legal)
        successors = game.step(layer[rows], actions)
        ended, results = game.outcome(successors)
        results = results[ended] if player == 0 else -results[ended]
        if not (results > 0 if wins else results >= 0).all():
            raise RefusedError("a game ends otherwise than it claims")
        layer = distinct(game, successors[~ended], symmetric) if not ended.all() else layer[:0]
    if len(layer) or used != len(moves):
        raise RefusedError("a game does not end, or there are moves that no position needs")


def distinct(game: Game, states: Array, symmetric: bool) -> Array:
    """Return the first of the states with each key, in the order of the keys."""
    parts = [keys_of(game, states[start : start + AT_A_TIME], symmetric) for start in range(0, len(states), AT_A_TIME)]
    keys, own = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    if symmetric and len(np.unique(own)) < len(np.unique(as_elements(states.view(np.uint8)))):
        raise RefusedError("symmetric positions cannot be one, because observations do not tell all positions apart")
    return states[np.unique(keys, return_index=True)[1]]


def keys_of(game: Game, states: Array, symmetric: bool) -> tuple[Array, Array]:
    """Return the keys of states, and those without symmetries; elements that compare like bytes."""
    players = game.to_play(states).astype(np.uint8)[:, None]
    if not symmetric:
        own = as_elements(np.hstack([players, states.astype(">i8").view(np.uint8)]))
        return own, own
    seen = game.observe(states).reshape(len(states), -1)
    turned = (seen[:, order] for order in game.symmetries().observations)  # the first as it is
    own, *others = (as_elements(np.hstack([players, cells])) for cells in turned)
    least = own
    for keys in others:
        least = np.where(keys < least, keys, least)
    return least, own


def as_elements(rows: Array) -> Array:
    """Return each row uint8 [B, N] as one element."""
    return np.ascontiguousarray(rows).view(f"S{rows.shape[1]}").ravel()


def main(arguments: list[str]) -> int:
    """Check a proof and print what it proves."""
    start = time.perf_counter()
    try:
        (path,) = arguments[1:] or [""]
        for line in check(Path(path).read_bytes(), GAME.value):
            print(line.encode(name := getattr(sys.stdout, "encoding", "utf-8"), "replace").decode(name), flush=True)
    except (RefusedError, OSError, ValueError, LookupError, RuntimeError) as error:  # of the rules, too
        print(f"{Path(arguments[0]).name}: {arguments[1:]} proves nothing: {error}", file=sys.stderr)
        return 1
    print(f"checked in {time.perf_counter() - start:.1f} s")
    return 0


if __name__ == "__main__":
    app.run(main)
