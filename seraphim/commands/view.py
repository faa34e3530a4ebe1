"""Show the games of a model, or any TFRecord file.

    seraphim view NAME               # the first game of the newest file in gamedata/NAME, position by position
    seraphim view NAME --summary     # how many games, who won, what was played, what is damaged
    seraphim view FILE               # a file, or a folder of files

A name alone means the model, also where there is a file or folder of that name: ./NAME is the path.
"""

from collections.abc import Sequence

from absl import flags

from seraphim import cli

SUMMARY = flags.DEFINE_bool("summary", False, "Show counts over all files instead of single records.")
RECORD = flags.DEFINE_integer("record", None, "Number of the record to show, from 0 in its file.", lower_bound=0)
LIMIT = flags.DEFINE_integer("limit", None, "How many records to show. Default: one game.", lower_bound=1)
GAME_ID = flags.DEFINE_string("game_id", None, "Show the game with this id, whichever file it is in.")
GAME = flags.DEFINE_string("game", None, "Module of the game. Default: its name in the records.")


def main(arguments: Sequence[str]) -> None:
    """Show records."""
    from rich.console import Console

    from seraphim.records.viewer import RecordFilter, find_records, show_records, show_summary
    from seraphim.storage.shipped import data_root

    text = cli.model_name(arguments)
    cli.refuse_flags(SUMMARY.value, "record", "limit", "game_id", because="--summary counts all records")
    path, console = find_records(data_root(), text), Console(highlight=False)
    if SUMMARY.value:
        show_summary(path, console, GAME.value)
    else:
        show_records(path, console, RecordFilter(RECORD.value, LIMIT.value, GAME_ID.value), GAME.value)
