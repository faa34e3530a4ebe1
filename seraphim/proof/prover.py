"""The search for a proof of one claim about one position.

Proof-number search with a network (compare Wu et al. 2022, "AlphaZero-based Proof Cost Network to Aid Game
Solving"). In a round,

    graph.select     picks thousands of positions that the most promising proof still lacks
    _expand          asks the network about those in which the prover moves, on all cores, and steps to all successors
    graph.expand     adds the successors, with first numbers from what the network said

The network says which moves of the prover are worth a try and how hard their proofs will be; it decides nothing. Where
the other player moves, all moves are needed, so the network is not asked. No position is evaluated twice.
"""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from seraphim.errors import GameError, ModelError
from seraphim.game import Array, Game
from seraphim.proof import graph as graphs
from seraphim.proof.claims import Claim
from seraphim.proof.graph import NOWHERE, PROVEN, REFUTED, UNDECIDED
from seraphim.proof.keys import Keys
from seraphim.search.evaluator import Inference, inputs_of

_BATCH = 1024  # positions for each thread in a round
_MOST_LEFT = 0.8  # share of the positions after a full memory was compacted; otherwise it is too small
_SMALL_BATCH = 64  # positions that are not worth another thread

# The first proof number of a position is p^-k, its disproof number (1 - p)^-k, by the network's probability p that the
# claim holds. A move of the prover multiplies them by (P / P_max)^-b and ^b, with its prior P and that of the best.
_EXPONENT = 5.0  # k
_PRIOR_EXPONENT = 0.5  # b
_LEAST_PROBABILITY = 0.02  # and 1 minus it is the largest
_WIDEST_GAP = 12.0  # of logits


class Counts(NamedTuple):
    """How far a search is."""

    positions: int  # in memory
    proven: int
    refuted: int
    evaluations: int  # by the network
    estimated_remaining: float  # estimated number of positions that are still to be expanded for a proof


class _Expansion(NamedTuple):
    # K expanded nodes and their C new children; see `graphs.expand` and `graphs.add_nodes`.
    evaluations: int
    nodes: Array
    verdicts: Array
    owners: Array
    keys: Array
    states: Array
    is_or: Array
    proofs: Array
    disproofs: Array


class Prover:
    """Proves or refutes a claim."""

    def __init__(
        self, game: Game, inferences: Sequence[Inference], claim: Claim, position: Array, megabytes: int
    ) -> None:
        """Begin.

        Args:
            game: the rules.
            inferences: copies of the model, one for each thread.
            claim: what to prove or refute.
            position: an unfinished state int64 [W].
            megabytes: memory for positions.
        """
        self.claim = claim
        self.evaluations = 0
        self.rounds = 0  # of `advance`
        self.seconds = 0.0  # that `advance` took
        self._game = game
        self._position = position
        self._inferences = inferences
        self._keys = Keys(game)
        self.graph = graphs.empty_graph(game.state_words, megabytes)
        self._leaves = np.empty(_BATCH * len(inferences), np.int32)
        self._path = np.empty(game.max_plies + 1, np.int32)
        self.root = 0  # of the graph
        self._pool = ThreadPoolExecutor(len(inferences))
        states, ones = position[None], np.ones(1, np.float32)
        graphs.add_nodes(self.graph, self._keys.of(states), states, game.to_play(states) == claim.player, ones, ones)

    @property
    def verdict(self) -> int:
        """PROVEN, REFUTED or UNDECIDED."""
        if self.graph.proofs[self.root] == 0.0:
            return PROVEN
        return REFUTED if self.graph.disproofs[self.root] == 0.0 else UNDECIDED

    def advance(self) -> bool:
        """Expand a round of positions; return False if memory is full.

        Raises:
            GameError: a game is longer than the rules' `max_plies`, or can repeat positions.
            ModelError: the model returned a NaN or an infinity.
        """
        started = time.perf_counter()
        try:
            return self._advance()
        finally:
            self.seconds += time.perf_counter() - started

    def _advance(self) -> bool:
        self.rounds += 1
        found = graphs.select(self.graph, self.root, self.rounds, self._leaves, self._path)
        if found < 0:
            raise GameError(f"a game of {self._game.name} is longer than its max_plies, {self._game.max_plies}")
        if self.verdict != UNDECIDED:
            return True
        if found == 0:
            raise GameError(f"games of {self._game.name} can repeat positions, so this search proves nothing here")
        leaves = self._leaves[:found].copy()
        if not graphs.has_room(self.graph, found * self._game.num_actions):
            return self._compact()
        is_or = self.graph.is_or[leaves]
        asked = np.array_split(leaves[is_or], min(len(self._inferences), 1 + int(is_or.sum()) // _SMALL_BATCH))
        jobs = [(leaves[~is_or], None), *zip(asked, self._inferences, strict=False)]
        for expansion in self._pool.map(self._expand, *zip(*(job for job in jobs if len(job[0])), strict=True)):
            evaluations, nodes, verdicts, owners, *children = expansion
            self.evaluations += evaluations
            graphs.expand(self.graph, nodes, verdicts, owners, graphs.add_nodes(self.graph, *children))
        return True

    def _compact(self) -> bool:
        # Removes what is not needed; returns whether there is much more room than before.
        before = int(self.graph.used[0])
        self.root = graphs.compact(self.graph, self.root)
        return bool(self.graph.used[0] < _MOST_LEFT * before)

    def _expand(self, nodes: Array, inference: Inference | None) -> _Expansion:
        # Of OR nodes with a network, of AND nodes without. What the rules decide within two plies is not asked.
        game, graph, is_or = self._game, self.graph, inference is not None
        states = graph.states[nodes]
        legal = game.legal(states)
        owners, actions = np.nonzero(legal)
        successors = game.step(states[owners], actions)
        ended, results = game.outcome(successors)
        verdicts = np.full(len(nodes), UNDECIDED, np.int8)
        verdicts[owners[ended & (self.claim.holds(results) == is_or)]] = PROVEN if is_or else REFUTED
        rows = np.flatnonzero(~ended & (verdicts[owners] == UNDECIDED))
        rows = rows[~self._is_answered(successors[rows], is_or)]
        moves_left = np.bincount(owners[rows], minlength=len(nodes))
        verdicts[(moves_left == 0) & (verdicts == UNDECIDED)] = REFUTED if is_or else PROVEN
        owners, actions, children = owners[rows], actions[rows], successors[rows]
        proofs, disproofs = graph.proofs[nodes][owners], graph.disproofs[nodes][owners]
        asked = np.flatnonzero(moves_left > 1)
        if inference is None or not len(asked):
            asked = asked[:0]
        else:
            logits, values = inference.infer(inputs_of(game, inference, states[asked]))
            of_asked = moves_left[owners] > 1
            numbers = _first_numbers(logits, values, np.searchsorted(asked, owners[of_asked]), actions[of_asked])
            proofs[of_asked], disproofs[of_asked] = numbers
        children_are_or = game.to_play(children) == self.claim.player
        keys = self._keys.of(children)
        return _Expansion(len(asked), nodes, verdicts, owners, keys, children, children_are_or, proofs, disproofs)

    def _is_answered(self, states: Array, is_or: bool) -> Array:
        # Whether the player who did not move to a state, that of AND nodes if `is_or`, wins by the next move, bool [K].
        moves_now = np.flatnonzero((self._game.to_play(states) == self.claim.player) != is_or)
        owners, actions = np.nonzero(self._game.legal(states[moves_now]))
        ended, results = self._game.outcome(self._game.step(states[moves_now][owners], actions))
        answered = np.zeros(len(states), np.bool_)
        answered[moves_now[owners[ended & (self.claim.holds(results) != is_or)]]] = True
        return answered

    def choose(self, states: Array) -> Array:
        """Return moves that work, int64 [P], once the claim is decided: for it, or if it is refuted for its opposite.

        Args:
            states: int64 [P, W], positions that these moves lead to, in which their player moves.
        """
        is_proven = self.verdict == PROVEN
        numbers = self.graph.proofs if is_proven else self.graph.disproofs
        legal = self._game.legal(states)
        owners, actions = np.nonzero(legal)
        successors = self._game.step(states[owners], actions)
        ended, results = self._game.outcome(successors)
        nodes = graphs.find_nodes(self.graph, self._keys.of(successors))
        works = np.where(ended, self.claim.holds(results) == is_proven, (nodes != NOWHERE) & (numbers[nodes] == 0.0))
        ranks = np.zeros(legal.shape, np.int8)
        ranks[owners, actions] = np.where(ended, 2, 1) * works
        return ranks.argmax(axis=1)

    @property
    def estimated_remaining(self) -> float:
        """The estimated number of positions that are still to be expanded for a proof."""
        return float(self.graph.proofs[self.root])

    def count(self) -> Counts:
        """Count the positions."""
        proven, refuted = graphs.count_decided(self.graph)
        return Counts(int(self.graph.used[0]), proven, refuted, self.evaluations, self.estimated_remaining)

    def to_columns(self) -> list[Array]:
        """Return arrays from which `from_columns` goes on."""
        numbers = np.array([self.root, self.rounds, self.evaluations, self.seconds])
        return [numbers, *graphs.to_columns(self.graph)]

    def from_columns(self, columns: Sequence[Array]) -> bool:
        """Go on, in a prover of the same claim that has not begun; return False if that takes more memory.

        Raises:
            ValueError: they are not what `to_columns` returned.
        """
        numbers, *of_graph = columns
        root, rounds, evaluations, seconds = numbers.astype(float).tolist()
        if not np.isfinite(numbers).all() or not 0 <= root < len(of_graph[0]) or not 0 <= rounds < 2**31:
            raise ValueError("the search has no root")
        if not graphs.from_columns(self.graph, of_graph):
            return False
        self.root, self.rounds, self.evaluations, self.seconds = int(root), int(rounds), int(evaluations), seconds
        return True


def _first_numbers(logits: Array, values: Array, owners: Array, actions: Array) -> tuple[Array, Array]:
    # The proof and disproof numbers of the successors by `actions` of `owners`, in which the prover moves. Moves that
    # are missing here count as illegal.
    if not (np.isfinite(values).all() and np.isfinite(logits[owners, actions]).all()):
        raise ModelError("the model returned a NaN or an infinity: promote another snapshot")
    probabilities = np.clip((1 + values) / 2, _LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY)[owners]
    best = np.full(len(logits), -np.inf, logits.dtype)
    np.maximum.at(best, owners, logits[owners, actions])
    gaps = np.minimum(best[owners] - logits[owners, actions], _WIDEST_GAP)
    effort = np.exp(_PRIOR_EXPONENT * gaps)
    proofs = probabilities**-_EXPONENT * effort
    disproofs = np.maximum(1, (1 - probabilities) ** -_EXPONENT / effort)
    return proofs.astype(np.float32), disproofs.astype(np.float32)
