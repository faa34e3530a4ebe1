"""Reviews a game, finished or not: the chance of winning by move, and the mistakes with what was better.

    seraphim review game.sgf NAME                    # Go, Othello or Hex; or a game that seraphim play saved
    seraphim review 4444433 NAME --readouts=800      # moves
    seraphim review gamedata/NAME/batch-0000001.tfrecord:12 NAME      # the game of a record
    seraphim review game.txt NAME --picture=game.png
    seraphim review game.txt NAME --json             # one JSON document

A draw is half a win. A value is exact (=) where the game has ended, the search proved it, or the game's solver found it
in time.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from absl import flags

from seraphim import cli
from seraphim.players.review import MISTAKE, SOLVER_SECONDS

THRESHOLD = flags.DEFINE_float("threshold", MISTAKE, "Share of a win that a mistake loses at least, 0 to 1.")
SECONDS = flags.DEFINE_float("seconds", SOLVER_SECONDS, "Of the game's solver for each position; 0: it is not asked.")
JSON = flags.DEFINE_bool("json", False, "Print the review as JSON instead.")
PICTURE = flags.DEFINE_string("picture", None, "Draw the chance of winning into this file: .png, .svg or .pdf.")
cli.define_options(["analysis"])
cli.define_model()


def main(arguments: Sequence[str]) -> None:
    """Review."""
    from rich.console import Console

    from seraphim.errors import SettingsError
    from seraphim.evaluation.ratings import check_plot
    from seraphim.terminal.game_files import find_game
    from seraphim.terminal.review import draw_review, plot_review
    from seraphim.terminal.screen import marks_of

    program, *others = arguments
    if not others:
        raise SettingsError(f"which game? Try: {program} GAME NAME, where GAME is a file or moves")
    if PICTURE.value:
        check_plot(Path(PICTURE.value))
        cli.check_folders(PICTURE.value)
    model = cli.load_model([f"{program} GAME", *others[1:]], ["analysis"])
    review = model.review(find_game(model.settings.game, others[0]), None, THRESHOLD.value, SECONDS.value)
    marks = marks_of(model.game)
    if PICTURE.value:
        plot_review(review, marks, Path(PICTURE.value), f"{others[0]}, by {model.name}")
    if JSON.value:
        print(json.dumps(review.to_dict()))
        return
    console = Console(highlight=False)
    console.print(draw_review(review, marks, console.width))
    if PICTURE.value:
        print(PICTURE.value)
