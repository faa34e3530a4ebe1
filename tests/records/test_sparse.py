"""Sparse rows against the arrays that they stand for."""

import numpy as np
import pytest

from seraphim.game import Array
from seraphim.records.sparse import SparseRows, concatenate, from_dense

RANDOM = np.random.default_rng(0)
ARRAY = np.where(RANDOM.random((20, 50)) < 0.1, RANDOM.random((20, 50)), 0).astype(np.float32)
ARRAY[7] = 0
ROWS = from_dense(ARRAY, ARRAY > 0)


def assert_equal(rows: SparseRows | Array, array: Array) -> None:
    assert isinstance(rows, SparseRows)
    assert len(rows) == len(array)
    assert rows.dense().dtype == array.dtype
    np.testing.assert_array_equal(rows.dense(), array)


def test_sparse_rows_are_the_array_that_they_were_made_of() -> None:
    assert_equal(ROWS, ARRAY)
    np.testing.assert_array_equal(ROWS.rows(), np.nonzero(ARRAY)[0])
    assert ROWS.starts.nbytes + ROWS.columns.nbytes + ROWS.values.nbytes < ARRAY.nbytes


def test_an_entry_of_zero_is_kept() -> None:
    legal = np.zeros((3, 400), np.bool_)
    legal[1, [5, 399]] = True
    rows = from_dense(np.zeros((3, 400), np.float32), legal)
    assert rows.columns.tolist() == [5, 399]
    assert rows.starts.tolist() == [0, 0, 2, 2]


@pytest.mark.parametrize(
    "rows",
    [slice(3), slice(-4, None), slice(0, 0), slice(None, None, -2), np.array([5, 7, 7, 0]), ARRAY[:, 0] == 0],
    ids=str,
)
def test_rows_are_picked_as_those_of_an_array(rows: slice | Array) -> None:
    assert_equal(ROWS[rows], ARRAY[rows])


@pytest.mark.parametrize("row", [0, 7, -1, np.int64(3)])
def test_a_single_row_is_dense(row: int) -> None:
    np.testing.assert_array_equal(ROWS[row], ARRAY[row])


def test_parts_are_put_together_in_order() -> None:
    assert_equal(concatenate([ROWS[15:], ROWS[:0], ROWS[:15]]), np.concatenate([ARRAY[15:], ARRAY[:15]]))
    np.testing.assert_array_equal(concatenate([ARRAY[15:], ARRAY[:15]]), np.concatenate([ARRAY[15:], ARRAY[:15]]))
