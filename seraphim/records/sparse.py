"""Arrays whose rows have few entries that are not 0, such as policies over thousands of actions.

Knows neither games nor files. Rows are picked as from a NumPy array; they become dense a few at a time, where needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from seraphim.game import Array


@dataclass(frozen=True, eq=False)
class SparseRows:
    """An array [P, A] as a compressed sparse row matrix: row p has the entries `starts[p]` to `starts[p + 1]`."""

    starts: Array  # int64 [P + 1], from 0 to E
    columns: Array  # int32 [E], ascending within a row
    values: Array  # [E], of any type; 0 elsewhere
    num_columns: int  # A

    def __len__(self) -> int:
        """Return P."""
        return len(self.starts) - 1

    @property
    def nbytes(self) -> int:
        """Return how much memory the arrays take."""
        return self.starts.nbytes + self.columns.nbytes + self.values.nbytes

    @overload
    def __getitem__(self, rows: int) -> Array: ...

    @overload
    def __getitem__(self, rows: "slice | Array") -> "SparseRows": ...

    def __getitem__(self, rows: Any) -> "Array | SparseRows":
        """Return one row, dense, or several rows: a slice, or indices or a mask as an array."""
        if isinstance(rows, int | np.integer):
            return self[np.array([rows])].dense()[0]
        picked = np.arange(len(self))[rows]
        counts = np.diff(self.starts)[picked]
        starts = np.concatenate([[0], np.cumsum(counts)])
        entries = np.arange(starts[-1]) + np.repeat(self.starts[picked] - starts[:-1], counts)
        return SparseRows(starts, self.columns[entries], self.values[entries], self.num_columns)

    def rows(self) -> Array:
        """Return the row of each entry, int64 [E]."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def dense(self) -> Array:
        """Return the whole array, [P, A]."""
        array = np.zeros((len(self), self.num_columns), self.values.dtype)
        array[self.rows(), self.columns] = self.values
        return array


def from_dense(array: Array, entries: Array) -> SparseRows:
    """Return an array [P, A] as sparse rows, with the entries where bool [P, A] is True."""
    rows, columns = np.nonzero(entries)
    starts = np.searchsorted(rows, np.arange(len(array) + 1))
    return SparseRows(starts, columns.astype(np.int32), array[rows, columns], array.shape[1])


def concatenate(parts: Sequence[Array | SparseRows]) -> Array | SparseRows:
    """Return the rows of all parts, in order; the parts are all arrays or all sparse rows."""
    sparse = [part for part in parts if isinstance(part, SparseRows)]
    if not sparse:
        return np.concatenate([part for part in parts if not isinstance(part, SparseRows)])
    return SparseRows(
        np.concatenate([[0], np.cumsum(np.concatenate([np.diff(part.starts) for part in sparse]))]),
        np.concatenate([part.columns for part in sparse]),
        np.concatenate([part.values for part in sparse]),
        sparse[0].num_columns,
    )
