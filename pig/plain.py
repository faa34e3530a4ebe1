"""Pig one position at a time, in plain Python: the same rules as `pig.game`, written independently.

An example of a game of dice in its simplest form, and the oracle of the tests.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from seraphim.errors import GameError
from seraphim.game import CHANCE, Array, PlainGame

ROLL, HOLD = 0, 1


class PigState(NamedTuple):
    """What each player has, what this turn has brought so far, whose turn it is, and whether the die rolls."""

    first: int
    second: int
    turn: int
    player: int
    rolls: int


class PlainPig(PlainGame):
    """Pig without arrays."""

    num_actions = 2
    num_chance_outcomes = 6
    state_words = 5
    max_plies = 2000

    def __init__(self, target: int = 100) -> None:
        self.target = target
        self.name = "plain pig" if target == 100 else f"plain pig to {target}"
        self.observation_shape = (target, 4)

    def initial(self) -> PigState:
        return PigState(0, 0, 0, 0, rolls=0)

    def step(self, state: PigState, action: int) -> PigState:
        if not state.rolls and action == ROLL:
            return state._replace(rolls=1)
        if not state.rolls:
            banked = {"first" if state.player == 0 else "second": state[state.player] + state.turn}
            return state._replace(turn=0, player=1 - state.player, **banked)
        if action == 0:  # a 1
            return state._replace(turn=0, player=1 - state.player, rolls=0)
        return state._replace(turn=state.turn + action + 1, rolls=0)

    def legal(self, state: PigState) -> Sequence[int]:
        can_roll = state[state.player] + state.turn < self.target
        return [ROLL] * can_roll + [HOLD] * (state.turn > 0)

    def to_play(self, state: PigState) -> int:
        return CHANCE if state.rolls else state.player

    def chances(self, _state: PigState) -> Sequence[float]:
        return [1 / 6] * 6

    def chance_label(self, _state: PigState, outcome: int) -> str:
        return str(outcome + 1)

    def outcome(self, state: PigState) -> float | None:
        return 1.0 if state.first >= self.target else -1.0 if state.second >= self.target else None

    def observe(self, state: PigState) -> Array:
        own, other = state[state.player], state[1 - state.player]
        return np.arange(self.target)[:, None] < np.array([own, other, state.turn, own + state.turn])

    def render(self, state: PigState) -> str:
        marks = [" ", " "]
        marks[state.player] = f"  +{state.turn}" + ("  rolls" if state.rolls else "")
        return f"player 0: {state.first:3}{marks[0].rstrip()}\nplayer 1: {state.second:3}{marks[1].rstrip()}"

    def action_label(self, action: int) -> str:
        return ("roll", "hold")[action]

    def parse_action(self, text: str) -> int:
        if text.strip().lower() not in ("roll", "hold"):
            raise GameError(f"{text!r} is not a move of pig: expected roll or hold")
        return ("roll", "hold").index(text.strip().lower())

    def from_words(self, words: tuple[int, ...]) -> PigState:
        return PigState(*words)


GAME = PlainPig()
