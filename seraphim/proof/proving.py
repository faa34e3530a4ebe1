"""From a question about a position to a certificate: claim after claim, with a file to go on from."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from seraphim.errors import GameError, RecordError, SettingsError
from seraphim.game import AnyGame, Array, Game, load_game, name_of
from seraphim.inference import Inference
from seraphim.machine import on_interrupt
from seraphim.options import SearchOptions
from seraphim.proof.certificate import Certificate, read_certificate, walk, write_certificate
from seraphim.proof.claims import Claim
from seraphim.proof.prover import Counts
from seraphim.proof.question import Question
from seraphim.search.search import Search

Goal = Literal["result", "first", "second", "draw"]

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


Report = Callable[[Counts, float], None]
"""Receives the counts of a search and its evaluations/s."""


def prove(
    name: AnyGame,
    position: Array,
    goal: Goal,
    inferences: Sequence[Inference],
    limits: Limits,
    out: Path,
    report: Report,
) -> Iterator[Decision]:
    """Decide what a goal asks, one claim after the other; yield how each ended, the last one undecided at a limit.

    Proofs are added to the file `out`; beside it, `out`.part keeps what is unfinished, and the same call goes on.

    Args:
        name: the game.
        position: an unfinished state int64 [W].
        goal: `first` or `second`: whether that player wins; `draw`: both; `result`: that as well, but what a short
            search holds for likelier comes first, and nothing after a win.
        inferences: copies of the model, one for each thread.
        limits: of time and memory.
        out: the file of the proofs.
        report: called every two seconds.

    Raises:
        RecordError: one of the files is damaged, or holds something else.
        ModelError: the model returned a NaN or an infinity.
        GameError: the game is over in the position; or is longer than its `max_plies`.
    """
    game, deadline = load_game(name), time.perf_counter() + limits.seconds
    if game.outcome(position[None])[0][0]:
        raise GameError("the game is over in this position: there is nothing to prove")
    certificate = _begin(out, name_of(name), game, position)
    for claim in _claims(goal, game, position, inferences[0]):
        known = {claim for claim, _ in certificate.proofs}
        if claim in known:
            return
        if claim.opposite in known:
            continue
        question = Question(game, inferences, claim, position, limits.megabytes)
        part = out.with_name(f"{out.name}.part")
        if part.exists():
            question.restore(part)
        _search(question, deadline, part, report)
        decision = Decision(claim, question.true_claim, question.count(), question.seconds, 0)
        if decision.true_claim is None:
            question.save(part)
            yield decision
            return
        layers = list(walk(game, position, decision.true_claim, certificate.is_symmetric, question.choose))
        moves = np.concatenate([layer.moves for layer in layers])
        certificate = certificate.with_proof(decision.true_claim, moves)
        write_certificate(out, certificate)
        part.unlink(missing_ok=True)
        yield decision._replace(proof_positions=sum(len(layer.states) for layer in layers))
        if decision.true_claim == claim:
            return


def _begin(out: Path, name: str, game: Game, position: Array) -> Certificate:
    if not out.parent.is_dir():
        raise SettingsError(f"there is no folder {out.parent} to write the proof to: make it, or name another")
    if not out.exists():
        is_symmetric = len(game.symmetries().actions) > 1
        return Certificate(name, position, is_symmetric, 1 if game.num_actions <= _MOST_IN_A_BYTE else 4)
    found = read_certificate(out)
    if found.game != name or not np.array_equal(found.position, position):
        raise RecordError(f"{out} holds proofs of another position: remove it, or name another --out")
    return found


def _claims(goal: Goal, game: Game, position: Array, inference: Inference) -> list[Claim]:
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


def _search(question: Question, deadline: float, part: Path, report: Report) -> None:
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
            if now - saved > _SECONDS_BETWEEN_SAVES:
                question.save(part)
                saved = time.perf_counter()
