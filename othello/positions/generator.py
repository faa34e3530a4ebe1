"""Makes the sets of solved endgames: plays games until few cells are empty, and solves the positions.

A game begins with 4 to 30 random moves, the number drawn uniformly. Then two players that are drawn from a list go on,
but one move in ten is random as well. A position is kept if it has as many empty cells as the set says and at least two
legal moves, and if neither it nor a symmetric position is in the set already, nor, in a test set, in the validation set
or the former test set of its kind. So a set is the beginning of an endless list; an interrupted file is continued.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from othello.game import GAME, count_empty
from othello.positions import EMPTY_CELLS, format_position
from othello.solver import EndgameSolver
from seraphim.errors import GameError
from seraphim.game import Array
from seraphim.game.interface import random_actions
from seraphim.game.loading import Split
from seraphim.game.solved_files import append_positions, canonical, play_games

FEWEST_RANDOM, MOST_RANDOM = 4, 30
RANDOM_SHARE = 0.1
ROUND = 400  # games that are played at the same time
SEEDS: dict[Split, int] = {"validation": 0, "test": 2}  # 1 made the former test sets


def generate(
    name: str,
    count: int,
    seed: int,
    folder: Path,
    players: Sequence[Callable[[Array], Array]],
    excluded: Array | None = None,
) -> Iterator[str]:
    """Append positions to the set of that name, the file NAME.txt in `folder`, and yield each line as it is written.

    Raises a GameError if a line that the file has already is not of this seed and these players.

    Args:
        name: one of `othello.positions.EMPTY_CELLS`.
        count: positions of the finished file.
        seed: of the random moves.
        folder: of the file.
        players: choose the moves: states int64 [P, 2] -> int [P].
        excluded: states int64 [P, 2] that are left out of the set, with symmetric ones.
    """
    path, solver = folder / f"{name}.txt", EndgameSolver(256)
    seen = {canonical(GAME, state) for state in ([] if excluded is None else excluded)}

    def lines_after(done: list[str]) -> Iterator[str]:
        for number, moves in enumerate(_draw(name, seed, players, seen)):
            if number >= len(done):
                (state,) = play_games(GAME, [moves])[1]
                yield format_position(moves, solver.solve_moves(state).results)
            elif moves != done[number]:
                raise GameError(
                    f"{path}, line {number + 1}: not of seed {seed} and these players: give those that the file was "
                    "made with, or remove it"
                )

    return append_positions(path, count, lines_after)


def _draw(name: str, seed: int, players: Sequence[Callable[[Array], Array]], seen: set[bytes]) -> Iterator[str]:
    # The games that lead to the positions of a set, without end.
    random = np.random.default_rng([seed, [*EMPTY_CELLS].index(name)])
    while True:
        for state, moves in zip(*_play(EMPTY_CELLS[name], players, random), strict=True):
            key = canonical(GAME, state)
            if GAME.legal(state[None]).sum() > 1 and key not in seen:
                seen.add(key)
                yield moves


def _play(
    empty: int, players: Sequence[Callable[[Array], Array]], random: np.random.Generator
) -> tuple[Array, list[str]]:
    # The positions of games with that many empty cells, unless they ended before, and the moves of each game.
    states, moves = GAME.initial(ROUND), [""] * ROUND
    seats = random.integers(len(players), size=(ROUND, 2))
    random_plies = random.integers(FEWEST_RANDOM, MOST_RANDOM + 1, size=ROUND)
    for ply in range(GAME.max_plies):
        legal = GAME.legal(states)
        active = np.flatnonzero(legal.any(axis=1) & (count_empty(states) > empty))
        if not len(active):
            break
        actions = random_actions(legal, random)
        own = seats[np.arange(ROUND), GAME.to_play(states)]
        thinking = (ply >= random_plies) & (random.random(ROUND) >= RANDOM_SHARE)
        for number, player in enumerate(players):
            rows = active[(own == number)[active] & thinking[active]]
            if len(rows):
                actions[rows] = player(states[rows])
        for row in active.tolist():
            moves[row] += GAME.action_label(int(actions[row]))
        states[active] = GAME.step(states[active], actions[active])
    reached = np.flatnonzero(count_empty(states) == empty)
    return states[reached], [moves[row] for row in reached]
