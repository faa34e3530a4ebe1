"""What a search found in a position, and one position analyzed: readouts added to the same tree, stopped at any time.

`PositionAnalysis` is what the API, terminals, protocols and pages show. Knows the search and the labels of moves; knows
nothing of who shows them.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from html import escape
from typing import Any

import numpy as np

from seraphim.game import Array, Game
from seraphim.game.features import features_of, value_text
from seraphim.game.notation import label_in, labels_along
from seraphim.options import Natural, SearchOptions, check
from seraphim.search.afterstates import AfterstateSearch
from seraphim.search.evaluator import Inference, inputs_of
from seraphim.search.search import Search
from seraphim.search.selection import exploration_weight
from seraphim.search.traversal import TreePolicy
from seraphim.search.tree import MOST_ACTIONS, NO_CHILD, Trees, slots

LEAVES = 8  # at a time: a few times faster than one, and hardly different
_TREE = np.array([0])


@dataclass(frozen=True)
class Move:
    """A legal move, as a search sees it.

    Examples:
        >>> import seraphim
        >>> move = seraphim.load("tictactoe").analyze("a1 a2 b1 b2").moves[0]
        >>> move.label, move.value, move.proven
        ('c1', 1.0, True)
    """

    label: str
    visits: int
    share: float
    """Of all visits, 0 to 1."""
    prior: float
    """The network's probability."""
    value: float
    """Q: expected result for the player who makes the move, -1 to 1, with what is banked; 0 without visits."""
    proven: bool
    """Whether the value is exact."""
    variation: tuple[str, ...]
    """This move, and the most visited ones that follow; where chance moves, the most visited outcome."""
    action: int = field(repr=False)
    actions: tuple[int, ...] = field(repr=False)
    """Those of the variation."""
    searched_prior: float = field(repr=False)
    """The prior with the noise of the root, if there is any."""
    u: float = field(repr=False)
    """Exploration term, c·P·√N/(1+N(a)); the search goes where Q + U is highest."""
    values: tuple[float, ...] = field(default=(), repr=False)
    """With more than two players, Q for each, player 0 first; else empty."""


@dataclass(frozen=True)
class PositionAnalysis:
    """What a search found in a position. Prints as a table; a notebook shows it with the board.

    Examples:
        >>> import seraphim
        >>> analysis = seraphim.load("tictactoe").analyze("a1 a2 b1 b2")
        >>> print(analysis.board)
          a b c
        1 X X ·
        2 O O ·
        3 · · ·
        >>> analysis.best, len(analysis.moves)
        ('c1', 5)
    """

    board: str
    """The position in text."""
    value: float
    """Expected result for the player to move, -1 to 1, with what is banked; without readouts, the network's value."""
    proven: bool
    """Whether the value is exact."""
    best: str
    """The label of the move to play."""
    readouts: int
    """All visits of the moves."""
    moves: tuple[Move, ...]
    """All legal moves: the best one, then the most visited first."""
    best_action: int = field(repr=False)
    to_play: int = field(repr=False)
    """The player to move."""
    new_readouts: int = field(repr=False)
    """The readouts of the latest search; the others are of earlier ones in the same tree."""
    seconds: float = field(repr=False, compare=False)
    """Of the latest search."""
    values: tuple[float, ...] = ()
    """With more than two players, the expected result of each, player 0 first; else empty."""
    points: float | None = None
    """How many points a value of 1 is for people, if the game says so: texts are in points then."""
    by_turns: bool = False
    """Whether whole turns were valued, each at once: what counts visits counts the positions that they can end in."""

    @property
    def counted(self) -> str:
        """What the visits of the moves are for people."""
        return "ends" if self.by_turns else "visits"

    def __str__(self) -> str:
        """Return the moves as a table."""
        width = max(6, *(len(move.label) for move in self.moves))
        rows = [f"{'move':>{width}} {self.counted:>8} {'share':>6} {'prior':>6} {'value':>7}  line"]
        rows += [
            f"{move.label:>{width}} {move.visits:>8,} {move.share:>6.0%} {move.prior:>6.0%} "
            f"{value_text(move.value, self.points):>6}{'=' if move.proven else ' '}  {' '.join(move.variation[:8])}"
            for move in self.moves
        ]
        exact = ", exact" if self.proven else ""
        value = value_text(self.value, self.points)
        if self.values:
            value += f" (players {' '.join(value_text(each, self.points) for each in self.values)})"
        effort = f"ends of turns: {self.readouts:,}" if self.by_turns else f"{self.readouts:,} readouts"
        return "\n".join([f"best {self.best}, value {value}{exact}, {effort}", *rows])

    def to_dict(self) -> dict[str, Any]:
        """Return what pages and programs get as JSON: with actions, and values by the letters of the formula."""
        return {
            "readouts": self.readouts,
            "value": self.value,
            "value_first": self.values[0] if self.values else self.value if self.to_play == 0 else -self.value,
            **({"values": list(self.values)} if self.values else {}),
            "best": self.best_action,
            "seconds": round(self.seconds, 4),
            "readouts_per_second": round(self.new_readouts / max(self.seconds, 1e-6)),
            "proven": self.proven,
            "candidates": [
                {"q" if name == "value" else name: value for name, value in asdict(move).items() if value != ()}
                for move in self.moves
            ],
        }

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in ("move", self.counted, "prior", "value", "line"))
        rows = "".join(
            f"<tr><td><b>{escape(move.label)}</b></td>"
            f'<td><div style="background:#0c948855;width:{120 * move.share:.0f}px">{move.visits:,}</div></td>'
            f"<td>{move.prior:.0%}</td><td>{value_text(move.value, self.points)}{'=' if move.proven else ''}</td>"
            f"<td>{escape(' '.join(move.variation[:8]))}</td></tr>"
            for move in self.moves
        )
        return (
            f'<div style="display:flex;gap:2em"><pre>{escape(self.board)}</pre>'
            f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        )


class Analysis:
    """A tree for one position, searched by PUCT: a Gumbel root has a fixed number of readouts."""

    def __init__(
        self,
        game: Game,
        inference: Inference,
        options: SearchOptions,
        leaves: int = LEAVES,
        tree_policy: TreePolicy | None = None,
    ) -> None:
        """Start with the initial position; the arguments are those of `Search`.

        Raises:
            SettingsError: see `Search`.
        """
        self._search = Search(game, inference, options, num_trees=1, leaves=leaves, tree_policy=tree_policy)
        self._game = game
        self._visits_before = 0  # of the latest search
        self._seconds = 0.0
        self.state = game.initial(1)[0]

    def start(self, state: Array) -> None:
        """Start over with an unfinished position int64 [W] in which a player moves."""
        self.state = state
        self._search.reset(_TREE)

    def play(self, action: int) -> None:
        """Move on to the successor by an action, or an outcome of chance, keeping the tree below it."""
        if self._search.trees.progress[0]["num_nodes"]:
            self._search.move(_TREE, np.array([action]))
        self.state = self._game.step(self.state[None], np.array([action]))[0]

    def more(self, readouts: int, stop: Callable[[], bool] | None = None, noise_key: int | None = None) -> int:
        """Add at most `readouts` to the tree, until `stop` returns True after a batch, and return how many were added.

        A proven position needs none. There is noise at the root if there is a key for its stream.

        Raises:
            ModelError: the model gave a NaN or an infinity.
            SettingsError: `readouts` is negative.
        """
        check(Natural, readouts=readouts)
        began, before = time.perf_counter(), self._search.counters.readouts
        self._visits_before, self._seconds = root_visits(self._search, 0), 0.0
        keys = None if noise_key is None else np.array([noise_key], np.uint64)
        self._search.begin(_TREE, self.state[None], keys, readouts)
        is_done = False
        while not is_done:
            is_done = len(self._search.advance()) > 0
            self._seconds = time.perf_counter() - began
            if not is_done and stop is not None and stop():
                self._search.halt(_TREE)
        return self._search.counters.readouts - before

    @property
    def policy(self) -> Array:
        """The policy that the search found, float32 [A]; drawn moves follow it."""
        return self._search.result(_TREE).policies[0]

    def result(self) -> PositionAnalysis:
        """Return what was found so far."""
        return analysis_of(self._search, 0, self._visits_before, self._seconds)


class TurnAnalysis:
    """The analysis of a model that plays by afterstates: used as an `Analysis` is, but complete at once.

    In place of readouts and visits it counts the positions that turns can end in.
    """

    def __init__(self, game: Game, inference: Inference, options: SearchOptions) -> None:
        """Start with the initial position; arguments and errors as `AfterstateSearch`."""
        self._search, self._game, self._inference = AfterstateSearch(game, inference, options, 1), game, inference
        self.start(game.initial(1)[0])

    def start(self, state: Array) -> None:
        """Go to an unfinished position int64 [W] in which a player moves."""
        self.state = state
        self._found: PositionAnalysis | None = None

    def play(self, action: int) -> None:
        """Move on to the successor by an action, or an outcome of chance."""
        self.start(self._game.step(self.state[None], np.array([action]))[0])

    def more(self, readouts: int, stop: object = None, noise_key: int | None = None) -> int:  # noqa: ARG002
        """Value all turns, unless they are known, whatever the arguments are; return how many positions that took.

        Raises:
            ModelError: the model gave a NaN or an infinity.
        """
        return 0 if self._found is not None else self.result().readouts

    @property
    def policy(self) -> Array:
        """The policy, float32 [A]: the best action alone."""
        return np.eye(self._game.num_actions, dtype=np.float32)[self.result().best_action]

    def result(self) -> PositionAnalysis:
        """Return what was found; errors as `more`."""
        if self._found is None:
            self._found = self._analyzed()
        return self._found

    def _analyzed(self) -> PositionAnalysis:
        game, state, began = self._game, self.state, time.perf_counter()
        turns = self._search.turns_from(state)
        actions, total = [turn[0] for turn in turns.moves], int(turns.ends.sum())
        logits = self._inference.infer(inputs_of(game, self._inference, state[None]))[0][0, actions]
        priors = np.exp(logits - logits.max())
        columns = turns.moves, turns.ends.tolist(), (priors / priors.sum()).tolist(), turns.values.tolist()
        moves = [
            Move(
                label=label_in(game, state, action),
                visits=visits,
                share=visits / total,
                prior=prior,
                value=value,
                proven=False,
                variation=tuple(labels_along(game, state, turn)),
                action=action,
                actions=tuple(turn),
                searched_prior=prior,
                u=0.0,
            )
            for action, turn, visits, prior, value in zip(actions, *columns, strict=True)
        ]
        moves.sort(key=lambda each: (each.action != turns.best, -each.value))
        return PositionAnalysis(
            board=game.render(state),
            value=moves[0].value,
            proven=False,
            best=moves[0].label,
            readouts=total,
            moves=tuple(moves),
            best_action=turns.best,
            to_play=int(game.to_play(state[None])[0]),
            new_readouts=0,
            seconds=time.perf_counter() - began,
            points=features_of(game).points,
            by_turns=True,
        )


def resumable(options: SearchOptions) -> SearchOptions:
    """Return options with PUCT in place of a Gumbel root, whose number of readouts is fixed."""
    return replace(options, root="puct") if options.root == "gumbel" else options


def make_analysis(
    game: Game,
    inference: Inference,
    options: SearchOptions,
    leaves: int = LEAVES,
    tree_policy: TreePolicy | None = None,
) -> Analysis | TurnAnalysis:
    """Return the analysis that `options.root` asks for, or that is resumable; errors as both."""
    if options.by_turns and tree_policy is None:
        return TurnAnalysis(game, inference, options)
    return Analysis(game, inference, resumable(options), leaves, tree_policy)


def root_visits(search: Search, tree: int) -> int:
    """Return how many readouts have visited the edges of a tree's root; 0 without a root."""
    if not search.trees.progress[tree]["num_nodes"]:
        return 0
    return int(_edges_of(search.trees, tree * slots(search.trees)[0])["visits"].sum())


def analysis_of(
    search: Search, tree: int, visits_before: int, seconds: float, longest: int = MOST_ACTIONS
) -> PositionAnalysis:
    """Return what a search by PUCT found at the root of one of its trees.

    Args:
        search: the search.
        tree: which of its trees.
        visits_before: the root's visits before the latest search.
        seconds: that the latest search took.
        longest: most moves of a variation after its first one.
    """
    trees, game = search.trees, search.game
    node = tree * slots(trees)[0]
    root, own, state = trees.nodes[node], _edges_of(trees, node), trees.states[node].copy()
    priors = trees.root_scores[tree * game.num_actions :][: len(own)].tolist()
    exploration = exploration_weight(int(root["visits"]), search.rule)
    readouts = int(own["visits"].sum())
    result = search.result(np.array([tree]))
    best, moves = int(result.best[0]), list[Move]()
    totals = trees.edge_totals[root["first_edge"] :][: len(own)].tolist()  # no columns for one or two players
    for edge, by_player, prior in zip(own.tolist(), totals, priors, strict=True):
        total, raw, visits, child, action, *_ = edge
        actions = (action, *_variation(trees, child, longest))
        moves.append(
            Move(
                label=label_in(game, state, action),
                visits=visits,
                share=visits / max(1, readouts),
                prior=raw,
                value=total / visits if visits else 0.0,
                proven=child != NO_CHILD and bool(trees.nodes[child]["settled"]),
                variation=tuple(labels_along(game, state, actions)),
                action=action,
                actions=actions,
                searched_prior=prior,
                u=exploration * prior / (1 + visits),
                values=tuple(each / max(1, visits) for each in by_player),
            )
        )
    return PositionAnalysis(
        board=game.render(state),
        value=float(result.values[0]),
        proven=bool(result.proven[0]),
        best=label_in(game, state, best),
        readouts=readouts,
        moves=tuple(sorted(moves, key=lambda each: (each.action != best, -each.visits))),
        best_action=best,
        to_play=int(root["to_play"]),
        new_readouts=readouts - visits_before,
        seconds=seconds,
        values=tuple(result.by_player[0].tolist()),
        points=features_of(game).points,
    )


def _edges_of(trees: Trees, node: int) -> Array:
    first = int(trees.nodes[node]["first_edge"])
    return trees.edges[first : first + int(trees.nodes[node]["num_edges"])]


def _variation(trees: Trees, node: int, longest: int) -> list[int]:
    # The most visited actions and outcomes from a node onward.
    actions: list[int] = []
    while node != NO_CHILD and len(actions) < longest:
        edges = _edges_of(trees, node)
        if not edges["visits"].any():
            break
        edge = edges[edges["visits"].argmax()]
        actions.append(int(edge["action"]))
        node = int(edge["child"])
    return actions
