# SPDX-License-Identifier: BSD-3-Clause
"""The terms of the problems of the rows of W' and H' besides the data, and their certified gaps.

With the column sums S of H', the counts w̃_ik = W'_ik S_k and the profiles p_jk = H'_jk/S_k, prior
counts add Σ_ik [τ_i w̃_ik − b_ik log w̃_ik] − Σ_jk a_jk log p_jk, with the rates τ_i = Σ_k b_ik/c_i.
"""

from __future__ import annotations

import numpy as np
from scipy.special import kl_div, xlogy

from sipower.verification.item_gaps import dual_gaps, linear_gaps
from sipower.verification.row_pass import FeatureTotals, RowTotals
from sipower.verification.statement import Float, ProblemStatement

__all__ = ["FeatureTerms", "RowTerms", "effect_terms"]


class RowTerms:
    """The L1 penalty, ridge and prior counts of some rows of W'.

    Parameters
    ----------
    statement
        The problem.
    c
        Masses of the rows, (rows,).
    S
        Column sums of H', (K,).
    begin
        The first row.
    """

    def __init__(self, statement: ProblemStatement, c: Float, S: Float, begin: int) -> None:
        end = begin + len(c)
        scale = _inverse(statement.row_scale(begin, end))
        self.S, self.l1 = S, statement.l1[0] * scale
        self.ridge = statement.ridge[0] * scale**2
        self.b, self.is_linear = np.zeros((len(c), len(S))), not statement.ridge[0]
        if statement.prior_W is not None:
            # A sample of weight ρ counts like ρ samples; one without counts has W = 0.
            rho = 1.0 if statement.sample_weight is None else statement.sample_weight[begin:end]
            self.b += np.where(c > 0, rho, 0.0)[:, None] * statement.prior_W
            self.is_linear = False
        self.rates = np.divide(self.b.sum(axis=1), c, out=np.zeros_like(c), where=c > 0)

    def gaps(self, W: Float, rows: RowTotals) -> Float:
        """Return the certified gap of every row, (rows,)."""
        d = rows.d + self.l1[:, None] + self.rates[:, None] * self.S
        if self.is_linear:
            return linear_gaps(W, rows.g, d, rows.c)
        return dual_gaps(W, rows.g, d, rows.c, a=self.b, r=self.ridge[:, None])

    def penalty(self, W: Float) -> float:
        """Return λ Σ W + ½ r Σ W² + Σ_ik [τ_i w̃_ik − b_ik log w̃_ik]."""
        counts = W * self.S
        linear = self.l1 @ W.sum(axis=1) + self.rates @ counts.sum(axis=1)
        squares = self.ridge[:, None] * W * W  # W² may overflow where there is no ridge
        curved = squares.sum() / 2 - xlogy(self.b, counts).sum()
        return float(linear + curved)


class FeatureTerms:
    """The L1 penalty, ridge, prior counts and fixed entries of H'.

    Parameters
    ----------
    statement
        The problem.
    H, scale
        H' (m, K) and φ (m,).
    rates
        R_k = Σ_i τ_i W'_ik, (K,).
    """

    def __init__(self, statement: ProblemStatement, H: Float, scale: Float, rates: Float) -> None:
        self.H, self.S, self.R = H, H.sum(axis=0), rates
        inverse, self.fixed = _inverse(scale), statement.fixed
        self.l1, self.ridge = statement.l1[1] * inverse, statement.ridge[1] * inverse**2
        self.a, self.has_prior = np.zeros_like(H), statement.has_prior
        has_row_prior = False if statement.prior_W is None else statement.prior_W > 0
        if statement.prior_H is not None:
            self.a += scale[:, None] * statement.prior_H
        if self.fixed is not None:
            self.a[self.fixed] = 0
        self.is_scaled = self.a.any(axis=0) | has_row_prior  # components with prior counts
        self.is_linear = not (self.has_prior or statement.ridge[1] or self.fixed is not None)

    def gaps(self, sums: FeatureTotals) -> Float:
        """Return the certified gap of every feature, (m,).

        Prior counts couple the features by S. Given S_k of the components with prior counts, the
        problem is convex, and for any multipliers μ of these constraints the features with d + μ
        bound it from below. At a solution H (d + μ − g) = a; elsewhere μ is raised until
        d + μ ≥ (g + a/S)/2. The weights of the other components only have rates.
        """
        d = sums.d + self.l1[:, None]
        if self.is_linear:
            return linear_gaps(self.H, sums.g, d, sums.c)
        fixed = np.zeros(self.H.shape, bool) if self.fixed is None else self.fixed
        if self.has_prior:
            S = np.where(self.S > 0, self.S, np.inf)
            mu = (self.a.sum(axis=0) + (self.H * (sums.g - d)).sum(axis=0)) / S
            least = (sums.g + self.a / S) / 2 - d
            mu = np.maximum(mu, least.max(axis=0, where=~fixed, initial=-np.inf))
            d = d + np.where(self.is_scaled, mu, self.R)
        return dual_gaps(self.H, sums.g, d, sums.c, a=self.a, r=self.ridge[:, None], fixed=fixed)

    def penalty(self) -> float:
        """Return λ Σ H + ½ r Σ H² over the free entries, less Σ a log p."""
        free = True if self.fixed is None else ~self.fixed
        profiles = np.divide(self.H, self.S, out=np.zeros_like(self.H), where=self.S > 0)
        squares = (self.ridge[:, None] * self.H * self.H).sum(where=free)
        linear = self.l1 @ self.H.sum(axis=1)
        return float(linear + squares / 2 - xlogy(self.a, profiles).sum())


def effect_terms(statement: ProblemStatement, sums: FeatureTotals, H: Float) -> tuple[float, float]:
    """Return the certified gap of the batch effects β given W and H, and their penalty.

    With N = counts, M = expected counts without β and the prior counts a, the objective
    Σ [β (M + a) − (N + a) log β] is smallest at β = (N + a)/(M + a), and larger by
    Σ kl_div(N + a, β (M + a)) at any other β. Where H cannot be scaled, the effects of a feature
    must have mean 1. Then any multiplier λ of this constraint, in M + a + λ, gives a bound.
    """
    if statement.effects is None:
        return 0.0, 0.0
    a, beta = statement.batch_prior, statement.penalised_effects()
    penalty = a * float(kl_div(1.0, beta).sum())
    best, now = sums.counts + a, sums.expected + a * beta
    fixed = np.full(len(H), statement.has_prior)
    if statement.fixed is not None:
        fixed |= (statement.fixed & (H > 0)).any(axis=1)
    now = now + np.where(fixed, (best - now).mean(axis=0), 0) * beta
    return float(kl_div(best, now).sum()), penalty


def _inverse(scale: Float) -> Float:
    """Return 1/scale, zero where the scale is zero: penalties do not concern such items."""
    return np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
