"""Value targets: λ-returns against a recursion written from the definition, game by game."""

import numpy as np
import pytest
from pairs import GAME, WIDE_GAME, play

from seraphim.game import Array, Game
from seraphim.records.examples import GameRecord, concatenate, decode, encode
from seraphim.training.targets import with_value_targets

BOTH = pytest.mark.parametrize("game", [GAME, WIDE_GAME], ids=["dense", "sparse"])


def some_records(game: Game) -> list[GameRecord]:
    """Games in which a player moves twice, with results between -1 and 1; most moves are not the preferred ones."""
    rng = np.random.default_rng(3)
    records = []
    for seed in range(8):
        record = play(seed, game, plies=1 + seed % 6 if seed % 3 else None)
        policies = record.policies.copy()
        for row in np.flatnonzero(rng.random(len(record.actions)) < 0.5):
            policies[row] *= 0.4
            policies[row, record.actions[row]] += 0.6
        result = None if record.result is None else float(rng.uniform(-1, 1))
        records.append(record._replace(policies=policies, result=result))
    return records


def naive_returns(game: Game, record: GameRecord, value_lambda: float) -> list[float]:
    """G(t) from the definition; of a game that was cut off, as if it was a draw."""

    def after(ply: int, player: int) -> float:
        if ply == len(record.actions):
            return (record.result or 0.0) * (1 if player == 0 else -1)
        mover = int(game.to_play(record.states[ply : ply + 1])[0])
        return target(ply) * (1 if mover == player else -1)

    def target(ply: int) -> float:
        mover = int(game.to_play(record.states[ply : ply + 1])[0])
        if record.policies[ply, record.actions[ply]] < record.policies[ply].max():
            return float(record.root_values[ply])
        return (1 - value_lambda) * float(record.root_values[ply]) + value_lambda * after(ply + 1, mover)

    return [target(ply) for ply in range(len(record.actions))]


def targets(game: Game, records: list[GameRecord], value_lambda: float) -> Array:
    positions = concatenate([decode(game, encode(game, record)) for record in records])
    return with_value_targets(game, positions, value_lambda).values


@BOTH
@pytest.mark.parametrize("value_lambda", [0.0, 0.5, 0.9, 0.999])
def test_targets_are_lambda_returns_cut_at_exploratory_moves(game: Game, value_lambda: float) -> None:
    records = some_records(game)
    expected = [value for record in records for value in naive_returns(game, record, value_lambda)]
    assert targets(game, records, value_lambda) == pytest.approx(expected, abs=1e-6)


@BOTH
def test_a_lambda_of_1_is_the_result_and_of_0_the_search(game: Game) -> None:
    records = some_records(game)
    positions = concatenate([decode(game, encode(game, record)) for record in records])
    assert targets(game, records, 1.0).tolist() == positions.values.tolist()
    assert targets(game, records, 0.0).tolist() == positions.root_values.tolist()


def test_a_window_that_begins_inside_a_game_has_the_same_targets() -> None:
    positions = concatenate([decode(GAME, encode(GAME, record)) for record in some_records(GAME)])
    whole = with_value_targets(GAME, positions, 0.9).values
    cut = positions._replace(**{name: getattr(positions, name)[3:] for name in positions._fields})
    assert with_value_targets(GAME, cut, 0.9).values.tolist() == whole[3:].tolist()
