# SPDX-License-Identifier: BSD-3-Clause
"""Weights of every kind for data of a given shape, and the product that they must give."""

import numpy as np
import scipy.sparse as sp

from sipower.data.weighting import Weights

KINDS = ("rows", "columns", "entries", "all")


def make_weights(kind, shape, seed=0):
    """Return weights of one kind or of all three, some of which are 0."""
    rng, (n, m) = np.random.default_rng(seed), shape
    rows, columns = rng.uniform(0.2, 3.0, n), rng.uniform(0.2, 3.0, m)
    rows[n // 4] = columns[m // 4] = 0
    number = n * m // 5
    at = rng.choice(n * m, number, replace=False)
    special = rng.uniform(0.1, 2.0, number)
    special[::3] = 0  # missing values
    entries = sp.csr_array((special, np.unravel_index(at, shape)), shape)
    entries.sort_indices()
    assert entries.nnz == number  # the zeros are stored
    parts = {"rows": rows, "columns": columns, "entries": entries}
    return Weights(**(parts if kind == "all" else {kind: parts[kind]}))


def weight_array(weights, shape):
    """Return the weights of all entries as an array."""
    array = np.ones(shape)
    if weights.rows is not None:
        array *= weights.rows[:, None]
    if weights.columns is not None:
        array *= weights.columns
    if weights.entries is not None:
        special = np.ones(shape)
        stored = weights.entries.tocoo()
        special[stored.coords] = stored.data
        array *= special
    return array


def product(V, weights, dtype=np.float64):
    """Return the weighted data as an array, with all products in float64."""
    V = np.asarray(V.toarray() if sp.issparse(V) else V, dtype)
    return (V.astype(np.float64) * weight_array(weights, V.shape)).astype(dtype)
