"""How a game looks at a terminal: the board, the player to move, and the search's results.

Draws for light and dark screens, with and without colors: nothing depends on color alone.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich import box
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from seraphim.game import CHANCE, EMPTY, Array, Board, Game, board_of, cell_name
from seraphim.game.features import features_of, has_chance, is_for_one, value_text
from seraphim.game.notation import format_moves
from seraphim.game.tree import GameTree
from seraphim.search.analysis import PositionAnalysis

PIECE_STYLES = ("bold white on red3", "bold black on gold1", "bold white on blue3", "bold black on green3")
BAR_STYLES = ("red3", "dark_goldenrod")
BAR_WIDTH = 20
MOST_CELL_WIDTH = 3  # of a label inside a cell
MOST_CANDIDATES = 16
MOST_PLIES = 40  # of the game so far, beside the board
MOST_AHEAD = 12
LEAST_VARIATION = 8  # characters
LONGEST_HINT = 12  # moves
SMALL_SHARE = 0.005  # of visits, left out of a hint
COLUMNS = ("", "move", "prior", "eff.", "read", "visits", "share", "Q", "U", "Q+U", "variation")
EXPLORATION, OF_TREES = ("U", "Q+U"), ("eff.", "read", "share", "U", "Q+U")
LEGEND = (
    "Table: prior, of the network; eff., the prior used by the search: legal moves only, with noise if any; read, "
    "visits in this read; visits, in total; share of all visits; Q, mean value, = if proven; U, exploration bonus; the "
    "search visits the move with the highest Q+U."
)


class Sides(NamedTuple):
    """The players."""

    names: tuple[str, ...]  # of player 0, player 1 …
    marks: tuple[str, ...]  # their pieces


def marks_of(game: Game) -> tuple[str, ...]:
    """Return the pieces of all players, or names for them."""
    if is_for_one(game):
        return ("player",)
    players = features_of(game).num_players or 2
    board = board_of(game, game.initial(1)[0])
    if board is not None and board.players:
        return board.players
    if board is not None and len(board.marks) >= players:
        return tuple(board.marks[:players])
    return ("first", "second") if players == 2 else tuple(f"player {seat}" for seat in range(players))


def draw_game(
    tree: GameTree, sides: Sides, values: Sequence[float] | None, compact: bool, width: int
) -> RenderableType:
    """Return the drawing of a game's current position.

    Args:
        tree: the game.
        sides: the players.
        values: expected results in [-1, 1], if known: for player 0, or for each of more than two.
        compact: whether to leave out the lines between the rows of the board.
        width: of the screen, in characters.
    """
    board, text = board_of(tree.game, tree.node.state), tree.game.render(tree.node.state)
    if board is not None and board.look not in ("marks", "stones"):
        board = None  # the text shows shifted rows, crossings and pieces better than a table
    grid: RenderableType = Text(text)
    taken = max((len(line) for line in text.splitlines()), default=0)
    if board is not None:
        labels = [len(tree.label(action)) for action in board.targets]
        cell_width = max(3, *map(len, board.marks), *(each for each in labels if each <= MOST_CELL_WIDTH))
        taken = (cell_width + 1) * board.cells.shape[1] + 1
        if taken <= width:
            grid = _draw_board(tree, board, cell_width, compact, max(2, len(sides.marks)))
    facts = _draw_facts(tree, sides, values)
    if taken + 3 + BAR_WIDTH + 18 > width:  # no room beside the board
        return Group(grid, facts)
    side_by_side = Table.grid(padding=(0, 3, 0, 0))
    side_by_side.add_column(no_wrap=True)
    side_by_side.add_column(ratio=1)
    side_by_side.add_row(grid, facts)
    return side_by_side


def _draw_board(tree: GameTree, board: Board, cell_width: int, compact: bool, players: int) -> Table:
    # Brackets mark the last piece, asterisks the winning cells. An empty cell shows the move that lands there; if that
    # is too long, as moves from cell to cell are, its own name.
    grid = Table(box=box.ROUNDED, show_header=False, show_lines=not compact, padding=0, border_style="dim")
    landings = {targets[0]: action for action, targets in board.targets.items()}
    last = _last_cell(tree)
    for _ in range(board.cells.shape[1]):
        grid.add_column(width=cell_width, no_wrap=True)
    for row, cells in enumerate(board.cells.tolist()):
        drawn = []
        for column, piece in enumerate(cells):
            place = (row, column)
            if piece != EMPTY:
                around = "**" if place in board.line else "[]" if place == last else "  "
                mark = around[0] + board.marks[piece] + around[1]
                style = _style_of(piece % players) + (" underline" if place in board.line else "")
                drawn.append(Text(mark.center(cell_width), style))
            else:
                label = tree.label(landings[place]) if place in landings else ""
                name = label if 0 < len(label) <= cell_width else cell_name(board, row, column)
                drawn.append(Text(name.center(cell_width), "dim") if len(name) <= cell_width else Text())
        grid.add_row(*drawn)
    return grid


def _last_cell(tree: GameTree) -> tuple[int, int] | None:
    # The landing cell of the last move.
    parent, action = tree.node.parent, tree.node.action
    board = None if parent is None else board_of(tree.game, parent.state)
    return None if board is None or action not in board.targets else board.targets[action][0]


def _style_of(player: int) -> str:
    return PIECE_STYLES[player % len(PIECE_STYLES)]


def _draw_facts(tree: GameTree, sides: Sides, values: Sequence[float] | None) -> RenderableType:
    # The player to move, the moves so far, the legal ones, and the expected result.
    lines, node, legal = len(tree.lines()), tree.node, tree.legal()
    title = Text(f"{tree.game.name}, move {node.ply + 1}", "bold")
    if lines > 1:
        title.append(f", line {node.line} of {lines}", "not bold")
    mover = int(tree.game.to_play(node.state[None])[0]) if legal else None
    may_follow = "chance" if mover == CHANCE else "legal"
    parts: list[RenderableType] = [title, Text()]
    for player in range(len(sides.marks)):
        line = Text("▸ " if player == mover else "  ").append(f" {sides.marks[player]} ", _style_of(player))
        parts.append(line.append(f" {sides.names[player]}", "bold" if player == mover else ""))
    parts += [Text(), _draw_moves(tree)]
    parts.append(Text(f"{may_follow}: {tree.name_moves()}") if legal else Text(_outcome(tree, sides), "bold"))
    if values is not None and (legal or len(sides.marks) > 1):
        parts += [Text(), draw_values(values, sides, features_of(tree.game).points)]
    return Group(*parts)


def _draw_moves(tree: GameTree) -> Text:
    # The moves so far, the last of them in brackets, and those that redo would play.
    path, actions = tree.path(), tree.actions()
    if not actions and tree.node.latest is None:
        text = Text("no moves yet" if tree.starts_afresh else "no moves yet, from a loaded position", "dim")
        goal = features_of(tree.game).goal
        return text.append(f"\n\n{goal}", "not dim") if goal else text
    text = Text("moves: … " if len(actions) > MOST_PLIES else "moves: ")
    shown = actions[-MOST_PLIES:-1]
    text.append(format_moves(tree.game, shown, together=False, start=path[-2 - len(shown)].state if shown else None))
    if actions:
        text.append(" " if len(actions) > 1 else "").append(f"[{tree.label_of(tree.node)}]", "bold")
    ahead = [node.action for node in tree.ahead() if node.action is not None]
    if ahead:
        moves = format_moves(tree.game, ahead[:MOST_AHEAD], together=False, start=tree.node.state)
        text.append(f"  redo: {moves}{' …' if len(ahead) > MOST_AHEAD else ''}", "dim")
    return text


def draw_values(values: Sequence[float], sides: Sides, points: float | None = None) -> Text:
    """Return the expected result for player 0; of two players as a bar: the fuller, the better for that player.

    Of more than two players, a bar for each.
    """
    value = values[0]
    if len(sides.marks) > 2:
        width = max(map(len, sides.marks))
        text = Text()
        for player, (mark, each) in enumerate(zip(sides.marks, values, strict=True)):
            filled = round((1 + each) / 2 * BAR_WIDTH)
            text.append(f"{mark:>{width}} ").append("█" * filled, _style_of(player).split(" on ")[1])
            text.append(f"{'░' * (BAR_WIDTH - filled)}  {value_text(each, points)}\n")
        text.rstrip()
        return text
    if len(sides.marks) == 1:
        return Text(f"expected {value_text(value, points)}{' points' if points else ''}")
    filled = round((1 + value) / 2 * BAR_WIDTH)
    bar = Text.assemble(f"{sides.marks[0]} ", ("█" * filled, BAR_STYLES[0]))
    bar.append("░" * (BAR_WIDTH - filled), BAR_STYLES[1])
    return bar.append(f" {sides.marks[1]}  {value_text(abs(value), points)} for {sides.marks[0 if value >= 0 else 1]}")


def _outcome(tree: GameTree, sides: Sides) -> str:
    ended, results = tree.game.outcome(tree.node.state[None])
    if not ended[0]:
        return f"cut off after {tree.node.ply} moves, without a result"
    result, points = float(results.reshape(-1)[0]), features_of(tree.game).points
    if len(sides.marks) > 2:
        if (results[0] == result).all():
            return f"the game is drawn, {value_text(result, points)} for each"
        found = [
            f"{mark} {value_text(float(each), points)}" for mark, each in zip(sides.marks, results[0], strict=True)
        ]
        winners = [mark for mark, each in zip(sides.marks, results[0], strict=True) if each == results[0].max()]
        return f"{' and '.join(winners)} {'wins' if len(winners) == 1 else 'lead'}: {', '.join(found)}"
    if len(sides.marks) == 1:
        return f"the game is over, with {value_text(result, points).lstrip('+')}{' points' if points else ''}"
    if result == 0:
        return "the game is drawn"
    winner = 0 if result > 0 else 1
    margin = "" if result in (-1, 1) and points is None else f" by {value_text(abs(result), points).lstrip('+')}"
    return f"{sides.marks[winner]} wins{margin} ({sides.names[winner]})"


def draw_table(
    tree: GameTree,
    found: PositionAnalysis,
    visits_before: Mapping[int, int],
    raw_priors: Array,
    numbered: str,
    width: int,
) -> RenderableType:
    """Return what a search found about each move as a table.

    Args:
        tree: the game.
        found: what the search found in its current position.
        visits_before: of each action, before the latest search.
        raw_priors: the network's probabilities, float32 [A], including illegal actions.
        numbered: prefix of the moves' numbers.
        width: of the screen, in characters.
    """
    shown, rest = found.moves[:MOST_CANDIDATES], found.moves[MOST_CANDIDATES:]
    # Of one player, and of whole turns, there is only Q, in points; the search of a tree compares it with U.
    left_out = OF_TREES if found.by_turns else EXPLORATION if is_for_one(tree.game) else ()
    columns = [title for title in COLUMNS if title not in left_out]
    rows = []
    for rank, move in enumerate(shown, start=1):
        value = value_text(move.value, found.points) if left_out else f"{move.value:+.3f}"
        texts = (
            f"{numbered}{rank}",
            move.label,
            f"{raw_priors[move.action]:.1%}",
            f"{move.searched_prior:.1%}",
            f"{move.visits - visits_before.get(move.action, 0):,}",
            f"{move.visits:,}",
            f"{move.share:.1%}",
            ("=" if move.proven else "") + value,
            f"{move.u:.3f}",
            f"{move.value + move.u:+.3f}",
            format_moves(tree.game, move.actions, start=tree.node.state),
        )
        by_title = dict(zip(COLUMNS, texts, strict=True))
        rows.append([by_title[title] for title in columns])
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    taken = 0
    for column, name in enumerate(columns[:-1]):
        title = found.counted if name == "visits" else name
        table.add_column(title, justify="left" if title == "move" else "right", no_wrap=True)
        taken += 1 + max(len(title), *(len(row[column]) for row in rows))
    table.add_column(columns[-1], no_wrap=True)
    room = max(LEAST_VARIATION, width - taken - 1)
    for rank, (row, move) in enumerate(zip(rows, shown, strict=True)):
        variation = row[-1] if len(row[-1]) <= room else row[-1][: room - 1] + "…"
        cells = [Text(cell) for cell in (*row[:-1], variation)]
        cells[columns.index("Q")].style = "green" if move.value > 0 else "red" if move.value < 0 else ""
        table.add_row(*cells, style="" if rank else "bold")
    if not rest:
        return table
    return Group(
        table, Text(f"… and {len(rest)} more, with {sum(move.visits for move in rest):,} {found.counted}", "dim")
    )


def draw_summary(game: Game, found: PositionAnalysis, sentence: str, sampled: bool, mark: str) -> RenderableType:
    """Return how the player with a mark chooses its move, and the figures of the search, in two lines."""
    temperature = ("HOT", "bold red") if sampled else ("COLD", "bold blue")
    speed = found.new_readouts / max(found.seconds, 1e-9)
    if found.by_turns:
        figures = f"ends of turns: {found.readouts:,} in {found.seconds:.2f} s"
    else:
        readouts = f"{found.new_readouts:,} readouts in {found.seconds:.2f} s, {speed:,.0f} readouts/s"
        figures = f"{readouts}; tree {found.readouts:,}"
    return Group(Text.assemble(temperature, f"  {sentence}"), Text(f"{figures}; {_expectation(game, found, mark)}"))


def _expectation(game: Game, found: PositionAnalysis, mark: str) -> str:
    exactly = ("expects exactly" if has_chance(game) else "can force") if found.proven else "expects"
    return f"{mark} {exactly} {value_text(found.value, found.points)}"


def draw_hint(tree: GameTree, found: PositionAnalysis, mark: str) -> Text:
    """Return the move that the search would play for the player with a mark, in a line or two."""
    first, *others = found.moves
    likely = format_moves(tree.game, first.actions[:LONGEST_HINT], start=tree.node.state)
    if found.by_turns:
        share, rest = "", [f"{move.label} {value_text(move.value, found.points)}" for move in others[:3]]
    else:
        share = f", {first.share:.0%} of visits"
        rest = [f"{move.label} {move.share:.0%}" for move in others[:3] if move.share > SMALL_SHARE]
    text = Text.assemble("hint: ", (first.label, "bold"), f"{share}; ")
    text.append(f"{_expectation(tree.game, found, mark)}; likely {likely}")
    return text.append(f"; else {', '.join(rest)}" if rest else "")


def draw_lines(tree: GameTree) -> RenderableType:
    """Return all lines of a game; a mark shows the current one."""
    table = Table("", "line", "from", "moves", box=None, header_style="dim", padding=(0, 1, 0, 0))
    here = tree.node.line
    for name, nodes in tree.lines().items():
        parent, moves = nodes[0].parent, Text()
        for node in nodes:
            if node is tree.node and node.action is not None:
                moves.append(f"[{tree.label_of(node)}] ", "bold")
            elif node.action is not None:
                moves.append(f"{tree.label_of(node)} ")
        where = "" if parent is None else f"{parent.line}{parent.ply}"
        table.add_row("▸" if name == here else "", name, where, moves)
    return table


def draw_options(options: Mapping[str, object]) -> RenderableType:
    """Return options and their values in columns."""

    def plain(value: object) -> str:
        return ("on" if value else "off") if isinstance(value, bool) else str(value)

    return Columns([Text.assemble(f"{name} ", (plain(value), "bold")) for name, value in options.items()], equal=True)


def draw_help(entries: Sequence[tuple[str, str]]) -> RenderableType:
    """Return commands and their meanings as a table with a legend."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for usage, meaning in entries:
        table.add_row(Text(usage), Text(meaning))
    return Group(table, Text(LEGEND, "dim"))


def rows_fit(console: Console, tree: GameTree, rows: int) -> bool:
    """Return whether the board, with lines between its rows, leaves this many rows free on the screen."""
    board = board_of(tree.game, tree.node.state)
    return board is None or 2 * board.cells.shape[0] + 1 + rows <= console.height
