"""Backgammon as people see it, and the options that learn it well; the rules themselves are in `backgammon.rules`.

Games are for 1 point, 2 (a gammon) or 3 (a backgammon), without a doubling cube. A player moves one checker at a time,
and says `roll` before the dice are known, so that a network values positions between turns (Tesauro, "Temporal
difference learning and TD-Gammon", 1995).
"""

from typing import Any

import numpy as np

from backgammon import rules
from backgammon.rules import BAR, CHECKERS, NUM_ACTIONS, OFF, PAIRS, PASS, PLANES, ROLL, SIDES, SLOTS, TURN, UNEQUAL
from seraphim.errors import GameError
from seraphim.game import EMPTY, Array, Board, Symmetries, identity_symmetry

MARKS = "XO"  # of players 0 and 1
NAMES = "White", "Black"
START = {24: 2, 13: 5, 8: 3, 6: 5}  # each player's checkers, as the player counts the points
HEIGHT = 5  # checkers drawn on a point

# Pages draw three rows as player 0 sees them: points 13 to 24, dice, and points 12 to 1. Between the halves is the bar,
# and at the right are the checkers borne off. The cell of each slot of player 0; player 1 has the one across the board.
_PLACES = [(2, 13), *((2, 12 - slot + (slot < 7)) for slot in range(1, 13))]
_PLACES += [*((0, slot - 13 + (slot > 18)) for slot in range(13, BAR)), (2, 6)]
_DICE = 9, 2  # the column of the first of two dice of each player
_UNROLLED = 2 * CHECKERS + SIDES
# A number of one player's checkers, a die still to be played, and one not rolled yet.
_BOARD_MARKS = (*(f"{mark}{number}" for mark in MARKS for number in range(1, CHECKERS + 1)), *"123456", "?")

# Options that differ from the defaults, by section.
SETTINGS: dict[str, Any] = {
    "network": {"kind": "mlp", "depth": 2, "width": 256, "activation": "relu", "l2": 1e-5},
    # A play is chosen by the value of the position it leads to, as TD-Gammon chose, after the best answer to it.
    "search": {"root": "afterstates", "turns": 2},
    "self_play_search": {"root": "afterstates", "turns": 1},
    # Dice lead to enough different positions without random moves.
    "self_play": {
        "concurrent_games": 96,
        "readouts_growth_steps": 0,
        "games_per_generation": 500,
        "random_plies": 0,
    },
    # Dice decide many games: what is expected some moves later varies far less than the result. Moves are chosen by
    # values alone, so the policy is learned beside them.
    "training": {
        "batch_size": 1024,
        "average_decay": 0.99,
        "policy_loss_weight": 0.1,
        "root_value_share": 0.0,
        "td_lambda": 0.9,
        "samples_per_position": 2.5,
        "average_positions": False,
        "max_window": 400_000,
    },
}


class Backgammon:
    """Backgammon; the observation is a row of the mover's slots, from those borne off (0) to the bar (25).

    Its planes are where the mover has at least 1, 2, … 8 checkers, where the opponent has, whose bar is in column 0;
    for each number on a die, how often it is still to be played, wherever the mover has checkers: zeros before the
    roll; and in how many of 36 rolls the mover can hit the checker there, in dozens rounded up, and the opponent: in
    that player's column of checkers borne off, any checker.
    """

    name = "backgammon"
    num_actions = NUM_ACTIONS
    num_chance_outcomes = 2 * len(UNEQUAL)
    observation_shape: tuple[int, ...] = (1, SLOTS, PLANES)
    state_words = 5
    max_plies = 10_000
    points = 3.0
    goal = "Bring all your checkers home and bear them off before the opponent does; a checker alone can be hit."

    def initial(self, batch: int) -> Array:
        states = np.zeros((1, self.state_words), np.int64)
        for player in (0, 1):
            for point, checkers in START.items():
                rules.add(states, 0, player, point, checkers)
        states[0, TURN] = rules.packed_turn(0, 0, 0, 0, rules.BEGINS)
        return np.repeat(states, batch, axis=0)

    def step(self, states: Array, actions: Array) -> Array:
        return rules.step(states, actions)

    def legal(self, states: Array) -> Array:
        return rules.legal(states)

    def to_play(self, states: Array) -> Array:
        return rules.to_play(states)

    def chances(self, states: Array) -> Array:
        return rules.chances(states)

    def chance_label(self, state: Array, outcome: int) -> str:
        """Return the dice, the larger one first, such as 31; of the first roll behind who begins, such as X31."""
        if state[TURN] >> 10 == rules.ROLLS:
            return "".join(map(str, PAIRS[outcome]))
        player, pair = divmod(outcome, len(UNEQUAL))
        return MARKS[player] + "".join(map(str, UNEQUAL[pair]))

    def outcome(self, states: Array) -> tuple[Array, Array]:
        return rules.outcome(states)

    def observe(self, states: Array) -> Array:
        return rules.observe(states)

    def symmetries(self) -> Symmetries:
        return identity_symmetry(self.observation_shape, self.num_actions)

    def is_position(self, state: Array) -> bool:
        """Return whether play leads to a state, as far as its numbers tell."""
        turn, start = int(state[TURN]), self.initial(1)
        if (state == start[0]).all():
            return True
        if (state < 0).any() or (state[:TURN] >> 2 * SLOTS).any():
            return False
        own, other = (self.checkers(state, player) for player in (0, 1))
        if own.sum() != CHECKERS or other.sum() != CHECKERS or (own[1:BAR] * other[BAR - 1 : 0 : -1]).any():
            return False
        if turn < 2:
            borne_off = [own[OFF] == CHECKERS, other[OFF] == CHECKERS]
            return not any(borne_off) or borne_off == [turn == 1, turn == 0]
        if CHECKERS in (own[OFF], other[OFF]):
            return False
        player, high, low, left, chance = _turn(state)
        if chance:
            return turn == rules.packed_turn(player, 0, 0, 0, rules.ROLLS)
        if not (low <= high <= SIDES and 1 <= left <= 4 and high) or (low == 0) != (left == 1):
            return False
        if low not in (0, high) and left != 2:
            return False
        just_rolled = left == 4 or low not in (0, high)
        return just_rolled or not bool(self.legal(state[None])[0, PASS])

    def checkers(self, state: Array, player: int) -> Array:
        """Return how many checkers a player has in each slot, as the player counts them, int [26]."""
        return np.array([rules.count(state[None], 0, player, slot) for slot in range(SLOTS)])

    def board(self, state: Array) -> Board:
        """Return three rows from player 0's side: points 13 to 24, dice, and points 12 to 1."""
        player, high, low, left, _ = _turn(state)
        cells = np.full((3, 14), EMPTY, np.int8)
        for each in (0, 1):
            for slot, number in enumerate(self.checkers(state, each).tolist()):
                if number:
                    cells[_place(each, slot)] = CHECKERS * each + number - 1
        chance, (legal,) = state[TURN] >> 10, self.legal(state[None])
        if chance == rules.BEGINS:
            cells[1, _DICE] = _UNROLLED
        elif chance or legal[ROLL]:
            cells[1, _DICE[player] : _DICE[player] + 2] = _UNROLLED
        for place, die in enumerate([high] * left if low in (0, high) else [high, low]):
            cells[1, _DICE[player] - (left > 2) + place] = 2 * CHECKERS + die - 1
        targets = {
            action: [_place(player, max(action // SIDES - action % SIDES, OFF)), _place(player, action // SIDES + 1)]
            for action in np.flatnonzero(legal[:ROLL]).tolist()
        }
        if legal[ROLL]:
            targets[ROLL] = [(1, _DICE[player] + place) for place in range(-1, 3)]
        return Board(cells, _BOARD_MARKS, targets, look="backgammon", players=NAMES)

    def render(self, state: Array) -> str:
        player, high, low, left, _ = _turn(state)
        first, second = (self.checkers(state, each) for each in (0, 1))
        points = {point: (first[point], second[BAR - point]) for point in range(1, BAR)}
        lines = [_numbers(range(13, 25)), *_half(points, range(13, 25), int(second[BAR]), 1), " " * 19 + "BAR"]
        lines += [*reversed(_half(points, range(12, 0, -1), int(first[BAR]), 0)), _numbers(range(12, 0, -1))]
        dice = [high] * left if low in (0, high) else [high, low]
        off = f"off: {NAMES[0]} X {first[OFF]}, {NAMES[1]} O {second[OFF]}"
        if self.outcome(state[None])[0][0]:
            return "\n".join([*lines, off])
        if state[TURN] >> 10 == rules.BEGINS:
            return "\n".join([*lines, f"{off}; each rolls a die, and the higher one begins"])
        to_move = "rolls" if state[TURN] >> 10 else f"to play {' '.join(map(str, dice))}" if left else "to roll"
        return "\n".join([*lines, f"{off}; {NAMES[player]} {to_move}"])

    def fibs_board(self, state: Array) -> str:
        """Return a position as the player to move sees it, for programs that know those of FIBS.

        Where others speak of a match of 9,999 points, games are played for points.
        """
        player, high, low, left, _ = _turn(state)
        own, other = self.checkers(state, player), self.checkers(state, 1 - player)
        points = [-other[BAR], *(own[1:BAR] - other[BAR - 1 : 0 : -1]), own[BAR]]
        dice = (high, low) if left == (4 if high == low else 2) else (0, 0)
        rest = own[OFF], other[OFF], own[BAR], other[BAR], 0, 0, 0
        fields = 9999, 0, 0, *points, 1, *dice, 0, 0, 1, 1, 1, 0, 1, -1, 0, BAR, *rest
        return ":".join(["board", *MARKS, *map(str, fields)])

    def action_label(self, action: int) -> str:
        """Return the points of a move, such as 13/11, bar/22 or 6/off; 5/off(6) bears off by a larger die."""
        if action >= ROLL:
            return "roll" if action == ROLL else "pass"
        slot, die = action // SIDES + 1, action % SIDES + 1
        target = f"{slot - die}" if slot > die else "off" if slot == die else f"off({die})"
        return f"{'bar' if slot == BAR else slot}/{target}"

    def label_in(self, state: Array, action: int) -> str:
        """Return the label of a legal action, with a star where it hits, and the die only where two bear it off."""
        label, slot, die = self.action_label(action), action // SIDES + 1, action % SIDES + 1
        if action < ROLL and slot > die:
            hits = rules.count(state[None], 0, 1 - (int(state[TURN]) & 1), BAR - slot + die)
            return f"{label}*" if hits else label
        off = self.legal(state[None])[0, (slot - 1) * SIDES + slot - 1 : slot * SIDES]  # by any die
        return label if action >= ROLL or off.sum() > 1 else f"{slot}/off"

    def parse_action(self, text: str) -> int:
        """Return the action of this label, in lower or upper case, with or without a star."""
        name = text.strip().lower().removesuffix("*")
        if name not in _ACTIONS:
            raise GameError(f"{text!r} is not a move of backgammon: expected one like 13/11, bar/22, 6/off or roll")
        return _ACTIONS[name]


def _turn(state: Array) -> tuple[int, int, int, int, int]:
    # The parts of the word of the turn, as `packed_turn` takes them.
    turn = int(state[TURN])
    return turn & 1, turn >> 1 & 7, turn >> 4 & 7, turn >> 7 & 7, turn >> 10


def _place(player: int, slot: int) -> tuple[int, int]:
    row, column = _PLACES[slot]
    return (2 - row if player else row), column


def _numbers(points: range) -> str:
    cells = [f"{point:>3}" for point in points]
    return "".join([*cells[:6], "     ", *cells[6:]])


def _half(points: dict[int, tuple[int, int]], row: range, on_bar: int, player: int) -> list[str]:
    # The lines of half of the board, from its edge: checkers, or on the last line their number if there are more.
    lines = []
    for height in range(1, HEIGHT + 1):
        cells = [_cell(points[point], height) for point in row]
        bar = _cell((on_bar, 0) if player == 0 else (0, on_bar), height).strip("· ") or " "
        lines.append("".join([*cells[:6], f" |{bar:>2}|", *cells[6:]]).rstrip())
    return lines


def _cell(checkers: tuple[int, int], height: int) -> str:
    number, mark = max(checkers), MARKS[0] if checkers[0] else MARKS[1]
    if number < height:
        return "  ·" if height == 1 else "   "
    return f"{number:>3}" if height == HEIGHT and number > HEIGHT else f"  {mark}"


GAME = Backgammon()
_ACTIONS = {GAME.action_label(action): action for action in range(NUM_ACTIONS)}
