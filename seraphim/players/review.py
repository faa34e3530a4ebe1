"""A whole game reviewed: the chance of winning by move, and the moves that gave much of it away.

A position is worth what its search found; or the exact result, where the game has ended, the search or the game's
solver knows it, or a move leads to one. Knows the rules and what a search returns; knows no model and nothing of files.
"""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple, SupportsIndex, cast

import numpy as np

from seraphim.errors import GameError, shown
from seraphim.game import AnyGame, Array, Game, is_same, load_game
from seraphim.game.features import check_two_players, features_of
from seraphim.game.loading import module_features
from seraphim.game.notation import label_in
from seraphim.game.saved_games import check_moves, check_position, read_position
from seraphim.game.solved import solve
from seraphim.game.tree import GameNode, GameTree
from seraphim.search.analysis import Move, PositionAnalysis

MISTAKE = 0.2
"""Expected points that a mistake loses at least; that is 0.4 of a value from -1 to 1."""
SOLVER_SECONDS = 1.0

GameMoves = str | Iterable[str] | Iterable[int] | Array | GameTree
"""The moves of a game: text such as `4453`, a list of labels or of actions, or a tree: its line through the current
position."""


@dataclass(frozen=True)
class ReviewedMove:
    """A move of a reviewed game."""

    ply: int
    """1 for the first move."""
    player: int
    """Who made it, 0 or 1."""
    label: str
    action: int
    lost: float
    """Expected points of that player before the move less those after it, -1 to 1: a win counts 1, a draw 0.5. Below 0
    where the search expects more after the move than it did before."""
    better: str = ""
    """Of a mistake: the label of the best move that is known; "" of every other move."""
    line: tuple[str, ...] = ()
    """Of a mistake: that better move, and those that a search of the position after it expects."""


@dataclass(frozen=True)
class GameReview:
    """What each position of a game is worth, and what each move lost. Prints as a table.

    Examples:
        >>> import seraphim
        >>> review = seraphim.load("tictactoe").review("b2 b1 a1 c3 a3 c1")
        >>> [(move.ply, move.label, move.better) for move in review.mistakes]
        [(2, 'b1', 'a3')]
    """

    game: str
    threshold: float
    """Expected points that a mistake loses at least."""
    readouts: int
    """Of each search; 0 where whole turns were valued."""
    values: tuple[float, ...]
    """Expected result for player 0, -1 to 1, of the first position and after each move."""
    exact: tuple[bool, ...]
    """Whether each of the values is exact."""
    ended: bool
    """Whether the game is over after the last move; one that is cut off is not."""
    moves: tuple[ReviewedMove, ...] = field(repr=False)

    @property
    def chances(self) -> tuple[float, ...]:
        """Player 0's chance of winning, 0 to 1, for each of the values; a draw is half a win."""
        return tuple((1 + value) / 2 for value in self.values)

    @property
    def mistakes(self) -> tuple[ReviewedMove, ...]:
        """The moves that lost at least `threshold` where a better one is known."""
        return tuple(move for move in self.moves if move.better)

    def worst(self, player: int, count: int = 3) -> list[ReviewedMove]:
        """Return the mistakes of a player that lost most, at most `count` of them."""
        return sorted((move for move in self.mistakes if move.player == player), key=lambda move: -move.lost)[:count]

    def __str__(self) -> str:
        """Return the moves as a table; = marks a chance that is exact."""
        width = max([4, *(len(move.label) for move in self.moves)])
        rows = [f"{'ply':>4} {'player':6} {'move':>{width}} {'first wins':>11} {'lost':>7}  better"]
        mistakes = f"{len(self.mistakes)} lost at least {self.threshold:.0%} of a win"
        for move in self.moves:
            chance = f"{self.chances[move.ply]:.1%}{'=' if self.exact[move.ply] else ' '}"
            player, better = "second" if move.player else "first", " ".join(move.line[:8])
            rows.append(
                f"{move.ply:4} {player:6} {move.label:>{width}} {chance:>11} {move.lost:z7.1%}  {better}".rstrip()
            )
        effort = f"{self.readouts:,} readouts" if self.readouts else "whole turns valued"
        return "\n".join([f"{self.game}, {effort}; of {len(self.moves)} moves {mistakes}", *rows])

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, those of the moves, and `chances` as JSON; `mistakes` has the plies of these."""
        return asdict(self) | {"chances": self.chances, "mistakes": [move.ply for move in self.mistakes]}


def to_tree(name: AnyGame, moves: GameMoves) -> GameTree:
    """Return the tree of a game by its moves.

    Raises:
        GameError: they are none, one of them is not legal, the tree is of another game or of no position of it, or
            it is a game of chance or of one player.
    """
    game = load_game(name)
    check_two_players(game)
    if isinstance(moves, GameTree):
        if not is_same(name, moves.game):
            raise GameError(f"this is a game of {moves.game.name!r}, not {game.name!r}, or by other rules of that name")
        check_position(game, moves.root.state)
        return moves
    if not isinstance(moves, str):
        try:
            listed = [*moves]  # once: an iterator has them no second time
            if isinstance(moves, Set | Mapping) or any(isinstance(move, bool) for move in listed):
                raise TypeError("a set has no order, and a truth value is no action")
            if not all(isinstance(move, str) for move in listed):
                return check_moves(game, [operator.index(cast(SupportsIndex, move)) for move in listed])
        except TypeError as error:
            raise GameError(f"a game is a text or a list of labels or actions, not {shown(moves)}") from error
        moves = ", ".join(map(str, listed))
    found = read_position(name, moves)
    return check_moves(game, found.actions) if found.start is None else GameTree(game, found.start)


class _Worth(NamedTuple):
    # What is known about a position.
    value: float  # expected result for player 0
    exact: bool
    moves: tuple[Move, ...] = ()  # that the search found; none where there is no choice
    # Exact ones of actions, for the player to move, the best included:
    results: Mapping[int, int] = MappingProxyType({})


def review_line(
    tree: GameTree,
    module: ModuleType,
    analyze: Callable[[Array], PositionAnalysis],
    readouts: int,
    threshold: float,
    seconds: float,
) -> GameReview:
    """Return the review of a tree's line through its current position.

    Args:
        tree: the game.
        module: of the game, which may offer exact results.
        analyze: searches an unfinished state int64 [W].
        readouts: of each search.
        threshold: expected points that a mistake loses at least.
        seconds: of the solver for a position.
    """
    game, nodes = tree.game, [*tree.path(), *tree.ahead()]
    results = _solve_backward(module, game, nodes, seconds)
    worths: list[_Worth] = []  # from the last position to the first
    for node in reversed(nodes):
        after = worths[-1] if worths else None
        worths.append(_worth(game, node, after, analyze, results.get(node.ply, {})))
    worths.reverse()
    moves = []
    actions = [node.action for node in nodes if node.action is not None]
    for node, action, (before, after) in zip(nodes, actions, pairwise(worths), strict=False):
        player = int(game.to_play(node.state[None])[0])
        lost = _sign(player) * (before.value - after.value) / 2 + 0.0  # never -0.0
        move = ReviewedMove(node.ply + 1, player, label_in(game, node.state, action), action, lost)
        better = _better(before, move, after) if move.lost >= threshold else None
        if better is not None:
            line = better.label, *_continuation(game, node, better, analyze)
            move = replace(move, better=better.label, line=line)
        moves.append(move)
    return GameReview(
        game=game.name,
        threshold=threshold,
        readouts=readouts,
        values=tuple(worth.value for worth in worths),
        exact=tuple(worth.exact for worth in worths),
        ended=_has_ended(game, nodes[-1]),
        moves=tuple(moves),
    )


def _has_ended(game: Game, node: GameNode) -> bool:
    # By the rules, as exact results are: a game that is cut off could go on.
    return not game.legal(node.state[None]).any()


def _solve_backward(
    module: ModuleType, game: Game, nodes: Sequence[GameNode], seconds: float
) -> dict[int, dict[int, int]]:
    # The results of actions by ply, from the end of a game back to the first position that takes the solver too long:
    # it remembers what comes later, and earlier positions are harder.
    found: dict[int, dict[int, int]] = {}
    if seconds and module_features(module).action_results is not None:
        for node in reversed(nodes):
            if _has_ended(game, node):
                continue
            try:
                values = solve(module, game, node.state, seconds)
            except GameError:
                break
            results = {action: value.result for action, value in values.items() if value.result is not None}
            if 1 not in results.values() and len(results) < game.legal(node.state[None]).sum():
                break
            found[node.ply] = results
    return found


def _worth(
    game: Game,
    node: GameNode,
    after: _Worth | None,
    analyze: Callable[[Array], PositionAnalysis],
    results: Mapping[int, int],
) -> _Worth:
    # What a position is worth, with that of the next one in the game.
    if _has_ended(game, node):
        ended, outcomes = game.outcome(node.state[None])
        return _Worth(float(outcomes[0]), exact=bool(ended[0]))
    if after is not None and game.legal(node.state[None]).sum() == 1:
        return _Worth(after.value, after.exact)  # a forced move loses nothing
    analysis, sign = analyze(node.state), _sign(int(game.to_play(node.state[None])[0]))
    value, exact = (max(results.values()), True) if results else (analysis.value, analysis.proven)
    tell = features_of(game).known_results
    if not exact and tell is not None:
        known, told = tell(node.state[None])
        value, exact = (sign * float(told[0]), True) if known[0] else (value, False)
    if after is not None and after.exact and sign * after.value > value:  # the player could at least play that
        value = sign * after.value
        exact = value == 1
    return _Worth(sign * value + 0.0, exact, analysis.moves, results)


def _sign(player: int) -> int:
    # What turns values for player 0 into those for a player, and back.
    return 1 - 2 * player


def _better(before: _Worth, played: ReviewedMove, after: _Worth) -> Move | None:
    # The most visited move of those that are known to be worth most, and more than the one that was played.
    value, exact = _sign(played.player) * after.value, before.results
    known = [move for move in before.moves if move.action != played.action and (move.action in exact or move.visits)]
    return max(
        (move for move in known if exact.get(move.action, move.value) > value),
        key=lambda move: exact.get(move.action, 0),
        default=None,
    )


def _continuation(
    game: Game, node: GameNode, move: Move, analyze: Callable[[Array], PositionAnalysis]
) -> tuple[str, ...]:
    # What a search expects after a move that was not played.
    (state,) = game.step(node.state[None], np.array([move.action]))
    return analyze(state).moves[0].variation if game.legal(state[None]).any() else ()
