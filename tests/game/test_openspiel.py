"""Games of OpenSpiel as ours: the contract, the same play as OpenSpiel itself, and what is refused."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyspiel
import pytest

from pig.game import Pig
from seraphim.errors import GameError
from seraphim.game import CHANCE, EMPTY, Array, Board, Game, board_of, load_game, load_game_module
from seraphim.game.conformance import check_game
from seraphim.game.notation import followers, format_moves, label_in, parse_moves
from seraphim.game.openspiel import MOST_PLIES, SPARE_PLIES, OpenSpielGame, StateCache, playable_games
from seraphim.game.saved_games import check_position
from seraphim.game.tree import GameTree
from seraphim.options import SearchOptions
from seraphim.records.examples import GameRecord, decode, encode
from seraphim.records.tfrecord import FRAME_BYTES
from seraphim.search import naive
from seraphim.search.evaluator import Uniform
from seraphim.search.search import Search
from seraphim.terminal import game_files


def test_every_game_that_qualifies_is_offered() -> None:
    games = playable_games()
    assert {"chess", "go", "hex", "othello", "breakthrough", "mancala", "tic_tac_toe"} <= set(games)
    assert {"2048", "backgammon", "catch", "cliff_walking", "pig", "yacht"} <= set(games)  # chance, one player
    # Hidden; at once; no probabilities; for more than two.
    assert not {"kuhn_poker", "solitaire", "oshi_zumo", "stones_and_gems", "euchre"} & set(games)
    assert len(games) > 35


# Moves twice in a row; many actions and planes with fractions; a pass; longer than is played here; no planes.
# Chance first, twice in a row, with fewer or more outcomes than actions; one player, with rewards or without; three or
# four players.
@pytest.mark.parametrize(
    "name",
    [
        *("hex(board_size=3)", "dots_and_boxes", "chess", "go(board_size=5)", "mancala", "nim"),
        *("pig(winscore=20)", "backgammon(hyper_backgammon=True)", "einstein_wurfelt_nicht", "chess(chess960=True)"),
        *("2048(max_tile=32)", "catch", "cliff_walking", "yacht(num_dice=2)"),
        *("pig(players=3,winscore=20)", "chinese_checkers(players=3)", "maedn(players=4,twoPlayersOpposite=False)"),
    ],
)
def test_games_keep_the_contract(name: str) -> None:
    report = check_game(load_game(f"openspiel:{name}"), games=2)
    assert report.games == 2


def with_switches() -> list[str]:
    """Each game, and each game with one of its parameters that are true or false turned over."""
    found = []
    for kind in (each for each in pyspiel.registered_games() if each.short_name in playable_games()):
        switches = {key: value for key, value in kind.parameter_specification.items() if isinstance(value, bool)}
        found += [kind.short_name, *(f"{kind.short_name}({key}={not value})" for key, value in switches.items())]
    return found


@pytest.mark.parametrize("name", with_switches())
def test_two_players_move_by_turns_or_the_game_is_refused(name: str) -> None:
    # By play: OpenSpiel declares kinds of games, before it knows the parameters.
    theirs, random = pyspiel.load_game(name).new_initial_state(), np.random.default_rng(1)
    game, first, players = load_game(f"openspiel:{name}"), None, range(theirs.num_players())
    state = game.initial(1)
    while not (theirs.is_terminal() or state[0, 0] == game.max_plies):
        if theirs.is_chance_node():
            assert game.to_play(state)[0] == CHANCE
        else:
            assert theirs.current_player() in players
            first = theirs.current_player() if first is None and name != "backgammon" else first or 0
            assert game.to_play(state)[0] == (theirs.current_player() != first)
        action = int(random.choice(theirs.legal_actions()))
        state = game.step(state, np.array([action]))
        theirs.apply_action(action)
    if theirs.is_terminal() and len(players) == 2:
        assert sum(theirs.returns()) == 0
        assert game.outcome(state)[1][0] == np.float32(theirs.returns()[first or 0] / theirs.get_game().max_utility())


def test_chance_that_comes_during_a_game_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    game = OpenSpielGame("tic_tac_toe")
    monkeypatch.setattr(game, "_game", pyspiel.load_game("pig"))  # whose player rolls a die after the first action
    for refused in (lambda: game.step(game.initial(1), np.array([0])), lambda: game.legal(np.array([[1, 0]]))):
        with pytest.raises(GameError, match="openspiel:tic_tac_toe is not supported: it has chance$"):
            refused()


@pytest.mark.parametrize(
    "name",
    [
        *("pig", "2048", "catch", "cliff_walking", "einstein_wurfelt_nicht", "yacht(players=1,num_dice=2)"),
        "backgammon(scoring_type=full_scoring)",
    ],
)
def test_chance_and_rewards_are_openspiels(name: str) -> None:
    game: Any = load_game(f"openspiel:{name}")
    theirs = pyspiel.load_game(name).new_initial_state()
    points, random = game.points or 1, np.random.default_rng(1)
    state, first = game.initial(1), 0 if name.startswith("backgammon") else None
    while not theirs.is_terminal():
        assert state[0, 0] < game.max_plies
        legal = np.flatnonzero(game.legal(state)[0]).tolist()
        if theirs.is_chance_node():
            assert legal == []
            assert np.flatnonzero(game.chances(state)[0]).tolist() == theirs.legal_actions()
            for outcome, probability in theirs.chance_outcomes():
                assert game.chances(state)[0, outcome] == pytest.approx(probability)
        else:
            first = theirs.current_player() if first is None else first
            assert legal == theirs.legal_actions()
            assert game.chances is None or not game.chances(state).any()
        if game.banked is not None:
            assert points * game.banked(state)[0, 0] == pytest.approx(theirs.returns()[0])
        assert game.outcome(state)[0].tolist() == [False]
        action = int(random.choice(theirs.legal_actions()))
        state = game.step(state, np.array([action]))
        theirs.apply_action(action)
    ended, results = game.outcome(state)
    assert ended[0]
    assert points * results.ravel()[0] == pytest.approx(theirs.returns()[first or 0])
    assert results.shape == ((1, 1) if game.num_players == 1 else (1,))


@pytest.mark.parametrize(
    "name", ["pig(players=3,winscore=30)", "pig(players=8,winscore=20)", "yacht(players=3,num_dice=2)"]
)
@pytest.mark.parametrize("first", [0, 2])
def test_three_and_more_players_are_openspiels(name: str, first: int) -> None:
    game: Any = OpenSpielGame(name)
    game._first = first  # where OpenSpiel lets another player begin, the numbers follow from there
    theirs, random, seen = pyspiel.load_game(name).new_initial_state(), np.random.default_rng(1), set()
    state, players = game.initial(1), theirs.num_players()
    while not theirs.is_terminal():
        assert game.outcome(state)[0].tolist() == [False]
        if not theirs.is_chance_node():
            mover = (theirs.current_player() - first) % players
            seen.add(mover)
            assert game.to_play(state)[0] == mover
            assert np.flatnonzero(game.legal(state)[0]).tolist() == theirs.legal_actions()
            (observation,) = game.observe(state)
            assert observation[-1] == mover
            tensor = np.array(theirs.observation_tensor(theirs.current_player()))
            whole = tensor == np.round(tensor)
            assert np.array_equal(observation[:-1][whole] > 0, tensor[whole] > 0)
        action = int(random.choice(theirs.legal_actions()))
        state = game.step(state, np.array([action]))
        theirs.apply_action(action)
    ended, results = game.outcome(state)
    assert ended.tolist() == [True]
    assert seen == set(range(game.num_players)) == set(range(players))
    returns = np.array([theirs.returns()[(first + seat) % players] for seat in range(players)])
    assert (game.points or 1) * results[0] == pytest.approx(returns)
    assert results.dtype == np.float32
    assert len(set(returns.tolist())) > 1


def test_a_score_beyond_what_openspiel_says_is_possible_counts_as_that(monkeypatch: pytest.MonkeyPatch) -> None:
    game = OpenSpielGame("2048")
    assert game.points == 20480
    state = game.initial(1)
    monkeypatch.setattr(game, "_best_return", 4.0)
    while game.outcome(state)[1][0, 0] == 0:
        state = game.step(state, followers(game, state).argmax(axis=1))
        assert 0 <= game.banked(state)[0, 0] <= 1  # type: ignore[misc]
    assert game.outcome(state)[1][0, 0] == 1


def test_large_tiles_are_told_apart() -> None:
    game = load_game("openspiel:2048")
    assert game.observe(game.step(game.initial(1), np.array([31])))[0, :, :, 0].tolist() == [
        *([[0, 0, 0, 0]] * 3),
        [0, 0, 0, 37],  # 16 log2(1 + 4)
    ]
    grown: Any = OpenSpielGame("2048")
    seen = list[int]()
    for tile in (0, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048):
        grown._tensor = lambda _, tile=tile: np.full(grown._planes, float(tile))
        seen.append(int(grown.observe(grown.initial(1)).max()))
    assert seen == sorted(set(seen))
    assert seen[0] == 0
    assert seen[-1] < 255


@pytest.mark.parametrize("plies", [20, 21])  # a player moves, or chance
def test_where_there_is_no_room_for_more_plies_a_score_counts(plies: int, monkeypatch: pytest.MonkeyPatch) -> None:
    game: Any = OpenSpielGame("2048")
    assert game.is_position is None  # 8,192 plies are too many
    monkeypatch.setattr(game, "_horizon", plies)
    state = game.initial(1)
    for _ in range(plies):
        assert game.outcome(state)[0].tolist() == [False]
        state = game.step(state, followers(game, state).argmax(axis=1))
    assert not followers(game, state).any()
    assert game.to_play(state).tolist() == [0]
    ended, results = game.outcome(state)
    assert ended.tolist() == [True]
    assert results[0, 0] == game.banked(state)[0, 0] > 0
    assert game.observe(state).shape == (1, 4, 4, 2)


@pytest.mark.parametrize(
    ("name", "moves"),
    [
        ("pig", "roll 3 roll 6 stop roll 1 stop"),
        ("backgammon", "21 roll"),
        ("yacht", "4.4.6.5.1 Reroll_dice:_0.1 6.2"),
        ("2048", "2_added_to_row_1.column_1 4_added_to_row_4.column_4 Down"),
    ],
)
def test_outcomes_have_short_names_that_are_read_again(name: str, moves: str) -> None:
    game = load_game(f"openspiel:{name}")
    if name == "backgammon":
        start = game.step(game.initial(1), np.array(parse_moves(game, "21")))[0]
        moves = f"21 {label_in(game, start, int(game.legal(start[None])[0].argmax()))} 66"
    assert format_moves(game, parse_moves(game, moves)) == moves


class FreePig(Pig):
    """Pig as OpenSpiel has it, where one may hold nothing."""

    def legal(self, states: Array) -> Array:
        legal = super().legal(states)
        legal[:, 1] = (states[:, -1] == 0) & ~self.outcome(states)[0]
        return legal


@pytest.mark.parametrize(
    ("root", "solver"),
    [
        ("puct", False),
        ("gumbel", True),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in (("puct", True), ("gumbel", False))),
    ],
)
def test_the_search_is_the_same_in_our_pig_and_in_openspiels(root: str, solver: bool) -> None:
    # States of OpenSpiel are histories, so no position is met again: nor here, without a cache.
    options = SearchOptions(readouts=50, root=root, solver=solver, cache_megabytes=0)
    games: tuple[Game, ...] = (FreePig(12), load_game("openspiel:pig(winscore=12)"))
    random, moved = np.random.default_rng(0), 0
    states = [game.initial(1) for game in games]
    while not games[0].outcome(states[0])[0][0]:
        assert games[0].to_play(states[0]) == games[1].to_play(states[1])
        followed = [followers(game, state)[0].tolist() for game, state in zip(games, states, strict=True)]
        assert followed[0] == followed[1]
        if games[0].to_play(states[0])[0] != CHANCE:
            found = []
            for game, state in zip(games, states, strict=True):
                search, tree = Search(game, Uniform(game), options, 1), np.array([0])
                search.begin(tree, state)
                search.run()
                result = search.result(tree)
                one = naive.search(game, Uniform(game), state[0], options)
                assert result.visits[0].tolist() == naive.visits(one, 2).tolist()
                found.append((result.visits[0].tolist(), float(result.values[0]), bool(result.proven[0])))
            assert found[0] == found[1]
            moved += 1
        chosen = np.array([random.choice(np.flatnonzero(followed[0]))])
        states = [game.step(state, chosen) for game, state in zip(games, states, strict=True)]
    assert games[1].outcome(states[1])[1] == games[0].outcome(states[0])[1]
    assert moved > 10


@pytest.mark.parametrize("name", ["breakthrough(rows=6,columns=6)", "checkers", "ultimate_tic_tac_toe"])
def test_a_game_is_played_as_openspiel_plays_it(name: str) -> None:
    game, theirs = load_game(f"openspiel:{name}"), pyspiel.load_game(name).new_initial_state()
    state, random, first = game.initial(1), np.random.default_rng(1), theirs.current_player()
    while not theirs.is_terminal():
        assert not game.outcome(state)[0][0]
        assert np.flatnonzero(game.legal(state)[0]).tolist() == theirs.legal_actions()
        assert game.to_play(state)[0] == (theirs.current_player() != first)
        planes = np.array(theirs.observation_tensor()).reshape(-1, *game.observation_shape[:-1])
        observation = game.observe(state)[0]
        np.testing.assert_array_equal(np.moveaxis(observation[..., :-1], -1, 0), planes)
        assert (observation[..., -1] == (theirs.current_player() != first)).all()
        assert game.render(state[0]) == str(theirs)
        action = int(random.choice(theirs.legal_actions()))
        state = game.step(state, np.array([action]))
        theirs.apply_action(action)
    ended, results = game.outcome(state)
    assert ended[0]
    assert results[0] == theirs.returns()[first]
    assert not game.legal(state).any()


def test_a_state_is_found_again_from_its_words_alone() -> None:
    state = load_game("openspiel:othello").initial(1)
    for _ in range(20):
        game = load_game("openspiel:othello")
        state = game.step(state, game.legal(state).argmax(axis=1))
    load_game_module.__globals__["entry_points"](group="seraphim.games")["openspiel"].load().cache_clear()
    fresh = load_game("openspiel:othello")
    assert fresh is not game
    assert fresh.render(state[0]) == game.render(state[0])


def test_states_are_kept_up_to_a_bound_of_bytes_and_found_again_beyond_it() -> None:
    game, unbounded = OpenSpielGame("chess", cache_bytes=10**6), load_game("openspiel:chess")
    state, random, seen = game.initial(1), np.random.default_rng(1), []
    for _ in range(150):
        seen.append(state)
        state = game.step(state, random.choice(np.flatnonzero(game.legal(state)[0]), 1))
    for state in seen:
        np.testing.assert_array_equal(game.legal(state), unbounded.legal(state))
        assert len(game.cache) <= 10**6 // 9000


def test_the_least_recently_used_states_go_first() -> None:
    cache = StateCache(100_000)
    for number in range(1000):
        cache.keep(b"%d" % number, number, plies=0)
        assert cache.find(b"0") == 0
        assert cache.find(b"%d" % max(0, number - 2)) == max(0, number - 2)
    assert cache.find(b"1") is None
    assert 5 <= len(cache) <= 11


def test_old_states_take_more_of_the_bound() -> None:
    young, old = StateCache(10**6), StateCache(10**6)
    for number in range(1000):
        young.keep(b"%d" % number, number, plies=0)
        old.keep(b"%d" % number, number, plies=300)
    assert len(old) < len(young) / 3


def test_a_game_of_chess_takes_less_than_300_kilobytes() -> None:
    game = load_game("openspiel:chess")
    state, random = game.initial(1), np.random.default_rng(3)
    states, actions, policies = [], [], []
    while len(states) < 273:  # the mean of random games
        states.append(state[0])
        legal = game.legal(state)[0]
        policies.append((legal * random.random(len(legal))).astype(np.float32))
        actions.append(int(random.choice(np.flatnonzero(legal))))
        state = game.step(state, np.array(actions[-1:]))
        assert not game.outcome(state)[0][0]
    shares = np.array(policies) / np.sum(policies, axis=1, keepdims=True)
    record = GameRecord("0" * 40, np.array(states), np.array(actions), shares, np.zeros(len(states), np.float32), None)
    examples = encode(game, record)
    assert sum(len(example) + FRAME_BYTES for example in examples) < 300_000
    np.testing.assert_array_equal(decode(game, examples).states, record.states)


def test_long_games_are_cut_off() -> None:
    assert load_game("openspiel:chess").max_plies == MOST_PLIES


def test_a_search_may_look_beyond_the_last_ply() -> None:
    # By random moves, which lead nowhere, until there is room for no more plies.
    game = load_game("openspiel:chinese_checkers")
    state, random, plies = game.initial(1), np.random.default_rng(1), 0
    while game.legal(state).any():
        state = game.step(state, random.choice(np.flatnonzero(game.legal(state)[0]), 1))
        plies += 1
    assert plies == MOST_PLIES + SPARE_PLIES
    ended, results = game.outcome(state)
    assert ended[0]
    assert results[0] == 0
    assert game.observe(state).shape == (1, *game.observation_shape)
    assert game.render(state[0])


def test_the_search_finds_the_winning_move() -> None:
    # X has two in the top row, and it is X's turn.
    game = load_game("openspiel:tic_tac_toe")
    state = game.initial(1)
    for action in (0, 3, 1, 4):
        state = game.step(state, np.array([action]))
    search = Search(game, Uniform(game), SearchOptions(readouts=100, solver=True), num_trees=1)
    search.begin(np.array([0]), state)
    search.run()
    found = search.result(np.array([0]))
    assert found.best[0] == 2
    assert found.proven[0]


def play(tree: GameTree, plies: int, seed: int = 1) -> None:
    random = np.random.default_rng(seed)
    while tree.legal() and tree.node.ply < plies:
        tree.play(int(random.choice(tree.legal())))


@pytest.mark.parametrize("name", ["chess", "breakthrough", "amazons", "mancala", "nim", "ultimate_tic_tac_toe", "y"])
def test_moves_have_names_that_are_read_again(name: str) -> None:
    game = load_game(f"openspiel:{name}")
    tree = GameTree(game)
    play(tree, 60)
    text = format_moves(game, tree.actions())
    assert len(text.split()) == len(tree.actions())
    assert parse_moves(game, text) == parse_moves(game, text.replace(" ", ",")) == tree.actions()
    for node in tree.path()[:-1]:
        labels = [label_in(game, node.state, action) for action in np.flatnonzero(game.legal(node.state[None])[0])]
        assert len(set(labels)) == len(labels)
        assert not any(re.search(r"[\s,]", label) for label in labels)


def test_moves_of_chess_have_their_usual_names() -> None:
    game = load_game("openspiel:chess")
    tree = GameTree(game)
    for action in parse_moves(game, "e4 e5 Qh5 Nc6 Bc4 Nf6 Qxf7#"):
        tree.play(action)
    assert game.outcome(tree.node.state[None])[1][0] == 1  # White, who moves first, is player 0 here
    with pytest.raises(GameError, match="move 2: 'Ke4' is not a move here: expected one like"):
        parse_moves(game, "e4 Ke4")
    with pytest.raises(GameError, match="move 8: 'a6' is not a move here: expected none, as the game is over"):
        parse_moves(game, "e4 e5 Qh5 Nc6 Bc4 Nf6 Qxf7# a6")


@pytest.mark.parametrize(
    "parameters",
    [
        *("connect_four(rows=0)", "connect_four(rows=-1)", "havannah(board_size=-1)", "hive(board_size=-9999)"),
        *("dots_and_boxes(num_rows=9999)", "lines_of_action(max_game_length=0)", "cursor_go(max_cursor_moves=-1)"),
        *("pig(winscore=99999)", "pig(diceoutcomes=0)"),
        *("hex(board_size=51)", "hex(board_size= +99)", "hex(board_size=99999999999)", "nim(pile_sizes=1;99999)"),
    ],
)
def test_numbers_that_openspiel_cannot_bear_are_refused(parameters: str) -> None:
    with pytest.raises(GameError, match=r"expected \w+ to be from 1 to|expected numbers below 10,000"):
        load_game(f"openspiel:{parameters}")


@pytest.mark.parametrize("parameters", ["size=50,dims=5", "dims=50", "size=50,dims=3", " dims= +4"])
def test_a_board_of_too_many_cells_is_refused_before_memory_is_taken(
    parameters: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pyspiel, "load_game", lambda name: pytest.fail(f"{name} was loaded"))
    with pytest.raises(GameError, match="is too large: expected 2,500 cells at most$"):
        load_game(f"openspiel:gomoku({parameters})")


@pytest.mark.slow
def test_the_largest_games_take_little_memory() -> None:
    # Every whole number of each game as large as one may be, alone and with the others.
    code = (
        "import re\nfrom seraphim.errors import SeraphimError\nfrom seraphim.game import load_game\n"
        "for name in {names}:\n"
        "    try: load_game('openspiel:' + name)\n"
        "    except SeraphimError: pass\n"
        # Not of `resource`, which has the memory of the process that started this one, too.
        "print(int(re.search(r'VmHWM:\\s+(\\d+) kB', open('/proc/self/status').read())[1]) // 1024)"
    )
    names = []
    for kind in (each for each in pyspiel.registered_games() if each.short_name in playable_games()):
        sizes = [f"{key}=50" for key, value in kind.parameter_specification.items() if type(value) is int]
        names += [f"{kind.short_name}({parameters})" for parameters in (*sizes, ",".join(sizes)) if parameters]
    done = subprocess.run(
        [sys.executable, "-c", code.format(names=[*dict.fromkeys(names)])],
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert int(done.stdout) < 1024  # MiB


def test_dice_with_too_many_rolls_are_refused_before_memory_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspiel, "load_game", lambda name: pytest.fail(f"{name} was loaded"))
    with pytest.raises(GameError, match="is too large: expected 10,000 rolls at most$"):
        load_game("openspiel:yacht(num_dice=6)")


@pytest.mark.parametrize("parameters", ["checkers(rows=1)", "checkers(columns=1)"])
def test_a_game_that_is_over_where_it_begins_is_refused(parameters: str) -> None:
    with pytest.raises(GameError, match="the game is over where it begins"):
        load_game(f"openspiel:{parameters}")


def test_words_are_no_position_of_a_game_that_is_cut_off() -> None:
    game = load_game("openspiel:chess")
    tree = GameTree(game)
    play(tree, 3)
    with pytest.raises(GameError, match="cannot check a position that is given as a board or as words: give the moves"):
        check_position(game, tree.node.state)
    check_position(load_game("openspiel:hex(board_size=3)"), load_game("openspiel:hex(board_size=3)").initial(1)[0])


def test_a_position_in_one_line_is_drawn() -> None:
    game = load_game("openspiel:chess")
    tree = GameTree(game)
    for action in parse_moves(game, "e4 c5 Nf3"):
        tree.play(action)
    assert game.render(tree.node.state).splitlines() == [
        "r n b q k b n r",
        "p p . p p p p p",
        ". . . . . . . .",
        ". . p . . . . .",
        ". . . . P . . .",
        ". . . . . N . .",
        "P P P P . P P P",
        "R N B Q K B . R",
        "",
        "rnbqkbnr/pp1ppppp/8/2p5/4P3/5N2/PPPP1PPP/RNBQKB1R b KQkq - 1 2",
    ]


# ---------------------------------------------------------------- boards

PIECES = {  # by OpenSpiel's letter: what is drawn, and whose it is by OpenSpiel's own numbers of the players
    "chess": dict(zip("pnbrqkPNBRQK", zip("♟♞♝♜♛♚♙♘♗♖♕♔", (0,) * 6 + (1,) * 6, strict=True), strict=True)),
    "breakthrough": {"b": ("♟", 0), "w": ("♙", 1)},
    "checkers": {"o": ("⛀", 0), "8": ("⛁", 0), "+": ("⛂", 1), "*": ("⛃", 1)},
    "go": {"X": ("●", 0), "O": ("○", 1)},
}
COLORS = {"chess": ("White", "Black"), "breakthrough": ("Black", "White"), "checkers": ("White", "Black")}
BOARDS = [
    "chess",
    "breakthrough",
    "breakthrough(rows=6,columns=5)",
    "checkers",
    "go(board_size=5)",
    "go(handicap=2)",  # where White moves first
]


def pieces_of(theirs: Any, kind: str, rows: int) -> dict[str, str]:
    """What stands in each cell of a state of OpenSpiel, by its name; the naive way."""
    found = {}
    if kind == "chess":
        for number, row in enumerate(str(theirs).split(" ")[0].split("/")):
            column = 0
            for letter in row:
                if letter.isdigit():
                    column += int(letter)
                else:
                    found["abcdefgh"[column] + str(8 - number)] = letter
                    column += 1
        return found
    lines = str(theirs).rstrip("\n").split("\n")
    letters = lines[-1]
    for number, line in enumerate(lines[-1 - rows : -1]):
        for place, letter in enumerate(letters):
            if letter != " " and line[place] not in ".+"[: 1 + (kind == "go")]:
                found[letter.lower() + str(rows - number)] = line[place]
    return found


def named(board: Board) -> list[list[str]]:
    return [[column + row for column in board.column_names] for row in board.row_names]


@pytest.mark.parametrize("name", BOARDS)
def test_a_board_shows_what_openspiel_draws(name: str) -> None:
    kind, game = name.partition("(")[0], load_game(f"openspiel:{name}")
    first = pyspiel.load_game(name).new_initial_state().current_player()
    for seed in range(3):
        random, state = np.random.default_rng(seed), game.initial(1)
        theirs = pyspiel.load_game(name).new_initial_state()
        while not game.outcome(state)[0][0]:
            board = board_of(game, state[0])
            assert board is not None
            names = np.array(named(board))
            shown = {
                str(names[place]): board.marks[board.cells[place]]
                for place in zip(*np.nonzero(board.cells != EMPTY), strict=True)
            }
            drawn = pieces_of(theirs, kind, len(board.row_names))
            assert shown == {cell: PIECES[kind][letter][0] for cell, letter in drawn.items()}
            places = {name: place for place, name in np.ndenumerate(names)}
            for cell, letter in drawn.items():
                assert board.cells[places[cell]] % 2 == (PIECES[kind][letter][1] != first)
            action = int(random.choice(theirs.legal_actions()))
            state = game.step(state, np.array([action]))
            theirs.apply_action(action)


@pytest.mark.parametrize("name", BOARDS)
def test_every_move_leads_from_one_cell_of_the_board_to_another(name: str) -> None:
    game, random = load_game(f"openspiel:{name}"), np.random.default_rng(1)
    state, passed = game.initial(1), 0
    while not game.outcome(state)[0][0]:
        board, mover = board_of(game, state[0]), int(game.to_play(state)[0])
        assert board is not None
        legal = np.flatnonzero(game.legal(state)[0]).tolist()
        passes = [action for action in legal if label_in(game, state[0], action).endswith("PASS")]
        assert sorted(board.targets) == sorted(set(legal) - set(passes))
        passed += len(passes)
        action = int(random.choice(list(board.targets) or passes))
        successor = game.step(state, np.array([action]))
        after = board_of(game, successor[0])
        assert after is not None
        if action in board.targets:
            landing, *source = board.targets[action]
            assert after.cells[landing] % 2 == mover
            assert after.cells[landing] != EMPTY
            if board.look == "pieces":
                assert board.cells[source[0]] % 2 == mover
                assert board.cells[source[0]] != EMPTY
                assert after.cells[source[0]] == EMPTY
            else:
                assert not source
                assert board.cells[landing] == EMPTY
        state = successor
    assert bool(passed) == name.startswith("go")


def test_players_are_called_by_the_color_of_their_pieces() -> None:
    for name, colors in COLORS.items():
        board = board_of(load_game(f"openspiel:{name}"), load_game(f"openspiel:{name}").initial(1)[0])
        assert board is not None
        assert board.players == colors
    for name, colors in (("go", ("Black", "White")), ("go(handicap=2)", ("White", "Black"))):
        game = load_game(f"openspiel:{name}")
        board = board_of(game, game.initial(1)[0])
        assert board is not None
        assert board.players == colors
        assert "to_play=" + colors[0][0] in game.render(game.initial(1)[0])


def test_promotion_and_castling_name_the_cells_of_the_king_and_the_pawn() -> None:
    game = load_game("openspiel:chess")
    tree = GameTree(game)
    for action in parse_moves(game, "e4 d5 exd5 Nf6 d6 Nd5 dxc7 Nc6 Nf3 e6 Bd3 Be7"):
        tree.play(action)
    board = board_of(game, tree.node.state)
    assert board is not None
    cells = {
        tree.label(action).rstrip("+"): [named(board)[row][column] for row, column in places]
        for action, places in board.targets.items()
    }
    assert cells["O-O"] == ["g1", "e1"]
    assert {cells[f"cxd8={piece}"] == ["d8", "c7"] for piece in "QRBN"} == {True}


def test_a_board_whose_rows_openspiel_cannot_number_is_text() -> None:
    for name in ("breakthrough(rows=12)", "clobber", "chinese_checkers", "connect_four"):
        game = load_game(f"openspiel:{name}")
        assert board_of(game, game.initial(1)[0]) is None


def test_a_saved_game_has_the_names_of_moves(tmp_path: Path) -> None:
    name = "openspiel:chess"
    tree = GameTree(load_game(name))
    play(tree, 12)
    tree.go(tree.find("A", 5))
    play(tree, 9, seed=2)
    game_files.save(tree, tmp_path / "game.txt")
    again = game_files.load(name, tmp_path / "game.txt")
    assert isinstance(again, GameTree)
    assert again.actions() == tree.actions()
    assert {line: len(nodes) for line, nodes in again.lines().items()} == {
        line: len(nodes) for line, nodes in tree.lines().items()
    }
    assert format_moves(tree.game, tree.actions(tree.find("A"))).split()[0] in (tmp_path / "game.txt").read_text()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("openspiel:hexx", "OpenSpiel has no game 'hexx': expected one like openspiel:hex"),
        ("openspiel:stones_and_gems", "it has chance without probabilities"),
        ("openspiel:phantom_ttt", "it has hidden information"),
        ("openspiel:liars_dice", "it has hidden information"),
        ("openspiel:pathfinding", "it is not played in turns"),
        ("openspiel:mfg_crowd_modelling", "it is not played in turns"),
        ("openspiel:morpion_solitaire", "it has no observation for a network"),
        ("openspiel:pig(players=9)", "openspiel:pig(players=9) is not supported: it has 9 players, not 1 to 8"),
        ("openspiel:euchre", "it has hidden information"),
        ("openspiel:hex(board_size=x)", "OpenSpiel cannot load 'hex"),
        ("openspiel:gomoku(size=x)", "OpenSpiel cannot load 'gomoku"),
        (
            "openspiel:hex(board_size=40)",
            "OpenSpiel cannot play 'hex(board_size=40)', try other parameters: ",
        ),  # a label
        ("openspiel:hex(board_size=0)", "openspiel:hex(board_size=0): expected board_size to be from 1 to 50"),
        ("openspiel:hex(board_size=-1)", "openspiel:hex(board_size=-1): expected board_size to be from 1 to 50"),
        (
            "openspiel:gomoku(size=10,dims=6)",
            "openspiel:gomoku(size=10,dims=6) is too large: expected 2,500 cells at most",
        ),
        ("openspiel:go(board_size=30)", "board size up to 19"),
        ("openspiel:breakthrough(rows=1)", "OpenSpiel cannot play 'breakthrough(rows=1)', try other parameters: "),
        ("elsewhere:hex", "there is no family of games 'elsewhere': expected connectfour or hex or openspiel"),
    ],
)
def test_an_unsupported_game_is_refused_in_a_sentence(name: str, message: str) -> None:
    with pytest.raises(GameError) as caught:
        load_game(name)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
