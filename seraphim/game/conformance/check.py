"""The checks of a game, their reports, and the fewest moves that show a broken rule."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from seraphim.game import Array, Game, PlainGame, PlainRules
from seraphim.game.conformance.agreement import AgreementWalk
from seraphim.game.conformance.calls import check_members, check_numbers, check_presence, checked_symmetries
from seraphim.game.conformance.contract import THOROUGH_PLIES, ContractWalk, ReadBoard
from seraphim.game.conformance.plain_walk import PlainWalk
from seraphim.game.conformance.walk import ContractError, Played, Walk, play_randomly, replay
from seraphim.game.features import has_chance, num_players

MAX_POSITIONS = 4_000  # checked near the beginning, in search of fewer moves
MAX_PLIES = 4_000  # replayed in search of moves to leave out
COPIES = 4  # of a game that is replayed, as a rule may break only among others, or only alone

AnyWalk = TypeVar("AnyWalk", bound=Walk)


@dataclass(frozen=True)
class Report:
    """The games that were played while nothing broke the contract; prints as one line."""

    game: str
    games: int
    positions: int
    """Distinct states that were checked."""
    longest: int
    """Plies of the longest game."""
    results: tuple[int, int, int, int]
    """Games in which player 0 gets more than 0, 0, or less, and those cut off at `max_plies`."""
    symmetries: int
    unchecked_symmetries: int
    """Those that change the initial position, so that games cannot be replayed under them."""
    duplicates: int
    """States that differ from another one only in their words: by a history that nobody sees, or by mistake."""
    num_players: int = 2
    means: tuple[float, ...] = ()
    """Mean result of each player in the games that ended, where there are more than two."""
    chance: bool = False
    """Whether chance moves: then games are not replayed under symmetries, which do not say what becomes of outcomes."""

    def __str__(self) -> str:
        won, drawn, lost, cut_off = self.results
        ends = f"{won:,} won by player 0, {lost:,} by player 1, {drawn:,} drawn, " if self.num_players == 2 else ""
        if self.means:
            ends = "mean results " + ", ".join(f"{mean:+.2f} of player {seat}" for seat, mean in enumerate(self.means))
            ends += "; "
        text = (
            f"{self.game} keeps the contract: {self.games:,} random games of up to {self.longest:,} plies, "
            f"{self.positions:,} positions; {ends}{cut_off:,} cut off; "
            f"symmetries: {self.symmetries}"
        )
        if self.unchecked_symmetries:
            reason = "chance moves" if self.chance else "they change the initial position"
            text += f", {self.unchecked_symmetries} of them unchecked because {reason}"
        if self.duplicates:
            text += f"; {self.duplicates:,} states differ from another one only in their words"
        return text


@dataclass(frozen=True)
class Agreement:
    """The games that were played while two forms of a game agreed; prints as one line."""

    names: tuple[str, str]
    games: int
    positions: tuple[int, int]
    """Distinct states of each form that were compared."""

    def __str__(self) -> str:
        (first, second), (of_first, of_second) = self.names, self.positions
        text = f"{second} is the same game as {first}: {self.games:,} random games, {of_first:,} positions"
        if of_first != of_second:
            text += f", which are {of_second:,} states of {second}"
        return text


def check_game(game: Game | PlainGame, games: int = 200, seed: int = 0, read_board: ReadBoard | None = None) -> Report:
    """Play random games, many at once, and check every identity of the contract.

    Args:
        game: batched rules, or plain ones, which are checked by themselves and then through their adapter.
        games: how many games.
        seed: of the random moves.
        read_board: the `state_from_board` of its module, if it offers one.

    Raises:
        GameError: the game breaks the contract; the message says where, after as few moves as were found.
    """
    generator = np.random.default_rng(seed)
    if isinstance(game, PlainGame):
        plain = game
        check_presence(plain)
        check_numbers(plain)
        _play(lambda batch: PlainWalk(plain, batch), games, generator, min(plain.max_plies, THOROUGH_PLIES))
        game = PlainRules(plain)
    rules = game
    check_members(rules)
    symmetries = checked_symmetries(rules)

    def begin(batch: int) -> ContractWalk:
        return ContractWalk(rules, symmetries, np.random.default_rng(seed), batch, read_board)

    walk, played = _play(begin, games, generator, rules.max_plies)
    means = played.totals / max(1, sum(played.results[:3])) if num_players(rules) > 2 else np.empty(0)
    return Report(
        game=rules.name,
        games=games,
        positions=walk.positions,
        longest=played.longest,
        results=played.results,
        symmetries=len(symmetries.actions),
        unchecked_symmetries=len(symmetries.actions) - 1 - walk.playable,
        duplicates=walk.duplicates,
        num_players=num_players(rules),
        means=tuple(means.tolist()),
        chance=has_chance(rules),
    )


def check_agreement(
    first: Game, second: Game, names: tuple[str, str] | None = None, games: int = 200, seed: int = 0
) -> Agreement:
    """Play random games by two forms of one game, each of which keeps the contract, and compare all they return.

    Args:
        first: one form.
        second: the other form; its states may be encoded differently.
        names: of both in messages; by default their own.
        games: how many games.
        seed: of the random moves.

    Raises:
        GameError: they are not the same game; the message says where, after as few moves as were found.
    """
    pair, names = (first, second), names or (first.name, second.name)
    generator = np.random.default_rng(seed)
    walk, _ = _play(lambda batch: AgreementWalk(pair, names, batch), games, generator, first.max_plies)
    return Agreement(names, games, walk.positions)


def _play(
    begin: Callable[[int], AnyWalk], games: int, generator: np.random.Generator, max_plies: int
) -> tuple[AnyWalk, Played]:
    try:
        walk = begin(games)
        return walk, play_randomly(walk, generator, max_plies)
    except ContractError as error:
        raise _shrink(begin, error) from None


# ---------------------------------------------------------------- fewer moves

# First all positions near the beginning are checked, which finds the fewest moves there are, if those are few. Else
# moves are left out of the game that broke the rule, as long as the others stay legal and the same rule breaks
# (delta debugging: Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", 2002).


def _shrink(begin: Callable[[int], Walk], error: ContractError) -> ContractError:
    if error.example is None:
        return error
    nearest = _near_the_beginning(begin, len(error.example.actions))
    if nearest is None:
        return _without_detours(begin, error).shortening(error)
    fewer = len(_actions(nearest)) < len(_actions(error))
    return nearest.shortening(error) if fewer or nearest.rule == error.rule else error


def _near_the_beginning(begin: Callable[[int], Walk], plies: int) -> ContractError | None:
    # The first broken rule there, even if it is another one.
    checked, known = 0, set[bytes]()
    try:
        walk = begin(COPIES)
        unseen = np.arange(COPIES) == 0
        for _ in range(plies + 1):
            rows, actions = np.nonzero(walk.inspect().followers & unseen[:, None])
            checked += len(rows)
            if not len(rows) or checked > MAX_POSITIONS:
                return None
            walk.advance(rows, actions)
            unseen = _unseen(walk.states(), known)
    except ContractError as nearest:
        return nearest if nearest.example else None
    return None


def _unseen(states: Array, known: set[bytes]) -> Array:
    # The rows, bool [B], that hold a position for the first time.
    unseen = np.zeros(len(states), np.bool_)
    for row, state in enumerate(states):
        key = state.tobytes()
        unseen[row] = key not in known
        known.add(key)
    return unseen


def _without_detours(begin: Callable[[int], Walk], error: ContractError) -> ContractError:
    actions, plies = _actions(error), 0
    size = max(1, len(actions) // 2)
    while size:
        start = 0
        while start + size <= len(actions) and plies < MAX_PLIES:
            fewer = actions[:start] + actions[start + size :]
            plies += len(fewer) + 1
            again = _replayed(begin, fewer)
            if again is not None and again.example is not None and again.rule == error.rule:
                error, actions = again, _actions(again)
            else:
                start += 1
        size //= 2
    return error


def _actions(error: ContractError) -> tuple[int, ...]:
    return () if error.example is None else error.example.actions


def _replayed(begin: Callable[[int], Walk], actions: tuple[int, ...]) -> ContractError | None:
    try:
        replay(begin(COPIES), actions)
    except ContractError as again:
        return again
    return None
