"""Timing of generations: shares that add up, and the bottleneck by name."""

import pytest

from seraphim.evaluation.gate import Verdict
from seraphim.records.window import WindowReport
from seraphim.selfplay.generate import Generated
from seraphim.selfplay.pool import Work
from seraphim.storage.models import Snapshot
from seraphim.training.fit import Losses
from seraphim.training.timing import (
    CHECK,
    FILES,
    GATE,
    NETWORK,
    OTHER,
    PARTS,
    RULES,
    SEARCH,
    START,
    STEPS,
    Timing,
    time_generation,
)
from seraphim.training.trainer import Generation

# Two workers: 10 seconds, 8 of them with games in progress, are 16 worker seconds.
WORK = Work(
    readouts=9000,
    evaluations=400,
    seconds={"network": 8.0, "rules": 2.0, "search": 4.0, "other": 2.0},
    playing_seconds=8.0,
)
GENERATED = Generated(games=100, positions=3000, seconds=10.0, work=WORK, interrupted=False)


def generation(training_seconds: float, gate_seconds: float, seconds: float) -> Generation:
    snapshot, window = Snapshot(None, 10), WindowReport(1, 1, 1, (), 1)  # type: ignore[arg-type]
    verdict, losses = Verdict(True, None), Losses(1, 1, 1)
    return Generation(snapshot, verdict, window, 3000, losses, 10, "float32", training_seconds, gate_seconds, seconds)


def test_all_parts_add_up_to_the_time_by_the_clock() -> None:
    timing = time_generation(GENERATED, generation(6.0, 1.0, 8.0), check_seconds=2.0)
    assert dict(timing.seconds) == {
        START: 2.0,
        NETWORK: 4.0,
        RULES: 1.0,
        SEARCH: 2.0,
        OTHER: 1.0,
        STEPS: 6.0,
        GATE: 1.0,
        FILES: 1.0,
        CHECK: 2.0,
    }
    assert timing.share(*PARTS) == pytest.approx(1.0)


def test_a_timing_prints_as_one_line_with_the_bottleneck_in_words() -> None:
    timing = time_generation(GENERATED, generation(6.0, 1.0, 8.0), check_seconds=2.0)
    assert str(timing) == (
        "time: self-play 50%, training 40%, check 10%; 20 network evaluations/s, 18,000 games/h; "
        "bottleneck: training steps (30%)"
    )


@pytest.mark.parametrize(
    ("numbers", "bottleneck"),
    [((1.0, 0.0, 2.0, 0.5), NETWORK), ((0.1, 9.0, 9.2, 0.5), GATE), ((0.1, 0.0, 9.2, 0.5), FILES)],
)
def test_the_bottleneck_is_what_took_longest(numbers: tuple[float, ...], bottleneck: str) -> None:
    *training, check_seconds = numbers
    assert time_generation(GENERATED, generation(*training), check_seconds).bottleneck == bottleneck


def test_timings_of_several_generations_add_up() -> None:
    one = time_generation(GENERATED, generation(6.0, 1.0, 8.0), check_seconds=2.0)
    two = Timing() + one + one
    assert two.figures() == pytest.approx(one.figures())
    assert (two.games, two.evaluations, two.seconds[STEPS]) == (200, 800, 12.0)


def test_an_empty_timing_can_be_printed() -> None:
    assert "0 games/h" in str(Timing())
