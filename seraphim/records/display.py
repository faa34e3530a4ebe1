"""Formats records for a terminal: a position with its board, a summary of many games, or a foreign record.

Knows how records look, not where they are: that is `seraphim.records.viewer`.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from seraphim.game import Array, Game
from seraphim.game.features import features_of, is_for_one, value_text
from seraphim.game.notation import label_in, labels_in
from seraphim.records.examples import Positions, by_player, of_mover, pick
from seraphim.records.tfrecord import Feature

_BAR_WIDTH = 30  # characters of a probability of 1
_MAX_ACTIONS = 12  # shown of a distribution
_MAX_VALUES = 8  # shown of a feature
_MAX_PLIES = 12  # shown of a summary
_MAX_BYTES = 256  # shown of a record that is not an example
_DUMP_WIDTH = 16  # bytes in a line


class Summary(NamedTuple):
    """Counts over many games."""

    games: int
    positions: int
    mean_plies: float  # of a game, including those that are not recorded
    first_wins: int  # by player 0
    draws: int
    second_wins: int
    cut_off: int
    mean_results: tuple[float, ...]  # for player 0, or each of more than two, of the games that were not cut off
    distinct_games: int  # by their first recorded position, and their moves from there
    distinct_positions: int
    moves: list[Counter[str]]  # by ply, how often each action was played, by its label
    distinct: list[int]  # by ply, the distinct positions


def summarize(game: Game, positions: Positions) -> Summary:
    """Return the counts over the positions of whole games."""
    ends = np.flatnonzero(positions.ends)
    every = by_player(game, pick(positions, ends))
    results, is_even = every[:, 0], (every == every[:, :1]).all(axis=1) & (every.shape[1] > 1)
    finished = positions.value_weights[ends] > 0
    begins = np.append(0, ends[:-1] + 1)
    starts, games = positions.states[begins], np.split(positions.actions, begins[1:])
    moves, distinct = [], []
    for ply in range(int(positions.plies.max()) + 1):
        at_ply = positions.plies == ply
        moves.append(Counter(labels_in(game, positions.states[at_ply], positions.actions[at_ply])))
        distinct.append(_count_distinct(positions.states[at_ply]))
    return Summary(
        games=len(ends),
        positions=len(positions.plies),
        mean_plies=float(positions.plies[ends].mean()) + 1,
        first_wins=int((finished & (results > 0)).sum()),
        draws=int((finished & (is_even if every.shape[1] > 1 else results == 0)).sum()),
        second_wins=int((finished & (results < 0)).sum()),
        cut_off=int((~finished).sum()),
        mean_results=tuple(every[finished].mean(axis=0).tolist()) if finished.any() else (0.0,) * every.shape[1],
        distinct_games=len({start.tobytes() + actions.tobytes() for start, actions in zip(starts, games, strict=True)}),
        distinct_positions=_count_distinct(positions.states),
        moves=moves,
        distinct=distinct,
    )


def draw_summary(game: Game, summary: Summary) -> RenderableType:
    """Return a summary in printable form."""
    games = summary.games
    results = {
        "won by the first player": summary.first_wins,
        "drawn": summary.draws,
        "won by the second player": summary.second_wins,
        "cut off": summary.cut_off,
    }
    facts = Table.grid(padding=(0, 2))
    distinct_games = _with_share(summary.distinct_games, games)
    facts.add_row("games", Text(f"{games:,} of {game.name}, {distinct_games} distinct"))
    counts = ", ".join(f"{_with_share(count, games)} {what}" for what, count in results.items() if count)
    first, *others = summary.mean_results
    if others:
        means = _all_shown(game, summary.mean_results)
        even, cut_off = (_with_share(count, games) for count in (summary.draws, summary.cut_off))
        counts = f"{means} on average for players 0 to {len(others)}; {even} equal for all, {cut_off} cut off"
    facts.add_row("results", f"{_shown(game, first)} on average" if is_for_one(game) else counts)
    facts.add_row("length", f"{summary.mean_plies:.1f} plies on average, at most {len(summary.moves)}")
    distinct = _with_share(summary.distinct_positions, summary.positions)
    facts.add_row("positions", f"{summary.positions:,}, {distinct} distinct")
    plies = Table("ply", "positions", "distinct", "most played", box=None)
    for ply, moves in enumerate(summary.moves[:_MAX_PLIES]):
        if moves:  # else no game is recorded from here
            most = "  ".join(f"{label} {count / moves.total():.1%}" for label, count in moves.most_common(5))
            plies.add_row(str(ply), f"{moves.total():,}", _with_share(summary.distinct[ply], moves.total()), Text(most))
    opening = [(label, count / summary.moves[0].total()) for label, count in summary.moves[0].most_common()]
    return Group(facts, Text("\nfirst moves"), _bars(opening), Text(), plies, Text())


def draw_position(game: Game, positions: Positions, game_id: str) -> RenderableType:
    """Return the only one of `positions` in printable form."""
    policy, action, value = positions.policies[0], int(positions.actions[0]), float(of_mover(positions.values)[0])
    result = _shown(game, value, f" ({'won' if value > 0 else 'lost' if value < 0 else 'drawn'})")
    if positions.values.ndim > 1:
        result = f"{_all_shown(game, by_player(game, positions)[0].tolist())} for players 0, 1 …"
    played = label_in(game, positions.states[0], action)
    facts = Table.grid(padding=(0, 2))
    facts.add_row("game", Text(f"{game_id}, ply {positions.plies[0]}"))
    facts.add_row("to move", f"player {game.to_play(positions.states)[0]}")
    facts.add_row("search", _shown(game, float(of_mover(positions.root_values)[0])))
    if positions.luck[0]:
        facts.add_row("luck", f"{_shown(game, float(positions.luck[0]))}, by what chance did next")
    facts.add_row("result", result if positions.value_weights[0] else "none: cut off")
    facts.add_row("played", Text(played))
    legal = np.flatnonzero(positions.legal[0])
    order = legal[np.argsort(-policy[legal], kind="stable")].tolist()
    shares = [(label_in(game, positions.states[0], each), float(policy[each])) for each in order]
    side_by_side = Table.grid(padding=(0, 4))
    side_by_side.add_row(Group(Text(game.render(positions.states[0])), Text(), facts), _bars(shares, played))
    return side_by_side


def draw_features(features: dict[str, Feature]) -> RenderableType:
    """Return the features of any example in printable form."""
    table = Table("feature", "type", "values", "", box=None)
    for name, (kind, values) in features.items():
        shown = ", ".join(_format_value(value) for value in values[:_MAX_VALUES])
        more = ", …" if len(values) > _MAX_VALUES else ""
        table.add_row(Text(name), kind.removesuffix("_list"), f"{len(values):,}", Text(shown + more))
    return table


def hexdump(data: bytes) -> Text:
    """Return any bytes in printable form: offset, hexadecimal, and printable characters."""
    lines = [f"{len(data):,} bytes, not a tf.train.Example"]
    for start in range(0, min(len(data), _MAX_BYTES), _DUMP_WIDTH):
        row = data[start : start + _DUMP_WIDTH]
        printable = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{start:06x}  {row.hex(' '):{3 * _DUMP_WIDTH - 1}}  {printable}")
    if len(data) > _MAX_BYTES:
        lines.append(f"… {len(data) - _MAX_BYTES:,} more bytes")
    return Text("\n".join(lines))


def _shown(game: Game, value: float, verdict: str = "") -> str:
    # A result for the player to move, in points where a game counts any; who plays alone neither wins nor loses.
    features = features_of(game)
    if is_for_one(game):
        return f"{value * (features.points or 1.0):+,.4g} points"
    shown = f"{value:+.2f}" if features.points is None else f"{value * features.points:+,.4g} points"
    return f"{shown}{verdict} for the player to move"


def _all_shown(game: Game, values: Sequence[float]) -> str:
    return ", ".join(value_text(each, features_of(game).points) for each in values)


def _count_distinct(states: Array) -> int:
    return len(np.unique(states, axis=0))


def _with_share(count: int, total: int) -> str:
    return f"{count:,} ({count / total:.1%})"


def _bars(shares: Sequence[tuple[str, float]], played: str = "") -> Table:
    # One line for each of the first actions, and for the one that was played.
    bars = Table.grid(padding=(0, 1))
    for rank, (label, share) in enumerate(shares):
        if rank < _MAX_ACTIONS or label == played:
            bar = Text("█" * round(share * _BAR_WIDTH) or ("▏" if share else ""), style="cyan")
            mark = Text("← played" if label == played else "", style="bold")
            bars.add_row(Text(label), f"{share:6.1%}", bar, mark)
    if rest := shares[_MAX_ACTIONS:]:
        bars.add_row("…", f"{sum(share for _, share in rest):6.1%}", f"{len(rest)} more")
    return bars


def _format_value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if not isinstance(value, bytes):
        return str(value)
    text = value.decode("ascii", errors="replace")
    start = f"'{text[:40]}'" if text.isprintable() and "\ufffd" not in text else value[:24].hex(" ")
    return f"{len(value):,} bytes: {start}"
