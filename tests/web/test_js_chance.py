"""Games of chance, for one and for three in the browser: the rules move for move, the search visit for visit."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from node import ROOT, HashNetwork, ask_node, assert_equal, found, in_words, needs_node
from one_of_each import one_of_each
from three_players import Banked

from pig.game import Pig
from seraphim.errors import GameError
from seraphim.game import Array, Game, board_of, load_game
from seraphim.game.features import features_of
from seraphim.game.notation import followers
from seraphim.options import SearchOptions
from seraphim.search import naive
from seraphim.search.analysis import Analysis
from seraphim.server.searcher import messages

pytestmark = needs_node

GAMES: dict[str, tuple[Game, Path]] = {
    "backgammon": (load_game("backgammon"), ROOT / "backgammon/rules.js"),
    "pig": (load_game("pig"), ROOT / "pig/rules.js"),
    "pig to 20": (Pig(20), ROOT / "pig/rules.js"),
    "twenty48:2x2": (load_game("twenty48:2x2"), ROOT / "twenty48/rules.js"),
    "twenty48:2x3": (load_game("twenty48:2x3"), ROOT / "twenty48/rules.js"),
    "twenty48": (load_game("twenty48"), ROOT / "twenty48/rules.js"),
    "cube": (load_game("cube"), ROOT / "cube/rules.js"),
    "threes": (load_game("threes"), ROOT / "threes/rules.js"),
    "banked": (Banked(), ROOT / "tests/web/js/banked_pile.js"),  # type: ignore[dict-item]
}
SEARCHED = ["pig to 20", "twenty48:2x3", "cube", "twenty48:2x2", "threes", "banked"]


def ask(name: str, **request: object) -> Any:
    named = {"game": name} if name.startswith(("pig", "twenty48")) else {}
    return ask_node(GAMES[name][1], **named, **request)


def random_line(game: Game, rng: np.random.Generator, most: int) -> tuple[list[int], Array]:
    """Random moves and outcomes, at most so many, and the last state int64 [1, W]."""
    state, moves = game.initial(1), list[int]()
    while len(moves) < most and (possible := np.flatnonzero(followers(game, state)[0])).size:
        moves.append(int(rng.choice(possible)))
        state = game.step(state, np.array(moves[-1:]))
    return moves, state


def positions(game: Game, count: int, seed: int, most: int = 60) -> Array:
    """Positions int64 [count, W] in which a player moves, after a random number of random moves and outcomes."""
    rng, states = np.random.default_rng(seed), list[Array]()
    while len(states) < count:
        _, state = random_line(game, rng, int(rng.integers(most)))
        if game.legal(state)[0].any():
            states.append(state[0])
    return np.stack(states)


def searched(game: Game, options: SearchOptions, states: Array, readouts: int, moves: int = 0) -> list[list[Any]]:
    """The same as `searches` of tests/web/js/driver.js."""
    everything = []
    for state in states:
        analysis = Analysis(game, HashNetwork(game), options, leaves=1)
        analysis.start(state)
        analysis.more(readouts)
        results = [found(analysis, game.num_actions)]
        for _ in range(moves):
            analysis.play(analysis.result().best_action)
            while not game.legal(analysis.state[None]).any() and not game.outcome(analysis.state[None])[0][0]:
                analysis.play(int(features_of(game).chances(analysis.state[None])[0].argmax()))  # type: ignore[misc]
            if game.outcome(analysis.state[None])[0][0]:
                break
            analysis.more(readouts)
            results.append(found(analysis, game.num_actions))
        everything.append(results)
    return everything


@pytest.mark.parametrize(
    ("name", "options"),
    one_of_each(SEARCHED, [{"solver": False}, {"solver": True}, {"cpuct": 0.6}, {"leaf": "playout"}]),
    ids=str,
)
def test_visits_equal_those_of_the_python_search(name: str, options: dict[str, Any]) -> None:
    game, chosen = GAMES[name][0], SearchOptions(**options, cache_megabytes=1)
    states, readouts = positions(game, 8, seed=1), 40 if "leaf" in options else 250
    ours = searched(game, chosen, states, readouts)
    assert_equal(ours, ask(name, options=vars(chosen), states=in_words(states), readouts=readouts))


@pytest.mark.parametrize("name", ["pig", "twenty48:2x3", "cube", "threes", "backgammon"])
def test_visits_equal_those_of_the_naive_search(name: str) -> None:
    game, options = GAMES[name][0], SearchOptions(solver=False, cache_megabytes=0)
    states = positions(game, 3, seed=2)
    theirs = ask(name, options=vars(options), states=in_words(states), readouts=60)
    for state, (result,) in zip(states, theirs, strict=True):
        root = naive.search(game, HashNetwork(game), state, options, readouts=60)
        assert result["visits"] == naive.visits(root, game.num_actions).tolist()
        assert result["best"] == naive.move_of(root, options).action


@pytest.mark.parametrize("name", [*SEARCHED, "backgammon"])
def test_a_tree_is_kept_over_moves_and_outcomes_alike(name: str) -> None:
    game, options = GAMES[name][0], SearchOptions(cache_megabytes=1)
    states = positions(game, 3, seed=3)
    ours = searched(game, options, states, 120, moves=4)
    assert any(len(results) > 2 for results in ours)
    assert_equal(ours, ask(name, options=vars(options), states=in_words(states), readouts=120, moves=4))


def talk(name: str, *requests: dict[str, Any]) -> list[dict[str, Any]]:
    """What the engine of a page answers; see `conversation` of tests/web/js/driver.js."""
    opening = {"id": -1, "type": "open", "model": "hash", "snapshot": None}
    opened, *answers = ask(name, task="conversation", messages=[opening, *requests])
    assert opened["game"] == messages.to_game_info(GAMES[name][0], solved=False)
    return answers


def position(identity: int, moves: list[int]) -> dict[str, Any]:
    return {"id": identity, "type": "position", "start": None, "moves": moves}


@pytest.mark.parametrize("name", ["pig", "twenty48:2x3", "cube", "threes", "backgammon"])
def test_positions_equal_the_servers(name: str) -> None:
    game = GAMES[name][0]
    moves, _ = random_line(game, np.random.default_rng(7), min(40, game.max_plies))
    lines = [moves[:ply] for ply in range(len(moves) + 1)]
    answers = talk(name, *(position(place, line) for place, line in enumerate(lines)))
    for place, (line, answer) in enumerate(zip(lines, answers, strict=True)):
        expected = json.loads(json.dumps(messages.to_position(game, messages.to_line(game, None, line))))
        assert answer == {"id": place, "type": "position", **expected, "chances": answer["chances"]}
        assert answer["chances"] == (expected["chances"] and pytest.approx(expected["chances"]))
    assert set(answers[-1]["players"]) >= ({0, 1, 2} if name == "threes" else {-1, 0})


@pytest.mark.parametrize(
    ("name", "moves", "said"),
    [
        ("pig", [0, 6], "move 2, 6, is not legal in this game of pig"),
        ("pig", [1], "move 1, hold, is not legal in this game of pig"),
        ("twenty48:2x3", [0, 1], "move 2, 1, is not legal in this game of twenty48:2x3"),  # a tile on another one
        ("cube", [0, 9], "move 2, 9, is not legal in this game of cube"),  # there are nine turns
    ],
)
def test_what_chance_cannot_do_is_refused_alike(name: str, moves: list[int], said: str) -> None:
    (answer,) = talk(name, position(1, moves))
    assert answer == {"id": 1, "type": "error", "message": said}
    with pytest.raises(GameError, match=f"^{said}$"):
        messages.to_line(GAMES[name][0], None, moves)


def test_nothing_is_searched_where_chance_moves() -> None:
    think, solve = {"id": 2, "type": "think", "readouts": 10}, {"id": 3, "type": "solve"}
    _, *answers = talk("pig", position(1, [0]), think, solve)
    for answer, purpose in zip(answers, ("search", "solve"), strict=True):
        said = f"chance moves here: there is nothing to {purpose} before its outcome is known"
        assert (answer["type"], answer["message"]) == ("error", said)
    game = GAMES["pig"][0]
    with pytest.raises(GameError, match="^chance moves here: there is nothing to search"):
        messages.check_unfinished(game, messages.to_line(game, None, [0]))


@pytest.mark.parametrize(
    ("name", "text", "moves"),
    [
        ("pig", "roll 3, ROLL 6 hold roll 1", [0, 2, 0, 5, 1, 0, 0]),
        ("twenty48:2x3", "a1=2 b1=4 down", [0, 3, 2]),
        ("cube", "n2 U' R F2", [1, 2, 3, 7]),
    ],
)
def test_outcomes_are_read_as_moves(name: str, text: str, moves: list[int]) -> None:
    wrong = {"id": 2, "type": "load", "text": "roll 7" if name == "pig" else "up"}
    read, refused = talk(name, {"id": 1, "type": "load", "text": text}, wrong)
    assert read == {"id": 1, "type": "loaded", "start": None, "moves": moves}
    assert refused["message"].endswith(f"expected one like {'1' if name == 'pig' else 'a1=2' if 'x' in name else 'n1'}")


def test_expectations_are_proven_alike() -> None:
    game, options = GAMES["twenty48:2x2"][0], SearchOptions(cache_megabytes=1)
    full = [[1, 1, 5, 7], [2, 6, 2, 4], [3, 0, 4, 6]]  # powers of two: boards with few moves left
    words = [sum(power << 4 * cell for cell, power in enumerate(cells)) for cells in full]
    states = np.array([[word, 0, 60] for word in words], np.int64)
    ours = searched(game, options, states, 2000)
    assert [results[0]["proven"] for results in ours] == [True] * 3
    assert_equal(ours, ask("twenty48:2x2", options=vars(options), states=in_words(states), readouts=2000))


@pytest.mark.parametrize("name", [name for name in GAMES if name != "banked"])
def test_rules_are_those_of_python(name: str) -> None:
    game, rng = GAMES[name][0], np.random.default_rng(5)
    features = features_of(game)
    games = [random_line(game, rng, 400)[0] for _ in range(3)]
    ends = 0
    for moves, told in zip(games, ask(name, task="rules", games=games), strict=True):
        state = game.initial(1)
        for ply, position in enumerate(told):
            ended, result = game.outcome(state)
            moves_by_chance = game.to_play(state)[0] < 0
            chances = features.chances(state)[0] if features.chances else np.zeros(0)
            assert position["words"] == position["again"] == in_words(state)[0]
            assert position["legal"] == np.flatnonzero(game.legal(state)[0]).tolist()
            assert position["to_play"] == game.to_play(state)[0]
            results = result[0].tolist() if name == "threes" else float(result.reshape(-1)[0])
            assert position["outcome"] == {"ended": ended[0], "result": results}
            numbers = [game.num_actions, features.num_players or 2, game.max_plies, features.value_scale or 1]
            assert position["numbers"] == pytest.approx(numbers)
            assert position["text"] == game.render(state[0])
            board = messages.to_board(board_of(game, state[0]))
            assert board is not None
            targets = {str(action): [list(cell) for cell in cells] for action, cells in board["targets"].items()}
            assert position["board"] == board | {"targets": targets}
            assert (position["chances"] or []) == pytest.approx(chances.tolist())
            if moves_by_chance:
                assert features.chance_label is not None
                possible = np.flatnonzero(chances).tolist()
                labels = [features.chance_label(state[0], outcome) for outcome in possible]
                assert [position["labels"][outcome] for outcome in possible] == labels
            else:
                assert position["observation"] == game.observe(state)[0].ravel().tolist()
            if features.banked is not None:
                assert position["banked"] == features.banked(state)[0].tolist()
            assert position["same"]
            assert position["drawn"] == (in_words(state)[0] if name == "threes" else None)
            ends += bool(ended[0])
            if ply < len(moves):
                state = game.step(state, np.array([moves[ply]]))
    assert ends > 0 or name == "cube"  # which random turns do not solve
