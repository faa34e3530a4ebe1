"""Numbers that are leased: each is done once, whichever workers vanish."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seraphim.selfplay.cluster.work_queue import WorkQueue

STEPS = st.lists(st.tuples(st.sampled_from(["lease", "complete", "release"]), st.integers(0, 3), st.integers(1, 9)))


@given(STEPS, st.integers(0, 5), st.integers(0, 30), st.sets(st.integers(0, 40)))
def test_every_number_is_done_exactly_once_whichever_workers_vanish(
    steps: list, first: int, count: int, skip: set[int]
) -> None:
    queue = WorkQueue(first, first + count, skip)
    expected = set(range(first, first + count)) - skip
    done: list[int] = []
    held: dict[int, set[int]] = {worker: set() for worker in range(4)}

    def complete(worker: int, most: int) -> None:
        numbers = sorted(held[worker])[:most]
        queue.complete(worker, numbers)
        held[worker] -= set(numbers)
        done.extend(numbers)

    def lease(worker: int, most: int) -> None:
        numbers = queue.lease(worker, most)
        assert len(numbers) <= most
        assert not any(set(numbers) & others for others in held.values())
        held[worker] |= set(numbers)

    for step, worker, most in [*steps, *(("lease", 0, 99), ("complete", 0, 99))]:
        if step == "lease":
            lease(worker, most)
        elif step == "complete":
            complete(worker, most)
        else:
            assert queue.release(worker) == len(held[worker])
            held[worker] = set()
        assert queue.num_leased == sum(map(len, held.values()))
        assert queue.num_available == len(expected) - len(done) - queue.num_leased
    for worker in range(1, 4):
        complete(worker, 99)
    assert queue.is_done
    assert sorted(done) == sorted(expected)


def test_released_numbers_come_before_new_ones() -> None:
    queue = WorkQueue(0, 10)
    queue.lease("a", 2)
    queue.lease("b", 3)
    queue.release("a")
    assert queue.lease("c", 4) == [0, 1, 5, 6]


def test_only_the_worker_that_has_a_number_completes_it() -> None:
    queue = WorkQueue(0, 10)
    queue.lease("a", 2)
    queue.release("a")
    assert queue.lease("b", 1) == [0]
    with pytest.raises(ValueError, match="0 is not leased to 'a'"):
        queue.complete("a", [0])


def test_after_close_only_released_numbers_are_leased() -> None:
    queue = WorkQueue(0, 2**62, {1})
    assert queue.lease("a", 3) == [0, 2, 3]
    queue.close()
    assert queue.lease("b", 3) == []
    queue.complete("a", [2])
    queue.release("a")
    assert queue.lease("b", 3) == [0, 3]
    queue.complete("b", [0, 3])
    assert queue.is_done


def test_no_number_is_leased_far_ahead_of_one_that_is_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seraphim.selfplay.cluster.work_queue.MAX_AHEAD", 100)
    queue = WorkQueue(0, 2**62)
    assert queue.lease("slow", 1) == [0]
    leased = []
    while numbers := queue.lease("quick", 16):
        leased += numbers
        queue.complete("quick", numbers)
    assert leased == list(range(1, 101))
    assert queue.num_available > 0
    queue.complete("slow", [0])
    assert queue.lease("quick", 1) == [101]
