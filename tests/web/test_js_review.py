"""What pages make of an analyzed game, run by node, against `Model.review`."""

import itertools
from typing import Any

import games
import numpy as np
import pytest
from node import GAMES, ROOT, HashNetwork, ask_node, needs_node
from reference import ArbitraryNetwork

import seraphim
from seraphim.errors import GameError
from seraphim.game import Array, load_game
from seraphim.game.loading import load_game_module
from seraphim.game.notation import label_in
from seraphim.game.solved import solve
from seraphim.game.tree import GameTree

pytestmark = needs_node


def along(model: seraphim.Model, seed: int, most: int = 1000) -> GameTree:
    random, tree = np.random.default_rng(seed), GameTree(model.game)
    while (legal := tree.legal()) and tree.node.ply < most:
        tree.play(int(random.choice(legal)))
    return tree


def as_a_page_knows_it(model: seraphim.Model, tree: GameTree, solver: bool) -> dict[str, Any]:
    """The moves of a game, and of each position what the engine answers to a page."""
    game, known, path = model.game, [], tree.path()
    labels = [label_in(game, node.state, after.action) for node, after in itertools.pairwise(path)]
    for node in path:
        ended, results = game.outcome(node.state[None])
        position = {
            "to_play": int(game.to_play(node.state[None])[0]),
            "ended": bool(ended[0]) or node.ply >= game.max_plies,
            "result": float(results[0]) if ended[0] else None,
            "legal": np.flatnonzero(game.legal(node.state[None])[0]).tolist(),
        }
        known.append({"position": position})
        if not position["ended"]:
            known[-1]["analysis"] = model.analyze(", ".join(labels[: node.ply])).to_dict()
            known[-1]["solution"] = solution(model, node.state) if solver else None
    return {"known": known, "moves": list(zip(tree.actions(), labels, strict=True))}


def solution(model: seraphim.Model, state: Array) -> dict[int, Any] | None:
    try:
        found = solve(load_game_module(model.origin), model.game, state, 1.0)
    except GameError:
        return None
    return {action: value._asdict() for action, value in found.items()}


@pytest.mark.parametrize(
    ("name", "readouts", "solver", "most"),
    [
        ("tictactoe", 20, True, 9),
        ("tictactoe", 20, False, 9),
        ("tictactoe", 3, True, 9),
        ("connectfour", 2, False, 30),
        ("othello", 12, False, 60),  # whose players pass
        ("connectfour", 40, False, 30),
        ("twice", 2000, False, 40),  # whose players move twice
        ("endless", 5, False, 20),  # which is cut off
    ],
)
def test_a_page_finds_the_mistakes_that_a_review_finds(name: str, readouts: int, solver: bool, most: int) -> None:
    made = {"twice": games.MovesTwice(9), "endless": games.ENDLESS}.get(name)
    network = None if made is not None else ArbitraryNetwork(load_game(name), 3)
    model = seraphim.Model(made or name, network, readouts=readouts)
    trees = [along(model, seed, most) for seed in range(5)]
    listed = check_pages(model, trees, [as_a_page_knows_it(model, tree, solver) for tree in trees], float(solver))
    assert listed > 4 or name == "endless"


@pytest.mark.slow
def test_what_is_better_is_the_best_by_exact_results() -> None:
    model = seraphim.Model("tictactoe", ArbitraryNetwork(load_game("tictactoe"), 3), readouts=2, solver=False)
    trees = [along(model, seed) for seed in range(60)]
    assert check_pages(model, trees, [as_a_page_knows_it(model, tree, solver=True) for tree in trees], 1.0) > 60


def test_exact_results_count_only_if_the_best_one_is_known() -> None:
    model = seraphim.Model("tictactoe", ArbitraryNetwork(load_game("tictactoe"), 3), readouts=3)
    trees = [along(model, seed) for seed in range(8)]
    asked = [as_a_page_knows_it(model, tree, solver=True) for tree in trees]
    for position in (position for each in asked for position in each["known"] if "solution" in position):
        all_of_them = position["solution"]
        lost = {action: value for action, value in all_of_them.items() if value["result"] == -1}
        position["solution"] = lost if len(lost) < len(all_of_them) else None
    assert check_pages(model, trees, asked, seconds=0) > 4


def check_pages(model: seraphim.Model, trees: list[GameTree], asked: list[dict[str, Any]], seconds: float) -> int:
    """Compare what a page makes of games with their reviews; return how many mistakes there are."""
    found, listed = ask_node(GAMES["tictactoe"][1], task="review", games=asked), 0
    for tree, page in zip(trees, found, strict=True):
        review = model.review(tree, seconds=seconds)
        worst = [[[move.ply, move.label, move.lost, move.better] for move in review.worst(side)] for side in (0, 1)]
        values = list(review.values)
        if tree.node.ply == model.game.max_plies and not review.ended:
            values[-1] = None  # type: ignore[call-overload]  # a page shows that a game is cut off, and searches no more
        assert page["values"][:-1] == pytest.approx(values[:-1])
        assert page["values"][-1] == (None if values[-1] is None else pytest.approx(values[-1]))
        assert page["marked"] == [move.ply for move in review.mistakes]
        assert [[[*each[:2], pytest.approx(each[2]), each[3]] for each in side] for side in worst] == page["worst"]
        listed += len(review.mistakes)
    return listed


# ---------------------------------------------------------------- more than two players

THREES = ROOT / "threes/rules.js"


def test_a_page_finds_what_each_of_three_players_lost() -> None:
    model = seraphim.Model("threes", HashNetwork(load_game("threes")), readouts=40, solver=False)
    asked, expected = [], list[list[int]]()
    for seed in range(9):
        tree = along(model, seed)
        known = [known_of_three(model, tree, node.ply) for node in tree.path()]
        moves = [[action, model.game.action_label(action)] for action in tree.actions()]
        asked.append({"known": known, "moves": moves})
        expected.append(lost_by_three(known, tree.actions()))
    for page, marked in zip(ask_node(THREES, task="review", games=asked), expected, strict=True):
        assert page["marked"] == marked
        assert {ply for player in range(3) for ply, *_ in page["worst"][player]} <= set(marked)
        assert all(len(values) == 3 for values in page["values"])
    assert sum(map(len, expected)) > 4


def known_of_three(model: seraphim.Model, tree: GameTree, ply: int) -> dict[str, Any]:
    """Return what the server tells a page about the position after some moves."""
    state = tree.path()[ply].state[None]
    (ended,), (results,) = model.game.outcome(state)
    told = {"result": float(results[0]), "results": results.tolist()} if ended else {"result": None, "results": None}
    position = {"to_play": ply % 3, "ended": bool(ended), "legal": np.flatnonzero(model.game.legal(state)[0]).tolist()}
    played = [model.game.action_label(action) for action in tree.actions()[:ply]]
    return {"position": position | told, "analysis": None if ended else model.analyze(" ".join(played)).to_dict()}


def lost_by_three(known: list[dict[str, Any]], actions: list[int]) -> list[int]:
    """The plies of the moves that lost their players at least 0.4 of a result, where another one was better."""
    worths: list[tuple[list[float], bool]] = []  # from the last position, and whether exact
    for each in reversed(known):
        position, analysis = each["position"], each["analysis"]
        mover = position["to_play"]
        if position["ended"]:
            worths.append((position["results"], True))
        elif len(position["legal"]) == 1:
            worths.append(worths[-1])
        elif worths[-1][1] and worths[-1][0][mover] > analysis["values"][mover]:
            worths.append((worths[-1][0], worths[-1][0][mover] == 1))
        else:
            worths.append((analysis["values"], False))
    worths.reverse()
    found = []
    for ply, action in enumerate(actions):
        mover, after = ply % 3, worths[ply + 1][0][ply % 3]
        others = [each for each in known[ply]["analysis"]["candidates"] if each["action"] != action]
        if worths[ply][0][mover] - after >= 0.4 and any(each["visits"] and each["q"] > after for each in others):
            found.append(ply + 1)
    return found


def test_the_end_of_a_game_for_several_is_named() -> None:
    results = [[1, -0.5, -0.5], [-0.5, -0.5, 1], [0, 0, 0], [0.25, -0.5, 0.25], None]
    assert ask_node(THREES, task="results", results=results, names=["X", "O", "Z"]) == [
        "X wins",
        "Z wins",
        "Draw",
        "X and Z share first place",
        "Cut off",
    ]
