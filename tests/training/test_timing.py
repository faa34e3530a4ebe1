"""Where the time of learning went: shares that add up, and a bottleneck that has a name."""

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
    MEANINGS,
    NETWORK,
    OTHER,
    RULES,
    SEARCH,
    START,
    STEPS,
    Pace,
    pace_of,
)
from seraphim.training.trainer import Generation

# Two workers: 10 seconds, of which 8 with games under way, make 16 seconds of theirs.
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
    return Generation(snapshot, verdict, window, 3000, losses, 10, training_seconds, gate_seconds, seconds)


def test_all_parts_add_up_to_the_time_by_the_clock() -> None:
    pace = pace_of(GENERATED, generation(6.0, 1.0, 8.0), check_seconds=2.0)
    assert dict(pace.seconds) == {
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
    assert pace.share(*MEANINGS) == pytest.approx(1.0)


def test_a_pace_reads_as_one_line_with_the_bottleneck_in_words() -> None:
    pace = pace_of(GENERATED, generation(6.0, 1.0, 8.0), check_seconds=2.0)
    assert str(pace) == (
        "self-play 50% of the time, training 40%, check 10%: 20 network evaluations/s, 18,000 games/h; "
        "bottleneck: the steps of training (30%)"
    )


@pytest.mark.parametrize(
    ("numbers", "bottleneck"),
    [((1.0, 0.0, 2.0, 0.5), NETWORK), ((0.1, 9.0, 9.2, 0.5), GATE), ((0.1, 0.0, 9.2, 0.5), FILES)],
)
def test_the_bottleneck_is_what_took_longest(numbers: tuple[float, ...], bottleneck: str) -> None:
    *training, check_seconds = numbers
    assert pace_of(GENERATED, generation(*training), check_seconds).bottleneck == bottleneck


def test_paces_of_several_generations_add_up() -> None:
    one = pace_of(GENERATED, generation(6.0, 1.0, 8.0), check_seconds=2.0)
    two = Pace() + one + one
    assert two.figures() == pytest.approx(one.figures())
    assert (two.games, two.evaluations, two.seconds[STEPS]) == (200, 800, 12.0)


def test_nothing_done_is_no_error() -> None:
    assert "0 games/h" in str(Pace())
