"""Matches and ratings: models, their snapshots, and players of known strength, all against all.

    seraphim arena NAME NAME/SNAPSHOT random minimax:4 mcts:100 solver
    seraphim arena NAME/all random --plot=ratings.png   # all snapshots of a model
    seraphim arena NAME random minimax:2 --forever      # ranks the snapshots of NAME as they appear, until Ctrl-C
    seraphim arena NAME solver --from_start --readouts=800     # NAME moves first

NAME is a model's champion, NAME:raw the same without search; minimax:4 looks four plies ahead; mcts:100 searches
without a network; solver plays perfectly, in connect four after minutes per move early on; solver:5 takes five seconds.
Each opening is played twice, sides swapped, with the same rolls where chance moves. In a game for one player, all play
from the same openings by the same chance, and nobody is rated; greedy banks as much as it can with each move.
--forever keeps matches in models/NAME/arena.csv: the command continues.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from absl import flags

from seraphim import cli
from seraphim.inference import Runtime

GAME = flags.DEFINE_string("game", None, "Package or module of the game. Default: the models' game.")
GAMES = flags.DEFINE_integer("games", 100, "Games of a match, two for each opening, or of a series.", 2, 1_000_000)
READOUTS = flags.DEFINE_integer("readouts", None, "Of the models' searches. Default: each model's own.", lower_bound=1)
SEED = flags.DEFINE_integer("seed", 0, "The same seed gives the same openings and games.", lower_bound=0)
PLIES = flags.DEFINE_integer("opening_plies", None, "Max random moves of an opening. Default: by game.", lower_bound=0)
PLOT = flags.DEFINE_string("plot", None, "Draw the ratings into this file: .png, .svg or .pdf.")
CSV = flags.DEFINE_string("csv", None, "Write the matches into this file.")
FROM_START = flags.DEFINE_bool("from_start", False, "No openings: the first player moves first; exact if it can be.")
FOREVER = flags.DEFINE_bool("forever", False, "Continue with the snapshots that appear, until Ctrl-C.")
RUNTIME = cli.define_choice("runtime", Runtime, "auto", "What runs the networks.")
cli.define_trust()


def main(arguments: Sequence[str]) -> None:
    """Play."""
    from seraphim.errors import SettingsError
    from seraphim.evaluation import match_csv, ratings, seats, tournament
    from seraphim.game import load_game
    from seraphim.game.features import is_for_one, num_columns
    from seraphim.players import roster as players
    from seraphim.storage.shipped import data_root

    if not (names := arguments[1:]):
        raise SettingsError("which players? Try: seraphim arena NAME random minimax:4")
    if PLOT.value:
        ratings.check_plot(Path(PLOT.value))
    cli.refuse_flags(FROM_START.value, "opening_plies", "plot", "csv", "forever", because="--from_start has no ratings")
    cli.refuse_flags(not any(map(players.is_searching, names)), "readouts", because="no player searches")
    cli.refuse_flags(not any(map(players.has_network, names)), "runtime", because="no player has a network")
    cli.check_folders(PLOT.value, CSV.value)
    conditions = match_csv.Conditions(GAMES.value, PLIES.value, READOUTS.value, SEED.value)
    roster = players.Roster(
        data_root(), GAME.value, GAMES.value, READOUTS.value, SEED.value, RUNTIME.value, cli.FLAGS.trust
    )
    game = load_game(roster.game_of(names))
    if is_for_one(game):
        because = f"{game.name} is for one player"
        cli.refuse_flags(True, "from_start", "plot", "csv", "forever", because=because)
        played = {}
        for name, games in tournament.play_alone(game, roster.entrants(names), conditions, cli.show_match):
            played[name] = games
            print(f"{name}: {games}", flush=True)
        print("".join(f"\n{line}" for line in seats.differences(played)))
        return
    if num_columns(game) > 1:
        because = f"{game.name} is for more than two players"
        cli.refuse_flags(True, "from_start", "plot", "csv", "forever", because=because)
        entrants = roster.entrants(names)
        for first, second, result in tournament.play_tables(game, entrants, conditions, cli.show_match):
            print(f"{first} - {second}: {result}", flush=True)
        return
    if FROM_START.value:
        for other, series in tournament.play_from_start(game, roster.entrants(names), conditions, cli.show_match):
            print(f"{names[0]} moves first against {other}: {series}", flush=True)
        return
    conditions = replace(conditions, play=roster.fingerprint(names))
    kept = roster.folder_of(names) if FOREVER.value else None
    arena = tournament.Tournament(game, conditions, kept, cli.show_match)
    if 2 * len(arena.openings.states) < GAMES.value:
        print(f"only {len(arena.openings.states)} distinct openings; raise --opening_plies")

    def report() -> None:
        if CSV.value:
            match_csv.write_matches(Path(CSV.value), arena.matches, conditions)
        print(f"\n{ratings.ratings_table(rated := ratings.rate(ratings.connected(arena.matches)))}\n", flush=True)
        if PLOT.value:
            ratings.plot_ratings(rated, Path(PLOT.value))

    try:
        if FOREVER.value:
            watched, reported = [players.all_snapshots(name) for name in names], 0
            for match in arena.play_on(lambda: roster.entrants(watched)):
                if match:
                    print(f"{match.first} - {match.second}: {match.result}", flush=True)
                elif reported < len(arena.matches):
                    reported = len(arena.matches)
                    report()
                else:
                    time.sleep(5)
        for match in arena.play_all(roster.entrants(names)):
            print(f"{match.first} - {match.second}: {match.result}", flush=True)
    except KeyboardInterrupt:
        print("\ninterrupted")
    if arena.matches:
        print(f"\n{ratings.matches_table(arena.matches)}")
        report()
