"""Error rates of a model in solved positions, by set and by readouts, and the accuracy of its values.

The weak error is the share of positions in which the chosen move loses the result (a win becomes a draw or a loss, a
draw a loss), or more than 0.001 of it where results are expectations; with more than two players, however they break
ties. The strong error also counts slower wins and faster losses. The regret is the mean result that the chosen move
loses.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from seraphim.errors import GameError, PlayerError
from seraphim.evaluation.intervals import Rate
from seraphim.game import Array, Game
from seraphim.game.features import features_of, is_combinatorial, still_to_come
from seraphim.game.loading import PositionSet
from seraphim.players.choose import Choose, HistoryPlayer
from seraphim.records.examples import of_mover
from seraphim.search.evaluator import Inference, inputs_of

COSTLY = 0.001
"""What a move may cost, of a result, without being a mistake."""

_BINS = 10


class Errors(NamedTuple):
    """How often one player errs in one set of positions."""

    positions: str  # name of the set
    player: str  # its name
    weak: Rate  # moves that lose the result
    strong: Rate | None = None  # also those that win slower or lose faster; None where the exact plies are not known
    regret: float | None = None  # mean of what the chosen moves lose, in points; None for two players without chance


class Calibration(NamedTuple):
    """The network's values against exact ones, in bins of the predicted value."""

    squared_error: float  # mean
    bins: list[tuple[float, float, int]]  # mean predicted value, mean exact value, number of positions; no empty bins


class Evaluation(NamedTuple):
    """What a model gets wrong in solved positions; prints as `seraphim evaluate` does."""

    errors: list[Errors]  # of the network and of each search in each set
    calibration: Calibration
    runtime: str  # what ran the network

    def __str__(self) -> str:
        """Return both as tables."""
        return f"{errors_table(self.errors)}\n{calibration_table(self.calibration)}"


def find_mistakes(positions: PositionSet, actions: Array, plies: Array | None = None) -> Array:
    """Return in which positions the chosen actions (any int type, [P]) lose value, bool [P].

    Given the `plies` of the positions, also in which they win slower or lose faster than others that keep the value.

    Raises:
        GameError: an action is illegal.
    """
    wrong: Array = losses_of(positions, actions) > COSTLY
    if plies is not None:
        rows, best = np.arange(len(actions)), np.nanmax(positions.action_values, axis=1, keepdims=True)
        costs = np.where(positions.action_values < best - COSTLY, np.nan, np.sign(best) * plies)
        wrong |= costs[rows, actions] > np.nanmin(costs, axis=1)
    return wrong


def losses_of(positions: PositionSet, actions: Array) -> Array:
    """Return how much of the result the chosen actions (any int type, [P]) lose, float32 [P].

    Raises:
        GameError: an action is illegal.
    """
    chosen = positions.action_values[np.arange(len(actions)), actions]
    if np.isnan(chosen).any():
        row = int(np.isnan(chosen).argmax())
        raise GameError(f"the player chose the illegal action {actions[row]} in position {row} of {positions.name!r}")
    lost: Array = np.nanmax(positions.action_values, axis=1) - chosen
    return lost


def measure_errors(game: Game, players: Mapping[str, Choose], sets: Sequence[PositionSet]) -> list[Errors]:
    """Return the errors of each player in each set: the strong error where a set has plies, the regret by the game.

    Raises:
        GameError: a player chose an illegal action, or is a program that broke the rules.
        PlayerError: a player needs the moves that lead to a position, which a set does not have.
    """
    for positions in sets:
        if positions.lines is None and any(isinstance(choose, HistoryPlayer) for choose in players.values()):
            raise PlayerError(
                f"an engine needs the moves that lead to a position, which the solved positions {positions.name!r} lack"
            )
    found = []
    points = None if is_combinatorial(game) else features_of(game).points or 1.0
    for positions in sets:
        for name, choose in players.items():
            actions = _actions(choose, positions)
            weak, strong = (
                Rate(int(find_mistakes(positions, actions, plies).sum()), len(actions), positions.sampled)
                for plies in (None, positions.plies)
            )
            regret = None if points is None else points * float(losses_of(positions, actions).mean(dtype=np.float64))
            found.append(Errors(positions.name, name, weak, None if positions.plies is None else strong, regret))
    return found


def _actions(choose: Choose, positions: PositionSet) -> Array:
    if isinstance(choose, HistoryPlayer) and positions.lines is not None:
        return choose.choose(positions.lines)
    return choose(positions.states)


def calibrate(game: Game, inference: Inference, sets: Sequence[PositionSet]) -> Calibration:
    """Compare the network's values with the exact ones of all positions in some sets, for the player to move."""
    states = np.concatenate([positions.states for positions in sets])
    best = np.concatenate([np.nanmax(positions.action_values, axis=1) for positions in sets])
    exact = still_to_come(game, states, best).astype(np.float64)
    predicted = of_mover(inference.infer(inputs_of(game, inference, states))[1]).astype(np.float64)
    places = np.clip(((predicted + 1) / 2 * _BINS).astype(np.int64), 0, _BINS - 1)
    rows = [places == place for place in np.unique(places)]
    bins = [(float(predicted[row].mean()), float(exact[row].mean()), int(row.sum())) for row in rows]
    return Calibration(float(np.mean((predicted - exact) ** 2)), bins)


def errors_table(errors: Sequence[Errors]) -> str:
    """Return the errors as a table: a line for each set, a column for each player, in percent; then the regrets."""
    players = list(dict.fromkeys(each.player for each in errors))
    rows = {name: [each for each in errors if each.positions == name] for name in (each.positions for each in errors)}
    lines = [f"{'weak error % [95 %], strong':28}" + "".join(f"{player:>26}" for player in players)]
    for name, row in rows.items():
        lines.append(f"{f'{name} ({row[0].weak.trials:,})':28}" + "".join(f"{_cell(each):>26}" for each in row))
        if row[0].regret is not None:
            lines.append(f"{'  regret, points':28}" + "".join(f"{each.regret:>26.4g}" for each in row))
    return "\n".join(lines)


def _cell(errors: Errors) -> str:
    low, high = errors.weak.interval
    interval = f" [{100 * low:.1f}, {100 * high:.1f}]" if errors.weak.sampled else ""
    strong = f", {100 * errors.strong.share:.1f}" if errors.strong else ""
    return f"{100 * errors.weak.share:.2f}{interval}{strong}"


def calibration_table(calibration: Calibration) -> str:
    """Return the calibration as a table."""
    lines = [f"value head: mean squared error {calibration.squared_error:.3f}", "  predicted   exact   positions"]
    lines += [f"  {predicted:9.2f} {exact:7.2f} {count:11,}" for predicted, exact, count in calibration.bins]
    return "\n".join(lines)


def figures(errors: Sequence[Errors]) -> dict[str, float]:
    """Return the shares by name, for logs."""
    named = {}
    for each in errors:
        name = f"{each.positions}/{each.player.replace(' ', '_')}"
        named[f"{name}/weak_error"] = each.weak.share
        if each.strong:
            named[f"{name}/strong_error"] = each.strong.share
        if each.regret is not None:
            named[f"{name}/regret"] = each.regret
    return named
