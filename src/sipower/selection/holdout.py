# SPDX-License-Identifier: BSD-3-Clause
"""Held-out counts, and how well a fit predicts them.

Thinning: each unit of every count V_ij ~ Poisson(Λ_ij) is held out with probability ε. The counts
that are left and those held out are independent, Poisson((1 − ε) Λ) and Poisson(ε Λ). If W H is
fitted to the former, ε/(1 − ε) W H predicts the latter.

Counts with a dispersion φ (variance Λ + φ Λ²) would stay dependent: where a count is large by
chance, so are both of its parts, and a fit to the one that follows the noise predicts the other.
Negative binomial counts have independent parts if the share that is left of each count is drawn
from Beta((1 − ε)/φ, ε/φ) instead of being 1 − ε for all (Neufeld et al., 2023, "Negative binomial
count splitting for single-cell RNA sequencing data"). Both parts have the same mean as before.
Each feature has a φ of its own: with one that is too large, the shares vary so much that the signal
is lost, and with one that is too small, the parts stay dependent.

Bi-cross-validation, for data that are not counts: rows and columns are halved at random,

    V = [A B; C D],    D ≈ W_D H_D,    B ≈ W_A H_D given H_D,    C ≈ W_D H_A given W_D,

and A, which no fit has seen, is predicted by W_A H_A (Owen and Perry, 2009).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize_scalar
from scipy.special import xlogy

from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import as_matrix
from sipower.estimators import KLNMF
from sipower.estimators.exact_rows import exact_rows
from sipower.estimators.observation import as_given
from sipower.kernels import Array
from sipower.nmf.exposure import Exposure

Numbers = NDArray[np.float64]
SHARE = 0.2  # share of the counts that is held out
GROUPS = 20  # groups of rows, for the standard error over rows
ENTRIES_AT_A_TIME = 100_000
ROW_TOL = 1e-6


def are_counts(V: RowBlocks) -> bool:
    """Return whether all entries are whole numbers, and small enough to be exact."""
    values = V.array if V.dense else V.array.data
    if values.dtype.kind in "ui":
        return True
    return bool((values == np.floor(values)).all() and values.max(initial=0) < 2**31)


@dataclass(frozen=True)
class Thinned:
    """A split of counts into training and test counts by thinning."""

    train: Any
    test: Any
    features: NDArray[np.int64]  # the columns of V that the fit sees

    def errors(self, model: KLNMF, W: Array, given: Mapping[str, Any]) -> Numbers:
        """Return the errors of a model, fitted to `train`, on `test`; see `prediction_errors`.

        `given` are the arguments of the fit that say how the data were observed.
        """
        V, observation = model._observe(self.test, as_given(given), reset=False)
        prepared, weights = model._prepare(V, observation), observation.weights
        rows, columns = (np.asarray(self.train.sum(axis=axis), np.float64) for axis in (1, 0))
        rows, columns = rows * (SHARE / (1 - SHARE)), columns / rows.sum()
        if weights.rows is not None:
            rows = rows * weights.rows
        if weights.columns is not None:
            columns = columns * weights.columns
        left = prepared.scale_rows(W * (SHARE / (1 - SHARE)))
        right = prepared.scale_columns(model.components_.T).T
        background = rows[:, None], columns[None, :]
        test = sparse.csr_array(prepared.V.array)
        return prediction_errors(test, (left, right), background, prepared.exposure)


def thin(
    V: RowBlocks, seed: int, dispersion: float | Numbers = 0.0, share: float = SHARE
) -> Thinned:
    """Hold out each unit of every count with probability `share`, or one that varies around it.

    The probability is the same for the units of one count. It varies from count to count if the
    counts are over-dispersed, so that the two parts are independent.

    Parameters
    ----------
    V
        Whole numbers, (n, m).
    seed
        Seed of the split.
    dispersion
        φ of each feature, (m,), or one for all.
    share
        Share of the counts that is held out.
    """
    whole, rng = V.sparse().array, np.random.default_rng(seed)
    kept: Any = 1 - share
    if np.any(dispersion):
        of_counts = np.broadcast_to(dispersion, V.shape[1])[whole.indices]
        varies = of_counts > 0
        kept = np.full(len(whole.data), kept)
        kept[varies] = rng.beta((1 - share) / of_counts[varies], share / of_counts[varies])
    train = rng.binomial(whole.data.astype(np.int64), kept)
    parts = []
    for values in (train, whole.data - train):
        part = sparse.csr_array((values.astype(V.dtype), whole.indices, whole.indptr), V.shape)
        part = part.copy()
        part.eliminate_zeros()
        parts.append(part)
    return Thinned(parts[0], parts[1], np.arange(V.shape[1]))


def conditional_entropy(counts: Any) -> float:
    """Return [Σ_i m_i log m_i − Σ_ij v_ij log v_ij]/Σ v for counts v with row sums m.

    It is the mean of −log(v_ij/m_i). The error of a prediction z is the mean of log(v_ij/z_ij) if
    the totals agree, so the sum of both is the logarithm of the perplexity.
    """
    rows = np.asarray(counts.sum(axis=1), np.float64)
    values = counts.data.astype(np.float64)
    return float((xlogy(rows, rows).sum() - xlogy(values, values).sum()) / max(rows.sum(), 1.0))


def perplexities(V: RowBlocks, errors: Numbers, seed: int, dispersion: Numbers) -> Numbers:
    """Return the perplexity of each rank, from its errors on the splits of `thin`.

    The errors have the shape (ranks, replicates), and `seed` is that of the first split.
    """
    splits = (thin(V, seed + r, dispersion) for r in range(errors.shape[1]))
    entropies = np.array([conditional_entropy(split.test) for split in splits])
    return np.asarray(np.exp(errors + entropies).mean(axis=1))


@dataclass(frozen=True)
class Halved:
    """A split into halves of rows and columns: three blocks to learn from, one to predict."""

    # V is cut into blocks [[A, B], [C, D]].
    train: Any  # block D
    test: Any  # block A
    beside: Any  # block B
    below: Any  # block C
    features: NDArray[np.int64]

    def errors(self, model: KLNMF, W: Array, given: Mapping[str, Any]) -> Numbers:
        """Return the errors of a model, fitted to `train`, on `test`; see `prediction_errors`."""
        dtype, H = W.dtype, model.components_
        rows, columns = (
            exact_rows(as_matrix(block, dtype=dtype), np.ascontiguousarray(basis), ROW_TOL)
            for block, basis in ((self.beside, H.T), (self.below.T, W))
        )
        right, under = (
            np.asarray(b.sum(axis=a), float) for b, a in ((self.beside, 1), (self.below, 0))
        )
        background = right[:, None], under[None, :] / max(float(self.train.sum()), 1e-300)
        return prediction_errors(sparse.csr_array(self.test), (rows, columns.T), background)


def halve(V: RowBlocks, seed: int) -> Halved:
    """Hold out a quarter of the data: half of the rows of half of the columns."""
    if min(V.shape) < 2:
        raise ValueError(
            f"`V` must have at least 2 rows and 2 columns to choose a rank, got {V.shape}."
        )
    rng = np.random.default_rng(seed)
    halves = [np.array_split(rng.permutation(size), 2) for size in V.shape]
    (test_rows, train_rows), (test_columns, train_columns) = (map(np.sort, h) for h in halves)
    A, B = (V.array[test_rows][:, columns] for columns in (test_columns, train_columns))
    C, D = (V.array[train_rows][:, columns] for columns in (test_columns, train_columns))
    return Halved(D, A, B, C, train_columns)


def prediction_errors(
    test: Any,
    prediction: tuple[Array, Array],
    background: tuple[Numbers, Numbers],
    exposure: Exposure | None = None,
) -> Numbers:
    """Return min over δ of D(test ‖ (1 − δ) prediction + δ background) / Σ test by row groups.

    The result has one term per group of rows, (`GROUPS`,); their sum is the error. Prediction and
    background are products (n, ·)(·, m); the background has one component. It keeps the error
    finite where the prediction is zero. Rows or columns without training counts, where even the
    background is zero, are left out. Both products are multiplied by the exposure, if it is given.
    """
    terms = test.tocoo()
    z, b = (entry_products(f, g, terms.row, terms.col) for f, g in (prediction, background))
    if exposure is not None:
        x = exposure.at(terms.row, terms.col)
        z, b = z * x, b * x
    positive = b > 0
    v, z, b = terms.data[positive].astype(np.float64), z[positive], b[positive]
    if not v.sum() > 0:
        raise ValueError(
            "The data have too few counts to hold some out: set `n_components` instead."
        )
    groups = np.arange(test.shape[0]) * GROUPS // test.shape[0]
    term_groups = groups[terms.row[positive]]
    masses = [
        np.bincount(groups, _row_masses(left, right, exposure), GROUPS) for left, right in
        (prediction, background)
    ]  # fmt: skip
    constant = xlogy(v, v) - v

    def divergences(share: float) -> Numbers:
        lost = constant - v * np.log((1 - share) * z + share * b)
        mass = (1 - share) * masses[0] + share * masses[1]
        return np.asarray(np.bincount(term_groups, lost, GROUPS) + mass)

    # The divergence is convex in the share.
    optimum = minimize_scalar(lambda s: divergences(s).sum(), bounds=(1e-6, 1), method="bounded")
    return np.asarray(divergences(optimum.x) / v.sum())


def _row_masses(left: Array, right: Array, exposure: Exposure | None) -> Numbers:
    """Return the sums of the rows of left @ right, multiplied by the exposure."""
    if exposure is None:
        return np.asarray(left @ right.sum(axis=1))
    return np.asarray((left * exposure.linear_terms(0, right.T)).sum(axis=1))


def entry_products(left: Array, right: Array, rows: Array, columns: Array) -> Numbers:
    """Return the entries (rows, columns) of left @ right."""
    across = np.ascontiguousarray(right.T)
    out = np.empty(len(rows))
    for at in range(0, len(rows), ENTRIES_AT_A_TIME):
        block = slice(at, at + ENTRIES_AT_A_TIME)
        out[block] = np.einsum(
            "ij,ij->i", left[rows[block]], across[columns[block]], dtype=np.float64
        )
    return out
