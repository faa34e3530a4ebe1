"""Backgammon one position at a time, in plain Python: the rules of `backgammon.rules`, written on their own.

The oracle of the tests. It finds the legal moves by playing all orders of the dice to their end.
"""

from collections.abc import Iterator, Sequence
from itertools import permutations, product

import numpy as np

from seraphim.game import CHANCE, Array, PlainGame

ROLL, PASS = 150, 151
POINTS = [*range(24, 0, -1)]
PAIRS = [(high, low) for high in range(1, 7) for low in range(1, high + 1)]
UNEQUAL = [pair for pair in PAIRS if pair[0] > pair[1]]
WHO_BEGINS, ROLLS, MOVES = 0, 1, 2  # what happens next


class PlainBackgammon(PlainGame):
    """Backgammon without bit sets.

    A state is what happens next, the player, up to four dice to play, and for each player the number of checkers in 26
    places: off, the points, the bar.
    """

    name = "plain backgammon"
    num_actions = 152
    num_chance_outcomes = 30
    observation_shape = (1, 26, 24)
    state_words = 58
    max_plies = 10_000

    def initial(self) -> tuple[int, ...]:
        start = {24: 2, 13: 5, 8: 3, 6: 5}
        return _state(WHO_BEGINS, 0, [], [[start.get(point, 0) for point in range(26)]] * 2)

    def to_play(self, state: tuple[int, ...]) -> int:
        return state[1] if state[0] == MOVES else CHANCE

    def chances(self, state: tuple[int, ...]) -> Sequence[float]:
        if state[0] == WHO_BEGINS:
            return [1 / 30] * 30
        return [(1 if high == low else 2) / 36 for high, low in PAIRS] + [0] * 9

    def step(self, state: tuple[int, ...], action: int) -> tuple[int, ...]:
        event, player, dice, boards = _parts(state)
        if event == WHO_BEGINS:
            return _state(MOVES, action // 15, [*UNEQUAL[action % 15]], boards)
        if event == ROLLS:
            high, low = PAIRS[action]
            return _state(MOVES, player, [high] * 4 if high == low else [high, low], boards)
        if action == ROLL:
            return _state(ROLLS, player, [], boards)
        if action != PASS:
            die = action % 6 + 1
            boards = _moved(boards, player, action // 6 + 1, die)
            dice.remove(die)
            if any(_moves(boards, player, die) for die in dice):
                return _state(MOVES, player, dice, boards)
        return _state(MOVES, 1 - player, [], boards)

    def legal(self, state: tuple[int, ...]) -> Sequence[int]:
        _, player, dice, boards = _parts(state)
        if not dice:
            return [ROLL]
        plays = [play for play in _plays(boards, player, dice) if play]
        if not plays:
            return [PASS]
        most = max(len(play) for play in plays)
        longest = [play for play in plays if len(play) == most]
        if most == 1:
            largest = max(die for ((_, die),) in longest)
            longest = [play for play in longest if play[0][1] == largest]
        return sorted({6 * (place - 1) + die - 1 for ((place, die), *_) in longest})

    def outcome(self, state: tuple[int, ...]) -> float | None:
        boards = _parts(state)[3]
        for player, sign in ((0, 1), (1, -1)):
            loser = boards[1 - player]
            if boards[player][0] == 15:
                if loser[0] > 0:
                    return sign / 3
                return sign * (1.0 if sum(loser[19:]) > 0 else 2 / 3)
        return None

    def observe(self, state: tuple[int, ...]) -> Array:
        _, player, dice, boards = _parts(state)
        planes = list[list[int]]()
        for checkers in (boards[player], boards[1 - player][::-1]):
            planes += [[number >= least for number in checkers] for least in range(1, 9)]
        for die in range(1, 7):
            planes.append([dice.count(die) if place and boards[player][place] else 0 for place in range(26)])
        for rolls in (_hits(boards, player), _hits(boards, 1 - player)[::-1]):
            planes.append([-(-number // 12) for number in rolls])
        return np.array(planes, np.uint8).T[None]

    def action_label(self, action: int) -> str:
        if action >= ROLL:
            return ["roll", "pass"][action - ROLL]
        place, die = action // 6 + 1, action % 6 + 1
        target = "off" if place == die else f"off({die})" if place < die else str(place - die)
        return f"{'bar' if place == 25 else place}/{target}"


def _state(event: int, player: int, dice: list[int], boards: list[list[int]]) -> tuple[int, ...]:
    return (event, player, *sorted(dice, reverse=True), *[0] * (4 - len(dice)), *boards[0], *boards[1])


def _parts(state: tuple[int, ...]) -> tuple[int, int, list[int], list[list[int]]]:
    dice = [die for die in state[2:6] if die]
    return state[0], state[1], dice, [list(state[6:32]), list(state[32:])]


def _moved(boards: list[list[int]], player: int, place: int, die: int) -> list[list[int]]:
    own, other, target = boards[player].copy(), boards[1 - player].copy(), max(0, place - die)
    own[place] -= 1
    own[target] += 1
    if target and other[25 - target]:
        other[25 - target] -= 1
        other[25] += 1
    return [own, other] if player == 0 else [other, own]


def _moves(boards: list[list[int]], player: int, die: int) -> list[int]:
    # The places from which a die can be played, whatever the other one does.
    own, other = boards[player], boards[1 - player]
    places = [25] if own[25] else [point for point in POINTS if own[point]]
    found = [place for place in places if place > die and other[25 - place + die] < 2]
    if not any(own[7:]):
        found += [place for place in places if place == die or (place < die and place == places[0])]
    return found


def _hits(boards: list[list[int]], player: int) -> list[int]:
    # In how many of 36 rolls a checker in each place can be hit; in that of those borne off, any of them.
    own, other, found = boards[player], boards[1 - player][::-1], [0] * 26
    for first, second in product(range(1, 7), repeat=2):
        hit = set[int]()
        for dice in set(permutations([first, second] * (1 + (first == second)))):
            places, waiting = {place for place in POINTS if own[place]}, own[25]
            for die in dice:
                targets = {place - die for place in ([25] if waiting else places)}
                targets = {place for place in targets if place > 0 and other[place] < 2}
                if waiting and not targets:
                    break
                places, waiting = places | targets, max(0, waiting - 1)
                hit |= {place for place in targets if other[place] == 1}
        for place in hit | ({0} if hit else set()):
            found[place] += 1
    return found


def _plays(boards: list[list[int]], player: int, dice: list[int]) -> Iterator[list[tuple[int, int]]]:
    # Every way to play dice one after the other, until none of them can be played: places and dice.
    stuck = True
    for die in set(dice):
        rest = dice.copy()
        rest.remove(die)
        for place in _moves(boards, player, die):
            stuck = False
            for play in _plays(_moved(boards, player, place, die), player, rest):
                yield [(place, die), *play]
    if stuck:
        yield []


GAME = PlainBackgammon()
