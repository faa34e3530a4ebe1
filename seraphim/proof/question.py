"""Whether a claim holds: two searches in turns, one for a proof of it and one for a proof of its opposite.

The network of a prover guides its own player alone, so a claim that is wrong is refuted sooner by proving its opposite.
"""

import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from seraphim.errors import RecordError
from seraphim.game import Array, Game
from seraphim.proof.claims import Claim
from seraphim.proof.graph import PROVEN, UNDECIDED
from seraphim.proof.prover import Counts, Prover
from seraphim.search.evaluator import Inference
from seraphim.storage.atomic import check_regular, replacing

_FORMAT = "part 2"  # of the file


class Question:
    """Decides a claim about a position."""

    def __init__(
        self, game: Game, inferences: Sequence[Inference], claim: Claim, position: Array, megabytes: int
    ) -> None:
        """Begin; see `Prover`. Each of the two searches takes half of the memory, and at least a megabyte."""
        self._facts = np.array([_FORMAT, game.name, str(claim), str(position.tolist())])
        self._megabytes = megabytes
        half = max(1, megabytes // 2)
        self._provers = [Prover(game, inferences, each, position, half) for each in (claim, claim.opposite)]
        self._going_on = list(self._provers)  # those that have memory left

    @property
    def true_claim(self) -> Claim | None:
        """The claim, or its opposite; None until that is decided."""
        for prover in self._provers:
            if prover.verdict != UNDECIDED:
                return prover.claim if prover.verdict == PROVEN else prover.claim.opposite
        return None

    @property
    def evaluations(self) -> int:
        """Evaluations by the network."""
        return sum(prover.evaluations for prover in self._provers)

    @property
    def seconds(self) -> float:
        """Time that the searches took."""
        return sum(prover.seconds for prover in self._provers)

    def advance(self) -> bool:
        """Expand a round of positions in one of the searches; return False if the memory of both is full.

        Both get rounds, in inverse proportion to what they estimate to be left.

        Raises:
            GameError: a game is longer than the rules' `max_plies`, or can repeat positions.
            ModelError: the model returned a NaN or an infinity.
        """
        prover = min(self._going_on, key=lambda prover: prover.estimated_remaining * prover.rounds)
        if not prover.advance():
            self._going_on.remove(prover)
        return bool(self._going_on)

    def choose(self, states: Array) -> Array:
        """Return moves that work; see `Prover.choose`."""
        return next(prover for prover in self._provers if prover.verdict != UNDECIDED).choose(states)

    def count(self) -> Counts:
        """Count the positions of both searches; what is left, of that which has less."""
        counts = np.array([prover.count() for prover in self._provers])
        positions, proven, refuted, evaluations = counts[:, :-1].sum(axis=0).astype(int).tolist()
        return Counts(positions, proven, refuted, evaluations, estimated_remaining=float(counts[:, -1].min()))

    def save(self, path: Path) -> None:
        """Write a file from which `restore` goes on."""
        columns = [column for prover in self._provers for column in prover.to_columns()]
        with replacing(path) as file:
            np.savez(file, self._facts, *columns)

    def restore(self, path: Path) -> None:
        """Go on from a file.

        Raises:
            RecordError: it is damaged, of another claim, or too large for the memory.
        """
        begin_anew = "remove it, and the proof begins anew"
        try:
            check_regular(path)
            with zipfile.ZipFile(path) as archive:
                size = sum(member.file_size for member in archive.infolist())
            too_large = size > (self._megabytes + 1) * 2**20
            if not too_large:
                with path.open("rb") as opened, np.load(opened) as file:
                    facts, *columns = (np.asarray(column) for column in file.values())
                is_ours, is_readable = np.array_equal(facts, self._facts), facts.ravel()[:1].tolist() == [_FORMAT]
                half = len(columns) // 2 if is_ours else 0
                for prover, own in zip(self._provers, (columns[:half], columns[half:]), strict=True):
                    too_large |= is_ours and not prover.from_columns(own)
        except Exception as error:  # there is no list of what a damaged archive raises
            raise RecordError(f"{path} is damaged ({error}): {begin_anew}") from error
        if too_large:
            raise RecordError(f"{path} takes more memory: raise --megabytes")
        if not is_readable:
            raise RecordError(f"{path} is of another version of Seraphim: {begin_anew}")
        if not is_ours:
            raise RecordError(f"{path} is part of the proof of something else: remove it, or name another --out")
