"""One search shared by many players: who thinks has a tree in it, and the network sees the leaves of all as one batch.

A player's tree stays after it has thought as long as nobody else needs its place, and goes on if the next position
follows from this one. Players see nothing of each other but the time that they take.

Knows the search; knows nothing of threads (`seraphim.server.engine.engine`) and messages
(`seraphim.server.engine.messages`).
"""

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from seraphim.errors import GameError, SeraphimError, SettingsError
from seraphim.game import Array, Game
from seraphim.inference import Inference
from seraphim.options import SearchOptions
from seraphim.search.analysis import LEAVES, Finding, find
from seraphim.search.search import Search
from seraphim.search.selection import to_rule
from seraphim.search.tree import EDGE, NODE
from seraphim.server.engine.thoughts import Player, Task, ThinkingLimits, Thought

_ROUNDS = 64  # that trees may run without the network, while others wait to be heard: some milliseconds
_SPARE_ROUNDS = 3  # for the readouts that are under way where a tree is halted
_NEWS_SHARE = 10  # news take one part in so many of the time at most


class Load(NamedTuple):
    """How busy a shared search is."""

    trees: int  # in use, thinking or at rest
    thinking: int
    waiting: int  # for a tree


class SharedSearch:
    """A search with many trees for even more players; not for several threads."""

    def __init__(
        self, game: Game, inference: Inference, options: SearchOptions, limits: ThinkingLimits, leaves: int = LEAVES
    ) -> None:
        """Prepare, with everything compiled that thinking takes.

        Args:
            game: the rules.
            inference: the model.
            options: of the search, whose root is searched by PUCT whatever they say, as only that can always go on.
            limits: of what it may take.
            leaves: of one tree with the network at a time.

        Raises:
            SettingsError: the game has more actions than so many trees have room for.
            ModelError: the model gave a NaN or an infinity.
        """
        options = replace(options, root="puct")
        self._game = game
        self._limits = limits
        self._rule = to_rule(options, leaves, game.max_plies)
        self._search = Search(game, inference, options, limits.trees, leaves)
        self._memory = _Memory(game, limits, leaves)
        self._by_tree: list[Player | None] = [None] * limits.trees
        self._waiting: deque[Player] = deque()  # without a tree
        self._next_news = 0.0
        self._warm_up()

    def _warm_up(self) -> None:
        tree = np.array([0])
        self._search.begin(tree, self._game.initial(1), None, 2 * LEAVES)
        self._search.run()
        find(self._search, 0, self._rule)
        self._search.move(tree, self._search.result(tree).best)
        self._search.reset(tree)

    @property
    def load(self) -> Load:
        """Return how busy it is."""
        taken = [player for player in list(self._by_tree) if player is not None]
        return Load(len(taken), sum(player.task is not None for player in taken), len(self._waiting))

    @property
    def is_busy(self) -> bool:
        """Return whether `advance` has something to do."""
        return bool(self._waiting) or any(self._thinking())

    def begin(self, player: Player, task: Task) -> None:
        """Let a player think of an unfinished position; what it thinks now ends before."""
        if player.gone:
            return
        self.end(player)
        if player.task is not None:
            player.next = task
            return
        player.task = task
        if player.tree is None:
            self._waiting.append(player)
        else:
            self._start(player, task, player.tree)

    def end(self, player: Player) -> None:
        """End what a player thinks, if it thinks: its last report comes now or soon."""
        if player.next is not None:
            skipped, player.next = player.next, None
            self._conclude(player, skipped)
        if player.task is None:
            return
        if player.task.started:
            self._search.halt(np.array([player.tree]))
            return
        self._waiting.remove(player)
        task, player.task = player.task, None
        self._conclude(player, task)

    def dismiss(self, player: Player) -> None:
        """End what a player thinks without a further report, and free its tree."""
        player.gone = True
        self.end(player)
        if player.task is None:
            self._give_up(player)

    def advance(self) -> None:
        """Give trees to those that wait, advance the search by a step, and report."""
        self._place()
        rounds = self._memory.rounds_left(self._search.trees.progress)
        if rounds < 1:
            self._search.halt(self._memory.full_trees(self._search.trees.progress))
        try:
            done = self._search.advance(max(1, min(_ROUNDS, rounds)))
        except SeraphimError as error:
            self._fail(error)
            return
        except Exception as error:  # noqa: BLE001  # rules are anybody's, and must end only what needs them
            self._fail(GameError(f"{self._game.name} failed while it was searched: {error!r}"))
            return
        for tree in done:
            self._finish(self._by_tree[tree])
        now = time.monotonic()
        if now >= self._next_news:
            for player in list(self._thinking()):
                if player.task and self._has_root(player):
                    player.task.report(self._thought(player, player.task, done=False))
            self.tidy()
            took = time.monotonic() - now
            self._next_news = now + max(self._limits.news, took * _NEWS_SHARE)

    def tidy(self) -> None:
        """Give up trees that nobody has used for long, and memory if there is too much of it."""
        earliest = time.monotonic() - self._limits.idle
        for player in self._resting():
            if player.used < earliest:
                self._give_up(player)
        progress, memory = self._search.trees.progress, self._memory
        if not memory.is_over(progress):
            return
        for player in self._resting():
            if memory.is_half_empty(progress):
                break
            self._give_up(player)
        self._search.compact()
        if memory.is_over(progress, anew=True):
            largest = max(self._thinking(), key=lambda player: int(progress["num_nodes"][player.tree]))
            self._search.halt(np.array([largest.tree]))

    # ------------------------------------------------------------ trees

    def _thinking(self) -> Iterator[Player]:
        return (player for player in self._by_tree if player is not None and player.task is not None)

    def _resting(self) -> list[Player]:
        # Those with a tree that they do not use, the longest unused first.
        resting = [player for player in self._by_tree if player is not None and player.task is None]
        return sorted(resting, key=lambda player: player.used)

    def _place(self) -> None:
        # Gives trees to those that wait, in turn.
        while self._waiting:
            player = self._waiting[0]
            if None not in self._by_tree:
                resting = self._resting()
                if not resting:
                    self._hurry(player)
                    return
                self._give_up(resting[0])
            self._waiting.popleft()
            player.tree = self._by_tree.index(None)
            self._by_tree[player.tree] = player
            if player.task:
                self._start(player, player.task, player.tree)

    def _hurry(self, waiting: Player) -> None:
        # Where all trees are at work and somebody has waited for long, the one that has worked the longest ends.
        latest = time.monotonic() - self._limits.patience
        longest = min(self._thinking(), key=lambda player: player.task.started if player.task else latest)
        if waiting.task and waiting.task.asked < latest and longest.task and longest.task.started < latest:
            self._search.halt(np.array([longest.tree]))

    def _give_up(self, player: Player) -> None:
        if player.tree is not None:
            self._search.reset(np.array([player.tree]))
            self._by_tree[player.tree] = None
            player.tree = player.line = None

    def _has_root(self, player: Player) -> bool:
        return bool(player.tree is not None and self._search.trees.progress[player.tree]["num_nodes"])

    # ------------------------------------------------------------ thoughts

    def _start(self, player: Player, task: Task, tree: int) -> None:
        trees = np.array([tree])
        if player.line is not None and task.line.follows(player.line):
            for action in task.line.moves[len(player.line.moves) :]:
                self._search.move(trees, np.array([action]))
        else:
            self._search.reset(trees)
        player.line = task.line
        if self._has_root(player):
            task.before = find(self._search, tree, self._rule, longest=0).readouts
        task.started = time.monotonic()
        room = self._memory.most_nodes - int(self._search.trees.progress[tree]["num_nodes"])
        self._search.begin(trees, task.line.state[None], None, max(0, min(task.readouts, room)))

    def _finish(self, player: Player | None) -> None:
        if player is None or player.task is None:
            return
        task, player.task = player.task, None
        player.used = time.monotonic()
        self._conclude(player, task)
        self._go_on(player)

    def _conclude(self, player: Player, task: Task) -> None:
        if not player.gone:
            task.report(self._thought(player, task, done=True))

    def _go_on(self, player: Player) -> None:
        if player.gone:
            self._give_up(player)
        elif player.next is not None:
            following, player.next = player.next, None
            self.begin(player, following)

    def _fail(self, error: SeraphimError) -> None:
        # What was under way is lost, and all trees with it; who rests notices nothing else.
        failed = [(player, player.task) for player in self._thinking()]
        self._search.abandon()
        for other in self._resting():
            other.line = None
        for player, task in failed:
            player.line = player.task = None
            if task and not player.gone:
                task.report(error)
            self._go_on(player)

    def _thought(self, player: Player, task: Task, *, done: bool) -> Thought:
        if not task.started or player.tree is None:  # stopped before it had a tree
            best = int(self._game.legal(task.line.state[None])[0].argmax())
            return Thought(task.line, Finding(0, 0.0, best, False, []), 0, 0.0, done)
        finding = find(self._search, player.tree, self._rule, self._limits.variation)
        return Thought(task.line, finding, finding.readouts - task.before, time.monotonic() - task.started, done)


class _Memory:
    """The memory of trees: what it has been at most since the search was made compact."""

    def __init__(self, game: Game, limits: ThinkingLimits, leaves: int) -> None:
        self._node = NODE.itemsize + 8 * game.state_words
        # All trees have room for as many as the largest, and growth may reserve twice as many.
        room = limits.edges // (2 * limits.trees)
        self.most_nodes = min(limits.tree_nodes, room)
        self._edges_of_a_round = leaves * game.num_actions  # that a tree gets at most
        self._most_rounds = room // self._edges_of_a_round
        if self._most_rounds <= _SPARE_ROUNDS:
            raise SettingsError(
                f"{limits.trees} trees have no room for the {game.num_actions} actions of {game.name}: have fewer trees"
            )
        self._limit = limits.megabytes * 2**20
        self._most = np.zeros(limits.trees)

    def _used(self, progress: Array) -> Array:
        return progress["num_nodes"] * float(self._node) + progress["num_edges"] * float(EDGE.itemsize)

    def _rounds_left(self, progress: Array) -> Array:
        return self._most_rounds - _SPARE_ROUNDS - progress["num_edges"] // self._edges_of_a_round

    def rounds_left(self, progress: Array) -> int:
        """Return after how many rounds of a search no tree can have more edges than there is room for."""
        return int(self._rounds_left(progress).min())

    def full_trees(self, progress: Array) -> Array:
        """Return the trees that have no room for another round, int64 [K]."""
        return np.flatnonzero(self._rounds_left(progress) < 1)

    def is_over(self, progress: Array, *, anew: bool = False) -> bool:
        """Return whether the limit is reached; counted anew if the search is compact now."""
        self._most = self._used(progress) if anew else np.maximum(self._most, self._used(progress))
        return bool(self._most.sum() > self._limit)

    def is_half_empty(self, progress: Array) -> bool:
        """Return whether what is in use is less than half of the limit."""
        return bool(self._used(progress).sum() < self._limit / 2)
