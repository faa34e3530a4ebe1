"""Check a game against the contract that the search relies on, and measure how fast its rules are.

    seraphim check-game tictactoe
    seraphim check-game tictactoe tictactoe.plain

plays random games, and prints their counts, or the first rule that the game breaks, with the fewest moves that show it.
Two forms of one game are compared as well. A small game is solved. Games are named by package or module, in the current
folder or installed.
"""

from collections.abc import Sequence

from absl import flags

GAMES = flags.DEFINE_integer("games", 200, "Random games to play.", 1, 1_000_000)
SEED = flags.DEFINE_integer("seed", 0, "Random seed of the moves.", lower_bound=0)
SOLVE = flags.DEFINE_integer(
    "solve", 20_000, "Solve the game if play can reach at most this many positions; 0 skips it.", lower_bound=0
)


def main(arguments: Sequence[str]) -> None:
    """Check one game, or two forms of it."""
    from seraphim.errors import GameError
    from seraphim.game import load_game, load_game_module
    from seraphim.game.conformance import check_agreement, check_game, draw_speeds, measure_speed
    from seraphim.game.exhaustive import UnsolvedError, solve
    from seraphim.game.loading import module_features

    names = arguments[1:]
    if not 1 <= len(names) <= 2:
        raise GameError("which game? Try: seraphim check-game tictactoe, or two forms of it: tictactoe tictactoe.plain")
    for name in names:
        module = load_game_module(name)
        read_board = module_features(module).state_from_board
        print(check_game(module.GAME, GAMES.value, SEED.value, read_board), flush=True)
    games = {name: load_game(name) for name in names}
    if len(games) == 2:
        first, second = games
        print(check_agreement(games[first], games[second], (first, second), GAMES.value, SEED.value), flush=True)
    if SOLVE.value:
        try:
            print(solve(games[names[-1]], SOLVE.value), flush=True)
        except UnsolvedError as error:
            print(error, flush=True)
    print(draw_speeds({name: measure_speed(game, SEED.value) for name, game in games.items()}))
