"""Moves measured exactly: against recursion by the definition, a linear system, and known theory."""

from collections.abc import Callable, Sequence
from functools import cache

import games
import numpy as np
import pytest

from pig.game import GAME as PIG
from pig.game import Pig
from pig.optimal import solve as solve_pig
from pig.plain import PigState, PlainPig
from pig.rules import HOLD, ROLL
from seraphim.errors import GameError, PlayerError
from seraphim.evaluation.exact_play import measure_play, positions_to_choose
from seraphim.game import CHANCE, Array, Game, PlainGame, PlainRules
from seraphim.game.exhaustive import Solution, solve
from seraphim.players.choose import HistoryPlayer, random_player
from twenty48.game import Twenty48

Words = tuple[int, ...]


def followers(game: PlainGame, state: Words) -> list[Words]:
    """What may follow an unfinished state; where chance moves, all its outcomes but the first, which is impossible."""
    by_chance = game.to_play(state) == CHANCE
    return [game.step(state, each) for each in ((1, 2, 3) if by_chance else game.legal(state))]


def value(game: PlainGame, state: Words) -> float:
    """The expected result for player 0 of best play, by the definition."""
    outcome = game.outcome(state)
    if outcome is not None:
        return outcome
    values = [value(game, after) for after in followers(game, state)]
    if game.to_play(state) == CHANCE:
        return float(np.dot(game.chances(state)[1:], values))
    return max(values) if game.to_play(state) == 0 else min(values)


def best_moves(game: PlainGame, state: Words) -> list[Words]:
    return [after for after in followers(game, state) if abs(value(game, after) - value(game, state)) < 1e-7]


def worth(game: PlainGame, state: Words, seat: int, moves: dict[Words, int]) -> float:
    """The expected result for player 0 where the seat's moves are given, and the other's the best of the best."""
    outcome = game.outcome(state)
    if outcome is not None:
        return outcome
    mover = game.to_play(state)
    if mover == CHANCE:
        return float(
            np.dot(game.chances(state)[1:], [worth(game, each, seat, moves) for each in followers(game, state)])
        )
    if mover == seat:
        return worth(game, game.step(state, moves[state[:2]]), seat, moves)
    values = [worth(game, each, seat, moves) for each in best_moves(game, state)]
    return max(values) if mover == 0 else min(values)


def costs(game: PlainGame, moves: dict[Words, int]) -> dict[Words, float]:
    """What the given move costs, in each position that best play leads to."""
    found, waiting = {}, [game.initial()]
    while waiting:
        state = waiting.pop()
        if state[:2] in found or game.outcome(state) is not None:
            continue
        by_chance = game.to_play(state) == CHANCE
        found[state[:2]] = (
            np.nan if by_chance else abs(value(game, state) - value(game, game.step(state, moves[state[:2]])))
        )
        if by_chance:
            waiting += followers(game, state)
        else:
            waiting += best_moves(game, state)
    return {state: cost for state, cost in found.items() if not np.isnan(cost)}


@pytest.mark.parametrize("num_players", [1, 2])
@pytest.mark.parametrize("seed", range(12))
def test_random_moves_in_random_games_are_worth_what_the_definition_says(seed: int, num_players: int) -> None:
    plain = games.Layers(seed, num_players)
    game = PlainRules(plain)
    solution = solve(game)
    states = solution.states[positions_to_choose(solution)]
    actions = random_player(game, seed)(states)
    moves = {tuple(state[:2].tolist()): action for state, action in zip(states, actions.tolist(), strict=True)}
    found = measure_play(game, solution, actions, threshold=0.0987)
    exact = [worth(plain, plain.initial(), seat, moves) for seat in range(num_players)]
    assert found.results == pytest.approx([exact[0], -exact[-1]][:num_players], abs=1e-6)
    best = value(plain, plain.initial())
    assert found.best == pytest.approx([best, -best][:num_players], abs=1e-6)
    expected = list(costs(plain, moves).values())
    assert found.positions == len(expected)
    assert found.costly == sum(cost > 0.0987 for cost in expected)
    assert found.regret == pytest.approx(np.mean(expected) if expected else 0, abs=1e-6)


def best_of(solution: Solution) -> Array:
    return np.nanargmax(solution.action_values[positions_to_choose(solution)], axis=1)


@pytest.mark.parametrize("game", [Pig(10), Twenty48(2, 2), PlainRules(games.MOVES_TWICE)], ids=lambda game: game.name)
def test_best_moves_are_worth_the_optimum_and_cost_nothing(game: Game) -> None:
    solution = solve(game)
    found = measure_play(game, solution, best_of(solution))
    assert found.results == pytest.approx(found.best, abs=1e-6)
    assert found.best[0] == pytest.approx(solution.results[0], abs=1e-6)
    assert (found.costly, found.regret) == (0, 0)
    assert 0 < found.positions <= len(positions_to_choose(solution))


def hold_at(points: int, game: Pig) -> Callable[[Array], Array]:
    def choose(states: Array) -> Array:
        legal = game.legal(states)
        return np.where(legal[:, ROLL] & (~legal[:, HOLD] | (states[:, 2] < points)), ROLL, HOLD)

    return choose


def wins_at_pig(target: int, points: int, seat: int) -> float:
    """How often a seat that holds at some points beats best play: a linear system over all positions."""
    game, best = PlainPig(target), solve_pig(target)
    start = game.initial()
    numbers, rows = {start: 0}, list[PigState]([start])
    matrix, right = list[tuple[int, int, float]](), list[float]()
    for row, state in enumerate(rows):  # grows on the way
        own, other = state[state.player], state[1 - state.player]
        right.append(0.0)
        if game.outcome(state) is not None:
            right[row] = float(game.outcome(state) == (1 - 2 * seat))
            continue
        if state.rolls:
            steps = [(game.step(state, outcome), 1 / 6) for outcome in range(6)]
        else:
            values = min(state.turn, target - 1)
            better = best.hold[own, other, values] > best.roll[own, other, values]
            holds = state.turn >= points if state.player == seat else better
            legal = game.legal(state)
            wanted = HOLD if holds else ROLL
            steps = [(game.step(state, wanted if wanted in legal else legal[0]), 1.0)]
        for after, odds in steps:
            if after not in numbers:
                numbers[after] = len(rows)
                rows.append(after)
            matrix.append((row, numbers[after], odds))
    system = np.eye(len(rows))
    for row, column, odds in matrix:
        system[row, column] -= odds
    return float(np.linalg.solve(system, right)[0])


@pytest.mark.parametrize(("target", "points"), [(10, 3), (15, 9), (15, 1)])
def test_holding_at_some_points_wins_as_often_as_a_linear_system_says(target: int, points: int) -> None:
    game = Pig(target)
    found = measure_play(game, solve(game), hold_at(points, game))
    expected = [wins_at_pig(target, points, seat) for seat in (0, 1)]
    assert [(1 + result) / 2 for result in found.results] == pytest.approx(expected, abs=1e-6)
    assert found.score == pytest.approx(np.mean(expected), abs=1e-6)


def test_a_solved_game_of_dice_is_printed_as_one_line() -> None:
    game = Pig(10)
    solution = solve(game)
    assert str(measure_play(game, solution, best_of(solution))) == (
        "score 50.0000% of 50.0000% against best play (70.9424% of 70.9424% as player 0, 29.0576% of 29.0576% as "
        "player 1); the move costs more than 0.001 in 0 of 30 positions of best play (0.00%), mean regret 0"
    )


def random_score(game: Twenty48) -> float:
    """The expected score of a player who draws each move by its own stream, by recursion over boards."""
    player = random_player(game)

    @cache
    def rest(board: int, new_tiles: int) -> float:
        state = np.array([[board, new_tiles, 0]])
        if new_tiles:
            chances = game.chances(state)[0]
            after = [game.step(state, np.array([outcome]))[0] for outcome in np.flatnonzero(chances)]
            odds = chances[chances > 0]
            return float(sum(p * rest(int(each[0]), int(each[1])) for p, each in zip(odds, after, strict=True)))
        if game.outcome(state)[0][0]:
            return 0.0
        after = game.step(state, player(state))[0]
        return float(after[2]) + rest(int(after[0]), int(after[1]))

    return rest(0, 2)


def without_score(player: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda states: player(states * np.array([1, 1, 0]))


def test_random_moves_of_2048_score_what_recursion_says() -> None:
    game = Twenty48(2, 2)
    solution = solve(game)
    found = measure_play(game, solution, without_score(random_player(game)))
    assert found.points * found.results[0] == pytest.approx(random_score(game), abs=1e-3)
    assert found.points * found.best[0] == pytest.approx(66.96415, abs=1e-3)
    assert found.costly > 100
    assert str(found).startswith(f"expects {random_score(game):.3f} of 66.964 points (")


@pytest.mark.slow
def test_pig_to_100_is_solved_and_measured() -> None:
    # Held at 20, value iteration of our own with both policies fixed: 0.4916579 moving first, 0.4285016 second.
    solution = solve(PIG)
    assert (1 + solution.results[0]) / 2 == pytest.approx(0.530593, abs=5e-7)
    found = measure_play(PIG, solution, hold_at(20, PIG))
    assert [(1 + result) / 2 for result in found.results] == pytest.approx([0.4916579, 0.4285016], abs=1e-6)


class Roundabout(PlainGame):
    """Leave, or go round for a hundredth: chance always leads back."""

    name, num_actions, num_players, num_chance_outcomes, max_plies = "roundabout", 2, 1, 1, 100
    observation_shape, state_words, bank_words = (2,), 2, 1

    def initial(self) -> Words:
        return (0, 0)

    def step(self, state: Words, action: int) -> Words:
        return (0, state[1]) if state[0] == 1 else (1, state[1] - 1) if action == 1 else (2, state[1])

    def legal(self, state: Words) -> Sequence[int]:
        return (0, 1)

    def to_play(self, state: Words) -> int:
        return CHANCE if state[0] == 1 else 0

    def chances(self, state: Words) -> Sequence[float]:
        return (1.0,)

    def banked(self, state: Words) -> float:
        return state[1] / 100

    def outcome(self, state: Words) -> float | None:
        return state[1] / 100 if state[0] == 2 else None

    def observe(self, state: Words) -> Array:
        return np.arange(2) == state[0]


def test_moves_that_never_end_the_game_are_refused() -> None:
    game = PlainRules(Roundabout())
    solution = solve(game)
    assert measure_play(game, solution, np.array([0])).results == (0.0,)
    with pytest.raises(GameError, match="with the chosen moves, a game of roundabout need not end: .* do not settle"):
        measure_play(game, solution, np.array([1]))


class WithHistory(HistoryPlayer):
    """A player that needs the moves of a game."""

    def choose(self, lines: Sequence[Sequence[int]]) -> Array:
        return np.zeros(len(lines), np.int64)


def test_what_is_no_choice_is_refused() -> None:
    game = Pig(10)
    solution = solve(game)
    with pytest.raises(GameError, match="illegal action 1 here:\n"):
        measure_play(game, solution, lambda states: np.ones(len(states), np.int64))
    with pytest.raises(GameError, match="must return an action, an integer, for each of 1620 states"):
        measure_play(game, solution, np.array([0]))
    with pytest.raises(PlayerError, match="needs the moves"):
        measure_play(game, solution, WithHistory())
