# SPDX-License-Identifier: BSD-3-Clause
"""Matching of the components of two factorisations, and merging of components."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from sipower.data.names import data_items, has_labels, match_all
from sipower.data.plausibility import warn_user
from sipower.kernels import Array
from sipower.nmf.merging import merge_components


def cosines(A: Array, B: Array) -> NDArray[np.float64]:
    """Return the cosine of every row of A with every row of B; 0 where a row is zero.

    The features of data frames are matched by name.

    Examples
    --------
    >>> import numpy as np
    >>> from sipower.selection import cosines
    >>> cosines(np.array([[1, 0], [3, 4]]), np.eye(2)).tolist()
    [[1.0, 0.0], [0.6, 0.8]]
    """
    a, b = (_unit(np.asarray(F, np.float64)) for F in _same_features(A, B))
    return np.asarray(np.clip(a @ b.T, 0.0, 1.0))


def match(A: Array, B: Array) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Match the rows of A and B one to one, so that the sum of their cosines is largest.

    Return the partner in B of each row of A, and the cosine of the two. A row without a partner,
    if A has more rows than B, gets −1 and the cosine 0.

    Examples
    --------
    >>> import numpy as np
    >>> from sipower.selection import match
    >>> partners, similarity = match(np.array([[0, 5, 0], [1, 0, 0], [3, 0, 4]]), np.eye(3))
    >>> partners.tolist(), similarity.tolist()
    ([1, 0, 2], [1.0, 1.0, 0.8])
    """
    table = cosines(A, B)
    rows, columns = linear_sum_assignment(table, maximize=True)
    partners, similarity = np.full(len(table), -1, np.int64), np.zeros(len(table))
    partners[rows], similarity[rows] = columns, table[rows, columns]
    return partners, similarity


def merge(W: Array, H: Array, n_components: int) -> tuple[Array, Array]:
    """Merge pairs of components, cheapest first, until `n_components` are left.

    The cost of a merger is a bound on the increase of D; see `sipower.nmf.merging`.

    Parameters
    ----------
    W, H
        Factors (n_samples, K) and (K, n_features).
    n_components
        Number of components to keep, at most K.

    Returns
    -------
    W, H
        Factors with `n_components` components, all entries positive.

    Examples
    --------
    >>> import numpy as np
    >>> from sipower.selection import merge
    >>> H = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    >>> merged_W, merged_H = merge(np.array([[3.0, 1.0, 0.0], [0.0, 0.0, 2.0]]), H, 2)
    >>> merged_W.round(2).tolist(), merged_H.round(2).tolist()
    ([[4.0, 0.0], [0.0, 2.0]], [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    """
    merged_W, merged_H = merge_components(W, np.asarray(H).T, n_components)
    return merged_W, merged_H.T


def _same_features(A: Any, B: Any) -> tuple[Any, Any]:
    """Return components with the same features in the same order; frames are matched by name."""
    if not (has_labels(A) or has_labels(B)):
        return A, B
    own, other = data_items(A, "`A`")[1], data_items(B, "`B`")[1]
    positions, remarks = match_all(own, other)
    for remark in remarks:
        warn_user(remark)
    return A, np.asarray(B)[:, positions]


def _unit(F: NDArray[np.float64]) -> NDArray[np.float64]:
    largest = F.max(axis=1, keepdims=True, initial=0.0)
    F = np.divide(
        F, largest, out=np.zeros_like(F), where=largest > 0
    )  # squares neither underflow nor overflow
    norms = np.sqrt(np.einsum("ij,ij->i", F, F))[:, None]
    return np.asarray(np.divide(F, norms, out=np.zeros_like(F), where=norms > 0))
