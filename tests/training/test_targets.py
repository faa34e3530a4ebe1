"""What the value learns of a game: returns, compared with their definition, position by position."""

from itertools import pairwise

import games
import numpy as np
import pytest
from reference import ArbitraryNetwork, exact_network
from three_players import Guesses, Pile

from backgammon.rules import ROLL
from pig.game import Pig
from seraphim.game import Array, Game, PlainRules, load_game
from seraphim.game.features import has_chance
from seraphim.options import SearchOptions, SelfPlayOptions
from seraphim.records.examples import GameRecord, Positions, concatenate, decode, encode
from seraphim.search.evaluator import StateFunction
from seraphim.selfplay.games import SelfPlay
from seraphim.training.targets import valued_by_turns, with_returns
from twenty48.game import Twenty48

GAMES: list[Game] = [load_game("backgammon"), load_game("connectfour"), Pile(), Twenty48(2, 2)]


def played(game: Game) -> list[GameRecord]:
    network = Guesses(2, 3) if game.name == "pile" else ArbitraryNetwork(game)
    play = SelfPlay(game, network, SearchOptions(readouts=4, root="puct"), SelfPlayOptions(4, random_plies=0), "seed")
    return list(play.play(iter(range(4))))


def returns(game: Game, record: GameRecord, td_lambda: float) -> list[Array]:
    """The return of each position for the player to move there, with the other players behind in their order."""
    to_play, luck = game.to_play(record.states), np.zeros(len(record.states))
    signs = np.where(to_play == 0, 1, -1)
    if np.ndim(record.result) == 0:
        values = (signs * record.root_values)[:, None]  # for player 0
    else:
        values = np.array(record.root_values)
    if td_lambda < 1 and has_chance(game) and record.luck is not None:
        luck = signs * record.luck
    found = [np.atleast_1d(np.float32(record.result)) - luck[-1]]
    for value, brought in zip(values[:0:-1], luck[-2::-1], strict=True):
        found.append((1 - td_lambda) * value + td_lambda * found[-1] - brought)
    if len(found[0]) == 1:
        return [sign * each for sign, each in zip(signs, reversed(found), strict=True)]
    return [np.roll(each, -mover) for mover, each in zip(to_play, reversed(found), strict=True)]


@pytest.mark.parametrize("td_lambda", [0.0, 0.9, 1.0])
@pytest.mark.parametrize("game", GAMES, ids=lambda game: game.name)
def test_returns_mix_what_was_expected_next_with_the_return_there(game: Game, td_lambda: float) -> None:
    random = np.random.default_rng(3)
    records = [
        record._replace(luck=random.uniform(-1, 1, len(record.actions)).astype(np.float32)) for record in played(game)
    ]
    positions: Positions = concatenate([decode(game, encode(game, record)) for record in records])
    found = with_returns(game, positions, td_lambda)
    expected = np.concatenate([returns(game, record, td_lambda) for record in records])
    assert found.values.reshape(expected.shape) == pytest.approx(expected, abs=1e-5)
    assert found.values.dtype == np.float32
    for name, before, after in zip(Positions._fields, positions, found, strict=True):
        assert name == "values" or before is after


@pytest.mark.parametrize("td_lambda", [0.0, 0.5, 0.999])
def test_without_luck_the_return_of_best_play_is_the_exact_value(td_lambda: float) -> None:
    game = Pig(10)
    network, options = exact_network(game), SearchOptions(root="afterstates")
    play = SelfPlay(game, network, options, SelfPlayOptions(20, random_plies=0), "seed")
    records = list(play.play(iter(range(20))))
    positions: Positions = concatenate([decode(game, encode(game, record)) for record in records])
    best = network.infer(positions.states)[1]
    assert with_returns(game, positions, td_lambda).values == pytest.approx(best, abs=1e-4)
    assert np.abs(positions.luck).max() > 0.1
    without = positions._replace(luck=np.zeros_like(positions.luck))
    assert np.abs(with_returns(game, without, td_lambda).values - best).max() > 0.1


@pytest.mark.parametrize(
    "game", [*GAMES[:2], PlainRules(games.MOVES_TWICE), Pig(10), GAMES[3]], ids=lambda game: game.name
)
def test_positions_that_play_by_turns_asks_about_are_kept(game: Game) -> None:
    network, asked = ArbitraryNetwork(game), set[bytes]()

    def evaluate(states: Array) -> tuple[Array, Array]:
        asked.update(state.tobytes() for state in states)
        return network.infer(game.observe(states))

    search = SearchOptions(root="afterstates")
    play = SelfPlay(game, StateFunction(game, evaluate), search, SelfPlayOptions(2, random_plies=0), "seed")
    positions = concatenate([decode(game, encode(game, record)) for record in play.play(iter(range(2)))])
    kept = valued_by_turns(game, positions)
    begins = np.append(True, positions.ends[:-1])  # which self-play has no reason to value
    known = {state.tobytes() for state in positions.states[begins]} | asked
    assert all(state.tobytes() in known for state in kept.states)
    left_out = {state.tobytes() for state in positions.states} - {state.tobytes() for state in kept.states}
    sole = game.legal(positions.states).sum(axis=1) == 1
    tell_luck = {state.tobytes() for state in positions.states[1:][sole[:-1]]}
    assert not (left_out & asked) - tell_luck
    assert (game.name in ("backgammon", "nim of double moves")) == bool(left_out - asked)
    if game.name == "backgammon":
        rolls = kept.actions == ROLL
        assert rolls.sum() == (positions.actions == ROLL).sum()
        assert 3.5 < rolls.sum() / (~rolls).sum() < 4.5


def test_a_return_of_lambda_0_is_the_value_of_the_next_position() -> None:
    game = GAMES[1]
    (record, *_) = played(game)
    found = with_returns(game, decode(game, encode(game, record)), 0.0).values
    for value, (_, following) in zip(found[:-1], pairwise(record.root_values), strict=True):
        assert value == pytest.approx(-following)
    assert abs(found[-1]) == abs(np.float32(record.result))
