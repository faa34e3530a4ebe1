"""Merging of equal positions in the window: the mean of their targets, with a weight that grows with their number."""

from typing import Any, NamedTuple

import numpy as np

from seraphim.game import Array
from seraphim.jit import kernel
from seraphim.records.examples import Positions, pick
from seraphim.records.sparse import SparseRows


def averaged(positions: Positions) -> Positions:
    """Return each distinct state once, with mean targets, and the mean weight of its n occurrences times 1 + log2(n).

    Properties of games rather than positions (moves, plies, ends) are those of the first occurrence.
    """
    groups = _groups(positions.states)
    growth = (1 + np.log2(np.diff(groups.starts))).astype(np.float32)
    policies, policy_weights = _means(positions.policies, positions.policy_weights, groups)
    values, value_weights = _means(positions.values, positions.value_weights, groups)
    root_values, _ = _means(positions.root_values, np.ones(len(positions.states)), groups)
    first = groups.first
    return pick(positions, first)._replace(
        policies=policies,
        values=values,
        root_values=root_values,
        policy_weights=policy_weights * growth,
        value_weights=value_weights * growth,
    )


class _Groups(NamedTuple):
    # Positions of equal states, ordered by the words of the states.
    order: Array  # int64 [N], one group after the other, each in the order of the window
    starts: Array  # int64 [G + 1], of the groups in `order`
    numbers: Array  # int64 [N], the group of each position

    @property
    def first(self) -> Array:
        return self.order[self.starts[:-1]]


def _groups(states: Array) -> _Groups:
    order = np.lexsort(states.T[::-1])
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (states[order[1:]] != states[order[:-1]]).any(axis=1)
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(begins) - 1
    return _Groups(order, np.append(np.flatnonzero(begins), len(order)), numbers)


def _means(rows: Array | SparseRows, weights: Array, groups: _Groups) -> tuple[Any, Array]:
    # The weighted mean of the rows of each group float32 (the first row if all weights are 0), and the mean weight.
    sizes, group = np.diff(groups.starts), groups.numbers
    total = np.bincount(group, weights)
    divisor = np.maximum(total, 1e-9)
    mean_weights = (total / sizes).astype(np.float32)
    if isinstance(rows, SparseRows):
        unweighted = total[group] == 0
        shares = np.where(unweighted, 0.0, weights / divisor[group])
        shares[groups.first[total == 0]] = 1.0
        return _sums(rows, shares, group, len(sizes)), mean_weights
    means = np.empty((len(sizes), *rows.shape[1:]), np.float32)
    _add_up(rows.reshape(len(rows), -1), weights, groups.order, groups.starts, divisor, means.reshape(len(sizes), -1))
    return means, mean_weights


@kernel
def _add_up(rows: Array, weights: Array, order: Array, starts: Array, divisor: Array, means: Array) -> None:
    # Fills in the means of dense rows.
    total = np.empty(rows.shape[1])
    for group in range(len(means)):
        members = order[starts[group] : starts[group + 1]]
        total[:] = 0.0
        is_weighted = False
        for row in members:
            is_weighted = is_weighted or weights[row] > 0
            for column in range(len(total)):
                total[column] += weights[row] * rows[row, column]
        for column in range(len(total)):
            means[group, column] = total[column] / divisor[group] if is_weighted else rows[members[0], column]


def _sums(rows: SparseRows, weights: Array, group: Array, num_groups: int) -> SparseRows:
    # The weighted sum of the rows of each group.
    owners = rows.rows()
    places, entry = np.unique(group[owners] * rows.num_columns + rows.columns, return_inverse=True)
    sums = np.bincount(entry, weights[owners] * rows.values).astype(np.float32)
    starts = np.searchsorted(places, np.arange(num_groups + 1) * rows.num_columns)
    return SparseRows(starts, (places % rows.num_columns).astype(np.int32), sums, rows.num_columns)
