"""Self-play where chance moves, or one player plays alone: what is recorded, what is drawn, and what is learned."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from reference import ArbitraryNetwork

from pig.game import Pig
from pig.plain import PlainPig
from seraphim.errors import GameError
from seraphim.game import CHANCE, Array, Game, PlainRules, load_game, random_actions
from seraphim.game.notation import followers
from seraphim.options import SearchOptions, SelfPlayOptions
from seraphim.records.examples import GameRecord, Positions, decode, encode_games
from seraphim.search import naive
from seraphim.search.search import Search
from seraphim.selfplay.games import FORCED_READOUTS, PURPOSES, SelfPlay, ply_streams
from seraphim.training.averaging import averaged
from seraphim.training.targets import to_targets
from twenty48.game import Twenty48

pytestmark = pytest.mark.kernels

PIG, BOARD = Pig(10), Twenty48(2, 2)
GAMES = [PIG, BOARD]
PUCT = SearchOptions(readouts=15, tempering_point=5)


def by_name(game: Game) -> str:
    return game.name


def played(
    game: Game, num_games: int, concurrent: int = 16, options: SearchOptions = PUCT, random_plies: int = 0
) -> list[GameRecord]:
    self_play = SelfPlayOptions(concurrent, random_plies=random_plies)
    player = SelfPlay(game, ArbitraryNetwork(game), options, self_play, "a")
    return sorted(player.play(iter(range(num_games))), key=lambda record: int(record.game_id.split("-")[1]))


def after(game: Game, states: Array, moves: int) -> set[bytes]:
    """All states that follow by some outcomes of chance, one after the other."""
    for _ in range(moves):
        rows, outcomes = np.nonzero(followers(game, states))
        states = np.unique(game.step(states[rows], outcomes), axis=0)
    return {state.tobytes() for state in states}


@pytest.mark.parametrize("game", GAMES, ids=by_name)
def test_between_two_positions_chance_moves_as_often_as_the_plies_say(game: Game) -> None:
    for record in played(game, 20):
        plies = np.asarray(record.plies)
        assert plies[0] == {PIG: 0, BOARD: 2}[game]
        assert record.states[0].tobytes() in after(game, game.initial(1), int(plies[0]))
        assert (game.to_play(record.states) >= 0).all()
        assert game.legal(record.states)[np.arange(len(plies)), record.actions].all()
        moved = game.step(record.states, record.actions)
        for place, (ply, following) in enumerate(pairwise(plies.tolist())):
            assert record.states[place + 1].tobytes() in after(game, moved[[place]], following - ply - 1)


@pytest.mark.parametrize("game", GAMES, ids=by_name)
def test_the_result_is_that_of_the_rules_after_the_last_move(game: Game) -> None:
    records = played(game, 20)
    for record in records:
        last = game.step(record.states[-1:], record.actions[-1:])
        if game.to_play(last)[0] == CHANCE:  # a tile is added, after which nothing moves
            rows, outcomes = np.nonzero(followers(game, last))
            last = game.step(last[rows], outcomes)
        ended, results = game.outcome(last)
        assert record.result in results.reshape(len(last), -1)[ended, 0]
    assert len({record.result for record in records}) > 1


@pytest.mark.parametrize("root", ["puct", "gumbel"])
@pytest.mark.parametrize("game", GAMES, ids=by_name)
def test_a_game_depends_on_its_number_alone(game: Game, root: str) -> None:
    options = SearchOptions(readouts=15, root=root)
    together, alone = (played(game, 12, concurrent, options, random_plies=4) for concurrent in (12, 1))
    for mine, other in zip(together, alone, strict=True):
        assert all(np.array_equal(one, two) for one, two in zip(mine, other, strict=True))
    assert len({tuple(record.actions) for record in together}) > 6


def test_outcomes_have_random_streams_of_their_own() -> None:
    numbers, plies = (each.ravel() for each in np.indices((50, 200)))
    keys = [ply_streams("0-0", numbers, plies, purpose).tolist() for purpose in PURPOSES]
    keys.append(ply_streams("0-0 chance", numbers, plies, 0).tolist())
    assert len({key for column in keys for key in column}) == (len(PURPOSES) + 1) * 50 * 200


def test_outcomes_come_by_their_probabilities() -> None:
    rolls = np.zeros(6)
    for record in played(Pig(20), 300, 64, SearchOptions(readouts=2)):
        for place, (ply, following) in enumerate(pairwise(np.asarray(record.plies).tolist())):
            if following - ply == 2:
                turn = record.states[place + 1][2] - record.states[place][2]
                rolls[turn - 1 if turn > 0 else 0] += 1
    expected = rolls.sum() / 6
    assert rolls.sum() > 3000
    assert (abs(rolls - expected) < 4 * np.sqrt(expected)).all()


def first_root(game: Game, network: ArbitraryNetwork, record: GameRecord, place: int) -> naive.Node:
    """Return the root of a new tree, below which chance draws by a key of its own."""
    number, ply = (np.array([each]) for each in (int(record.game_id.split("-")[1]), record.plies[place]))
    root = naive.evaluate(game, network, record.states[place])
    root.visits, root.key = 1, int(ply_streams("a", number, ply, PURPOSES[0])[0])
    return root


@pytest.mark.parametrize("game", GAMES, ids=by_name)
def test_what_is_recorded_is_what_naive_searches_find_that_go_on_below_moves_and_outcomes(game: Game) -> None:
    options = SearchOptions(readouts=15, noise_coefficient=0, solver=False)
    network = ArbitraryNetwork(game)
    for record in played(game, 3, options=options):
        root = None
        for place, state in enumerate(record.states):
            if root is None:
                root = first_root(game, network, record, place)
            forced = game.legal(state[None]).sum() == 1
            readouts = FORCED_READOUTS if forced else options.readouts
            root = naive.search(game, network, state, replace(options, readouts=readouts), root)
            policy = np.zeros(game.num_actions)
            for edge, weight in naive.policy_of(root, options).items():
                policy[edge.action] = weight
            np.testing.assert_allclose(record.policies[place], policy, atol=1e-6)
            assert record.root_values[place] == pytest.approx(naive.values_of(root, options)[root.mover], abs=1e-6)
            (root,) = (edge.child for edge in root.edges if edge.action == record.actions[place])
            if root is not None and root.offset is not None and place + 1 < len(record.states):
                after_outcomes = game.step(np.repeat(root.state[None], 8, axis=0), np.arange(8))
                same = (after_outcomes == record.states[place + 1]).all(axis=1)
                outcome = int(np.flatnonzero(same)[0])
                root = next(edge.child for edge in root.edges if edge.action == outcome)


@pytest.mark.parametrize("root", ["puct", "gumbel"])
def test_searches_of_the_same_position_in_many_games_take_all_outcomes_alike(root: str) -> None:
    # A few readouts take some outcomes more often; if those were the same ones everywhere, the network would learn so.
    records = played(PIG, 600, 64, replace(PUCT, readouts=1, root=root, solver=False))
    rolled = PIG.step(PIG.step(PIG.initial(6), np.zeros(6, np.int64)), np.arange(6))
    nodes = [naive.evaluate(PIG, ArbitraryNetwork(PIG), state) for state in rolled]
    values = np.array([node.value if node.mover == 0 else -node.value for node in nodes])
    values = values / 6 + 5 / 6 * naive.evaluate(PIG, ArbitraryNetwork(PIG), PIG.initial(1)[0]).value
    taken = [int(abs(values - record.root_values[0]).argmin()) for record in records]
    assert (abs(np.bincount(taken, minlength=6) - 100) < 4 * np.sqrt(100)).all()


def test_trees_follow_the_outcomes_of_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    began: list[tuple[int, bytes, bytes]] = []
    begin = Search.begin

    def check_root(self: Search, trees: Array, states: Array, *others: object) -> None:
        width = self.trees.progress.shape[0]
        for tree, state in zip(trees.tolist(), states, strict=True):
            if self.trees.progress[tree]["num_nodes"]:
                node = tree * (len(self.trees.nodes) // width)
                began.append((tree, self.trees.states[node].tobytes(), state.tobytes()))
        begin(self, trees, states, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(Search, "begin", check_root)
    for game in GAMES:
        began.clear()
        played(game, 8)
        assert len(began) > 20
        assert all(root == state for _, root, state in began)


def test_a_player_alone_gets_what_the_last_search_expected_when_the_game_is_cut_off() -> None:
    game = Twenty48(2, 2)
    game.max_plies = 8
    records = played(game, 10)
    cut_off = []
    for record in records:
        added = game.step(np.repeat(game.step(record.states[-1:], record.actions[-1:]), 8, axis=0), np.arange(8))
        if np.asarray(record.plies)[-1] == 6 and not game.outcome(added)[0].any():
            cut_off.append(record)
    assert cut_off
    for record in cut_off:
        assert record.result == record.root_values[-1]
    (examples, *_) = encode_games(game, cut_off)
    assert (decode(game, examples).value_weights == 1).all()


def test_random_openings_follow_the_rules_and_are_not_recorded() -> None:
    firsts = [int(np.asarray(record.plies)[0]) for record in played(BOARD, 60, random_plies=5)]
    assert min(firsts) == 2
    assert max(firsts) == 2 + 2 * 5  # a move, and a tile, each time


def test_a_game_that_may_end_before_a_move_is_refused() -> None:
    class Empty(Pig):
        def initial(self, batch: int) -> Array:
            return np.tile(np.array([9, 0, 0, 0, 1], np.int64), (batch, 1))

        def step(self, states: Array, actions: Array) -> Array:
            after = super().step(states, actions)
            after[after[:, 2] > 4, 0] = 10
            return after

    with pytest.raises(GameError, match="can end before a player has moved"):
        played(Empty(10), 20)


def test_a_game_that_may_be_cut_off_before_a_move_is_refused() -> None:
    game = Twenty48(2, 2)
    game.max_plies = 2  # the two first tiles
    with pytest.raises(GameError, match="can be cut off before a player has moved: raise its max_plies of 2"):
        played(game, 20)


# ---------------------------------------------------------------- what is learned


def test_the_target_is_what_is_not_banked_yet() -> None:
    records = played(BOARD, 30)
    positions = decode(BOARD, [example for game in encode_games(BOARD, records) for example in game])
    targets, clipped = to_targets(BOARD, positions)
    assert clipped == 0
    results = np.concatenate([np.full(len(record.actions), record.result) for record in records])
    scores = positions.states[:, 2]
    rest = results * BOARD.points - scores
    np.testing.assert_allclose(targets.values * BOARD.value_scale * BOARD.points, rest, atol=1e-3)
    assert (targets.states[:, 2] == 0).all()
    assert (positions.states[:, 2] > 0).any()  # they were not changed
    assert to_targets(PIG, positions).positions is positions


def of_random_backgammon(moves: int) -> tuple[Game, Positions]:
    game, random = load_game("backgammon"), np.random.default_rng(1)
    state, states, actions = game.initial(1), list[Array](), list[int]()
    while len(states) < moves:
        (action,) = random_actions(followers(game, state), random)
        if game.to_play(state)[0] != CHANCE:
            states, actions = [*states, state[0]], [*actions, int(action)]
        state = game.step(state, np.array([action]))
    policies = np.eye(game.num_actions, dtype=np.float32)[actions]
    record = GameRecord("a-0", np.stack(states), np.array(actions), policies, np.zeros(moves, np.float32), 1 / 3)
    return game, decode(game, encode_games(game, [record])[0])


def test_where_results_are_points_the_error_of_a_value_is_in_points() -> None:
    game, positions = of_random_backgammon(10)
    targets = to_targets(game, positions).positions
    assert targets.value_weights.tolist() == [9.0] * len(positions.values)
    assert targets.values.tolist() == positions.values.tolist()


def test_a_move_without_a_choice_teaches_no_policy() -> None:
    game, positions = of_random_backgammon(40)
    choices = game.legal(positions.states).sum(axis=1)
    assert positions.policy_weights.tolist() == (choices > 1).astype(float).tolist()
    assert choices.min() == 1 < choices.max()


def test_boards_that_differ_in_their_score_are_one_position_to_learn() -> None:
    records = played(BOARD, 30)
    positions = decode(BOARD, [example for game in encode_games(BOARD, records) for example in game])
    boards = np.unique(positions.states[:, :2], axis=0)
    merged = averaged(to_targets(BOARD, positions).positions)
    assert len(merged.states) == len(boards) < len(np.unique(positions.states, axis=0))
    for state, value in list(zip(merged.states, merged.values, strict=True))[:50]:
        same = (positions.states[:, :2] == state[:2]).all(axis=1)
        expected = (positions.values[same] - positions.states[same, 2] / BOARD.points).mean()
        assert value == pytest.approx(expected / BOARD.value_scale, abs=1e-5)


def test_targets_beyond_what_the_network_can_say_are_clipped_and_counted() -> None:
    class Scaled(Twenty48):
        value_scale = 0.02

    game = Scaled(2, 2)
    records = played(game, 30)
    positions = decode(game, [example for each in encode_games(game, records) for example in each])
    targets, clipped = to_targets(game, positions)
    exact = (positions.values - positions.states[:, 2] / np.float32(game.points)) / 0.02
    assert clipped == pytest.approx((abs(exact) > 1).mean(), abs=1e-9)
    assert 0 < clipped < 1
    np.testing.assert_allclose(targets.values, np.clip(exact, -1, 1), atol=1e-5)


def test_plain_rules_play_the_same_games() -> None:
    mine, other = played(PIG, 5), played(PlainRules(PlainPig(10)), 5)
    for one, two in zip(mine, other, strict=True):
        assert one.actions.tolist() == two.actions.tolist()
        assert one.result == two.result
