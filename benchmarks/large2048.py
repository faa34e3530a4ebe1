"""2048 on boards of any size: what players score, how much of the best possible that is, and what tiles they reach.

    PYTHONPATH=. python benchmarks/large2048.py NAME --games=2000 --readouts=100
    PYTHONPATH=. python benchmarks/large2048.py random greedy --game=twenty48:4x3 --out=4x3.csv
    PYTHONPATH=. python benchmarks/large2048.py optimum --game=twenty48:3x3

prints a line for each player: a model, or with --game a player as `seraphim arena` takes it, or `optimum`, which solves
boards of up to 3x3 first. Every game is a line of the file: after an interruption the same command goes on, and
--games=4000 plays 2,000 more. All players get the same chance outcomes for the same moves.

On 4x3, games begin from two 2s, as for the published optimum (Kaneko and Yamashita 2025, arXiv 2510.04580).
"""

import argparse
import csv
import io
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

import seraphim
from seraphim.errors import SeraphimError
from seraphim.evaluation.intervals import Mean
from seraphim.evaluation.match import Openings, make_openings, play_games
from seraphim.game import load_game
from seraphim.machine import count_cores
from seraphim.players.choose import Choose, solver_player
from seraphim.players.roster import Roster, load_players
from seraphim.storage.shipped import data_root
from twenty48.game import Twenty48
from twenty48.optimal import solve
from twenty48.rules import tile

OPTIMA = {4: 66.96415, 6: 480.25827, 9: 5468.48680, 12: 50_724.26}
"""The expected score of best play, by the number of cells: ours, of 12 cells the published one."""
FROM_TWO_TWOS = 12  # cells
GOAL = 2048  # the tile
AT_A_TIME = 128  # games, of which an interruption loses those that are unfinished


class Played(NamedTuple):
    """A game, as a line of the file."""

    game: str
    player: str
    seed: int
    score: int
    largest: int  # tile
    plies: int  # those of chance included
    seconds: float  # its share of the time of all that were played together


def read_games(path: Path, game: str, player: str) -> list[Played]:
    """Return the games of a player in a file; a line that was not written to its end is removed.

    Raises:
        SeraphimError: they are not the games 0, 1, 2 … or the file holds something else.
    """
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    try:
        rows = [_to_game(row) for row in csv.reader(io.StringIO(whole))]
    except ValueError as error:
        raise SeraphimError(f"{path} is no file of games ({error}): name another with --out") from error
    found = [row for row in rows if (row.game, row.player) == (game, player)]
    if [row.seed for row in found] != list(range(len(found))):
        raise SeraphimError(f"{path} does not hold the games 0, 1, 2 … of {player} in turn: name another with --out")
    return found


def _to_game(row: list[str]) -> Played:
    game, player, seed, score, largest, plies, seconds = row
    return Played(game, player, int(seed), int(score), int(largest), int(plies), float(seconds))


def openings_of(game: Twenty48, count: int) -> Openings:
    """Return the start of each game: before chance adds two tiles, or where two 2s are there already."""
    openings = make_openings(game, count, 0)
    if game.cells != FROM_TWO_TWOS:
        return openings
    cells = np.stack([np.random.default_rng(seed).permutation(game.cells)[:2] for seed in range(count)])
    states = game.step(game.step(openings.states, 2 * cells[:, 0]), 2 * cells[:, 1])
    return Openings(states, tuple(map(tuple, (2 * cells).tolist())), openings.rolls)


def play(game: Twenty48, player: str, choose: Choose, games: int, path: Path) -> list[Played]:
    """Play the games that are not in the file yet; return all, in the order of their seeds."""
    done, openings = read_games(path, game.name, player), openings_of(game, games)
    for start in range(len(done), games, AT_A_TIME):
        part, started = openings.part(start, min(games, start + AT_A_TIME)), time.perf_counter()
        count = len(part.states)
        found = play_games(game, [choose], np.zeros((count, 1), np.int64), part)
        seconds = round((time.perf_counter() - started) / count, 4)
        for row, state in enumerate(found.states):
            largest = 1 << max(int(tile(state[0], cell)) for cell in range(game.cells))
            plies = len(found.moves[row])
            done.append(Played(game.name, player, start + row, int(state[2]), largest, plies, seconds))
        with path.open("a", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(done[start:])
        print(f"{player}: {len(done):,} of {games:,} games", file=sys.stderr, flush=True)
    return done[:games]


def summary(game: Twenty48, games: Sequence[Played]) -> str:
    """Return what a player makes, as a line."""
    mean, optimum = Mean.of(np.array([row.score for row in games], np.float64)), OPTIMA.get(game.cells)
    parts = [f"{len(games):,} games{' from two 2s' if game.cells == FROM_TWO_TWOS else ''}, {mean} points"]
    if optimum:
        least = f"at least {mean.interval[0] / optimum:.1%}"
        parts[0] += f", {mean.value / optimum:.1%} of the optimum of {optimum:,.2f} ({least})"
    largest = np.array([row.largest for row in games])
    if game.cells > FROM_TWO_TWOS:
        parts.append(f"{GOAL} reached in {(largest >= GOAL).mean():.1%}")
    tiles = (f"{each} {(largest == each).mean():.1%}" for each in np.unique(largest)[::-1])
    parts.append(f"largest tile {', '.join(tiles)}")
    cut_off = sum(row.plies >= game.max_plies for row in games)
    if cut_off:
        parts.append(f"{cut_off:,} cut off after {game.max_plies:,} plies")
    parts.append(f"{3600 * len(games) / max(0.0001, sum(row.seconds for row in games)):,.0f} games/h")
    return f"{game.name}, {games[0].player}: {'; '.join(parts)}"


def load_optimum(game: Twenty48) -> Choose:
    """Solve a board, and say what it took; return the player that plays best."""
    started = time.perf_counter()
    optimum = solve(game.rows, game.columns)
    print(
        f"{game.name} is solved: {len(optimum.boards):,} boards, of symmetric ones one, expected score "
        f"{optimum.expected:,.5f}; {time.perf_counter() - started:.0f} s, "
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.1f} GB",
        flush=True,
    )
    return solver_player(game, optimum.perfect_actions)


def load_player(name: str, game_name: str | None, readouts: int | None) -> tuple[Twenty48, str, Choose]:
    """Return the game of a player, its name in the file, and what chooses its moves."""
    if game_name is None:
        model = seraphim.load(name)
        game, used = model.game, model.settings.search.readouts if readouts is None else readouts
        full_name = f"{model.name}/{model.snapshot} with {used} readouts"
        choose = model.player(readouts, model.inferences(AT_A_TIME, count_cores()))
    else:
        game, full_name = load_game(game_name), name
    if not isinstance(game, Twenty48):
        raise SeraphimError(f"{name} plays {game.name}: expected a player of twenty48")
    if game_name is not None:
        roster = Roster(data_root(), game_name, AT_A_TIME)
        choose = load_optimum(game) if name == "optimum" else load_players([name], roster)[1][0]
    return game, full_name, choose


def main() -> None:
    """Play what is missing, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("players", nargs="+")
    parser.add_argument("--game", help="of players that are no models, such as twenty48:3x3")
    parser.add_argument("--games", type=int, default=2000)
    parser.add_argument("--readouts", type=int, help="of models, by default their own; 0: the network alone")
    parser.add_argument("--out", type=Path, default=Path("large2048.csv"))
    arguments = parser.parse_args()
    if arguments.games < 1 or (arguments.readouts or 0) < 0:
        parser.error("expected at least 1 game, and at least 0 readouts")
    try:
        for player in arguments.players:
            game, name, choose = load_player(player, arguments.game, arguments.readouts)
            print(summary(game, play(game, name, choose, arguments.games, arguments.out)), flush=True)
    except SeraphimError as error:
        sys.exit(f"large2048: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted: the same command goes on from here")


if __name__ == "__main__":
    main()
