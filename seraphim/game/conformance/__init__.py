"""Whether a game can be relied on: the contract of `seraphim.game`, checked by random play; two forms of a game; speed.

In dependency order:

    finding      a rule that a game breaks, and where
    walks        many games of one's own in lock step: by chance, or by given moves
    members      what can be told of a game without playing it
    calls        one call of one rule, and what it tells by itself
    contract     the walk that looks at batched rules, each game also under every symmetry
    plain        the walk that looks at rules written one position at a time
    agreement    the walk that looks at two forms of one game
    shrinking    fewer moves that lead to the same finding
    check        the two checks as a person asks for them, and their reports
    speed        microseconds a position, by rule
"""

from seraphim.game.conformance.check import Agreement, Report, check_agreement, check_game
from seraphim.game.conformance.finding import ContractError
from seraphim.game.conformance.speed import Speed, draw_speeds, measure_speed

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
