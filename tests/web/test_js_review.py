"""What pages make of an analyzed game, run by node, against `Model.review`."""

import itertools
from typing import Any

import games
import numpy as np
import pytest
from node import GAMES, ask_node, needs_node
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
