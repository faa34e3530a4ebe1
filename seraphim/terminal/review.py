"""How the review of a game is drawn: at a terminal, where nothing depends on color alone, and as a picture."""

import math
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from seraphim.evaluation.ratings import drawable, new_figure
from seraphim.players.review import GameReview
from seraphim.terminal.screen import BAR_STYLES, PIECE_STYLES

HEIGHT = 3  # rows of the curve
WORST = 3  # mistakes of each player
LONGEST_LINE = 10  # moves

_BLOCKS = " ▁▂▃▄▅▆▇█"
_MARGIN = 6  # characters left of the curve
_TICKS = 10  # characters between two numbers of moves, at least


def draw_review(review: GameReview, marks: tuple[str, ...], width: int) -> RenderableType:
    """Return the curve of player 0's chance of winning, the worst mistakes of each player, and a summary.

    Args:
        review: the review.
        marks: the players, as `seraphim.terminal.screen.marks_of` names them.
        width: of the screen, in characters.
    """
    mistakes: list[RenderableType] = [Text(), _draw_mistakes(review, marks)] if review.mistakes else []
    return Group(
        Text(f"{marks[0]}'s chance of winning by move; = exact", "bold"),
        *_draw_curve(review, marks, max(_TICKS, width - _MARGIN - 1)),
        *mistakes,
        Text(),
        Text(summarize(review, marks), no_wrap=True, overflow="ignore"),
    )


def _draw_curve(review: GameReview, marks: tuple[str, ...], width: int) -> list[Text]:
    # A column for each position, several in a short game; in a game that is too long, one for a few positions.
    step = math.ceil(len(review.values) / width)
    places = range(0, len(review.values), step)
    wide = min(3, width // len(places))
    lines = []
    for row in reversed(range(HEIGHT)):
        levels = [round(8 * HEIGHT * review.chances[place]) - 8 * row for place in places]
        blocks = "".join(_BLOCKS[min(8, max(0, level))] * wide for level in levels)
        label = {HEIGHT - 1: "100 %", HEIGHT // 2: "50 %", 0: "0 %"}.get(row, "")
        lines.append(Text.assemble(f"{label:>{_MARGIN - 1}} ", (blocks, BAR_STYLES[0])))
    exact = "".join(("=" if review.exact[place] else " ") * wide for place in places)
    mistakes = {move.ply // step: marks[move.player][0] for move in review.mistakes}
    below = "".join(f"{mistakes.get(column, ''):{wide}}" for column in range(len(places)))
    lines.append(Text(f"{'':{_MARGIN}}{exact}", "dim"))
    lines.append(Text(f"{'':{_MARGIN}}{below}", "bold"))
    ticks = math.ceil(_TICKS / wide)
    numbers = "".join(f"{places[column]:<{ticks * wide}}" for column in range(0, len(places), ticks))
    lines.append(Text(f"{'move':{_MARGIN}}{numbers}", "dim"))
    return [line for line in lines if line.plain.strip()]


def _draw_mistakes(review: GameReview, marks: tuple[str, ...]) -> Table:
    table = Table("", "move", "", "lost", "better", box=None, header_style="dim", padding=(0, 1, 0, 0))
    for player in (0, 1):
        for move in review.worst(player, WORST):
            line = " ".join(move.line[:LONGEST_LINE]) + (" …" if len(move.line) > LONGEST_LINE else "")
            mark = Text(f" {marks[player]} ", PIECE_STYLES[player])
            table.add_row(mark, str(move.ply), Text(move.label, "bold"), f"{move.lost:.0%}", Text(line))
    return table


def summarize(review: GameReview, marks: tuple[str, ...]) -> str:
    """Return a review in one line: the mistakes of each player, and how the game ended or stands."""
    counts = [sum(move.player == player for move in review.mistakes) for player in (0, 1)]
    told = ", ".join(f"{mark} {count or 'none'}" for mark, count in zip(marks, counts, strict=True))
    value = review.values[-1]
    if review.ended:
        end = f"{marks[0] if value > 0 else marks[1]} won" if value else "a draw"
    else:
        end = f"unfinished, {marks[0]}'s chance {review.chances[-1]:.0%}"
    return f"{len(review.moves)} moves, {end}; mistakes of {review.threshold:.0%} or more: {told}"


def plot_review(review: GameReview, marks: tuple[str, ...], file: Path, title: str) -> None:
    """Draw player 0's chance of winning by move, with the worst mistakes of each player.

    Raises:
        SettingsError, NotInstalledError: see `seraphim.evaluation.ratings.check_plot`.
    """
    with new_figure(file, 9, 4) as figure:
        axes = figure.add_subplot()
        chances = [100 * chance for chance in review.chances]
        axes.plot(chances, color="tab:red")
        for player, style in enumerate(("vr", "^y")):
            for move in review.worst(player, WORST):
                label = f"{marks[player]} {move.ply}. {move.label} lost {move.lost:.0%}, better {move.better}"
                axes.plot(move.ply, chances[move.ply], style, markeredgecolor="black", label=drawable(label))
                axes.annotate(str(move.ply), (move.ply, chances[move.ply]), (5, 5), textcoords="offset points")
        if review.mistakes:
            figure.legend(loc="outside right upper")
        axes.axhline(50, color="gray", linewidth=0.5)
        heading = drawable(f"{marks[0]}'s chance of winning, %")
        axes.set(title=drawable(title), xlabel="move", ylabel=heading, ylim=(-5, 105))
        axes.grid(alpha=0.3)
