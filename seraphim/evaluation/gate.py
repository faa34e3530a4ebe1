"""The gate: whether a new snapshot becomes the champion, decided by a match against the current one.

Knows players, no models. AlphaGo Zero required a score above 55 % in 400 games; DeepFour, in 30.
"""

import math
from dataclasses import dataclass

import numpy as np

from seraphim.evaluation.intervals import PAIR_POINTS, pair_moments
from seraphim.evaluation.match import MatchResult, check_for_two, default_plies, make_openings, play_match
from seraphim.game import Game
from seraphim.options import GateOptions
from seraphim.players.choose import Choose

ERROR_RATE = 0.05
"""Probability that the sequential test accepts a snapshot that is no better, or rejects one as good as `gate_score`."""

_LIMIT = math.log((1 - ERROR_RATE) / ERROR_RATE)
_OPENINGS_AT_A_TIME = 16  # between two evaluations of the sequential test


@dataclass(frozen=True)
class Verdict:
    """The decision of the gate; prints as a line."""

    passed: bool
    result: MatchResult | None  # the candidate's; None if there was no match
    few_openings: int = 0  # distinct openings, where the game has fewer than the match asks for

    def __str__(self) -> str:
        # No interval: a sequential test stops where the result is extreme, and few openings are no sample.
        match = f", {self.result.line()}" if self.result else ""
        few = f"; distinct openings: only {self.few_openings}" if self.few_openings else ""
        return f"{'passed' if self.passed else 'rejected by'} the gate{match}{few}"


def judge(game: Game, candidate: Choose, champion: Choose, options: GateOptions, seed: int = 0) -> Verdict:
    """Play the match, and decide whether the candidate becomes the champion.

    `seed` is that of the openings; it should differ between matches, so that generations do not adapt to fixed ones.

    Raises:
        GameError: a player chose an illegal action, or it is a game for one player.
        ModelError: a model returned a NaN or an infinity.
    """
    if options.gate == "off":
        return Verdict(passed=True, result=None)
    check_for_two(game, "the gate compares players by a match, which is")
    wanted = (options.gate_games + 1) // 2
    openings = make_openings(game, wanted, default_plies(game), seed)
    few = len(openings.states) if len(openings.states) < wanted else 0
    if options.gate == "score":
        result = play_match(game, candidate, champion, openings)
        return Verdict(result.score > options.gate_score, result, few)
    total, evidence = None, 0.0
    for start in range(0, len(openings.states), _OPENINGS_AT_A_TIME):
        result = play_match(game, candidate, champion, openings.part(start, start + _OPENINGS_AT_A_TIME))
        total = total + result if total else result
        evidence = log_likelihood_ratio(total.pairs, 0.5, options.gate_score)
        if abs(evidence) >= _LIMIT:
            break
    return Verdict(evidence > 0, total, few)


def log_likelihood_ratio(pairs: tuple[int, ...], null: float, alternative: float) -> float:
    """Return the logarithm of how much likelier these results are for a true score of `alternative` than of `null`.

    The test that stops at log((1-β)/α) or log(β/(1-α)) is Wald's ("Sequential tests of statistical hypotheses", 1945).
    As in chess engine testing ("pentanomial" generalized test), the score of an opening's two games is taken as normal,
    with the variance of the openings so far. `pairs` are openings by points, as in `MatchResult`.
    """
    _, variance = pair_moments(pairs)
    surplus = float(np.array(pairs) @ (PAIR_POINTS / 2 - (null + alternative) / 2))
    return (alternative - null) * surplus / variance
