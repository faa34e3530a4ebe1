"""The checks of a game as a person asks for them, and what they report."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from seraphim.game import Game, PlainGame, PlainRules
from seraphim.game.conformance.agreement import AgreementWalk, Pair
from seraphim.game.conformance.contract import ContractWalk, ReadBoard
from seraphim.game.conformance.finding import ContractError
from seraphim.game.conformance.members import check_labels, check_members, check_presence, checked_symmetries
from seraphim.game.conformance.plain import PlainWalk
from seraphim.game.conformance.shrinking import shrink
from seraphim.game.conformance.walks import THOROUGH_PLIES, Played, Walk, play_randomly

AnyWalk = TypeVar("AnyWalk", bound=Walk)


@dataclass(frozen=True)
class Report:
    """What was played while nothing broke the contract; prints as one line."""

    game: str
    games: int
    positions: int
    """Distinct states that were looked at."""
    longest: int
    """Plies of the longest game."""
    results: tuple[int, int, int, int]
    """Games that player 0 won, drawn games, games that player 1 won, and those cut off at `max_plies`."""
    symmetries: int
    unchecked_symmetries: int
    """Those that change the initial position, so that games cannot be replayed under them."""
    twins: int
    """States that differ from another one in nothing but their words: a history that is not seen, or a mistake."""

    def __str__(self) -> str:
        won, drawn, lost, cut_off = self.results
        text = (
            f"{self.game} keeps the contract: {self.games:,} random games of up to {self.longest:,} plies, "
            f"{self.positions:,} positions; {won:,} won by player 0, {lost:,} by player 1, {drawn:,} drawn, "
            f"{cut_off:,} cut off; symmetries: {self.symmetries}"
        )
        if self.unchecked_symmetries:
            text += f", {self.unchecked_symmetries} of them unchecked because they change the initial position"
        if self.twins:
            text += f"; {self.twins:,} states differ from another one in nothing but their words"
        return text


@dataclass(frozen=True)
class Agreement:
    """What was played while two forms of a game agreed; prints as one line."""

    names: tuple[str, str]
    games: int
    positions: tuple[int, int]
    """Distinct states of either form that were looked at."""

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
        read_board: the `state_from_board` that its module offers, if it does.

    Raises:
        GameError: the game breaks the contract; the message says where, after as few moves as were found.
    """
    generator = np.random.default_rng(seed)
    if isinstance(game, PlainGame):
        plain = game
        check_presence(plain)
        _play(lambda batch: PlainWalk(plain, batch), games, generator, min(plain.max_plies, THOROUGH_PLIES))
        game = PlainRules(plain)
    rules = game
    check_members(rules)
    check_labels(rules)
    symmetries = checked_symmetries(rules)

    def begin(batch: int) -> ContractWalk:
        return ContractWalk(rules, symmetries, np.random.default_rng(seed), batch, read_board)

    walk, played = _play(begin, games, generator, rules.max_plies)
    return Report(
        game=rules.name,
        games=games,
        positions=walk.positions,
        longest=played.longest,
        results=played.results,
        symmetries=len(symmetries.actions),
        unchecked_symmetries=len(symmetries.actions) - 1 - walk.playable,
        twins=walk.twins,
    )


def check_agreement(
    first: Game, second: Game, names: tuple[str, str] | None = None, games: int = 200, seed: int = 0
) -> Agreement:
    """Play random games by two forms of one game, each of which keeps the contract, and compare all that is seen.

    Args:
        first: one form.
        second: the other form; its states may be encoded differently.
        names: what a person calls them; by default their own names.
        games: how many games.
        seed: of the random moves.

    Raises:
        GameError: they are not the same game; the message says where, after as few moves as were found.
    """
    pair = Pair(first, second, names or (first.name, second.name))
    pair.check_members()
    generator = np.random.default_rng(seed)
    walk, _ = _play(lambda batch: AgreementWalk(pair, batch), games, generator, first.max_plies)
    return Agreement(pair.names, games, walk.positions)


def _play(
    begin: Callable[[int], AnyWalk], games: int, generator: np.random.Generator, most_plies: int
) -> tuple[AnyWalk, Played]:
    # Plays random games; what is found is shrunk.
    try:
        walk = begin(games)
        return walk, play_randomly(walk, generator, most_plies)
    except ContractError as found:
        raise shrink(begin, found) from None
