"""The gate: which candidates pass, and how often it errs."""

from typing import Literal

import games
import numpy as np
import pytest

from pig.game import Pig
from seraphim.errors import GameError, SettingsError
from seraphim.evaluation.gate import judge, log_likelihood_ratio
from seraphim.game import Array, PlainRules
from seraphim.options import GateOptions
from seraphim.players.choose import Choose, minimax_player, random_player
from seraphim.search.rng import fork, stream_key, uniform_of
from tictactoe.game import GAME
from twenty48.game import Twenty48

TICKETS = 64


class Lottery:
    """Two tickets are drawn in the opening, then action 1 wins for player 0; players choose it with a given chance."""

    name = "lottery"
    num_actions = TICKETS
    observation_shape = (1,)
    state_words = 2
    max_plies = 8

    def initial(self, batch: int) -> Array:
        return np.zeros((batch, 2), np.int64)

    def step(self, states: Array, actions: Array) -> Array:
        return np.stack([states[:, 0] + 1, states[:, 1] * TICKETS + actions], axis=1)

    def legal(self, states: Array) -> Array:
        return np.repeat(states[:, :1] < 3, TICKETS, axis=1)

    def to_play(self, states: Array) -> Array:
        return np.zeros(len(states), np.int8)

    def outcome(self, states: Array) -> tuple[Array, Array]:
        ended = states[:, 0] == 3
        return ended, np.where(ended, np.where(states[:, 1] % TICKETS == 1, 1, -1), 0).astype(np.float32)


LOTTERY = Lottery()


def winning(chance: float, seed: str) -> Choose:
    def choose(states: Array) -> Array:
        return (uniform_of(fork(np.full(len(states), stream_key(seed)), states[:, 1].astype(np.uint64))) < chance) * 1

    return choose


def verdicts(score: float, options: GateOptions, runs: int) -> tuple[float, float]:
    """The share of candidates of this true score that pass, and the mean number of games."""
    found = [
        judge(
            LOTTERY,
            winning(2 * score - 0.5, f"candidate {run}"),
            winning(0.5, f"champion {run}"),
            options,
            run,
        )
        for run in range(runs)
    ]
    return np.mean([one.passed for one in found]), np.mean([one.result.games for one in found])


# ---------------------------------------------------------------- by score


def test_without_gate_every_candidate_passes_without_a_match() -> None:
    verdict = judge(GAME, random_player(GAME), minimax_player(GAME, 4), GateOptions())
    assert verdict.passed
    assert verdict.result is None
    assert str(verdict) == "passed the gate"


def test_a_stronger_candidate_passes_and_a_weaker_one_does_not() -> None:
    options = GateOptions(gate="score")
    strong, weak = minimax_player(GAME, 4), random_player(GAME)
    passed, stopped = judge(GAME, strong, weak, options), judge(GAME, weak, strong, options)
    assert passed.passed and not stopped.passed
    assert passed.result.games == 40
    assert str(passed).startswith("passed the gate, +")
    assert str(stopped).startswith("rejected by the gate, +")


def test_an_equal_candidate_does_not_pass() -> None:
    verdict = judge(GAME, minimax_player(GAME, 2), minimax_player(GAME, 2), GateOptions(gate="score"))
    assert verdict.result.score == 0.5
    assert not verdict.passed


def test_the_score_to_pass_is_settable_and_has_to_be_exceeded() -> None:
    score = judge(GAME, minimax_player(GAME, 2), random_player(GAME), GateOptions(gate="score")).result.score
    for threshold, passes in ((score, False), (score - 0.01, True), (score + 0.01, False)):
        options = GateOptions(gate="score", gate_score=threshold)
        assert judge(GAME, minimax_player(GAME, 2), random_player(GAME), options).passed is passes


def test_another_seed_plays_other_openings() -> None:
    options = GateOptions(gate="score", gate_games=20)
    results = {str(judge(GAME, minimax_player(GAME, 1), random_player(GAME), options, seed)) for seed in range(5)}
    assert len(results) > 1


@pytest.mark.parametrize("gate", ["score", "sprt"])
def test_a_match_of_few_openings_says_so(gate: Literal["score", "sprt"]) -> None:
    short, options = PlainRules(games.Nim(7)), GateOptions(gate=gate)  # 7 plies: an opening has one move, or none
    verdict = judge(short, minimax_player(short, 7), random_player(short), options)
    assert verdict.result is not None
    assert verdict.result.games == 8
    assert str(verdict).endswith("; distinct openings: only 4")
    assert "distinct openings" not in str(judge(GAME, minimax_player(GAME, 2), random_player(GAME), options))


@pytest.mark.parametrize("gate", ["score", "sprt"])
def test_a_verdict_prints_no_interval(gate: Literal["score", "sprt"]) -> None:
    # A sequential test stops where its result is extreme, so the interval of its games would be too narrow.
    assert "[" not in str(judge(GAME, minimax_player(GAME, 4), random_player(GAME), GateOptions(gate=gate)))


# ---------------------------------------------------------------- sequential


SPRT = GateOptions(gate="sprt", gate_games=3000)


def test_the_sequential_test_accepts_five_percent_of_equals() -> None:
    passed, games = verdicts(0.5, SPRT, 60)
    assert passed <= 0.1
    assert games < 1000


def test_the_sequential_test_rejects_five_percent_of_better_candidates() -> None:
    passed, games = verdicts(0.55, SPRT, 60)
    assert passed >= 0.9
    assert games < 1000


@pytest.mark.parametrize(("score", "passes"), [(0.35, 0.0), (0.7, 1.0)])
def test_clear_cases_are_decided_soon(score: float, passes: float) -> None:
    passed, games = verdicts(score, SPRT, 20)
    assert passed == passes
    assert games < 300


def test_an_undecided_test_takes_the_likelier_hypothesis() -> None:
    passed, games = verdicts(0.62, GateOptions(gate="sprt", gate_games=40), 40)
    assert games == 40
    assert passed > 0.7


def test_evidence_is_zero_midway_and_has_the_sign_of_the_likelier_hypothesis() -> None:
    assert log_likelihood_ratio((10, 0, 20, 0, 10), 0.4, 0.6) == pytest.approx(0)
    assert log_likelihood_ratio((5, 0, 20, 0, 15), 0.5, 0.55) > 0
    assert log_likelihood_ratio((10, 0, 20, 0, 10), 0.5, 0.55) < 0
    # For independent wins and losses it is close to Wald's, here for 110 wins and 90 losses.
    wald = 110 * np.log(0.55 / 0.5) + 90 * np.log(0.45 / 0.5)
    assert log_likelihood_ratio((20, 0, 50, 0, 30), 0.5, 0.55) == pytest.approx(wald, abs=0.05)


# ---------------------------------------------------------------- options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gate": "maybe"}, "gate must be one of off, score, sprt, not 'maybe'"),
        ({"gate_games": 1}, "gate_games must be from 2 to 1,000,000, not 1"),
        ({"gate_score": 1.0}, r"gate_score must be from 0\.5 to below 1, not 1\.0"),
        ({"gate_score": 0.4}, r"gate_score must be from 0\.5 to below 1, not 0\.4"),
        ({"gate": "sprt", "gate_score": 0.5}, r"gate_score must be above 0\.5 for sprt"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        GateOptions(**options)


def test_the_gate_is_for_two_players_with_chance_or_without() -> None:
    dice, alone = Pig(10), Twenty48(2, 2)
    verdict = judge(dice, minimax_player(dice, 6), random_player(dice), GateOptions(gate="sprt", gate_games=400))
    assert verdict.passed
    with pytest.raises(GameError, match="^the gate compares players by a match, which is for two players, and"):
        judge(alone, random_player(alone), random_player(alone), GateOptions(gate="sprt"))
