"""Numbers that are lent out: each is settled once, whoever vanishes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seraphim.selfplay.cluster.work_queue import Leases

STEPS = st.lists(st.tuples(st.sampled_from(["lend", "settle", "forfeit"]), st.integers(0, 3), st.integers(1, 9)))


@given(STEPS, st.integers(0, 5), st.integers(0, 30), st.sets(st.integers(0, 40)))
def test_every_number_is_settled_exactly_once_whoever_vanishes(
    steps: list, first: int, count: int, skip: set[int]
) -> None:
    leases = Leases(first, first + count, skip)
    expected = set(range(first, first + count)) - skip
    settled: list[int] = []
    held: dict[int, set[int]] = {holder: set() for holder in range(4)}

    def settle(holder: int, most: int) -> None:
        numbers = sorted(held[holder])[:most]
        leases.settle(holder, numbers)
        held[holder] -= set(numbers)
        settled.extend(numbers)

    def lend(holder: int, most: int) -> None:
        numbers = leases.lend(holder, most)
        assert len(numbers) <= most
        assert not any(set(numbers) & others for others in held.values())
        held[holder] |= set(numbers)

    for step, holder, most in [*steps, *(("lend", 0, 99), ("settle", 0, 99))]:
        if step == "lend":
            lend(holder, most)
        elif step == "settle":
            settle(holder, most)
        else:
            assert leases.forfeit(holder) == len(held[holder])
            held[holder] = set()
        assert leases.lent == sum(map(len, held.values()))
        assert leases.free == len(expected) - len(settled) - leases.lent
    for holder in range(1, 4):
        settle(holder, 99)
    assert leases.ended
    assert sorted(settled) == sorted(expected)


def test_lost_numbers_come_before_new_ones() -> None:
    leases = Leases(0, 10)
    leases.lend("a", 2)
    leases.lend("b", 3)
    leases.forfeit("a")
    assert leases.lend("c", 4) == [0, 1, 5, 6]


def test_a_number_is_settled_by_whoever_has_it() -> None:
    leases = Leases(0, 10)
    leases.lend("a", 2)
    leases.forfeit("a")
    assert leases.lend("b", 1) == [0]
    with pytest.raises(ValueError, match="0 is not lent to 'a'"):
        leases.settle("a", [0])


def test_after_finish_only_lost_numbers_are_lent() -> None:
    leases = Leases(0, 2**62, {1})
    assert leases.lend("a", 3) == [0, 2, 3]
    leases.finish()
    assert leases.lend("b", 3) == []
    leases.settle("a", [2])
    leases.forfeit("a")
    assert leases.lend("b", 3) == [0, 3]
    leases.settle("b", [0, 3])
    assert leases.ended


def test_no_number_is_lent_far_ahead_of_one_that_is_not_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seraphim.selfplay.cluster.work_queue.MOST_AHEAD", 100)
    leases = Leases(0, 2**62)
    assert leases.lend("slow", 1) == [0]
    lent = []
    while numbers := leases.lend("quick", 16):
        lent += numbers
        leases.settle("quick", numbers)
    assert lent == list(range(1, 101))
    assert leases.free > 0
    leases.settle("slow", [0])
    assert leases.lend("quick", 1) == [101]
