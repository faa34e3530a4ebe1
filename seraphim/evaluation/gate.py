"""The gate: whether a new snapshot is good enough to become the champion, by a match against the one that is.

Knows players, no models. AlphaGo Zero took a new network if it won more than 55 % of 400 games; DeepFour, of 30.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from seraphim.evaluation.match import (
    PAIR_POINTS,
    MatchResult,
    Openings,
    default_plies,
    make_openings,
    pair_moments,
    play_match,
)
from seraphim.evaluation.players import Choose
from seraphim.game import Game
from seraphim.options import GateOptions

ERROR_RATE = 0.05
"""How often the sequential test may take a snapshot that is no better, or refuse one as good as `gate_score`."""

_LIMIT = math.log((1 - ERROR_RATE) / ERROR_RATE)
_OPENINGS_AT_A_TIME = 16  # between two looks at the sequential test


@dataclass(frozen=True)
class Verdict:
    """What the gate says; prints as a line."""

    passed: bool
    result: MatchResult | None
    """The candidate's; None if there was no match."""

    def __str__(self) -> str:
        match = f", {self.result}" if self.result else ""
        return f"{'passed' if self.passed else 'stopped by'} the gate{match}"


def judge(game: Game, candidate: Choose, champion: Choose, options: GateOptions, seed: int = 0) -> Verdict:
    """Play the match, and say whether the candidate is to become the champion.

    Args:
        game: the rules.
        candidate: the new snapshot's player.
        champion: the champion's.
        options: the options.
        seed: of the openings; a new one for each match, lest generations are fitted to the same openings.

    Raises:
        GameError: a player chose an illegal action.
        ModelError: a model gave a NaN or an infinity.
    """
    if options.gate == "off":
        return Verdict(passed=True, result=None)
    openings = make_openings(game, (options.gate_games + 1) // 2, default_plies(game), seed)
    if options.gate == "score":
        result = play_match(game, candidate, champion, openings)
        return Verdict(result.score > options.gate_score, result)
    total, evidence = None, 0.0
    for part in _parts(openings):
        result = play_match(game, candidate, champion, part)
        total = total + result if total else result
        evidence = log_likelihood_ratio(total.pairs, 0.5, options.gate_score)
        if abs(evidence) >= _LIMIT:
            break
    return Verdict(evidence > 0, total)


def log_likelihood_ratio(pairs: tuple[int, ...], null: float, alternative: float) -> float:
    """Return how much more likely these results are of a player whose score is `alternative` than `null`, as logarithm.

    The test that stops at log((1-β)/α) or log(β/(1-α)) is Wald's ("Sequential tests of statistical hypotheses", 1945),
    with the score of an opening's two games taken for normal, its variance being that of the openings so far, as the
    testers of chess programs do ("pentanomial" generalised test).

    Args:
        pairs: openings by points, as in `MatchResult`.
        null: the score that the first hypothesis says.
        alternative: the score that the second one says.
    """
    _, variance = pair_moments(pairs)
    surplus = float(np.array(pairs) @ (PAIR_POINTS / 2 - (null + alternative) / 2))
    return (alternative - null) * surplus / variance


def _parts(openings: Openings) -> Iterator[Openings]:
    for start in range(0, len(openings.states), _OPENINGS_AT_A_TIME):
        part = slice(start, start + _OPENINGS_AT_A_TIME)
        yield Openings(openings.states[part], openings.moves[part])
