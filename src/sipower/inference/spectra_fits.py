# SPDX-License-Identifier: BSD-3-Clause
"""The two fits behind `spectra`: spectra in counts of a median sample, and z-scores.

======  =====================================================================  =======
symbol  meaning                                                                shape
======  =====================================================================  =======
V       data                                                                   (n, m)
s       totals of the samples divided by their median                          (n,)
ρ       weights of the samples; 0: left out                                    (n,)
U       usages: shares of the components in the samples                        (n, K)
S       spectra in counts of a sample of median total                          (K, m)
Y       counts of samples scaled to the median total, Y_ij = v_ij / s_i        (n, m)
μ, σ    mean and standard deviation of the columns of Y, weighted by ρ         (m,)
B       z-scores: least-squares coefficients of (Y − μ)/σ for U                (K, m)
======  =====================================================================  =======

S solves a convex problem for every feature, and B a linear system:

    S = argmin over S ≥ 0 of D(diag(ρ) V ‖ diag(ρs) U S),
    Uᵀ diag(ρ) U B = (Uᵀ diag(ρ) Y − Uᵀρ μᵀ) diag(1/σ).

The right-hand side takes one pass over the nonzeros, so sparse data stay sparse. If the usages are
linearly dependent, B is the solution of least norm. Kotliar et al. (2019, eLife 8:e43803) fit S to
Y by non-negative least squares, and regress on usages before these are scaled to the sum 1.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from sipower.data.memory import Matrix
from sipower.data.row_blocks import RowBlocks
from sipower.problems.kl import KLBlock

__all__ = ["ScaledSamples", "fit_median_units", "fit_z_scores"]

Float = NDArray[np.float64]
ENTRIES_AT_ONCE = 2**22  # entries that are converted to float64 at one time
ENTRIES_GATHERED = 2**24  # entries of columns that one pass gathers from data without columns
FEATURE_TOL = 1e-6  # certified gap to which each feature is solved
MIN_RELATIVE_DEVIATION = 1e-12  # a feature with a smaller σ/μ varies by rounding only
MIN_EIGENVALUE = 1e-12  # relative to the largest; smaller ones are 0 up to rounding


@dataclass(frozen=True, eq=False)
class ScaledSamples:
    """The data V, usages U, relative totals s and weights ρ of the samples."""

    V: RowBlocks
    U: Float
    s: Float
    rho: Float

    def chunks(self, columns: slice = slice(None)) -> Iterator[tuple[NDArray[np.intp], Any]]:
        """Yield the numbers of some samples with ρ > 0, and their entries in some columns.

        The entries are an array or CSR, in float64.
        """
        count = max(1, ENTRIES_AT_ONCE * self.V.shape[0] // max(self.V.nnz, 1))
        for begin in range(0, self.V.shape[0], count):
            end = min(begin + count, self.V.shape[0])
            rows = np.flatnonzero(self.rho[begin:end] > 0)
            if len(rows):
                yield begin + rows, self.V.rows(begin, end)[:, columns][rows].astype(np.float64)


# ---- z-scores --------------------------------------------------------------------------------


class _Moments(NamedTuple):
    """The sum of the weights, and the means and sums of squared deviations of the columns."""

    weight: float
    mean: Float
    squares: Float

    def merge(self, other: _Moments) -> _Moments:
        """Return the moments of both sets of samples (Chan, Golub and LeVeque 1983)."""
        weight, difference = self.weight + other.weight, other.mean - self.mean
        mean = self.mean + difference * (other.weight / weight)
        between = difference**2 * (self.weight * other.weight / weight)
        return _Moments(weight, mean, self.squares + other.squares + between)


def fit_z_scores(samples: ScaledSamples) -> Float:
    """Return B, (K, m), with 0 for features that do not vary."""
    U, m = samples.U, samples.V.shape[1]
    products, gram = np.zeros((U.shape[1], m)), np.zeros((U.shape[1],) * 2)
    moments = _Moments(0.0, np.zeros(m), np.zeros(m))
    for rows, counts in samples.chunks():
        rho, u = samples.rho[rows], U[rows]
        Y = _scale_rows(counts, 1 / samples.s[rows])
        moments = moments.merge(_column_moments(Y, rho))
        weighted = u * rho[:, np.newaxis]
        products += (Y.T @ weighted).T
        gram += weighted.T @ u
    sigma = np.sqrt(moments.squares / moments.weight)
    centred = products - np.outer(samples.rho @ U, moments.mean)
    varies = sigma > MIN_RELATIVE_DEVIATION * moments.mean
    z = np.divide(centred, sigma, where=varies, out=np.zeros_like(centred))
    return np.asarray(np.linalg.pinv(gram, rcond=MIN_EIGENVALUE, hermitian=True) @ z, np.float64)


def _scale_rows(counts: Any, factors: Float) -> Any:
    if isinstance(counts, np.ndarray):
        return counts * factors[:, np.newaxis]
    values = counts.data * np.repeat(factors, np.diff(counts.indptr))
    return sparse.csr_array((values, counts.indices, counts.indptr), counts.shape)


def _column_moments(Y: Any, rho: Float) -> _Moments:
    weight = float(rho.sum())
    if isinstance(Y, np.ndarray):
        mean = rho @ Y / weight
        return _Moments(weight, mean, rho @ (Y - mean) ** 2)
    m, at, own = Y.shape[1], Y.indices, np.repeat(rho, np.diff(Y.indptr))
    mean = np.bincount(at, own * Y.data, m) / weight
    stored = np.bincount(at, own * (Y.data - mean[at]) ** 2, m)
    zeros = np.maximum(weight - np.bincount(at, own, m), 0)  # weight of the entries that are 0
    return _Moments(weight, mean, stored + zeros * mean**2)


# ---- spectra in counts of a median sample ----------------------------------------------------


def fit_median_units(samples: ScaledSamples) -> Float:
    """Return S, (K, m), in which every feature is certified to `FEATURE_TOL`.

    Data without columns are read once for every `ENTRIES_GATHERED` entries.
    """
    V, rho = samples.V, samples.rho
    basis = (samples.U * (rho * samples.s)[:, np.newaxis])[rho > 0]
    S, gaps = np.zeros((samples.U.shape[1], V.shape[1])), np.zeros(V.shape[1])
    entries = ENTRIES_AT_ONCE if V.has_columns else ENTRIES_GATHERED
    count = max(1, entries * V.shape[1] // max(V.nnz, 1))
    for begin in range(0, V.shape[1], count):
        columns = slice(begin, min(begin + count, V.shape[1]))
        block = Matrix(_weighted_columns(samples, columns), np.float64, V.threads, rows_only=True)
        h, gaps[columns], _ = KLBlock(block, basis).solution(FEATURE_TOL)
        S[:, columns] = h.T
    if gaps.max() > FEATURE_TOL:
        warnings.warn(
            f"The spectra of {(gaps > FEATURE_TOL).sum()} features in median units are certified "
            f"only to {gaps.max():.1e}, not to {FEATURE_TOL:.0e}.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return S


def _weighted_columns(samples: ScaledSamples, columns: slice) -> Any:
    """Return columns of diag(ρ) V as rows, (features, samples with ρ > 0), an array or CSR."""
    V, rho = samples.V, samples.rho
    if V.has_columns:
        items = V.T.rows(columns.start, columns.stop)[:, np.flatnonzero(rho > 0)]
    else:
        parts = [counts for _, counts in samples.chunks(columns)]
        items = (np.concatenate(parts) if V.dense else sparse.vstack(parts, "csr")).T
    weights = rho[rho > 0]
    if V.dense:
        return np.ascontiguousarray(items * weights)
    items = sparse.csr_array(items, dtype=np.float64)
    items.sort_indices()
    return sparse.csr_array(
        (items.data * weights[items.indices], items.indices, items.indptr), items.shape
    )
