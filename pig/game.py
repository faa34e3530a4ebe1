"""Pig as people see it, and the options that learn it well; the rules themselves are in `pig.rules`.

A race of two players to 100 points with one die.

In a turn a player rolls as often as they like. A 1 ends the turn without points; otherwise the sum is theirs when they
hold. Who holds 100 points or more wins. (Neller and Presser, "Optimal Play of the Dice Game Pig", 2004.)
"""

from typing import Any

import numpy as np

from pig import rules
from pig.rules import PLAYER, ROLL, SIDES, TURN
from seraphim.errors import GameError
from seraphim.game import EMPTY, Array, Board, Symmetries, identity_symmetry

# Options that differ from the defaults, by section.
SETTINGS: dict[str, Any] = {
    "network": {"kind": "mlp", "activation": "relu", "l2": 1e-5},
    "search": {"readouts": 100},
    # Random moves at the beginning spread the points of both players: good play comes to few of all scores.
    "self_play": {"readouts_growth_steps": 0, "games_per_generation": 500, "random_plies": 100},
    # Dice decide most games: what the search expects says more than who won, unless the network was much worse then.
    "training": {"batch_size": 1024, "root_value_share": 0.9, "window_start": 50_000, "max_window": 200_000},
}


class Pig:
    """Pig; the observation has the points of the mover, the opponent, the turn, and of the mover who held, in unary."""

    num_actions = 2
    num_chance_outcomes = SIDES
    observation_shape: tuple[int, ...]
    state_words = 5
    max_plies = 2000
    goal = "Roll as often as you dare, but a 1 takes the points of the turn; the first to hold 100 points wins."

    step, to_play, chances = staticmethod(rules.step), staticmethod(rules.to_play), staticmethod(rules.chances)

    def __init__(self, target: int = 100) -> None:
        self.target = target
        self.name = "pig" if target == 100 else f"pig to {target}"
        self.observation_shape = (target, 4)

    def initial(self, batch: int) -> Array:
        return np.zeros((batch, self.state_words), np.int64)

    def legal(self, states: Array) -> Array:
        return rules.legal(states, self.target)

    def chance_label(self, _state: Array, outcome: int) -> str:
        """Return what the die shows."""
        return str(outcome + 1)

    def outcome(self, states: Array) -> tuple[Array, Array]:
        return rules.outcome(states, self.target)

    def observe(self, states: Array) -> Array:
        return rules.observe(states, self.target)

    def symmetries(self) -> Symmetries:
        return identity_symmetry(self.observation_shape, self.num_actions)

    def is_position(self, state: Array) -> bool:
        """Return whether play leads to a state, as far as its numbers tell."""
        first, second, turn, player, rolls = (int(word) for word in state)
        if player not in (0, 1) or rolls not in (0, 1) or min(first, second, turn) < 0 or 1 in (first, second, turn):
            return False  # no sum of rolls without a 1 is 1
        scores, own = (first, second), (first, second)[player]
        return max(scores) < self.target + SIDES and own < self.target and (not rolls or own + turn < self.target)

    def board(self, state: Array) -> Board:
        """Return the race of both players, and the cell of the die."""
        stakes = [int(state[TURN]) if player == state[PLAYER] else 0 for player in (0, 1)]
        tracks = tuple((int(state[player]), stakes[player], self.target) for player in (0, 1))
        targets = {ROLL: [(0, 0)]} if self.legal(state[None])[0, ROLL] else {}
        return Board(np.full((1, 1), EMPTY, np.int8), (), targets, look="race", tracks=tracks)

    def render(self, state: Array) -> str:
        first, second, turn, player, rolls = (int(word) for word in state)
        lines = [f"player 0: {first:3}", f"player 1: {second:3}"]
        lines[player] += f"  +{turn}" + ("  rolls" if rolls else "")
        return "\n".join(lines)

    def action_label(self, action: int) -> str:
        return ("roll", "hold")[action]

    def parse_action(self, text: str) -> int:
        """Return the action of this name, in lower or upper case."""
        name = text.strip().lower()
        if name not in ("roll", "hold"):
            raise GameError(f"{text!r} is not a move of pig: expected roll or hold")
        return ("roll", "hold").index(name)


GAME = Pig()
