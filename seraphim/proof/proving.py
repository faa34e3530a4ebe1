"""From a question about a position to a certificate: claim after claim, with a file to go on from."""

import contextlib
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from seraphim.errors import FileError, GameError, RecordError, SeraphimError
from seraphim.game import AnyGame, Array, Game, load_game, name_of
from seraphim.game.features import check_two_players
from seraphim.game.saved_games import Position, check_moves
from seraphim.machine import on_interrupt
from seraphim.options import SearchOptions
from seraphim.proof.certificate import Certificate, read_certificate, walk, write_certificate
from seraphim.proof.claims import Claim
from seraphim.proof.keys import playable_symmetries
from seraphim.proof.prover import Counts
from seraphim.proof.question import Question
from seraphim.search.evaluator import Inference
from seraphim.search.search import Search
from seraphim.storage.atomic import HeldError, check_regular, hold

Objective = Literal["result", "first", "second", "draw"]

_MOST_IN_A_BYTE = 256  # actions
_READOUTS = 800  # of the search that guesses the winner
_SECONDS_BETWEEN_SAVES = 45.0
_SECONDS_BETWEEN_REPORTS = 2.0


class Limits(NamedTuple):
    """What a proof may take."""

    seconds: float
    megabytes: int  # of memory for positions


class Decision(NamedTuple):
    """How the search for a claim ended."""

    claim: Claim
    true_claim: Claim | None  # the claim or its opposite; None if that is undecided
    counts: Counts
    seconds: float  # of all runs
    proof_positions: int  # in the certificate


OnProgress = Callable[[Counts, float], None]
"""Receives the counts of a search and its evaluations/s."""


def prove(
    name: AnyGame,
    position: Position,
    goal: Objective,
    inferences: Sequence[Inference],
    limits: Limits,
    out: Path | None,
    report: OnProgress,
) -> Generator[Decision, None, tuple[Claim, ...]]:
    """Decide what a goal asks, one claim after the other; yield how each ended, the last one undecided at a limit.

    Proofs are added to the file `out`; beside it, `out`.part keeps what is unfinished, and the same call goes on. What
    the file holds already is played through first.

    Args:
        name: the game.
        position: where the game is not over.
        goal: `first` or `second`: whether that player wins; `draw`: both; `result`: both as well, the likelier claim
            first by a short search; stop after a win.
        inferences: copies of the model, one for each thread.
        limits: of time and memory.
        out: the file of the proofs; None keeps none.
        report: called every two seconds.

    Returns:
        What is proven, also by what the file held.

    Raises:
        RecordError: one of the files is damaged, holds something else, or claims what its moves do not prove.
        ModelError: the model returned a NaN or an infinity.
        GameError: it is a game of chance, or of one player; it is over in the position; it is longer than its
            `max_plies`; or a file must be written, and the moves that lead to the position are not known.
        FileError: another program proves into this file, or it has no folder.
        OSError: it cannot be written, or is a folder or a device.
    """
    game, deadline = load_game(name), time.perf_counter() + limits.seconds
    check_two_players(game)
    state = check_moves(game, position.actions).node.state if position.start is None else position.start
    if game.outcome(state[None])[0][0]:
        raise GameError("the game is over in this position: there is nothing to prove")
    part = None
    if out is not None:
        check_regular(out)
        part = out.with_name(f"{out.name}.part")
    with _certificate(out, name_of(name), game, position) as found:
        certificate = found
        for claim in _claims(goal, game, state, inferences[0]):
            if claim in certificate.claims:
                break
            if claim.opposite in certificate.claims:
                continue
            question = Question(game, inferences, claim, state, limits.megabytes)
            is_restored = part is not None and part.exists()
            if part is not None and is_restored:
                question.restore(part)
            with _blaming(part if is_restored else None):
                _search(question, deadline, part, report)
            decision = Decision(claim, question.true_claim, question.count(), question.seconds, 0)
            if decision.true_claim is None:
                if part is not None:
                    question.save(part)
                yield decision
                break
            with _blaming(part if is_restored else None):
                layers = list(walk(game, position, decision.true_claim, certificate.is_symmetric, question.choose))
            moves = np.concatenate([layer.moves for layer in layers])
            certificate = certificate.with_proof(decision.true_claim, moves)
            if out is not None and part is not None:
                write_certificate(out, certificate)
                part.unlink(missing_ok=True)
            yield decision._replace(proof_positions=sum(len(layer.states) for layer in layers))
            if decision.true_claim == claim:
                break
        return certificate.claims


@contextlib.contextmanager
def _blaming(part: Path | None) -> Iterator[None]:
    # What goes wrong in a search that a file began may be the file's fault.
    try:
        yield
    except (SeraphimError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        if part is None:
            raise
        raise RecordError(f"the search in {part} fails ({error}): remove it, and the proof begins anew") from error


@contextlib.contextmanager
def _certificate(out: Path | None, name: str, game: Game, position: Position) -> Iterator[Certificate]:
    # What the file holds, once that is checked; no other process proves into it meanwhile.
    is_symmetric = len(playable_symmetries(game).actions) > 1
    empty = Certificate(name, tuple(position.actions), is_symmetric, 1 if game.num_actions <= _MOST_IN_A_BYTE else 4)
    if out is None:
        yield empty
        return
    if position.start is not None:
        raise GameError("a proof names the moves that lead to its position: give these, not a board or a state")
    if not out.parent.is_dir():
        raise FileError(f"there is no folder {out.parent} to write the proof to: make it, or name another")
    try:
        with hold(out.with_name(f".{out.name}.lock"), remove=True):
            yield _checked(out, empty, game) if out.exists() else empty
    except HeldError as error:
        raise FileError(f"another program proves into {out}: {error}") from error


def _checked(out: Path, empty: Certificate, game: Game) -> Certificate:
    found = read_certificate(out)
    if replace(found, claims=(), counts=(), packed=empty.packed) != empty:
        raise RecordError(f"{out} holds proofs of another position: remove it, or name another --out")
    try:
        for _ in found.walk(game):
            pass
    except GameError as error:
        raise RecordError(f"{out} does not prove what it claims: {error}; remove it, or name another --out") from error
    return found


def _claims(goal: Objective, game: Game, position: Array, inference: Inference) -> list[Claim]:
    if goal in ("first", "second"):
        return [Claim(int(goal == "second"), wins=True)]
    favored = 0
    if goal == "result":
        (mover,) = game.to_play(position[None]).tolist()
        favored = mover if _value(game, position, inference) >= 0 else 1 - mover
    return [Claim(favored, wins=True), Claim(1 - favored, wins=True)]


def _value(game: Game, position: Array, inference: Inference) -> float:
    # For the player to move.
    search, trees = Search(game, inference, SearchOptions(readouts=_READOUTS, solver=True), 1), np.arange(1)
    search.begin(trees, position[None])
    search.run()
    return float(search.result(trees).values[0])


def _search(question: Question, deadline: float, part: Path | None, report: OnProgress) -> None:
    # Until the claim is decided, the time is over, memory is full, or Ctrl-C.
    saved = reported = time.perf_counter()
    evaluations, interrupted = question.evaluations, threading.Event()
    with on_interrupt(interrupted.set):
        while question.true_claim is None and time.perf_counter() < deadline and not interrupted.is_set():
            if not question.advance():
                return
            now = time.perf_counter()
            if now - reported > _SECONDS_BETWEEN_REPORTS:
                report(question.count(), (question.evaluations - evaluations) / (now - reported))
                reported, evaluations = now, question.evaluations
            if part is not None and now - saved > _SECONDS_BETWEEN_SAVES:
                question.save(part)
                saved = time.perf_counter()
