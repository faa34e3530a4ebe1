"""Merging of equal positions in the window: the mean of their targets, with a weight that grows with their number."""

from typing import Any

import numpy as np

from seraphim.game import Array
from seraphim.records.examples import Positions, pick
from seraphim.records.sparse import SparseRows


def averaged(positions: Positions) -> Positions:
    """Return each distinct state once, with mean targets, and the mean weight of its n occurrences times 1 + log2(n).

    Properties of games rather than positions (moves, plies, ends) are those of the first occurrence.
    """
    _, first, group, counts = np.unique(
        positions.states, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    group = group.ravel()
    growth = (1 + np.log2(counts)).astype(np.float32)
    policies, policy_weights = _means(positions.policies, positions.policy_weights, group, first)
    values, value_weights = _means(positions.values, positions.value_weights, group, first)
    root_values, _ = _means(positions.root_values, np.ones(len(group)), group, first)
    return pick(positions, first)._replace(
        policies=policies,
        values=values,
        root_values=root_values,
        policy_weights=policy_weights * growth,
        value_weights=value_weights * growth,
    )


def _means(rows: Array | SparseRows, weights: Array, group: Array, first: Array) -> tuple[Any, Array]:
    # The weighted mean of the rows of each group float32 (the first row if all weights are 0), and the mean weight.
    total = np.bincount(group, weights)
    divisor = np.maximum(total, 1e-9)
    mean_weights = (total / np.bincount(group)).astype(np.float32)
    if isinstance(rows, SparseRows):
        unweighted = total[group] == 0
        shares = np.where(unweighted, 0.0, weights / divisor[group])
        shares[first[total == 0]] = 1.0
        return _sums(rows, shares, group, len(first)), mean_weights
    means = np.empty((len(first), *rows.shape[1:]), np.float32)
    for mean, column in zip(means.reshape(len(first), -1).T, rows.reshape(len(rows), -1).T, strict=True):
        mean[:] = np.where(total > 0, np.bincount(group, weights * column) / divisor, column[first])
    return means, mean_weights


def _sums(rows: SparseRows, weights: Array, group: Array, num_groups: int) -> SparseRows:
    # The weighted sum of the rows of each group.
    owners = rows.rows()
    places, entry = np.unique(group[owners] * rows.num_columns + rows.columns, return_inverse=True)
    sums = np.bincount(entry, weights[owners] * rows.values).astype(np.float32)
    starts = np.searchsorted(places, np.arange(num_groups + 1) * rows.num_columns)
    return SparseRows(starts, (places % rows.num_columns).astype(np.int32), sums, rows.num_columns)
