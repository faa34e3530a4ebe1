"""Checks a game against the contract of `seraphim.game` by random play, compares two forms of a game, measures speed.

In dependency order:

    walk         a broken rule and where it shows; many games in lock step
    calls        single members, and single calls of single rules
    contract     the walk that checks batched rules, each game also under every symmetry
    plain_walk   the walk that checks plain rules
    agreement    the walk that compares two forms of one game
    check        the two checks, their reports, and the fewest moves that show a broken rule
    speed        microseconds a position, by rule
"""

from seraphim.game.conformance.check import Agreement, Report, check_agreement, check_game
from seraphim.game.conformance.speed import Speed, draw_speeds, measure_speed
from seraphim.game.conformance.walk import ContractError

__all__ = [
    "Agreement",
    "ContractError",
    "Report",
    "Speed",
    "check_agreement",
    "check_game",
    "draw_speeds",
    "measure_speed",
]
