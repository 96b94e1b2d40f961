# SPDX-License-Identifier: BSD-3-Clause
"""Factorisations with weights, missing values and batch effects, and their divergence in NumPy."""

import numpy as np
import scipy.sparse as sp
from scipy.special import rel_entr, xlogy

from sipower import as_matrix
from sipower.data.weighting import Weights, apply_weights
from sipower.nmf import Factorization
from sipower.nmf.exposure import Exposure
from sipower.nmf.terms import ModelTerms

N, M, RANK = 30, 24, 3
EXPOSURES = ("weights", "batches", "both")
V = np.random.default_rng(3).poisson(2.0, (N, M)) * 1.0


def random_weights(seed=0):
    """Draw ω: missing entries, weights and many ones."""
    rng = np.random.default_rng(seed)
    weights = rng.choice([0.0, 0.3, 1.0, 2.5], (N, M), p=[0.2, 0.1, 0.6, 0.1])
    weights[:, 0] = np.maximum(weights[:, 0], 1)
    weights[0] = np.maximum(weights[0], 1)
    return weights


def stored(weights):
    """Return ω in CSR, with a stored entry wherever it is not 1."""
    rows, columns = np.nonzero(weights != 1)
    indptr = np.searchsorted(rows, np.arange(len(weights) + 1))
    return sp.csr_array((weights[rows, columns], columns, indptr), weights.shape)


def special(weights):
    """Return E = ω − 1 in CSR."""
    E = stored(weights)
    return sp.csr_array((E.data - 1, E.indices, E.indptr), E.shape)


def weighted_model(V, layout, weights):
    """Return the problem of weighted data: ω∘V and the exposure ω."""
    data = apply_weights(as_matrix(layout(V)), Weights(entries=stored(weights)))
    log_sum = float(xlogy(weights * V, np.where(weights > 0, weights, 1)).sum())
    return Factorization(data, RANK, ModelTerms(Exposure(special(weights), log_sum)))


def batches(weights):
    """Return batch effects, the batch of every sample, and the full exposure X."""
    rng = np.random.default_rng(8)
    effects, batch = rng.uniform(0.4, 2.5, (3, M)), rng.integers(0, 3, N)
    batch[:3] = range(3)
    return effects, batch, effects[batch] * weights


def model(kind, layout, V=V):
    """Return a problem with an exposure, its weighted data and its X, both dense."""
    weights = random_weights() if kind != "batches" else np.ones((N, M))
    effects, batch, X = batches(weights)
    if kind == "weights":
        return weighted_model(V, layout, weights), weights * V, weights
    data = weights * V
    counts = np.array([data[batch == b].sum(axis=0) for b in range(3)])
    log_sum = float(xlogy(data, np.where(weights > 0, weights, 1)).sum())
    E = None if kind == "batches" else special(weights)
    exposure = Exposure(E, log_sum if kind == "both" else 0.0, effects, batch, counts)
    return Factorization(layout(data), RANK, ModelTerms(exposure)), data, X


def divergence(V, X, x):
    """Σ v log(v/(X z)) − v + X z, over all entries."""
    Z = X * (x.W @ x.H.T)
    return float((rel_entr(V, Z) - V + Z).sum())
