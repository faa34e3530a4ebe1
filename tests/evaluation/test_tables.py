"""Matches with more than two seats: every seating, the same openings and rolls, the lead of one entrant."""

from typing import Any

import numpy as np
import pytest
from three_players import Banked, Dice, Pile

from seraphim.errors import GameError
from seraphim.evaluation.match import make_openings
from seraphim.evaluation.seats import play_table, seatings_of
from seraphim.game import Array
from tictactoe.game import GAME as TICTACTOE


class Seats(Pile):
    """The same with another number of players."""

    def __init__(self, seats: int) -> None:
        self.num_players = seats


def ones(states: Array) -> Array:
    """Always takes one."""
    return np.zeros(len(states), np.int64)


def most(states: Array) -> Array:
    """Takes as much as there is."""
    return (states[:, 0] > 1).astype(np.int64)


@pytest.mark.parametrize(("seats", "count"), [(3, 6), (4, 14), (5, 10), (6, 2), (7, 14)])
def test_each_entrant_sits_on_each_seat_equally_often(seats: int, count: int) -> None:
    ways = seatings_of(Seats(seats))  # type: ignore[arg-type]
    assert ways.shape == (count, seats)
    assert len({tuple(way) for way in ways.tolist()}) == count
    assert (ways.sum(axis=0) == count / 2).all()
    assert ((ways.sum(axis=1) > 0) & (ways.sum(axis=1) < seats)).all()
    for entrant in (0, 1):  # nobody has the better company
        assert sorted((ways == entrant).sum(axis=1)) == sorted((ways != entrant).sum(axis=1))


def test_a_game_for_two_has_no_table() -> None:
    with pytest.raises(GameError, match="tictactoe is not for more than two players: seraphim.match plays it"):
        seatings_of(TICTACTOE)


def test_the_lead_is_that_of_games_played_by_hand() -> None:
    game: Any = Pile()
    openings = make_openings(game, 12, 5)
    found = play_table(game, ones, most, openings)
    leads = []
    for start in openings.states:
        of_opening = []
        for way in seatings_of(game):
            state = start[None]
            while not game.outcome(state)[0][0]:
                player = (ones, most)[way[game.to_play(state)[0]]]
                state = game.step(state, player(state))
            (results,) = game.outcome(state)[1]
            of_opening.append(results[way == 0].mean() - results[way == 1].mean())
        leads.append(np.mean(of_opening))
    assert found.lead.value == pytest.approx(np.mean(leads))
    assert found.lead.interval[1] - found.lead.interval[0] == pytest.approx(
        3.92 * np.std(leads, ddof=1) / 12**0.5, 1e-3
    )
    assert found.lead.value == pytest.approx(found.first.value - found.second.value)
    assert found.games == 12 * 6
    back = play_table(game, most, ones, openings)
    assert back.lead.value == pytest.approx(-found.lead.value)
    assert "points a seat ahead" in str(found)


@pytest.mark.parametrize("game", [Pile(), Dice(), Banked()], ids=lambda game: game.name)
def test_a_player_has_no_lead_over_itself(game: Any) -> None:
    found = play_table(game, most, most, make_openings(game, 20, 3))
    assert found.lead.value == pytest.approx(0)
    assert found.distinct_games <= found.games
