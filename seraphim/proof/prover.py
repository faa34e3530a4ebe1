"""The search for a proof: a player gets at least a result from a position, whatever the other one plays.

Proof-number search over positions, each of which is evaluated by the network at most once. The network says which moves
of the prover are worth trying, and how hard their proofs will be; it never decides. Positions in which the other player
moves are expanded by the rules alone, since all moves are needed. Thousands of positions are selected in a round and
evaluated together, on all cores.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from seraphim.errors import GameError
from seraphim.game import Array, Game
from seraphim.inference import Inference
from seraphim.proof import graph as graphs
from seraphim.proof.claims import Claim
from seraphim.proof.graph import NOWHERE, PROVEN, REFUTED, UNDECIDED
from seraphim.proof.keys import Keys

_BATCH = 1024  # positions of a batch of the network
_EXPONENT = 3.0  # of the estimated effort by the probability of success
_PRIOR_EXPONENT = 0.5  # by that of a move
_LEAST = 0.02  # of a probability of success
_MOST_UNLIKELY = 12.0  # difference of logits


class _Expansion(NamedTuple):
    # What K nodes were expanded to, C children; see `graphs.expand` and `graphs.add_nodes`.
    nodes: Array
    verdicts: Array
    owners: Array
    keys: Array
    states: Array
    is_or: Array
    proofs: Array
    disproofs: Array


class Prover:
    """Proves or refutes one claim about one position."""

    def __init__(
        self, game: Game, inferences: Sequence[Inference], claim: Claim, position: Array, megabytes: int
    ) -> None:
        """Begin.

        Args:
            game: the rules; play never returns to a position.
            inferences: copies of the model, one for each thread.
            claim: what to prove or refute.
            position: an unfinished state int64 [W].
            megabytes: memory that the positions may take.
        """
        self.claim = claim
        self.evaluations = 0
        self._game = game
        self._inferences = inferences
        self._keys = Keys(game)
        self._graph = graphs.empty_graph(game.state_words, megabytes)
        self._leaves = np.empty(_BATCH * len(inferences), np.int32)
        self._path = np.empty(game.max_plies + 1, np.int32)
        self._round = 0
        self._pool = ThreadPoolExecutor(len(inferences))
        is_or = game.to_play(position[None]) == claim.player
        ones = np.ones(1, np.float32)
        self._root = int(graphs.add_nodes(self._graph, self._keys.of(position[None]), position[None], is_or, ones, ones)[0])

    @property
    def verdict(self) -> int:
        """PROVEN, REFUTED or UNDECIDED."""
        if self._graph.proofs[self._root] == 0.0:
            return PROVEN
        return REFUTED if self._graph.disproofs[self._root] == 0.0 else UNDECIDED

    @property
    def positions(self) -> int:
        """How many positions there are in memory."""
        return int(self._graph.used[0])

    def advance(self) -> bool:
        """Expand a round of positions; return False if memory is full.

        Raises:
            GameError: a game is longer than the rules' `max_plies`.
        """
        self._round += 1
        found = graphs.select(self._graph, self._root, self._round, self._leaves, self._path)
        if found < 0:
            raise GameError(f"a game of {self._game.name} is longer than its max_plies, {self._game.max_plies}")
        leaves = self._leaves[:found]
        if not self._make_room(found * self._game.num_actions):
            return False
        is_or = self._graph.is_or[leaves]
        parts = [(leaves[~is_or], None)]
        chosen = leaves[is_or]
        pieces = np.array_split(chosen, min(len(self._inferences), max(1, len(chosen) // 64)))
        parts += zip(pieces, self._inferences, strict=False)
        jobs = [part for part in parts if len(part[0])]
        for expansion in self._pool.map(lambda job: self._expand(*job), jobs):
            nodes, verdicts, owners, *columns = expansion
            children = graphs.add_nodes(self._graph, *columns)
            graphs.expand(self._graph, nodes, verdicts, owners, children)
        self.evaluations += len(chosen)
        return True

    def _make_room(self, nodes: int) -> bool:
        if graphs.has_room(self._graph, nodes):
            return True
        before = self.positions
        self._root = graphs.compact(self._graph, self._root)
        return self.positions < 0.9 * before and graphs.has_room(self._graph, nodes)

    def _expand(self, nodes: Array, inference: Inference | None) -> _Expansion:
        # Nodes of one kind: OR nodes by the network, AND nodes without.
        graph, game = self._graph, self._game
        states = graph.states[nodes]
        legal = game.legal(states)
        owners, actions = np.nonzero(legal)
        successors = game.step(states[owners], actions)
        proofs, disproofs = graph.proofs[nodes][owners], graph.disproofs[nodes][owners]
        if inference is not None:
            logits, values = inference.infer(game.observe(states))
            success = np.clip((1 + values) / 2, _LEAST, 1 - _LEAST)[owners]
            largest = np.where(legal, logits, -np.inf).max(axis=1)
            gap = np.minimum(largest[owners] - logits[owners, actions], _MOST_UNLIKELY)
            effort = np.exp(_PRIOR_EXPONENT * gap)
            proofs = (success**-_EXPONENT * effort).astype(np.float32)
            disproofs = np.maximum(1, (1 - success) ** -_EXPONENT / effort).astype(np.float32)
        ended, succeeds = self._outcome(successors)
        verdicts = np.full(len(nodes), UNDECIDED, np.int8)
        deciding = succeeds if inference is not None else ended & ~succeeds
        verdicts[owners[deciding]] = PROVEN if inference is not None else REFUTED
        going_on = np.flatnonzero(~ended & (verdicts[owners] == UNDECIDED))
        states = successors[going_on]
        is_or = game.to_play(states) == self.claim.player
        return _Expansion(
            nodes, verdicts, owners[going_on], self._keys.of(states), states, is_or, proofs[going_on], disproofs[going_on]
        )

    def _outcome(self, states: Array) -> tuple[Array, Array]:
        # Whether games have ended, and whether they have ended as claimed.
        ended, results = self._game.outcome(states)
        return ended, ended & self.claim.holds(results)

    def count(self) -> Counts:
        """Count the positions in memory."""
        nodes = self.positions
        proofs, disproofs = self._graph.proofs[:nodes], self._graph.disproofs[:nodes]
        proven, refuted = int((proofs == 0).sum()), int((disproofs == 0).sum())
        left = min(proofs[self._root], disproofs[self._root])
        return Counts(nodes, proven, refuted, self.evaluations, float(left))

    def save(self, path: Path) -> None:
        """Write a file from which `restore` goes on."""
        unfinished = path.with_name(path.name + ".unfinished")
        with unfinished.open("wb") as file:
            facts = self._facts(), [self._root, self._round, self.evaluations, int(self.seconds)]
            np.savez(file, *map(np.array, facts), *graphs.to_columns(self._graph))
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)

    def restore(self, path: Path) -> None:
        """Go on from a file.

        Raises:
            RecordError: it is damaged, of another claim, or too large for the memory.
        """
        try:
            with np.load(path) as file:
                facts, numbers, *columns = file.values()
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            raise RecordError(f"{path} is damaged: remove it, and the proof begins anew") from error
        if facts.tolist() != self._facts():
            raise RecordError(f"{path} is the unfinished proof of something else: remove it, or give another --out")
        self._root, self._round, self.evaluations, self.seconds = numbers.tolist()
        if not graphs.from_columns(self._graph, columns):
            raise RecordError(f"{path} needs more memory: raise --memory_megabytes")

    def _facts(self) -> list[str]:
        return [self._game.name, str(self.claim), str(self._position.tolist())]

    def choose(self, states: Array) -> Array:
        """Return the moves int64 [P] by which a decided claim, or its opposite, is proven.

        Args:
            states: int64 [P, W], in which the player of what is proven moves; reached from the root by these moves.
        """
        proven = self.verdict == PROVEN
        decided = self._graph.proofs if proven else self._graph.disproofs
        legal = self._game.legal(states)
        owners, actions = np.nonzero(legal)
        successors = self._game.step(states[owners], actions)
        ended, succeeds = self._outcome(successors)
        nodes = graphs.find_nodes(self._graph, self._keys.of(successors))
        works = (nodes != NOWHERE) & (decided[nodes] == 0.0)
        ranks = np.zeros(legal.shape, np.int8)
        ranks[owners, actions] = np.where(ended, 2 * (succeeds == proven), works)
        return ranks.argmax(axis=1)
