# SPDX-License-Identifier: BSD-3-Clause
"""`standard_errors`: how exactly the counts of a sample determine its weights, given H.

The weights of a sample minimise f(w) = d·w + ½ r ‖w‖² − Σ_j v_j log z_j − Σ_k a_k log w_k with
z_j = h_j·w (docs/general_model.md). For Poisson counts f is the negative log-likelihood, and

    A = ∇²f = Σ_j v_j h_j h_jᵀ/z_j² + r I + diag(a ⊘ w²)

is the observed information. With an exposure X the expected count is X_j z_j. In v log(X_j z_j) the
exposure is an additive constant, so it cancels in A: missing entries and batch effects change v, d
and the solution, but no other part of A.

A weight that is positive is *free*; the covariance of the free weights is the inverse of their part
of A. A weight that is zero, or that the data push below zero, is at the *boundary*. Its posterior
under a flat prior, with the free weights integrated out, is to second order

    p(w) ∝ exp(−s w − ½ κ w²) on w ≥ 0,   κ = A_kk − A_kF (A_FF)⁻¹ A_Fk,

where s ≥ 0 is the slope of f at w = 0. This is a normal distribution truncated at 0, and its
standard deviation is the error.

Collinear components make A_FF singular: some weights can be exchanged at no cost. Each free weight
therefore has `PRIOR_COUNTS` more prior counts, a Gamma prior that is nearly flat, which adds
ε/w_k² to A_kk. It bounds the error by w/√ε, ten thousand times the weight.

======  ======================================================  ======
symbol  meaning                                                 shape
======  ======================================================  ======
w       weights of a sample                                     (K,)
h_j     components at feature j, a row of H                     (K,)
v, z    counts and expected counts without exposure             (m,)
d, r, a linear term, ridge and prior counts of `ItemProblem`    (K,), –, (K,)
A       observed information                                    (K, K)
======  ======================================================  ======
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import erfcx
from sklearn.utils.validation import check_is_fitted

from sipower.data.containers import as_numbers
from sipower.data.names import arrange, data_items
from sipower.data.row_blocks import RowBlocks
from sipower.estimators import KLNMF
from sipower.estimators.exact_rows import exact_rows
from sipower.estimators.observation import as_given
from sipower.kernels import Array, run_blocks
from sipower.problems.item_problem import Terms

__all__ = ["one_sided_deviation", "standard_errors"]

Float = NDArray[np.float64]
PRIOR_COUNTS = 1e-8  # ε
PRIOR_SHARE = 1e-13  # of the counts of a sample, added to ε because A has rounding errors
NEGLIGIBLE = 1e-3  # a weight below this share of its own error is at the boundary
NUMBERS_AT_ONCE = 2**19  # of the data, of A and of the products of components, for each thread
LARGE = 25.0  # from here on the series of the variance is more exact than the formula
SERIES = (1.0, -6.0, 50.0, -518.0, 6354.0, -89782.0, 1435330.0)  # of α² variance, in 1/α²


def standard_errors(V: Any, model: KLNMF, W: Any = None, **observed: Any) -> Float:
    """Return the standard error of every weight, given the fitted components.

    The error of a positive weight comes from the inverse of the observed information. A weight of
    zero has the standard deviation of its one-sided posterior: in an empty sample it is the weight
    of one count. H counts as known; `bootstrap` includes its uncertainty.

    Parameters
    ----------
    V
        Data (n_samples, n_features) with Poisson counts: anything `KLNMF.transform` accepts. Data
        on disk are read some rows at a time.
    model
        A fitted model.
    W
        The weights that `fit_transform` or `transform` returned for V, (n_samples, n_components);
        None: they are computed.
    **observed
        Arguments of `KLNMF.transform` that say how the data were observed: sample_weight (without
        effect), feature_weight, weights, mask, offsets, batch. A weight ω of an entry counts like ω
        observations of it.

    Returns
    -------
    ndarray of shape (n_samples, n_components)
        Standard errors, in the units of W. They are infinite where nothing is known: in samples
        without an observed entry, and for components that are zero. Errors far above the weight
        mean that the components can be exchanged for each other; they are at most 10,000 times
        the weight, which corresponds to a prior of 1e-8 counts. With `prior_W`, the errors are
        those of the posterior mode.

    Examples
    --------
    >>> from sipower import KLNMF, standard_errors
    >>> from sipower.datasets import poisson_topics
    >>> V = poisson_topics(200, 150, 4, length=200, seed=0)
    >>> model = KLNMF(4, random_state=0)
    >>> W = model.fit_transform(V)
    >>> standard_errors(V, model, W).shape
    (200, 4)
    """
    check_is_fitted(model)
    data, observation = model._observe(V, as_given(observed), reset=False)
    prepared, basis, terms = model._row_problem(data, observation.without_sample_weights())
    if W is None:
        weights = exact_rows(prepared.V, basis, model.transform_tol_, terms)
    else:
        W = arrange("W", W, data_items(V)[0], None)
        weights = prepared.scale_rows(_as_weights(W, (data.shape[0], basis.shape[1])))
    errors = _Rows(prepared.V, weights, basis, terms).errors()
    return errors if prepared.row_scale is None else errors / prepared.row_scale[:, None]


def _as_weights(W: Any, shape: tuple[int, int]) -> Float:
    weights = as_numbers("W", W, "a dense array of numbers")
    if weights.shape != shape:
        raise ValueError(f"`W` must have shape {shape}, got {weights.shape}.")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("`W` must be finite and non-negative.")
    return weights


@dataclass(frozen=True, eq=False)
class _Rows:
    """The row problems at their solution.

    Parameters
    ----------
    V, W, H
        Data (n, m), weights (n, K) and components (m, K).
    terms
        Terms of the rows besides the data.
    """

    V: RowBlocks
    W: Array
    H: Array
    terms: Terms

    def errors(self) -> Float:
        """Return the standard errors of W, (n, K)."""
        n, K = self.W.shape
        S = self.H.sum(axis=0, dtype=np.float64)
        scale = np.where(S > 0, S, 1.0)  # to profiles and counts: nothing over- or underflows
        profiles = np.divide(self.H, scale, dtype=np.float64)
        d = profiles.sum(axis=0) if self.terms.d is None else self.terms.d / scale
        prior = 0.0 if self.terms.prior is None else self.terms.prior
        d, prior = (np.broadcast_to(part, (n, K)) for part in (d, prior))
        ridge = np.broadcast_to(np.reshape(self.terms.ridge, (-1, 1)) / scale**2, (n, K))
        per_row = max(self.V.nnz // n, K * K, 1)
        at_once = max(NUMBERS_AT_ONCE // per_row, 1)
        out = np.empty((n, K))

        def work(block: int) -> None:
            rows = slice(block * at_once, min((block + 1) * at_once, n))
            w = self.W[rows] * scale
            g, A = _information(self.V.rows(rows.start, rows.stop), w, profiles, rows.start)
            per_weight = np.divide(prior[rows], w, out=np.zeros(w.shape), where=w > 0)
            diagonal = np.einsum("ikk->ik", A)  # a view
            diagonal += ridge[rows] + np.divide(per_weight, w, out=np.zeros(w.shape), where=w > 0)
            slope = d[rows] + ridge[rows] * w - g - per_weight
            out[rows] = _errors(A, slope, w) / scale

        run_blocks(-(-n // at_once), work, self.V.threads if self.V.is_in_memory else 1)
        return out


def _information(V: Any, W: Float, H: Float, first: int) -> tuple[Float, Float]:
    """Return g_i = Σ_j v_ij h_j/z_ij, (rows, K), and Σ_j v_ij h_j h_jᵀ/z_ij², (rows, K, K).

    V holds some rows as an array or in CSR, and `first` is the number of the first one.
    """
    if isinstance(V, np.ndarray):
        v, z = V.astype(np.float64), W @ H.T
    else:
        rows = np.repeat(np.arange(V.shape[0]), np.diff(V.indptr))
        v, z = V.data.astype(np.float64), np.zeros(V.nnz)
        for k in range(H.shape[1]):
            z += W[rows, k] * H[V.indices, k]
    is_explained = z > 0
    ratio = np.divide(v, z, out=np.zeros_like(v), where=is_explained)
    square = np.divide(ratio, z, out=np.zeros_like(v), where=is_explained)
    if not is_explained.all():
        _check_explained(V, (v > 0) & ~is_explained, H, first)
    first_order, second_order = (_in_layout(V, part) for part in (ratio, square))
    K = H.shape[1]
    left, right = np.triu_indices(K)
    A, pairs = np.empty((V.shape[0], K, K)), max(NUMBERS_AT_ONCE // len(H), K)
    for begin in range(0, len(left), pairs):
        a, b = left[begin : begin + pairs], right[begin : begin + pairs]
        A[:, a, b] = A[:, b, a] = second_order @ (H[:, a] * H[:, b])
    return np.asarray(first_order @ H), A


def _in_layout(V: Any, values: Float) -> Any:
    """Return values of the entries of V as an array or in CSR, as V is."""
    if isinstance(V, np.ndarray):
        return values
    return sparse.csr_array((values, V.indices, V.indptr), V.shape)


def _check_explained(V: Any, is_lost: NDArray[np.bool_], H: Float, first: int) -> None:
    """Check that W explains the counts of all features that some component has."""
    if isinstance(V, np.ndarray):
        rows, columns = np.nonzero(is_lost)
    else:
        at = np.flatnonzero(is_lost)
        rows, columns = np.searchsorted(V.indptr, at, side="right") - 1, V.indices[at]
    wrong = np.flatnonzero(H[columns].any(axis=1))
    if len(wrong):
        row, column = first + int(rows[wrong[0]]), int(columns[wrong[0]])
        raise ValueError(
            f"`W` must explain every count, but W H is zero at entry ({row}, {column}): pass the W "
            "that `transform` returns for these data, or leave it out."
        )


def _errors(A: Float, slope: Float, w: Float) -> Float:
    """Return the standard errors from information (n, K, K), slopes and weights (n, K)."""
    diagonal = np.einsum("ikk->ik", A).copy()
    counts = diagonal * w * w
    is_free = (counts >= NEGLIGIBLE**2) & (slope < diagonal * w)
    conditional = np.divide(1.0, np.sqrt(diagonal), out=np.ones_like(w), where=diagonal > 0)
    scale = np.where(is_free, w, conditional)
    A = A * (scale[:, :, None] * scale[:, None, :])
    free, bound = is_free[:, :, None], ~is_free[:, None, :]
    inside = np.where(free & ~bound, A, 0.0)
    prior = PRIOR_COUNTS + PRIOR_SHARE * np.where(is_free, counts, 0.0).sum(axis=1, keepdims=True)
    np.einsum("ikk->ik", inside)[...] += np.where(is_free, prior, 1.0)
    root = np.linalg.inv(np.linalg.cholesky(inside))  # rootᵀ root is the inverse
    deviation = scale * np.sqrt(np.einsum("ijk,ijk->ik", root, root))
    shared = root @ np.where(free & bound, A, 0.0)
    remaining = np.einsum("ikk->ik", A) - np.einsum("ijk,ijk->ik", shared, shared)
    curvature = np.maximum(remaining, 0.0) / scale**2
    one_sided = one_sided_deviation(slope - curvature * w, curvature)
    return np.where(is_free, deviation, one_sided)


def one_sided_deviation(slope: Array, curvature: Array) -> Float:
    """Return the standard deviation of the density ∝ exp(−s w − ½ κ w²) on w ≥ 0.

    With α = s/√κ and λ = φ(α)/Φ(−α), the ratio of the normal density and tail, the variance is
    (1 + α λ − λ²)/κ. It approaches 1/s² for large α, where the formula would cancel.

    Parameters
    ----------
    slope, curvature
        s and κ ≥ 0. If κ = 0, the density is exponential; if s ≤ 0 too, the result is infinite.
    """
    slope, curvature = np.broadcast_arrays(np.asarray(slope, float), np.asarray(curvature, float))
    root = np.sqrt(curvature)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        alpha = np.where(root > 0, slope / root, np.where(slope > 0, np.inf, -np.inf))
        ratio = np.sqrt(2 / np.pi) / erfcx(np.minimum(alpha, LARGE) / np.sqrt(2))
        moderate = np.sqrt(np.maximum(1 - ratio * (ratio - alpha), 0.0)) / root
        series = np.polynomial.polynomial.polyval(1 / np.square(alpha), SERIES)
        deviation = np.where(alpha >= LARGE, np.sqrt(series) / slope, moderate)
    return np.where(np.isnan(deviation), np.inf, deviation)
