"""The search without a tree, compared with a recursion over single positions."""

from dataclasses import replace

import numpy as np
import pytest
from games import MOVES_TWICE
from reference import ArbitraryNetwork

import seraphim
from pig.game import Pig
from seraphim.errors import ModelError, SettingsError
from seraphim.game import CHANCE, Array, Game, PlainRules, load_game, random_actions
from seraphim.game.features import features_of, is_for_one
from seraphim.game.notation import banked_of, followers
from seraphim.game.tree import GameTree
from seraphim.options import SearchOptions, SelfPlayOptions
from seraphim.players.choose import SearchPlayer, search_positions
from seraphim.players.opponent import Opponent, PlayOptions
from seraphim.search.afterstates import (
    MOST_COMPARED,
    MOST_MOVES,
    AfterstateSearch,
    compared,
    distinct,
    make_search,
)
from seraphim.search.analysis import TurnAnalysis
from seraphim.search.evaluator import Inference
from seraphim.selfplay.games import SelfPlay
from twenty48.game import Twenty48

OPTIONS = SearchOptions(root="afterstates")
GAMES: list[Game] = [
    load_game("backgammon"),
    load_game("connectfour"),
    PlainRules(MOVES_TWICE),
    Pig(10),
    Twenty48(2, 2),
]


def by_name(game: Game) -> str:
    return game.name


def random_states(game: Game, number: int) -> Array:
    """Positions of random games in which a player moves."""
    random, found = np.random.default_rng(2), list[Array]()
    states = game.initial(number)
    while len(states) and len(found) < 300:
        states = game.step(states, random_actions(followers(game, states), random))
        states = states[~game.outcome(states)[0]]
        found.append(states[game.to_play(states) != CHANCE])
    every = np.unique(np.concatenate(found), axis=0)
    return random.permutation(every)[:number]


class Recursion:
    """What a turn can lead to, one position after the other."""

    def __init__(self, game: Game, network: Inference) -> None:
        self.game, self.network = game, network

    def value(self, state: Array) -> float:
        """The value for player 0 of a position in which a turn ends."""
        ended, results = self.game.outcome(state[None])
        if ended[0]:
            return float(results.reshape(-1)[0])
        mover = self.game.to_play(state[None])[0]
        if mover == CHANCE:
            odds = features_of(self.game).chances(state[None])[0]  # type: ignore[misc]
            return sum(
                odds[k] * self.value(self.game.step(state[None], np.array([k]))[0]) for k in np.flatnonzero(odds)
            )
        expected = float(self.network.infer(self.game.observe(state[None]))[1][0])
        scale = features_of(self.game).value_scale or 1
        return float(banked_of(self.game, state[None])[0]) + (-scale if mover == 1 else scale) * expected

    def answered(self, state: Array) -> float:
        """The value for player 0 of a position in which a turn ends, after the best turn that answers it."""
        ended, results = self.game.outcome(state[None])
        if ended[0]:
            return float(results.reshape(-1)[0])
        actions = np.flatnonzero(self.game.legal(state[None])[0])
        if len(actions) == 1:
            after = self.game.step(state[None], actions)[0]
            if self.game.to_play(after[None])[0] == CHANCE:
                return self.answered(after)
        mover = int(self.game.to_play(state[None])[0])
        if mover == CHANCE:
            odds = features_of(self.game).chances(state[None])[0]  # type: ignore[misc]
            followers = {k: self.game.step(state[None], np.array([k]))[0] for k in np.flatnonzero(odds)}
            return sum(odds[k] * self.after_turn(each) for k, each in followers.items())
        return self.after_turn(state)

    def after_turn(self, state: Array) -> float:
        """The value for player 0 after the best turn from a position, which may be one of chance or the last."""
        mover = int(self.game.to_play(state[None])[0])
        if self.game.outcome(state[None])[0][0] or mover == CHANCE:
            return self.answered(state)
        return (-1 if mover == 1 else 1) * max(self.best(state, mover).values())

    def best(self, state: Array, mover: int, moves: int = MOST_MOVES, answered: bool = False) -> dict[int, float]:
        """The value for the mover after each action, with the best of what follows in the same turn."""
        value = self.answered if answered else self.value
        found, actions = {}, np.flatnonzero(self.game.legal(state[None])[0]).tolist()
        for action in actions:
            after = self.game.step(state[None], np.array([action]))
            goes_on = self.game.to_play(after)[0] == mover and not self.game.outcome(after)[0][0]
            if len(actions) == 1 and moves == MOST_MOVES and self.game.to_play(after)[0] == CHANCE:
                found[action] = (-1 if mover == 1 else 1) * value(state)
            elif goes_on and moves > 1 and not is_for_one(self.game):
                found[action] = max(self.best(after[0], mover, moves - 1, answered).values())
            else:
                found[action] = (-1 if mover == 1 else 1) * value(after[0])
        return found


@pytest.mark.parametrize("game", GAMES, ids=by_name)
def test_the_best_of_all_ends_of_the_turn_is_played(game: Game) -> None:
    network, states = ArbitraryNetwork(game), random_states(game, 40)
    search, recursion = AfterstateSearch(game, network, OPTIONS, len(states)), Recursion(game, network)
    places = np.arange(len(states))
    search.begin(places, states)
    assert search.advance().tolist() == places.tolist()
    result = search.result(places)
    for place, state in enumerate(states):
        expected = recursion.best(state, int(game.to_play(state[None])[0]))
        chosen = int(result.best[place])
        assert result.policies[place].tolist() == [float(action == chosen) for action in range(game.num_actions)]
        assert result.values[place] == pytest.approx(max(expected.values()), abs=1e-5)
        assert expected[chosen] == pytest.approx(max(expected.values()), abs=1e-5)
    assert search.counters.evaluations > 0


@pytest.mark.parametrize("game", GAMES, ids=by_name)
def test_of_two_turns_the_best_after_the_answers_is_played(game: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seraphim.search.afterstates.MOST_COMPARED", 10_000)
    network = ArbitraryNetwork(game)
    states = random_states(game, 3 if game.name == "backgammon" else 20)
    states = states[game.legal(states).sum(axis=1) > 1]
    found = search_positions(game, [network], replace(OPTIONS, turns=2), states)
    for state, chosen, value in zip(states, found.best, found.values, strict=True):
        expected = Recursion(game, network).best(state, int(game.to_play(state[None])[0]), answered=True)
        assert value == pytest.approx(max(expected.values()), abs=1e-5)
        assert expected[int(chosen)] == pytest.approx(max(expected.values()), abs=1e-5)


def test_of_two_turns_one_of_several_wins_is_played() -> None:
    game = load_game("tictactoe")
    state = game.initial(1)
    for action in (0, 5, 2, 7, 6, 3):
        state = game.step(state, np.array([action]))
    found = search_positions(game, [ArbitraryNetwork(game)], replace(OPTIONS, turns=2), state)
    assert int(found.best[0]) in (1, 4)
    assert found.values[0] == 1


def test_a_move_that_loses_at_once_is_not_played_where_answers_are_looked_into() -> None:
    game = load_game("tictactoe")
    model = seraphim.Model("tictactoe", ArbitraryNetwork(game), root="afterstates", turns=2)

    def wins(state: Array) -> bool:
        """Whether the player to move can win at once."""
        actions = np.flatnonzero(game.legal(state[None])[0])
        return bool(np.abs(game.outcome(game.step(np.repeat(state[None], len(actions), axis=0), actions))[1]).any())

    states, avoided = random_states(game, 500), 0
    for state, chosen in zip(states, model.player()(states), strict=True):
        actions = np.flatnonzero(game.legal(state[None])[0])
        after = game.step(np.repeat(state[None], len(actions), axis=0), actions)
        loses = {
            action: not over and wins(each)
            for action, each, over in zip(actions.tolist(), after, game.outcome(after)[0], strict=True)
        }
        assert not loses[int(chosen)] or all(loses.values())
        avoided += any(loses.values()) and not all(loses.values())
    assert avoided > 50


def test_answers_to_the_best_ends_alone_are_looked_into() -> None:
    random = np.random.default_rng(0)
    rows, values = random.permutation(np.repeat(np.arange(40), np.arange(1, 41))), random.normal(size=820) / 20
    found = compared(rows, values)
    for row in range(40):
        ranked = sorted(values[rows == row], reverse=True)[:MOST_COMPARED]
        assert sorted(values[found & (rows == row)], reverse=True) == (ranked if len(ranked) > 1 else [])


def test_positions_of_the_step_before_are_not_valued_again() -> None:
    game = load_game("backgammon")
    states = random_states(game, 200)
    states = states[game.legal(states).sum(axis=1) > 1]
    search = AfterstateSearch(game, ArbitraryNetwork(game), OPTIONS, len(states))
    fresh = AfterstateSearch(game, ArbitraryNetwork(game), OPTIONS, len(states))
    places = np.arange(len(states))
    search.begin(places, states)
    search.run()
    after = game.step(states, search.result(places).best)
    same = np.flatnonzero((game.to_play(after) == game.to_play(states)) & (game.legal(after).sum(axis=1) > 1))
    assert len(same) > 20
    before = search.counters.evaluations
    for each in (search, fresh):
        each.begin(same, after[same])
        each.run()
    assert search.counters.evaluations == before
    assert fresh.counters.evaluations > 0
    for ours, theirs in zip(search.result(same), fresh.result(same), strict=True):
        assert np.array_equal(ours, theirs, equal_nan=True)


@pytest.mark.parametrize("game", GAMES, ids=by_name)
def test_self_play_records_the_best_value(game: Game) -> None:
    network = ArbitraryNetwork(game)
    recursion, player = (
        Recursion(game, network),
        SelfPlay(game, network, OPTIONS, SelfPlayOptions(8, random_plies=0), "a"),
    )
    record = next(player.play(iter(range(8))))
    for state, value in list(zip(record.states, record.root_values, strict=True))[-40:]:
        best = max(recursion.best(state, int(game.to_play(state[None])[0])).values())
        assert value == pytest.approx(np.clip(best, -1, 1), abs=1e-5)


@pytest.mark.parametrize("game", GAMES, ids=by_name)
def test_self_play_records_what_chance_brought(game: Game) -> None:
    network = ArbitraryNetwork(game)
    player = SelfPlay(game, network, OPTIONS, SelfPlayOptions(8, random_plies=0), "a")
    record, recursion, lucky = next(player.play(iter(range(8)))), Recursion(game, network), 0
    for row in range(max(0, len(record.actions) - 60), len(record.actions) - 1):
        before = game.step(record.states[row][None], record.actions[row : row + 1])[0]
        brought = recursion.value(record.states[row + 1]) - recursion.value(before)
        moves = int(game.to_play(before[None])[0]) == CHANCE
        sign = 1 if game.to_play(record.states[row][None])[0] == 0 else -1
        assert record.luck[row] == pytest.approx(sign * brought if moves else 0.0, abs=1e-5)  # type: ignore[index]
        lucky += moves
    assert bool(lucky) == (features_of(game).chances is not None)


@pytest.mark.parametrize("turns", [1, 2])
@pytest.mark.parametrize("game", [game for game in GAMES if features_of(game).chances], ids=by_name)
def test_luck_is_0_in_the_mean(game: Game, turns: int) -> None:
    before = np.concatenate([random_states(game, 300), game.initial(1)])
    before = game.step(before[:-1], game.legal(before[:-1]).argmax(axis=1))
    before = before[(game.to_play(before) == CHANCE) & ~game.outcome(before)[0]][:20]
    odds = features_of(game).chances(before)  # type: ignore[misc]
    rows, outcomes = np.nonzero(odds)
    search = AfterstateSearch(game, ArbitraryNetwork(game), replace(OPTIONS, turns=turns), 0)
    luck = search.luck(before[rows], game.step(before[rows], outcomes))
    assert np.bincount(rows, odds[rows, outcomes] * luck) == pytest.approx(np.zeros(len(before)), abs=1e-6)
    assert np.abs(luck).max() > 0.01


@pytest.mark.parametrize("game", GAMES[2:], ids=by_name)
def test_games_do_not_depend_on_how_many_are_played_at_a_time(game: Game) -> None:
    def played(concurrent: int) -> dict[str, list[int]]:
        player = SelfPlay(game, ArbitraryNetwork(game), OPTIONS, SelfPlayOptions(concurrent, random_plies=0), "a")
        return {record.game_id: record.actions.tolist() for record in player.play(iter(range(6)))}

    assert played(2) == played(6)


def test_a_player_chooses_without_a_tree() -> None:
    game = GAMES[1]
    states, network = random_states(game, 30), ArbitraryNetwork(game)
    choose, recursion = SearchPlayer(game, [network, network], OPTIONS), Recursion(game, network)
    for state, action in zip(states, choose(states), strict=True):
        values = recursion.best(state, int(game.to_play(state[None])[0]))
        assert values[int(action)] == max(values.values())


@pytest.mark.parametrize("turns", [1, 2])
@pytest.mark.parametrize("game", GAMES, ids=by_name)
def test_an_analysis_values_each_move_by_the_best_turn_that_begins_with_it(game: Game, turns: int) -> None:
    network, options, states = ArbitraryNetwork(game), replace(OPTIONS, turns=turns), random_states(game, 12)
    analysis, recursion = TurnAnalysis(game, network, options), Recursion(game, network)
    chosen = search_positions(game, [network], options, states)
    for state, best, value in zip(states, chosen.best, chosen.values, strict=True):
        analysis.start(state)
        assert analysis.more(0) == analysis.result().readouts > 0
        assert analysis.more(100) == 0
        found, mover = analysis.result(), int(game.to_play(state[None])[0])
        assert found.best_action == best == found.moves[0].action == analysis.policy.argmax()
        assert found.value == pytest.approx(value, abs=1e-5) == max(move.value for move in found.moves)
        assert sum(move.prior for move in found.moves) == pytest.approx(1)
        values = recursion.best(state, mover)
        assert {move.action for move in found.moves} == values.keys()
        for move in found.moves:
            assert turns > 1 or move.value == pytest.approx(values[move.action], abs=1e-5)
            after = state[None]
            for action in move.actions:
                assert game.legal(after)[0, action]
                after = game.step(after, np.array([action]))
            assert game.to_play(after)[0] != mover or is_for_one(game) or game.outcome(after)[0][0]


def test_a_model_that_plays_by_afterstates_is_analyzed_by_them() -> None:
    game = load_game("backgammon")
    model = seraphim.Model("backgammon", ArbitraryNetwork(game))
    (state,) = random_states(game, 1)
    found = model.analyze(state)
    assert found.best_action == model.player()(state[None])[0]
    assert found.readouts == sum(move.visits for move in found.moves)
    assert f", ends of turns: {found.readouts}\n" in str(found)
    assert "visits" not in str(found) + found._repr_html_()
    opponent = Opponent(game, model.inference, model.settings.search, PlayOptions(), np.random.default_rng(0))
    tree = GameTree(game)
    tree.play(0)
    assert opponent.read(tree, 100).best_action == opponent.choose(tree)
    opponent.change(replace(model.settings.search, root="puct", readouts=20), PlayOptions())
    assert opponent.read(tree, 20).readouts == 20


def test_a_network_that_gives_no_numbers_is_an_error() -> None:
    game = GAMES[1]

    class Diverged(ArbitraryNetwork):
        def infer(self, observations: Array) -> tuple[Array, Array]:
            logits, values = super().infer(observations)
            return logits, np.where(np.arange(len(values)) == 1, np.nan, values)

    search = AfterstateSearch(game, Diverged(game), OPTIONS, 2)
    search.begin(np.arange(2), game.initial(2))
    with pytest.raises(ModelError, match="finite numbers are expected"):
        search.run()


def test_more_than_two_players_and_options_of_a_tree_are_refused() -> None:
    with pytest.raises(SettingsError, match="root must not be afterstates in threes, which is for more than two"):
        seraphim.Model("threes", root="afterstates")
    with pytest.raises(SettingsError, match="fast_wins needs a game that offers progress"):
        AfterstateSearch(GAMES[0], ArbitraryNetwork(GAMES[0]), replace(OPTIONS, solver=False, fast_wins=0.5), 1)


def select_first(*_: object) -> int:
    return 0


def test_readouts_are_refused_where_they_change_nothing() -> None:
    model = seraphim.Model("tictactoe", root="afterstates")
    assert seraphim.match(model, "random", games=20).score > 0.5
    with pytest.raises(SettingsError, match="readouts change nothing here: .* plays by afterstates"):
        seraphim.match(model, "random", games=20, readouts=5)
    for ask in (model.analyze, model.play):
        with pytest.raises(SettingsError, match="readouts change nothing here: .* plays by afterstates"):
            ask("", readouts=5)
    assert str(model.review("b2 a1", seconds=0)).startswith("tictactoe, whole turns valued; of 2 moves ")
    with pytest.raises(SettingsError, match="a tree policy replaces PUCT, but afterstates are searched without a tree"):
        make_search(GAMES[1], ArbitraryNetwork(GAMES[1]), OPTIONS, 1, select_first)


def test_distinct_states_come_in_the_order_in_which_they_were_met() -> None:
    states = np.array([[3, 1], [2, 2], [3, 1], [1, 3], [2, 2]])
    firsts, places = distinct(states)
    assert firsts.tolist() == [0, 1, 3]
    assert places.tolist() == [0, 1, 0, 2, 1]
