"""The rules of backgammon, compiled, on batches of states.

A slot is a point, 1 to 24, as its player counts them, who moves towards 1; BAR above them; or OFF below, where checkers
are borne off. A player's slot is the other's 25 minus it. The number of checkers in each slot is written in binary: a
state has two words for player 0 and two for player 1, each of them two sets of slots, for the bits 1 and 2, and 4 and
8. The fifth word is the turn, from the lowest bit: the player; the larger die that is left to play (3 bits); the
smaller one, or the same of doubles, 0 if only one is left (3 bits); how many checkers may still move (3 bits); and
what chance does next: nothing, roll, or decide who begins (2 bits).

An action is a slot and a die, or ROLL, the only one before the roll, or PASS, the only one where no checker can move.
"""

import numpy as np

from seraphim.game import CHANCE, Array
from seraphim.jit import kernel

OFF, BAR, SLOTS, SIDES, CHECKERS = 0, 25, 26, 6, 15
ROLL = BAR * SIDES
PASS = ROLL + 1
NUM_ACTIONS = PASS + 1
TURN = 4  # the word
NOTHING, ROLLS, BEGINS = 0, 1, 2  # what chance does

# The outcomes of a roll, and those of the first, in which the higher of two dice begins.
PAIRS = np.array([(high, low) for high in range(1, 7) for low in range(1, high + 1)])
UNEQUAL = PAIRS[PAIRS[:, 0] > PAIRS[:, 1]]
CHANCES = np.zeros((3, 2 * len(UNEQUAL)))
CHANCES[ROLLS, : len(PAIRS)] = np.where(PAIRS[:, 0] > PAIRS[:, 1], 2, 1) / 36
CHANCES[BEGINS] = 1 / 30

MOST_SHOWN = 8  # checkers in a slot, which the observation tells apart; more than that are in no two slots
HITS = 2 * MOST_SHOWN + SIDES  # the first of two planes
PLANES = HITS + 2

_POINTS = (1 << BAR) - 2  # sets of slots
_ALL = (1 << SLOTS) - 1


@kernel
def packed_turn(player: int, high: int, low: int, left: int, chance: int) -> int:
    """Return the word of a turn."""
    return player | high << 1 | low << 4 | left << 7 | chance << 10


@kernel
def count(states: Array, row: int, player: int, slot: int) -> int:
    """Return how many checkers a player has in a slot."""
    low, high = states[row, 2 * player] >> slot, states[row, 2 * player + 1] >> slot
    return (low & 1) | (low >> SLOTS & 1) << 1 | (high & 1) << 2 | (high >> SLOTS & 1) << 3


@kernel
def add(states: Array, row: int, player: int, slot: int, number: int) -> None:
    """Change the number of checkers that a player has in a slot."""
    before = count(states, row, player, slot)
    changed = before ^ (before + number)
    states[row, 2 * player] ^= ((changed & 1) | (changed >> 1 & 1) << SLOTS) << slot
    states[row, 2 * player + 1] ^= ((changed >> 2 & 1) | (changed >> 3 & 1) << SLOTS) << slot


@kernel
def occupied(states: Array, row: int, player: int) -> int:
    """Return the slots where a player has checkers."""
    either = states[row, 2 * player] | states[row, 2 * player + 1]
    return (either | either >> SLOTS) & _ALL


@kernel
def doubled(states: Array, row: int, player: int) -> int:
    """Return the slots where a player has two checkers or more."""
    high = states[row, 2 * player + 1]
    return (states[row, 2 * player] >> SLOTS | high | high >> SLOTS) & _ALL


@kernel
def turned(slots: int) -> int:
    """Return a set of slots as the other player counts them."""
    slots = (slots & 0x5555555) << 1 | (slots >> 1) & 0x5555555
    slots = (slots & 0x3333333) << 2 | (slots >> 2) & 0x3333333
    slots = (slots & 0xF0F0F0F) << 4 | (slots >> 4) & 0xF0F0F0F
    slots = (slots & 0x0FF00FF) << 8 | (slots >> 8) & 0x0FF00FF
    return ((slots & 0xFFFF) << 16 | slots >> 16) >> 6


@kernel
def sources(own: int, open_points: int, die: int) -> int:
    """Return the slots from which a die can be played by itself, of a player's slots."""
    if own >> BAR:
        return (open_points << die) & 1 << BAR
    found = own & (open_points << die) & _POINTS
    if own >> 7 == 0:  # all are at home
        if (own >> die) & 1:
            found |= 1 << die
        elif own >> die == 0:
            for slot in range(die - 1, 0, -1):
                if (own >> slot) & 1:
                    return 1 << slot
    return found


@kernel
def followed(own: int, several: int, open_points: int, slots: int, die: int, other: int) -> int:
    """Return those of the slots after whose move by a die the other one can be played as well."""
    found = 0
    for slot in range(1, SLOTS):
        if (slots >> slot) & 1:
            after = own | 1 << max(slot - die, OFF)
            if not (several >> slot) & 1:
                after ^= 1 << slot
            if sources(after, open_points, other):
                found |= 1 << slot
    return found


@kernel
def movable(states: Array, row: int) -> tuple[int, int]:
    """Return the slots from which the larger die that is left may be played, and those for the smaller one."""
    turn = states[row, TURN]
    player, high, low = turn & 1, (turn >> 1) & 7, (turn >> 4) & 7
    own, open_points = occupied(states, row, player), _POINTS & ~turned(doubled(states, row, 1 - player))
    by_high = sources(own, open_points, high)
    if low in (0, high):
        return by_high, 0
    by_low, several = sources(own, open_points, low), doubled(states, row, player)
    high_first = followed(own, several, open_points, by_high, high, low)
    low_first = followed(own, several, open_points, by_low, low, high)
    if high_first | low_first:
        return high_first, low_first
    return by_high, 0 if by_high else by_low


@kernel
def move(states: Array, row: int, slot: int, die: int) -> None:
    """Move a checker; the turn ends when no die is left that can be played."""
    turn = states[row, TURN]
    player, high, low, left = turn & 1, (turn >> 1) & 7, (turn >> 4) & 7, (turn >> 7) - 1
    target = max(slot - die, OFF)
    add(states, row, player, slot, -1)
    add(states, row, player, target, 1)
    if target > OFF and count(states, row, 1 - player, BAR - target):
        add(states, row, 1 - player, BAR - target, -1)
        add(states, row, 1 - player, BAR, 1)
    if low != high:
        high, low = high + low - die, 0
    elif left == 1:
        low = 0
    states[row, TURN] = packed_turn(player, high, low, left, NOTHING)
    if left == 0 or movable(states, row)[0] == 0:
        states[row, TURN] = 1 - player


@kernel
def step(states: Array, actions: Array) -> Array:
    """Return the states after legal actions, or after outcomes of chance."""
    successors = states.copy()
    for row in range(len(states)):
        turn, action = states[row, TURN], np.int64(actions[row])
        if turn >> 10 == NOTHING and action < ROLL:
            move(successors, row, action // SIDES + 1, action % SIDES + 1)
        elif turn >> 10 == NOTHING:
            successors[row, TURN] = packed_turn(turn & 1, 0, 0, 0, ROLLS) if action == ROLL else 1 - (turn & 1)
        elif turn >> 10 == ROLLS:
            high, low = PAIRS[action, 0], PAIRS[action, 1]
            successors[row, TURN] = packed_turn(turn & 1, high, low, 4 if high == low else 2, NOTHING)
        else:
            pair = action % len(UNEQUAL)
            player = action // len(UNEQUAL)
            successors[row, TURN] = packed_turn(player, UNEQUAL[pair, 0], UNEQUAL[pair, 1], 2, NOTHING)
    return successors


@kernel
def points_won(states: Array, row: int) -> int:
    """Return how many points player 0 has won, 1, 2 or 3, negative if the other player has, 0 before the end."""
    for winner in range(2):
        if count(states, row, winner, OFF) == CHECKERS:
            others = occupied(states, row, 1 - winner)
            points = 1 if others & 1 << OFF else 3 if others >> 19 else 2
            return points if winner == 0 else -points
    return 0


@kernel
def legal(states: Array) -> Array:
    """Return the legal actions."""
    found = np.zeros((len(states), NUM_ACTIONS), np.bool_)
    for row in range(len(states)):
        turn = states[row, TURN]
        if turn < 2:
            found[row, ROLL] = points_won(states, row) == 0
        elif turn >> 10 == NOTHING:
            high, low = (turn >> 1) & 7, (turn >> 4) & 7
            by_high, by_low = movable(states, row)
            found[row, PASS] = by_high | by_low == 0
            for slot in range(1, SLOTS):
                if (by_high >> slot) & 1:
                    found[row, (slot - 1) * SIDES + high - 1] = True
                if (by_low >> slot) & 1:
                    found[row, (slot - 1) * SIDES + low - 1] = True
    return found


@kernel
def to_play(states: Array) -> Array:
    """Return the player to move."""
    players = np.empty(len(states), np.int8)
    for row in range(len(states)):
        players[row] = CHANCE if states[row, TURN] >> 10 else states[row, TURN] & 1
    return players


@kernel
def chances(states: Array) -> Array:
    """Return the probabilities of the outcomes."""
    found = np.empty((len(states), CHANCES.shape[1]))
    for row in range(len(states)):
        for outcome in range(CHANCES.shape[1]):
            found[row, outcome] = CHANCES[states[row, TURN] >> 10, outcome]
    return found


@kernel
def outcome(states: Array) -> tuple[Array, Array]:
    """Return which games are over, and their results for player 0: a third for each point."""
    ended = np.empty(len(states), np.bool_)
    results = np.empty(len(states), np.float32)
    for row in range(len(states)):
        points = points_won(states, row)
        ended[row], results[row] = points != 0, points / 3
    return ended, results


@kernel
def observe(states: Array) -> Array:
    """Return the planes that `backgammon.game.Backgammon` describes."""
    planes = np.zeros((len(states), 1, SLOTS, PLANES), np.uint8)
    for row in range(len(states)):
        turn = states[row, TURN]
        player, high, low, left = turn & 1, (turn >> 1) & 7, (turn >> 4) & 7, (turn >> 7) & 7
        for side in range(2):
            slots = occupied(states, row, player ^ side)
            for slot in range(SLOTS):
                if (slots >> slot) & 1:
                    checkers, column = count(states, row, player ^ side, slot), BAR - slot if side else slot
                    for plane in range(min(checkers, MOST_SHOWN)):
                        planes[row, 0, column, side * MOST_SHOWN + plane] = 1
                    if side == 0 and slot > OFF and high:
                        if low not in (0, high):
                            planes[row, 0, slot, 2 * MOST_SHOWN + low - 1] = 1
                        planes[row, 0, slot, 2 * MOST_SHOWN + high - 1] = 1 if low not in (0, high) else left
            for slot, rolls in enumerate(hits(states, row, player ^ side)):
                planes[row, 0, BAR - slot if side else slot, HITS + side] = (rolls + 11) // 12
    return planes


@kernel
def hits(states: Array, row: int, player: int) -> Array:
    """Return in how many of 36 rolls a player can hit a checker in each slot, as they count them, and in OFF any."""
    found = np.zeros(SLOTS, np.uint8)
    others = turned(occupied(states, row, 1 - player)) & _POINTS
    blocked = turned(doubled(states, row, 1 - player))
    alone, open_points = others & ~blocked, _POINTS & ~blocked
    if alone == 0:
        return found
    own, on_bar = occupied(states, row, player) & _POINTS, count(states, row, player, BAR)
    for pair in range(len(PAIRS)):
        high, low = PAIRS[pair]
        hit = 0
        for order in range(1 if high == low else 2):
            reached, waiting = own, on_bar
            for played in range(4 if high == low else 2):
                moved = (1 << BAR if waiting else reached) >> (high if played % 2 == order else low) & open_points
                if waiting and moved == 0:
                    break
                waiting -= waiting > 0
                reached |= moved
                hit |= moved & alone
        for slot in range(SLOTS):
            if (hit >> slot) & 1 or (hit and slot == OFF):
                found[slot] += 1 if high == low else 2
    return found
