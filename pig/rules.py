"""The rules of Pig, compiled, on batches of states.

A state is five words: the points of both players, those of the turn, the player whose turn it is, and whether the die
is being rolled.
"""

import numpy as np

from seraphim.game import CHANCE, Array
from seraphim.jit import kernel

ROLL, HOLD = 0, 1
SIDES = 6
TURN, PLAYER, ROLLS = 2, 3, 4  # words of a state


@kernel
def step(states: Array, actions: Array) -> Array:
    """Return the states after legal actions, or after the die shows `actions` + 1."""
    after = states.copy()
    for row in range(len(states)):
        turn, player, rolls = states[row, TURN], states[row, PLAYER], states[row, ROLLS]
        after[row, ROLLS] = 0
        if rolls and actions[row] > 0:
            after[row, TURN] = turn + actions[row] + 1
        elif not rolls and actions[row] == ROLL:
            after[row, ROLLS] = 1
        else:
            if not rolls:
                after[row, player] += turn
            after[row, TURN] = 0
            after[row, PLAYER] = 1 - player
    return after


@kernel
def legal(states: Array, target: int) -> Array:
    """Return the legal actions: to roll short of the target, and to hold what there is."""
    found = np.zeros((len(states), 2), np.bool_)
    for row in range(len(states)):
        if not states[row, ROLLS] and max(states[row, 0], states[row, 1]) < target:
            found[row, ROLL] = states[row, states[row, PLAYER]] + states[row, TURN] < target
            found[row, HOLD] = states[row, TURN] > 0
    return found


@kernel
def to_play(states: Array) -> Array:
    """Return the player to move."""
    players = np.empty(len(states), np.int8)
    for row in range(len(states)):
        players[row] = CHANCE if states[row, ROLLS] else states[row, PLAYER]
    return players


@kernel
def chances(states: Array) -> Array:
    """Return the probabilities of the faces."""
    found = np.zeros((len(states), SIDES))
    for row in range(len(states)):
        if states[row, ROLLS]:
            found[row] = 1 / SIDES
    return found


@kernel
def outcome(states: Array, target: int) -> tuple[Array, Array]:
    """Return which games are over, and their results for player 0."""
    ended, results = np.zeros(len(states), np.bool_), np.zeros(len(states), np.float32)
    for row in range(len(states)):
        if max(states[row, 0], states[row, 1]) >= target:
            ended[row], results[row] = True, 1 if states[row, 0] >= target else -1
    return ended, results


@kernel
def observe(states: Array, target: int) -> Array:
    """Return the planes that `pig.game.Pig` describes."""
    planes = np.zeros((len(states), target, 4), np.uint8)
    for row in range(len(states)):
        player, turn = states[row, PLAYER], states[row, TURN]
        own, other = states[row, player], states[row, 1 - player]
        for plane, points in enumerate((own, other, turn, own + turn)):
            planes[row, : min(points, target), plane] = 1
    return planes
