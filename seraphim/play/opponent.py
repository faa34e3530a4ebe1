"""The computer at a board: reads the position that a person looks at, and chooses what it would play.

Follows the tree of a game, and keeps what it knows when the game goes on. Knows nothing of terminals or pages.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from seraphim.errors import SeraphimError, SettingsError
from seraphim.game import Array, Game
from seraphim.game.tree import GameTree, Node
from seraphim.inference import Inference
from seraphim.options import SearchOptions
from seraphim.search.analysis import Analysis, Candidate

Chooser = Literal["search", "raw"]
Temperature = Literal["cold", "hot", "auto"]

READOUTS_AHEAD = 1000


@dataclass(frozen=True)
class PlayOptions:
    """How the computer chooses its moves."""

    computer: Chooser = "search"
    """Plays by its search, or by the raw network, which is the action of the highest prior."""
    temperature: Temperature = "cold"
    """Plays the best action (cold), one drawn in proportion to visits (hot), or as self-play does by ply (auto)."""
    noise: bool = False
    """Whether the priors of the root are noised, as in self-play."""


class Reading(NamedTuple):
    """What the computer thinks of a position after some more readouts, for the player to move."""

    candidates: list[Candidate]  # all legal actions, the most visited first
    raw_priors: Array  # float32 [A], the network's probabilities, those of illegal actions included
    new_visits: dict[int, int]  # of each legal action, in this read
    readouts: int  # in this read
    total: int  # in the tree
    seconds: float  # of this read
    value: float  # expected result in [-1, 1]
    proven: bool  # whether that is exact
    best: int  # the action to play in earnest
    hot: bool  # whether the action to play is drawn


Watch = Callable[[Callable[[], Reading]], bool]
"""Looks at a search while it goes on, and returns whether to end it."""


class Opponent:
    """A search that goes along with a game."""

    def __init__(
        self,
        game: Game,
        inference: Inference,
        search: SearchOptions,
        play: PlayOptions,
        generator: np.random.Generator,
    ) -> None:
        """Prepare.

        Raises:
            SettingsError: the root is not searched by PUCT.
        """
        self.inference = inference
        self._game = game
        self._generator = generator
        self.play = play
        self.search = search
        self._analysis = self._new_analysis(search)
        self._node: Node | None = None  # where the analysis is
        self._noise_key = 0

    def change(self, search: SearchOptions, play: PlayOptions) -> None:
        """Use other options from now on; the tree is kept if only the number of readouts or the choice is another.

        Raises:
            SettingsError: the root is not searched by PUCT.
        """
        if replace(search, readouts=self.search.readouts) != self.search or play.noise != self.play.noise:
            self._analysis = self._new_analysis(search)
            self._node = None
        self.search, self.play = search, play

    def _new_analysis(self, search: SearchOptions) -> Analysis:
        if search.root != "puct":
            raise SettingsError(f"root must be puct here, not {search.root}: only PUCT can go on reading")
        # Room for as many nodes as it has readouts is set aside; it grows when it is needed.
        return Analysis(self._game, self.inference, replace(search, readouts=min(search.readouts, READOUTS_AHEAD)))

    def warm_up(self) -> None:
        """Let everything be compiled and loaded before somebody waits for it."""
        self._analysis.start(self._game.initial(1)[0])
        self._more(2, None, None)
        self._node = None

    def read(self, tree: GameTree, readouts: int, watch: Watch | None = None) -> Reading:
        """Add readouts to what is known of the unfinished position where a game is.

        Args:
            tree: the game.
            readouts: how many at most; a proven position needs none.
            watch: asked after each batch whether to end early; it may look at what is known by then.

        Raises:
            ModelError: the model gave a NaN or an infinity.
        """
        began = time.perf_counter()
        self._follow(tree.node)
        noise_key = self._noise_key if self.play.noise else None
        self._more(0, None, noise_key)
        before = {each.action: each.visits for each in self._analysis.candidates()}
        raw_priors = self.raw_priors(tree.node.state)

        def reading() -> Reading:
            candidates = self._analysis.candidates()
            new_visits = {each.action: each.visits - before[each.action] for each in candidates}
            return Reading(
                candidates=candidates,
                raw_priors=raw_priors,
                new_visits=new_visits,
                readouts=sum(new_visits.values()),
                total=sum(each.visits for each in candidates),
                seconds=time.perf_counter() - began,
                value=self._analysis.value,
                proven=self._analysis.proven,
                best=self._analysis.best,
                hot=self._is_hot(tree.node),
            )

        stop = None if watch is None else lambda: watch(reading)
        self._more(readouts, stop, noise_key)
        return reading()

    def _more(self, readouts: int, stop: Callable[[], bool] | None, noise_key: int | None) -> None:
        # What is under way when an error comes is forgotten with its tree.
        try:
            self._analysis.more(readouts, stop, noise_key)
        except SeraphimError:
            self._analysis = self._new_analysis(self.search)
            self._node = None
            raise

    def choose(self, tree: GameTree) -> int:
        """Return the action to play in a position that was read; chance decides where it is hot."""
        self._follow(tree.node)
        if not any(each.visits for each in self._analysis.candidates()):  # it was stopped before the first one
            return self.choose_raw(tree)
        if not self._is_hot(tree.node):
            return self._analysis.best
        policy = self._analysis.policy.astype(np.float64)
        return int(self._generator.choice(len(policy), p=policy / policy.sum()))

    def choose_raw(self, tree: GameTree) -> int:
        """Return the action of the highest prior, without search.

        Raises:
            ModelError: the model gave a NaN or an infinity.
        """
        self._follow(tree.node)
        self._more(0, None, None)
        return max(self._analysis.candidates(), key=lambda each: each.prior).action

    def raw_priors(self, state: Array) -> Array:
        """Return the network's probabilities of all actions, the illegal ones included, float32 [A]."""
        logits, _ = self.inference.infer(self._game.observe(state[None]))
        weights = np.exp(logits[0] - logits[0].max())
        return weights / weights.sum()

    def _follow(self, node: Node) -> None:
        # What is known of a position goes on to its successors, but not back.
        if node is self._node:
            return
        steps, ancestor = [], node
        while ancestor is not self._node and ancestor.parent is not None:
            steps.append(ancestor)
            ancestor = ancestor.parent
        if ancestor is self._node:
            for step in reversed(steps):
                if step.action is not None:
                    self._analysis.play(step.action)
        else:
            self._analysis.start(node.state)
        self._node = node
        self._noise_key = int(self._generator.integers(1 << 63))

    def _is_hot(self, node: Node) -> bool:
        if self.play.temperature == "auto":
            return node.ply < self.search.tempering_point
        return self.play.temperature == "hot"
