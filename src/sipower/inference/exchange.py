# SPDX-License-Identifier: BSD-3-Clause
r"""How much of one component could belong to another without the counts contradicting it.

For profiles θ_k that sum to 1 and weights w_ik in counts, the product W H does not change if

    θ_k ← (θ_k + ε θ_l)/(1 + ε),   w_ik ← (1 + ε) w_ik,   w_il ← w_il − ε w_ik     (ε > 0)

as long as no weight becomes negative. Where a weight would, D rises, and noise decides: it moves
every weight of a sample that has little or nothing of component l above zero or to zero. W has its
own weights for every sample, so these decisions do not average out over samples, and the factors
with the lowest D are those in which such exchanges have made profiles more unlike than they are.
Replicates of a bootstrap start from them and repeat the same decisions: they see the noise of the
profiles, but not this shift.

Each free weight lowers D by half a nat on average by fitting noise (Akaike, 1974, "A new look at
the statistical model identification"). So profiles are compared by

    A(H) = min over W of D(V ‖ W H), with the penalties of W, + ½ · number of positive weights,

and ε_kl is the largest ε of a grid up to which A rises by less than `LIMIT`. It is zero where the
data hold against the exchange, as in components with features of their own.

======  ==================================================  ======
symbol  meaning                                             shape
======  ==================================================  ======
θ       profiles, rows of H that sum to 1                   (K, m)
w       weights in counts                                   (n, K)
ε_kl    share of component l that k may contain in addition (K, K)
======  ==================================================  ======
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import as_matrix
from sipower.estimators import KLNMF
from sipower.estimators.exact_rows import leave_out_unexplained
from sipower.estimators.observation import Observation
from sipower.estimators.prior import row_model
from sipower.kernels import Array
from sipower.problems.kl import KLBlock

__all__ = ["Exchange", "find_exchange"]

Float = NDArray[np.float64]
GRID = 0.001 * 2.0 ** np.arange(10)  # values of ε
LIMIT = 2.0  # about half the 95 % quantile of χ² with one degree of freedom
MAX_ROWS = 1000  # samples that A is computed from; their A stands for that of all samples
FREE = 1e-6  # share of a sample that a positive weight has at least
MIN_TOL = 1e-10  # gap of a row problem, relative to its counts
ROUNDING = 0.01  # of all gaps together, in nats


@dataclass(frozen=True, eq=False)
class Exchange:
    """How much of the components can be exchanged, and how far W and H move with it.

    Parameters
    ----------
    shares
        ε_kl, (K, K): up to this share of component l, component k may contain more of it.
    W, H
        The distance that weights in counts (n, K) and profiles (m, K) can move down and up: two
        arrays each, ≤ 0 and ≥ 0.
    """

    shares: Float
    W: tuple[Float, Float]
    H: tuple[Float, Float]


def find_exchange(model: KLNMF, V: RowBlocks, observation: Observation, H: Array) -> Exchange:
    """Return how much of the components of a fitted model can be exchanged.

    Parameters
    ----------
    model
        The fitted model.
    V, observation
        Data in memory and how they were observed, without weights of samples.
    H
        Components, (K, m).
    """
    n, K = V.shape[0], len(H)
    sums = H.sum(axis=1, dtype=np.float64)
    profiles = np.divide(H.T, sums, out=np.zeros(H.T.shape), where=sums > 0)
    held = _fixed_entries(model, H.shape)
    can_move = (sums > 0) & ~held.all(axis=0)
    rows = np.unique(np.arange(min(n, MAX_ROWS)) * n // min(n, MAX_ROWS))
    sample = _ExchangedRows(model, *_take(V, observation, rows), H)
    shares = np.zeros((K, K))
    for k in np.flatnonzero(can_move):
        for other in np.flatnonzero((sums > 0) & (np.arange(K) != k)):
            shares[k, other] = sample.largest_share(int(k), int(other), held, n / len(rows))
    everything = sample if len(rows) == n else _ExchangedRows(model, V, observation, H)
    weights = everything.exchanged_weights(shares, held)
    return Exchange(shares, weights, _exchanged_profiles(profiles, shares, held))


def _exchanged_profiles(
    profiles: Float, shares: Float, held: NDArray[np.bool_]
) -> tuple[Float, Float]:
    """Return how far profiles (m, K) move down and up, if each k takes all its shares."""
    down, up = np.zeros((2, *profiles.shape))
    for k, row in enumerate(shares):
        others = np.flatnonzero(row)
        moves = row[others] / (1 + row[others]) * (profiles[:, others] - profiles[:, [k]])
        moves[held[:, k]] = 0
        down[:, k] = np.minimum(moves, 0).sum(axis=1)
        up[:, k] = np.maximum(moves, 0).sum(axis=1)
    return down, up


def _fixed_entries(model: KLNMF, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Return which entries of H' (m, K) the model holds fixed: known components and zeros."""
    held = np.zeros(shape[::-1], bool)
    if model.components_fixed is not None:
        held[:, : len(model.components_fixed)] = True
    if model.components_zero is not None:
        held |= np.asarray(model.components_zero, bool).T
    return held


def _take(V: RowBlocks, observation: Observation, rows: Array) -> tuple[RowBlocks, Observation]:
    if len(rows) == V.shape[0]:
        return V, observation
    return as_matrix(V.take(rows), dtype=V.dtype, n_jobs=V.threads), observation.take(rows)


class _ExchangedRows:
    """The row problems of some samples for components that contain more of each other."""

    def __init__(self, model: KLNMF, V: RowBlocks, observation: Observation, H: Array) -> None:
        self.prepared = model._prepare(V, observation)
        basis = self.prepared.scale_columns(np.ascontiguousarray(H.T, np.float64))
        self.basis = basis
        self.V = leave_out_unexplained(self.prepared.V, basis, warn=False)
        self.model = row_model(model, self.prepared, len(H))
        self.sums = H.sum(axis=1, dtype=np.float64)
        self.tol = max(min(1e-6, ROUNDING / max(self.V.total, 1.0)), MIN_TOL)
        self.W, self.criterion = self._solve(basis)

    def _solve(self, basis: Float, start: Float | None = None) -> tuple[Float, float]:
        """Return the W of a basis, and A."""
        terms = self.model.row_terms(basis)
        block = KLBlock(self.V, basis, dtype=np.float64, terms=terms)
        W = np.asarray(block.solution(self.tol, start=start).h)
        counts = W * self.sums
        free = counts > FREE * counts.sum(axis=1, keepdims=True)
        return W, block.divergence(W) + terms.penalty(W) + 0.5 * float(free.sum())

    def _exchange(self, k: int, shares: Float, held: NDArray[np.bool_]) -> Float:
        """Return the basis in which component k has the given shares of the others, (K,)."""
        weights = np.divide(self.sums[k], self.sums, out=np.zeros_like(shares), where=shares > 0)
        column = (self.basis[:, k] + self.basis @ (shares * weights)) / (1 + shares.sum())
        basis = self.basis.copy()
        basis[:, k] = np.where(held[:, k], basis[:, k], column)
        return basis

    def largest_share(self, k: int, other: int, held: NDArray[np.bool_], scale: float) -> float:
        """Return ε_kl, for l = `other`; `scale` is the number of samples for each one here."""
        shares, largest = np.zeros(len(self.sums)), 0.0
        for share in GRID:
            shares[other] = share
            _, criterion = self._solve(self._exchange(k, shares, held), self.W)
            if scale * (criterion - self.criterion) > LIMIT:
                break
            largest = float(share)
        return largest

    def exchanged_weights(self, shares: Float, held: NDArray[np.bool_]) -> tuple[Float, Float]:
        """Return how far weights in counts move down and up, if each k takes all its shares."""
        down, up = np.zeros((2, *self.W.shape))
        for k in np.flatnonzero(shares.any(axis=1)):
            W, _ = self._solve(self._exchange(int(k), shares[k], held), self.W)
            moves = self.prepared.restore_rows(W - self.W) * self.sums
            down += np.minimum(moves, 0)
            up += np.maximum(moves, 0)
        return down, up
