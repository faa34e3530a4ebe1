"""The browser's engine, run by node: its answers to a page's messages, compared with the server's."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from node import GAMES as GAMES_FOR_TWO
from node import ROOT, HashNetwork, ask_node, in_words, needs_node, random_games
from reference import random_states

import tictactoe
from seraphim.errors import GameError
from seraphim.game import load_game, load_game_module, saved_games, solved
from seraphim.options import SearchOptions
from seraphim.search.analysis import Analysis
from seraphim.server.searcher import messages

pytestmark = needs_node

GAMES = {**GAMES_FOR_TWO, "threes": (load_game("threes"), ROOT / "threes/rules.js")}
OPEN = {"id": 1, "type": "open", "model": "hash", "snapshot": None}


def talk(name: str, *told: Any, **request: Any) -> list[dict[str, Any]]:
    """All that is answered after a model was opened."""
    opened, *answers = ask_node(GAMES[name][1], task="conversation", messages=[OPEN, *told], **request)
    assert opened["type"] == "opened"
    return answers


def position(identity: int, *moves: int) -> dict[str, Any]:
    return {"id": identity, "type": "position", "start": None, "moves": list(moves)}


@pytest.mark.parametrize("name", ["tictactoe", "connectfour", "othello", "hex", "hex:7,swap"])
def test_positions_equal_the_servers(name: str) -> None:
    game = GAMES[name][0]
    lines = [moves[:ply] for moves in random_games(game, 6, seed=1) for ply in range(len(moves) + 1)]
    answers = talk(name, *(position(place, *moves) for place, moves in enumerate(lines)))
    for place, (moves, answer) in enumerate(zip(lines, answers, strict=True)):
        line = messages.to_line(game, None, tuple(moves))
        assert answer == {"id": place, "type": "position", **messages.to_position(game, line)}


def test_a_game_may_start_from_any_position() -> None:
    game, module = load_game("connectfour"), load_game_module("connectfour")
    words = in_words(module.position_from_moves("445352")[None])[0]
    (answer,) = talk("connectfour", {"id": 2, "type": "position", "start": words, "moves": [0, 6]})
    line = messages.to_line(game, tuple(map(int, words)), (0, 6))
    assert answer == {"id": 2, "type": "position", **messages.to_position(game, line)}


@pytest.mark.parametrize(
    ("name", "solved"),
    [
        ("tictactoe", True),
        ("double moves", True),
        ("connectfour", False),
        ("othello", False),
        ("hex", False),
        ("hex:7,swap", False),
    ],
)
def test_opening_a_model_answers_as_the_server_does(name: str, solved: bool) -> None:
    game, rules = GAMES[name]
    (opened,) = ask_node(rules, task="conversation", messages=[OPEN])
    assert opened == {
        "id": 1,
        "type": "opened",
        "model": "hash",
        "snapshot": "one",
        "game": messages.to_game_info(game, solved=solved),  # here, where exhaustive search ends soon
        "engine": "hash",
        "program": None,
    }


def test_a_search_resumes_where_it_stopped() -> None:
    game = GAMES["connectfour"][0]
    think = {"type": "think", "readouts": 300}
    answers = talk(
        "connectfour", position(2, 3), {"id": 3, **think}, {"id": 4, **think}, position(5, 3, 2), {"id": 6, **think}
    )
    done = {answer["id"]: answer for answer in answers if answer.get("done")}
    analysis = Analysis(game, HashNetwork(game), SearchOptions(cache_megabytes=1), leaves=1)
    analysis.play(3)
    analysis.more(600)
    assert [each["visits"] for each in done[4]["candidates"]] == [each.visits for each in analysis.result().moves]
    assert done[4]["readouts"] == 600
    analysis.play(2)
    analysis.more(300)
    assert [each["visits"] for each in done[6]["candidates"]] == [each.visits for each in analysis.result().moves]
    assert [each["label"] for each in done[6]["candidates"]] == [
        str(each.action + 1) for each in analysis.result().moves
    ]
    assert done[6]["value_first"] == done[6]["value"] == pytest.approx(analysis.result().value)
    assert done[4]["value_first"] == -done[4]["value"]


def test_an_analysis_has_the_servers_fields() -> None:
    (*_, answer) = talk("tictactoe", {"id": 2, "type": "think", "readouts": 50})
    described = {
        "id",
        "type",
        *"readouts value value_first best seconds readouts_per_second proven candidates done".split(),
    }
    assert set(answer) == described
    candidate = set("action label prior searched_prior visits share q u proven variation actions".split())
    assert all(set(each) == candidate for each in answer["candidates"])


@pytest.mark.parametrize(
    "ending", [position(3, 0), {"id": 3, "type": "think", "readouts": 1}, {"id": 3, "type": "stop"}]
)
def test_another_message_ends_a_search(ending: dict[str, Any]) -> None:
    endless = {"id": 2, "type": "think", "readouts": 100_000, "hurried": True}
    answers = talk("connectfour", endless, ending)
    first = [answer for answer in answers if answer["id"] == 2]
    assert [answer["done"] for answer in first] == [False] * (len(first) - 1) + [True]
    assert first[-1]["readouts"] < 100_000
    assert answers.index(first[-1]) < min(place for place, answer in enumerate(answers) if answer["id"] == 3)


def test_a_proven_position_needs_no_more_readouts() -> None:
    won = position(2, 0, 3, 1, 4)  # X completes a1 a2 a3
    (*_, answer) = talk("tictactoe", won, {"id": 3, "type": "think", "readouts": 5000}, options={"solver": True})
    assert answer["proven"]
    assert answer["value"] == 1
    assert answer["best"] == 2
    assert answer["readouts"] < 5000


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ({"id": 7, "type": "jump"}, "type must be one of"),
        ({"id": 7, "type": "toString"}, "type must be one of"),
        ({"id": 7, "type": "think", "readouts": 0}, "readouts must be an int from 1 to 100,000, not 0"),
        ({"id": 7, "type": "think"}, "readouts must be"),
        ({"id": 7, "type": "position", "start": None, "moves": ["3"]}, "moves must be"),
        ({"id": 7, "type": "position", "start": None, "moves": [9]}, "move 1, 9, is not legal"),
        ({"id": 7, "type": "position", "start": None, "moves": [3] * 7}, "move 7, 4, is not legal"),
        ({"id": 7, "type": "position", "start": ["1", "1"], "moves": []}, "start is not a position of connectfour"),
        ({"id": 7, "type": "position", "start": ["x"], "moves": []}, "start is not a position of connectfour"),
        ({"id": 7, "type": "load", "text": "4459"}, "move 4 is 9"),
        ({"id": 7, "type": "load", "text": "4444444"}, "move 7, 4, is not legal"),
        ({"id": 7, "type": "open", "model": "nobody", "snapshot": None}, "there is no model nobody"),
        ({"id": None, "type": "stop"}, "int id"),
        ("nonsense", "int id"),
        (None, "int id"),
    ],
    ids=str,
)
def test_an_invalid_message_is_answered_with_an_error(message: Any, sentence: str) -> None:
    error, answer = talk("connectfour", message, position(8, 3))
    assert error["type"] == "error"
    assert error["id"] == (message.get("id") if isinstance(message, dict) else None)
    assert sentence in error["message"]
    assert answer["moves"] == [3]


def test_without_a_model_only_open_is_answered() -> None:
    (answer,) = ask_node(GAMES["tictactoe"][1], task="conversation", messages=[position(2)])
    assert answer == {"id": 2, "type": "error", "message": "no model is open: send a message open before position"}


def test_finished_games_are_not_searched() -> None:
    over = position(2, 0, 3, 1, 4, 2)
    _, *answers = talk("tictactoe", over, {"id": 3, "type": "think", "readouts": 5}, {"id": 4, "type": "solve"})
    assert all("the game is over here" in answer["message"] for answer in answers)


@pytest.mark.parametrize("name", ["tictactoe", "connectfour", "threes"])
def test_moves_and_drawings_are_read(name: str) -> None:
    game = GAMES[name][0]
    moves = random_games(game, 1, seed=2)[0][:5]
    labels = " ".join(game.action_label(action) for action in moves)
    state = random_states(game, 1, seed=3)[0]
    drawn = game.render(state)
    texts = [labels, labels.replace(" ", ", ").upper(), drawn, drawn.replace("·", ".").replace("\n", "/")]
    answers = talk(name, *({"id": place, "type": "load", "text": text} for place, text in enumerate(texts)))
    assert [(answer["start"], answer["moves"]) for answer in answers] == [(None, moves)] * 2 + [
        (in_words(state[None])[0], [])
    ] * 2


@pytest.mark.parametrize(
    "drawing",
    ["X X X\n. . .\n. . .", "X X X\nO O O\n. . .", "X O X\n. ? .\n. . .", "X O\n. .", "O O O\nX X X\nX . ."],
)
def test_diagrams_of_invalid_positions_are_refused(drawing: str) -> None:
    with pytest.raises(Exception, match="."):
        tictactoe.state_from_board(drawing)
    (answer,) = talk("tictactoe", {"id": 2, "type": "load", "text": drawing})
    assert answer["type"] == "error"


def test_exact_results_are_those_of_the_solver() -> None:
    game = GAMES["tictactoe"][0]
    states = np.unique(random_states(game, 150, seed=4), axis=0)
    for state, told in zip(states, ask_node(GAMES["tictactoe"][1], task="solve", states=in_words(states)), strict=True):
        exact = solved.solve(tictactoe, game, state, 10)  # type: ignore[arg-type]
        assert told == {str(action): each._asdict() for action, each in exact.items()}


@pytest.mark.parametrize("name", ["tictactoe", pytest.param("hex", marks=pytest.mark.slow)])
def test_messages_are_answered_at_once_while_a_position_is_solved(name: str) -> None:
    solve = {"id": 2, "type": "solve", "hurried": True}
    think = {"id": 5, "type": "think", "readouts": 50}
    answers = talk(name, solve, position(3, 4), {"id": 4, "type": "solve"}, think)
    assert [answer["id"] for answer in answers if answer.get("done", True)] == [3, 4, 5, 2]
    assert answers[0]["moves"] == [4]
    assert "the solver is still working" in answers[1]["message"]


def test_a_position_is_solved_as_it_was_when_that_was_asked() -> None:
    solve = {"id": 2, "type": "solve"}
    alone, hurried = (talk("tictactoe", {**solve, "hurried": hurry}, position(3, 4)) for hurry in (False, True))
    assert sorted(alone, key=lambda each: each["id"]) == sorted(hurried, key=lambda each: each["id"])
    assert len(alone[0]["actions"]) == 9


def test_a_position_that_follows_is_solved_after_it() -> None:
    first, second = ({"id": place, "type": "solve"} for place in (2, 4))
    answers = talk("tictactoe", first, position(3, 4), second)
    assert [(answer["id"], len(answer.get("actions", []))) for answer in answers] == [(2, 9), (3, 0), (4, 8)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hex", "(;GM[11]SZ[7];B[a1])"),
        ("tictactoe", "  ( ;GM[1])"),
        ("connectfour", "# Seraphim\ngame: connectfour\nA: 4 4 5\nat: A3\n"),
    ],
)
def test_texts_that_only_a_server_reads_are_refused_with_what_reads_them(name: str, text: str) -> None:
    (answer,) = talk(name, {"id": 2, "type": "load", "text": text})
    assert answer["type"] == "error"
    said = "saved games and SGF are read by the server’s page (seraphim serve): "
    assert answer["message"] == f"{said}paste moves, a link or a board diagram here"


@pytest.mark.parametrize(
    ("name", "said"), [("connectfour", "too many positions"), ("threes", "moves have no exact results here")]
)
def test_solving_too_large_a_game_or_one_for_three_is_refused(name: str, said: str) -> None:
    (answer,) = talk(name, {"id": 2, "type": "solve"})
    assert answer["type"] == "error"
    assert said in answer["message"]


def test_the_engine_imports_only_its_own_folder() -> None:
    for file in (Path(__file__).parents[2] / "seraphim/web/engine").glob("*.js"):
        imported = re.findall(r"^(?:import|\}).* from '(.*)';$", file.read_text(), flags=re.MULTILINE)
        assert all(name.startswith("./") for name in imported), file.name


NO_POSITIONS = {  # though each player has as many stones as in a game
    "connectfour": ["......./......./......./......./XX.XX../OO.OO.."],
    "othello": ["X......./......../......../...XO.../...OX.../......../......../.......O"],
    "hex": ["/".join(["XOO..OX"] * 4 + ["X...O.X"] + ["X.....X"] * 2)],
}


@pytest.mark.parametrize("name", ["tictactoe", "connectfour", "othello", "hex", "hex:7,swap", "threes"])
def test_a_drawing_is_taken_where_the_servers_page_takes_it(name: str) -> None:
    """Positions of random games, and what is left of them when some cells exchange what stands there."""
    game, random = GAMES[name][0], np.random.default_rng(1)
    texts, marks = [], "XOZ" if name == "threes" else "XO"
    for moves in random_games(game, 100, seed=2):
        state = game.initial(1)
        for action in moves[: random.choice([len(moves), random.integers(len(moves) + 1)])]:
            state = game.step(state, np.array([action]))
        drawn = list(game.render(state[0]))
        cells = [place for place, each in enumerate(drawn) if each in f"{marks}·" and drawn[place - 1 : place] == [" "]]
        for _ in range(random.integers(5)):
            one, other = random.choice(cells, 2, replace=False)
            drawn[one], drawn[other] = drawn[other], random.choice([drawn[one], *marks])
        texts.append("".join(drawn))
    texts += NO_POSITIONS.get(name, [])
    told = [{"id": place, "type": "load", "text": text} for place, text in enumerate(texts, start=2)]
    taken = {True: 0, False: 0}
    for text, answer in zip(texts, talk(name, *told), strict=True):
        try:
            start = saved_games.read_position(name, text).start
        except GameError:
            taken[False] += 1
            assert answer["type"] == "error", text
        else:
            taken[True] += 1
            words = game.initial(1)[0] if start is None else start
            assert answer["start"] == [str(word) for word in words], text
    assert min(taken.values()) >= 5


def test_what_is_asked_again_is_asked_in_its_position() -> None:
    script = Path(__file__).parent / "js/resume.js"
    done = subprocess.run(["node", str(script)], capture_output=True, text=True, check=True)
    expected = ["open", "position 2", "position 1", "solve", "position 3", "move"]
    assert json.loads(done.stdout) == expected
