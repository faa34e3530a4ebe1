"""Check a game against the contract that the search relies on.

    python bin/check_game.py tictactoe

plays random games, and prints what was played, or the first rule that the game breaks, with position and moves. The
game is named by its package or module, in the current folder or installed.
"""

from collections.abc import Sequence

from absl import flags

from seraphim import programs

GAMES = flags.DEFINE_integer("games", 200, "Random games to play.", lower_bound=1)
SEED = flags.DEFINE_integer("seed", 0, "Of the random moves.", lower_bound=0)


def main(arguments: Sequence[str]) -> None:
    """Check one game."""
    from seraphim.conformance import check_game
    from seraphim.errors import GameError
    from seraphim.game import load_game_module

    if len(arguments) != 2:
        raise GameError("which game? Try: check_game.py tictactoe")
    print(check_game(load_game_module(arguments[1]).GAME, GAMES.value, SEED.value))


if __name__ == "__main__":
    programs.run(main)
