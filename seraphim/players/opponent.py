"""The computer player: searches the current position of a game and chooses moves.

Follows the game tree and reuses the search tree as the game goes on. Independent of terminals.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from seraphim.errors import SeraphimError, SettingsError
from seraphim.game import Array, Game
from seraphim.game.notation import first_choice
from seraphim.game.tree import GameNode, GameTree
from seraphim.options import Options, SearchOptions
from seraphim.search.analysis import Analysis, PositionAnalysis, TurnAnalysis, make_analysis
from seraphim.search.evaluator import Inference
from seraphim.settings import Chooser, Temperature

NODES_RESERVED = 1000


@dataclass(frozen=True)
class PlayOptions(Options):
    """How the computer chooses its moves."""

    computer: Chooser = "search"
    """Plays by search, or by the raw network: the action with the highest prior."""
    temperature: Temperature = "cold"
    """Plays the best action (cold), samples in proportion to visits (hot), or does as self-play does, by ply (auto)."""
    noise: bool = False
    """Whether to add noise to the root's priors, as in self-play."""


Watch = Callable[[Callable[[], PositionAnalysis]], bool]
"""Observes a running search through a function that returns its results so far; returns whether to stop it."""


class Opponent:
    """A search that follows a game."""

    def __init__(
        self, game: Game, inference: Inference, search: SearchOptions, play: PlayOptions, generator: np.random.Generator
    ) -> None:
        """Create an opponent.

        Raises:
            SettingsError: as `change`.
        """
        _check_draws(search, play)
        self.inference, self.search, self.play = inference, search, play
        self._game = game
        self._generator = generator
        self._node: GameNode | None = None  # the analysis' position
        self._noise_key = 0
        self._analysis = self._new_analysis(search)

    def change(self, search: SearchOptions, play: PlayOptions) -> None:
        """Change the options; keeps the tree if only the number of readouts or the choice of moves changes.

        Raises:
            SettingsError: the root is searched by Gumbel, which cannot be resumed; or noise or a temperature would
                change nothing.
        """
        _check_draws(search, play)
        if replace(search, readouts=self.search.readouts) != self.search or play.noise != self.play.noise:
            self._analysis = self._new_analysis(search)
        self.search, self.play = search, play

    def _new_analysis(self, search: SearchOptions) -> Analysis | TurnAnalysis:
        if search.root == "gumbel":
            raise SettingsError("root must be puct or afterstates here, not gumbel: only these can resume a search")
        self._node = None
        # The tree has room for this many readouts at first, and grows when needed.
        return make_analysis(self._game, self.inference, replace(search, readouts=min(search.readouts, NODES_RESERVED)))

    def warm_up(self) -> None:
        """Compile and load everything, so that the first move is not delayed."""
        self._analysis.start(first_choice(self._game))
        self._more(2, None, None)
        self._node = None

    def read(self, tree: GameTree, readouts: int, watch: Watch | None = None) -> PositionAnalysis:
        """Add readouts to the search of the game's current, unfinished position, in which a player moves.

        Args:
            tree: the game.
            readouts: at most this many; a proven position needs none.
            watch: called after each batch.

        Raises:
            ModelError: the model gave a NaN or an infinity.
        """
        self._follow(tree.node)
        result = self._analysis.result
        self._more(
            readouts, None if watch is None else lambda: watch(result), self._noise_key if self.play.noise else None
        )
        return result()

    def _more(self, readouts: int, stop: Callable[[], bool] | None, noise_key: int | None) -> None:
        try:
            self._analysis.more(readouts, stop, noise_key)
        except SeraphimError:
            self._analysis = self._new_analysis(self.search)  # drops the unfinished tree
            raise

    def choose(self, tree: GameTree) -> int:
        """Return the action to play in a position that was read; the temperature decides whether it is sampled."""
        self._follow(tree.node)
        found = self._analysis.result()
        if not found.readouts:  # stopped before the first one
            return self.choose_raw(tree)
        if not self.is_sampled(tree.node):
            return found.best_action
        policy = self._analysis.policy.astype(np.float64)
        return int(self._generator.choice(len(policy), p=policy / policy.sum()))

    def choose_raw(self, tree: GameTree) -> int:
        """Return the action with the highest prior, without a search.

        Raises:
            ModelError: the model gave a NaN or an infinity.
        """
        self._follow(tree.node)
        self._more(0, None, None)
        return max(self._analysis.result().moves, key=lambda each: each.prior).action

    def raw_priors(self, state: Array) -> Array:
        """Return the network's probabilities of all actions, including illegal ones, float32 [A]."""
        logits, _ = self.inference.infer(self._game.observe(state[None]))
        weights = np.exp(logits[0] - logits[0].max())
        return weights / weights.sum()

    def _follow(self, node: GameNode) -> None:
        # Moving forward keeps the subtree; moving anywhere else starts a new tree.
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

    def is_sampled(self, node: GameNode) -> bool:
        """Return whether the action to play in a position is sampled."""
        if self.play.temperature == "auto":
            return node.ply < self.search.tempering_point
        return self.play.temperature == "hot"


def _check_draws(search: SearchOptions, play: PlayOptions) -> None:
    for name, is_given in (("noise", play.noise), ("temperature", play.temperature != "cold")):
        if is_given and search.by_turns:
            raise SettingsError(f"{name} changes nothing where whole turns are valued: it needs root=puct")
