# SPDX-License-Identifier: BSD-3-Clause
"""Updates of the rows of W, and the sums over the rows from which H is updated and certified.

Every function here works on some of the rows and adds up over groups of rows, so that the rows may
be in memory, on disk or on the workers of a cluster.

======  ======================================================  ================
symbol  meaning                                                 shape
======  ======================================================  ================
g       ratio sums Σ_i (v_i ⊘ z_i) w_iᵀ, z_i = H w_i            (m, K)
Q       curvatures Σ_i (v_ij/z_ij²) w_i w_iᵀ, upper triangles   (m, K (K + 1)/2)
c       masses: column sums of V                                (m,)
======  ======================================================  ================
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import kl_div

from sipower import kernels
from sipower.kernels import Array
from sipower.nmf.coordinate import CCD
from sipower.nmf.factors import Factors
from sipower.nmf.momentum import extrapolate
from sipower.nmf.row_sums import RowSums
from sipower.nmf.rule import HalfStep
from sipower.nmf.terms import PLAIN, ModelTerms
from sipower.problems.item_terms import Float, Terms, certify
from sipower.problems.kl import KLBlock

__all__ = [
    "FeatureSums", "RowPoint", "RowTask", "RowUpdate", "curvature_shape", "evaluate_rows",
    "feature_gap", "feature_gaps", "multiplier", "sum_rows", "uniform_rows", "update_rows",
]  # fmt: skip

# Mean of 3 seeds on KOS: one sweep had a lower D than two at 55 and 200 passes, the same at 105.
SWEEP = CCD(1, "active")
MAX_SLAB = 2**23  # entries of row-only data that are transposed at a time for the curvatures


class RowTask(NamedTuple):
    """What a round does with the rows.

    Attributes
    ----------
    beta
        How far the new W is extrapolated, as a share of its change.
    scale
        Numbers by which the columns of the last W are divided first, (K,); None: 1.
    round, seed
        Number of the round and seed of the run.
    curvatures
        Whether Q is needed.
    row_tol
        Certified gap to which the rows are solved; None: one sweep instead.
    """

    beta: float = 0.0
    scale: Array | None = None
    round: int = 0
    seed: int = 0
    curvatures: bool = False
    row_tol: float | None = None


class FeatureSums(NamedTuple):
    """Sums over the rows of W: all that a step of H needs of them.

    Attributes
    ----------
    g
        Ratio sums, (m, K).
    Q
        Curvatures, or zeros of shape (0, K (K + 1)/2) if they are not computed.
    rows
        What the terms of the features need of W.
    """

    g: Array
    Q: Array
    rows: RowSums

    def rescale(self, scale: Array) -> FeatureSums:
        """Return the sums for W divided and H multiplied by `scale`, (K,)."""
        first, second = np.triu_indices(len(scale))
        Q = self.Q / (scale[first] * scale[second])
        return FeatureSums(self.g / scale, Q, self.rows.rescale(scale))


class RowUpdate(NamedTuple):
    """The rows after a round and the sums over them.

    Attributes
    ----------
    W, W_ahead
        New W and its extrapolation Ŵ, (n, K).
    sums
        Sums at (Ŵ, H).
    value
        Objective at (W, H), in the working type; for some of the rows, without the penalties of H.
    passes
        Cost of the round in passes, times the number of nonzeros if it is not yet divided by it.
    """

    W: Any
    W_ahead: Any
    sums: FeatureSums
    value: float
    passes: float


class RowPoint(NamedTuple):
    """Objective and certificate of the rows at a point (W, H), in float64.

    Attributes
    ----------
    sums
        Sums at the point, without curvatures.
    value
        Divergence D(V ‖ W Hᵀ), the penalties of W and, for all rows, those of H.
    gap
        Sum of the certified gaps of the rows.
    penalty
        The part of the value that is not the divergence.
    """

    sums: FeatureSums
    value: float
    gap: float
    penalty: float

    def add_feature_penalty(self, terms: ModelTerms, H: Array) -> RowPoint:
        """Return the point with the penalties of H in its value."""
        penalty = terms.feature_penalty(H)
        return self._replace(value=self.value + penalty, penalty=self.penalty + penalty)


# ---- rows -------------------------------------------------------------------------------------


def uniform_rows(V: Any, H: Array) -> Array:
    """Return W (n, K) in which every component explains the same share of each row's mass."""
    d = H.sum(axis=0, dtype=np.float64)
    share = np.divide(1.0, max((d > 0).sum(), 1) * d, out=np.zeros_like(d), where=d > 0)
    return np.asarray(V.mass[:, None] * share, V.dtype)


def update_rows(
    V: Any, last: tuple[Array, Array], H: Array, task: RowTask, terms: ModelTerms = PLAIN
) -> RowUpdate:
    """Return the rows of V (n, m) after one round for H (m, K).

    `last` holds W and the point Ŵ from which the rows start, (n, K). The value lacks the penalties
    of H, which are no sum over rows; `passes` is not yet divided by the nonzeros.
    """
    rows = KLBlock(V, H, terms=terms.row_terms(H))
    W_last, start = last
    if task.scale is not None:
        W_last, start = (np.asarray(W / task.scale, V.dtype) for W in last)
    if task.row_tol is not None:
        W, _, used = rows.solution(task.row_tol, exact=False, start=start)
        passes = float(_row_nonzeros(V) @ used)
    else:
        half_step = HalfStep(SWEEP.step, task.seed, task.round, 0)
        W, passes = SWEEP.update(rows, start, half_step), SWEEP.passes(rows, half_step) * V.nnz
    value = terms.row_objective(rows, Factors(W, H), exact=False)
    W_ahead = extrapolate(W, W_last, task.beta)
    sums, cost = sum_rows(V, Factors(W_ahead, H), terms, curvatures=task.curvatures)
    return RowUpdate(W, W_ahead, sums, value, passes + 0.5 * V.nnz + cost)


def _row_nonzeros(V: Any) -> Float:
    """Return the number of stored entries of every row, (n,)."""
    lengths = np.full(V.shape[0], V.shape[1]) if V.dense else np.diff(V.indptr)
    return np.asarray(lengths, np.float64)


# ---- sums over rows ---------------------------------------------------------------------------


def sum_rows(
    V: Any, x: Factors, terms: ModelTerms = PLAIN, *, curvatures: bool = False
) -> tuple[FeatureSums, float]:
    """Return the sums over the rows at x = (W, H), and their cost: passes times nonzeros.

    The ratio sums follow from the curvatures: Q_j h_j = Σ_i (v_ij/z_ij²) w_i (w_i·h_j) = g_j.
    """
    W, H = x
    sums = terms.sums(W)
    d = W.sum(axis=0, dtype=np.float64) if sums.d is None else sums.d
    sums.weighted[2:] = terms.row_penalties(W)
    rows = sums._replace(d=d)
    if not curvatures:
        g = KLBlock(V.columns, W, terms=Terms(d)).ratio_sums(H)
        return FeatureSums(g, np.zeros(curvature_shape(0, W.shape[1])), rows), float(V.nnz)
    Q = _curvatures(V, x)
    # ½ pass for z, and a quarter for each component that a row has.
    cost = 0.5 * V.nnz + float(_row_nonzeros(V) @ np.count_nonzero(W, axis=1)) / 4
    return FeatureSums(_products(Q, H), Q, rows), cost


def curvature_shape(m: int, rank: int) -> tuple[int, int]:
    """Return the shape of the curvatures of m features."""
    return m, rank * (rank + 1) // 2


def _curvatures(V: Any, x: Factors) -> Float:
    """Return Q, (m, K (K + 1)/2), from the columns of V or from transposed groups of its rows."""
    W, H = x.W, kernels.as_contiguous(x.H, V.dtype)
    Q = np.zeros(curvature_shape(*H.shape))
    if V.has_columns:
        V.columns.for_items(kernels.curvatures, V.columns.basis(W), H, Q)
        return Q
    step = max(MAX_SLAB * V.shape[0] // max(V.nnz, 1), 1)
    for begin in range(0, V.shape[0], step):
        rows = V.rows(begin, min(begin + step, V.shape[0]))
        turned = np.ascontiguousarray(rows.T) if V.dense else sparse.csr_array(rows.T)
        part, basis = (
            V.with_data(turned, rows_only=True),
            kernels.as_contiguous(W[begin : begin + step]),
        )
        part.for_items(kernels.curvatures, part.basis(basis), H, Q)
    return Q


def _products(Q: Float, H: Array) -> Float:
    """Return Q_j h_j of every feature j, (m, K)."""
    g, at = np.zeros(H.shape), 0
    for k in range(H.shape[1]):
        row = Q[:, at : at + H.shape[1] - k]  # Q_kl for l ≥ k
        g[:, k] += np.einsum("jl,jl->j", row, H[:, k:])
        g[:, k + 1 :] += row[:, 1:] * H[:, k : k + 1]
        at += H.shape[1] - k
    return g


def evaluate_rows(V: Any, x: Factors, terms: ModelTerms = PLAIN) -> RowPoint:
    """Return objective and certificate of the rows at x = (W, H), in float64.

    The value does not contain the penalties of H, because they are no sum over rows.
    """
    rows = KLBlock(V, x.H, terms=terms.row_terms(x.H))
    sums, _ = sum_rows(V, x, terms)
    exact = KLBlock(V.columns, x.W, dtype=np.float64, terms=Terms(sums.rows.d))
    sums = sums._replace(g=exact.ratio_sums(x.H))
    value, gap = terms.row_objective(rows, x), float(rows.gaps(x.W).sum())
    return RowPoint(sums, value, gap, terms.row_penalty(x))


# ---- certificate of the features ---------------------------------------------------------------


def feature_gap(H: Array, sums: FeatureSums, c: Array, terms: ModelTerms = PLAIN) -> float:
    """Return an upper bound on the possible decrease of the objective if only H changes.

    The bound uses only the sums over the rows and the masses `c` of the features, (m,).
    """
    return float(feature_gaps(H, sums.g, sums.rows, c, terms).sum())


def feature_gaps(H: Array, g: Array, sums: RowSums, c: Array, terms: ModelTerms) -> Float:
    """Return the certified gap of every feature, given W, from sums over the rows of W.

    The sums of components with prior counts are fixed, so the gap is that of a convex problem with
    constraints.
    """
    if terms.prior is None:
        own = terms.feature_terms(H, sums)
        return _linear_gaps(H, g, own.d, c) if own.is_linear else certify(own, g, H, c)
    own = terms.terms_of_profiles(sums)
    d: Any = own.d
    multipliers = terms.prior.multipliers(H, g, d, sums, own.fixed)
    return certify(own._replace(d=d + multipliers), g, H, c)


def _linear_gaps(H: Array, g: Array, d: Any, c: Array) -> Float:
    """Return the gaps if d is the only term.

    Each feature is first scaled to its mass, to s_j h_j with s_j = c_j/(d·h_j), which divides g_j
    by s_j.
    """
    H = H.astype(np.float64)
    mass = H @ d if d.ndim == 1 else np.einsum("jk,jk->j", H, d)
    scale = np.divide(c, mass, out=np.ones_like(mass), where=mass > 0)
    G = multiplier(g, d).max(axis=1) / np.where(scale > 0, scale, 1)
    return np.asarray(kl_div(c, mass) + c * np.maximum(G - 1, 0))


def multiplier(g: Array, d: Array) -> Array:
    """Return G = g/d, with zeros where d is zero."""
    return np.divide(g, d, out=np.zeros_like(g), where=d > 0)
