"""Self-play: what a game's record says, and what the game depends on."""

import threading
import time
from dataclasses import replace
from itertools import chain, count, pairwise

import games
import numpy as np
import pytest
from reference import ArbitraryNetwork

from seraphim.errors import ModelError, SettingsError
from seraphim.game import Game, PlainGame, PlainRules
from seraphim.options import SearchOptions, SelfPlayOptions
from seraphim.records.examples import GameRecord, encode_games
from seraphim.search import naive
from seraphim.search.evaluator import Uniform
from seraphim.search.rng import dirichlet
from seraphim.selfplay.games import PURPOSES, SelfPlay, game_id, number_in, ply_streams
from seraphim.selfplay.pool import play_games, play_together
from seraphim.settings import Settings
from tictactoe.game import TicTacToe

pytestmark = pytest.mark.kernels

GAME = TicTacToe()
OPTIONS = SearchOptions(readouts=20, tempering_point=4, solver=False)
AS_OPTIONS = {"root": "puct", "readouts": 20, "solver": False}


def played(
    game: Game, num_games: int, concurrent: int = 16, stream: str = "a", options: SearchOptions = OPTIONS, seed: int = 0
) -> list[GameRecord]:
    player = SelfPlay(game, ArbitraryNetwork(game, seed), options, SelfPlayOptions(concurrent, random_plies=0), stream)
    records = list(player.play(iter(range(num_games))))
    return sorted(records, key=lambda record: number_in(record.game_id))


def same(first: GameRecord, second: GameRecord) -> bool:
    pairs = zip(first, second, strict=True)
    return all(np.array_equal(mine, other) for mine, other in pairs)


def test_each_number_is_played_once() -> None:
    for num_games in (0, 1, 15, 16, 17, 50):
        assert [record.game_id for record in played(GAME, num_games)] == [game_id("a", n) for n in range(num_games)]


def test_a_record_is_a_legal_game_from_start_to_end() -> None:
    for record in played(GAME, 20):
        states = GAME.initial(1)
        for ply, action in enumerate(record.actions):
            assert record.states[ply].tolist() == states[0].tolist()
            assert GAME.legal(states)[0, action]
            assert record.policies[ply].sum() == pytest.approx(1.0)
            assert record.policies[ply][action] > 0
            assert not record.policies[ply][~GAME.legal(states)[0]].any()
            states = GAME.step(states, np.array([action]))
        ended, result = GAME.outcome(states)
        assert ended[0]
        assert record.result == result[0]


def test_a_game_depends_on_its_stream_and_number_alone() -> None:
    together = played(GAME, 40, concurrent=40)
    a_few_at_a_time = played(GAME, 40, concurrent=3)
    assert all(same(mine, other) for mine, other in zip(together, a_few_at_a_time, strict=True))
    elsewhere = played(GAME, 40, stream="b")
    assert (
        sum(mine.actions.tolist() == other.actions.tolist() for mine, other in zip(together, elsewhere, strict=True))
        < 20
    )


def test_each_game_ply_and_purpose_has_a_random_stream_of_its_own() -> None:
    numbers, plies = (each.ravel() for each in np.indices((50, 200)))
    keys = [
        ply_streams(stream, numbers, plies, purpose).tolist() for stream in ("0-0", "0-100") for purpose in PURPOSES
    ]
    assert len(set(chain(*keys))) == 2 * len(PURPOSES) * 50 * 200


def test_games_of_one_stream_differ() -> None:
    assert len({tuple(record.actions) for record in played(GAME, 40)}) > 30


def naive_moves(record: GameRecord, options: SearchOptions) -> list[int]:
    """The best moves in the positions of a game, by naive searches that go on with the tree below the moves made."""
    moves, root = [], None
    for state, action in zip(record.states, record.actions, strict=True):
        root = naive.search(GAME, ArbitraryNetwork(GAME), state, options, root)
        moves.append(naive.move_of(root, options).action)
        (root,) = (edge.child for edge in root.edges if edge.action == action)
    return moves


def test_the_temperature_of_play_leaves_the_recorded_policy_alone() -> None:
    warm = played(GAME, 16, options=SearchOptions(readouts=20, tempering_point=9, solver=False))
    cold = played(GAME, 16, options=SearchOptions(readouts=20, tempering_point=0, solver=False))
    # The same search of the same position under the same noise: only the move may differ.
    assert [record.policies[0].tolist() for record in warm] == [record.policies[0].tolist() for record in cold]
    assert any(mine.actions[0] != other.actions[0] for mine, other in zip(warm, cold, strict=True))


def test_what_is_recorded_is_what_naive_searches_find_under_the_noise_of_each_ply() -> None:
    options = SearchOptions(readouts=20, tempering_point=4, noise_coefficient=0.5, dirichlet_alpha=0.6, solver=False)
    for record in played(GAME, 4, options=options):
        numbers, plies = np.full(len(record.actions), number_in(record.game_id)), np.arange(len(record.actions))
        root = None
        for ply, key in enumerate(ply_streams("a", numbers, plies, purpose=PURPOSES[0])):
            noise = np.zeros(GAME.legal(record.states[ply : ply + 1]).sum())
            dirichlet(options.dirichlet_alpha, key, noise)
            root = naive.search(GAME, ArbitraryNetwork(GAME), record.states[ply], options, root, noise)
            policy = np.zeros(GAME.num_actions)
            for edge, weight in naive.policy_of(root, options).items():
                policy[edge.action] = weight
            np.testing.assert_allclose(record.policies[ply], policy, atol=1e-6)
            assert record.root_values[ply] == pytest.approx(naive.values_of(root, options)[root.mover], abs=1e-6)
            (root,) = (edge.child for edge in root.edges if edge.action == record.actions[ply])


@pytest.mark.parametrize("first", [0, 4])
def test_moves_are_the_best_from_the_tempering_point_on(first: int) -> None:
    options = SearchOptions(readouts=20, tempering_point=first, noise_coefficient=0.0, solver=False)
    early, most_visited = [], []
    for record in played(GAME, 30, options=options):
        best = naive_moves(record, options)
        assert record.actions[first:].tolist() == best[first:]
        early += (record.actions[:first] == best[:first]).tolist()
        most_visited += (record.policies[first:].argmax(axis=1) == best[first:]).tolist()
    assert all(early) == (first == 0)
    assert not all(most_visited)


def test_a_game_that_is_cut_off_has_no_result() -> None:
    game = PlainRules(games.Endless())
    records = played(game, 5)
    for record in records:
        assert record.result is None
        assert len(record.actions) == game.max_plies
    # The next game of a tree begins without what is left of one that was cut off.
    assert all(same(mine, other) for mine, other in zip(records, played(game, 5, concurrent=2), strict=True))


def test_players_who_move_twice_get_their_own_values() -> None:
    game = PlainRules(games.MovesTwice(heap=6))
    options = SearchOptions(readouts=400, noise_coefficient=0.0, tempering_point=0, solver=False)
    player = SelfPlay(game, Uniform(game), options, SelfPlayOptions(1, random_plies=0), "a")
    for record in player.play(iter(range(1))):
        sign = 1 - 2 * game.to_play(record.states).astype(int)
        # Play is perfect here, so every mover expects the result that comes.
        assert (np.sign(record.root_values) == np.sign(record.result * sign)).all()


def test_games_longer_than_the_first_allocation_are_kept_whole() -> None:
    game = PlainRules(games.Chain(plies=150))
    record = played(game, 1, options=SearchOptions(readouts=1, solver=False))[0]
    assert len(record.actions) == 150
    assert record.states[:, 0].tolist() == list(range(150))
    assert record.result == 1.0


def test_random_openings_are_not_recorded_and_reach_every_kind_of_position() -> None:
    player = SelfPlay(GAME, Uniform(GAME), OPTIONS, SelfPlayOptions(32, random_plies=6), "a")
    records = list(player.play(iter(range(400))))
    for record in records:
        stones = sum(int(word).bit_count() for word in record.states[0])
        assert stones == record.plies[0]
        assert len(record.actions) >= 1
    lengths = np.bincount([record.plies[0] for record in records], minlength=7)
    assert len(lengths) == 7
    assert lengths == pytest.approx(400 / 7, abs=40)  # a few of the long ones would have ended the game
    assert len({record.states[0].tobytes() for record in records}) > 200


@pytest.mark.parametrize(
    "options",
    [SearchOptions(readouts=16, root="gumbel", solver=False), SearchOptions(readouts=30, solver=True)],
    ids=["gumbel", "solver"],
)
def test_every_kind_of_search_plays_whole_games_that_depend_on_their_numbers_alone(options: SearchOptions) -> None:
    together = played(GAME, 20, concurrent=20, options=options)
    few = played(GAME, 20, concurrent=3, options=options)
    assert all(same(mine, other) for mine, other in zip(together, few, strict=True))
    for record in together:
        assert record.policies.sum(axis=1) == pytest.approx(1.0, abs=1e-5)


def test_workers_play_by_the_search_of_self_play() -> None:
    made = Settings("tictactoe", self_play=SelfPlayOptions(8, random_plies=0)).override(
        AS_OPTIONS | {"tempering_point": 4}
    )
    settings = made.override({"self_play_root": "gumbel", "self_play_readouts": 12})
    reports = list(play_games(GAME, Uniform(GAME), settings, "a", iter(range(20))))
    played_by_workers = [game for report in reports for game in report.games]
    player = SelfPlay(
        GAME, Uniform(GAME), replace(OPTIONS, root="gumbel", readouts=12), SelfPlayOptions(8, random_plies=0), "a"
    )
    records = list(player.play(iter(range(20))))
    assert [game.number for game in played_by_workers] == [number_in(record.game_id) for record in records]
    assert [game.examples for game in played_by_workers] == list(encode_games(GAME, records))
    assert reports[-1].work.readouts == 12 * sum(len(record.actions) for record in records)


def test_random_openings_depend_on_the_game_alone() -> None:
    found = []
    for concurrent in (2, 30):
        player = SelfPlay(GAME, Uniform(GAME), OPTIONS, SelfPlayOptions(concurrent, random_plies=4), "a")
        found.append(sorted(player.play(iter(range(30))), key=lambda record: number_in(record.game_id)))
    assert all(same(mine, other) for mine, other in zip(*found, strict=True))


def test_readouts_are_counted() -> None:
    player = SelfPlay(GAME, Uniform(GAME), OPTIONS, SelfPlayOptions(4, random_plies=0), "a")
    records = list(player.play(iter(range(9))))
    assert player.search.counters.readouts == 20 * sum(len(record.actions) for record in records)


def test_an_endless_supply_of_numbers_is_taken_one_by_one() -> None:
    numbers = count()
    stream = SelfPlay(GAME, Uniform(GAME), OPTIONS, SelfPlayOptions(4, random_plies=0), "a").play(numbers)
    for _ in range(10):
        next(stream)
    assert next(numbers) <= 14


@pytest.mark.parametrize("option", ["concurrent_games", "games_per_generation"])
def test_options_are_validated(option: str) -> None:
    with pytest.raises(SettingsError, match=f"{option} must be at least 1, not 0"):
        SelfPlayOptions(**{option: 0})


def test_an_option_that_may_be_zero_is_validated() -> None:
    with pytest.raises(SettingsError, match="random_plies must be at least 0, not -1"):
        SelfPlayOptions(random_plies=-1)


class Walk(PlainGame):
    """Steps to the left and the right, never to an end within `max_plies`."""

    name, num_actions, observation_shape, state_words, max_plies = "walk", 2, (4,), 2, 6

    def initial(self) -> tuple[int, int]:
        return (0, 0)

    def step(self, state: tuple[int, int], action: int) -> tuple[int, int]:
        return (state[0] + (1 if action else -1), 1 - state[1])

    def legal(self, state: tuple[int, int]) -> tuple[int, int]:
        return (0, 1)

    def to_play(self, state: tuple[int, int]) -> int:
        return state[1]

    def outcome(self, state: tuple[int, int]) -> float | None:
        return 1.0 if state[0] == 30 else None

    def observe(self, state: tuple[int, int]) -> list[int]:
        return [state[0] & 1, state[0] >> 1 & 1, state[1], 0]


def test_random_openings_leave_a_ply_to_play_or_are_refused_before_any_game() -> None:
    game = PlainRules(Walk())
    longest = SelfPlay(game, Uniform(game), OPTIONS, SelfPlayOptions(4, random_plies=5), "a")
    assert {len(record.actions) for record in longest.play(iter(range(60)))} == set(range(1, 7))
    with pytest.raises(SettingsError, match="random_plies must be below the 6 plies of walk, not 6"):
        SelfPlay(game, Uniform(game), OPTIONS, SelfPlayOptions(4, random_plies=6), "a")


def test_abandoned_games_leave_nothing_behind() -> None:
    player = SelfPlay(GAME, ArbitraryNetwork(GAME), OPTIONS, SelfPlayOptions(16, random_plies=0), "a")
    games = player.play(count())
    for _ in range(5):
        next(games)
    again = sorted(player.play(iter(range(20))), key=lambda record: number_in(record.game_id))
    assert all(same(one, other) for one, other in zip(again, played(GAME, 20), strict=True))


def test_a_share_of_the_games_begins_with_random_moves() -> None:
    options = SelfPlayOptions(16, random_plies=3, random_share=0.4)
    player = SelfPlay(GAME, Uniform(GAME), SearchOptions(readouts=2, solver=False), options, "a")
    plies = [record.plies[0] for record in player.play(iter(range(600)))]
    counts = np.bincount(plies, minlength=4) / len(plies)
    assert counts == pytest.approx([0.7, 0.1, 0.1, 0.1], abs=0.05)


class Elsewhere(ArbitraryNetwork):
    """Takes its time, and leaves the processor free meanwhile."""

    overlaps = True

    def infer(self, observations):
        time.sleep(0.004)
        return super().infer(observations)


def together(groups: int, network: type[ArbitraryNetwork], games: int = 60, stream: str = "a") -> list[GameRecord]:
    options = SelfPlayOptions(24 // groups, random_plies=0)
    players = [SelfPlay(GAME, network(GAME), OPTIONS, options, stream) for _ in range(groups)]
    records = chain.from_iterable(play_together(players, iter(range(games))))
    return sorted(records, key=lambda record: number_in(record.game_id))


@pytest.mark.parametrize("groups", [1, 2, 3])
def test_several_players_play_the_games_that_one_plays(groups: int) -> None:
    assert all(same(one, other) for one, other in zip(together(groups, Elsewhere), played(GAME, 60), strict=True))


def test_two_groups_go_on_while_the_network_works() -> None:
    spans: list[tuple[float, float]] = []

    class Watched(Elsewhere):
        def infer(self, observations):
            start = time.perf_counter()
            outputs = super().infer(observations)
            spans.append((start, time.perf_counter()))
            return outputs

    def overlapping(groups: int) -> int:
        spans.clear()
        together(groups, Watched)
        return sum(start < end for (_, end), (start, _) in pairwise(sorted(spans)))

    assert overlapping(1) == 0
    assert overlapping(2) > len(spans) // 4


@pytest.mark.parametrize("overlaps", [True, False])
def test_a_worker_has_two_groups_where_the_network_is_elsewhere(
    overlaps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Elsewhere, "overlaps", overlaps)
    threads: set[int] = set()

    class Watched(Elsewhere):
        def infer(self, observations):
            threads.add(threading.get_ident())
            return super().infer(observations)

    settings = Settings("tictactoe", self_play=SelfPlayOptions(8, random_plies=0)).override(AS_OPTIONS)
    reports = list(play_games(GAME, Watched(GAME), settings, "a", iter(range(60))))
    assert len(threads) == (2 if overlaps else 1)
    assert sorted(game.number for report in reports for game in report.games) == list(range(60))


def test_batches_are_as_full_where_the_network_is_elsewhere() -> None:
    settings = Settings("tictactoe", self_play=SelfPlayOptions(22, random_plies=0)).override(AS_OPTIONS)
    fills, batches = [], []

    class Watched(ArbitraryNetwork):
        def infer(self, observations):
            batches.append(len(observations))
            return super().infer(observations)

    for overlaps in (False, True):
        network = Watched(GAME)
        network.overlaps = overlaps
        batches.clear()
        *_, report = play_games(GAME, network, settings, "a", iter(range(100)))
        assert report.work.evaluations == sum(batches)
        assert report.work.batch_capacity == max(batches) * len(batches)
        fills.append(report.work.evaluations / report.work.batch_capacity)
    assert 0.75 < min(fills) <= max(fills) <= 1  # the last batches of a run are smaller


def test_an_error_in_one_group_is_raised() -> None:
    class Broken(Elsewhere):
        def infer(self, observations):
            raise ModelError("broken")

    with pytest.raises(ModelError, match="broken"):
        together(2, Broken)


def test_what_fast_wins_are_worth_is_recorded() -> None:
    records = played(GAME, 60, options=replace(OPTIONS, fast_wins=0.8))
    worth = {5: 1.0, 6: 0.8, 7: 0.6, 8: 0.4, 9: 0.2}
    lengths = set()
    for record in records:
        assert record.result is not None
        last = GAME.step(record.states[-1:], record.actions[-1:])
        result = GAME.outcome(last)[1][0]
        assert record.result == pytest.approx(result * worth[len(record.actions)], abs=1e-6)
        lengths |= {len(record.actions)} if result else set()
    assert len(lengths) > 2
