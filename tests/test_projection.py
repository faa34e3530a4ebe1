"""What many machines need, from what one was seen to do."""

from dataclasses import replace

from benchmarks.projection import Hardware, Measured, need_of, to_table

# A worker plays a game of 20 plies and 5 kB in half a second.
MEASURED = Measured(
    games_per_second=2,
    plies=20,
    bytes_per_game=5_000,
    parcel_bytes=4_000_000,
    learner_seconds=1e-3,
    training_rate=10_000,
    uses=2,
)
HARDWARE = Hardware(cores=10, network=1e8, disk=5e7)


def test_needs_follow_from_what_was_measured() -> None:
    need = need_of(5, MEASURED, HARDWARE)  # 50 workers, 100 games/s
    assert need.games_per_hour == 360_000
    assert need.inbound == 500_000
    assert need.stored == 86_400 * 500_000
    assert need.handover_seconds == 0.2
    assert need.trained == 4_000
    assert need.shares == {"network": 0.005, "disk": 0.01, "processor that receives games": 0.1, "training": 0.4}
    assert need.scarce == "training"


def test_what_is_scarce_is_what_most_is_needed_of() -> None:
    assert need_of(1, replace(MEASURED, uses=0.1), HARDWARE).scarce == "processor that receives games"
    assert need_of(1, replace(MEASURED, bytes_per_game=1e8), HARDWARE).scarce == "disk"


def test_the_table_has_a_column_for_each_number_of_machines() -> None:
    lines = to_table([need_of(machines, MEASURED, HARDWARE) for machines in (1, 1000)]).splitlines()
    assert lines[0] == "| machines | 1 | 1,000 |"
    assert lines[2] == "| games/h | 72,000 | 72,000,000 |"
    assert lines[-1] == "| scarce | training | training |"
    assert {line.count("|") for line in lines} == {4}
