# SPDX-License-Identifier: BSD-3-Clause
"""`verify_factors`: objective and certified gap of given factors, computed from their definitions.

This is the second opinion on a fit: plain float64 NumPy that shares no code with the solvers, their
kernels and their formulas. The gap bounds how far the objective can fall if W alone changes, plus
how far if H alone changes, plus how far if the batch effects alone change, relative to ΣV'.
Rows can be checked where they are (`check_rows`), and the checks added and concluded elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sipower.verification.row_pass import FeatureTotals, row_groups, sum_over_rows
from sipower.verification.side_terms import FeatureTerms, RowTerms, effect_terms
from sipower.verification.statement import Float, ProblemStatement

__all__ = [
    "RowCheck",
    "Verification",
    "check_rows",
    "conclude",
    "verify_factors",
    "weighted_total",
]

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Verification:
    """Objective and certified gap of factors, recomputed from the data.

    Attributes
    ----------
    divergence
        The (weighted) divergence D of the data from the model.
    objective
        D and the penalties, priors and the prior of batch effects. It is infinite if H differs from
        entries that the model gives, or where counts or prior counts are not explained.
    gap
        The sum of `gap_W`, `gap_H` and `gap_effects`.
    gap_W, gap_H, gap_effects
        How far the objective can fall at most if only W, only H, only the batch effects change,
        divided by the (weighted) sum of the data. The components that have prior counts keep their
        sums in H: prior counts do not depend on their scale, and W may change it.
    worst_sample, worst_feature
        The sample and the feature with the largest part of `gap_W` and `gap_H`, from 0.
    rounding
        A bound on the rounding error of `gap`.
    """

    divergence: float
    objective: float
    gap: float
    gap_W: float  # noqa: N815 - the paper's letters
    gap_H: float  # noqa: N815
    gap_effects: float
    worst_sample: int
    worst_feature: int
    rounding: float

    def is_converged(self, tol: float) -> bool:
        """Return whether the gap is at most `tol`, up to its rounding error."""
        return bool(np.isfinite(self.gap) and self.gap <= tol + self.rounding)

    def __str__(self) -> str:
        text = (
            f"divergence {self.divergence:.10g}, objective {self.objective:.10g}, certified gap "
            f"{self.gap:.2e}: {self.gap_W:.2e} for W, {self.gap_H:.2e} for H"
        )
        return text + (f", {self.gap_effects:.2e} for batch effects" if self.gap_effects else "")


@dataclass(frozen=True, eq=False)
class RowCheck:
    """What some rows of V and W contribute to objective and gap; `+` adds that of other rows.

    Parameters
    ----------
    totals
        Sums over the rows, for all features.
    gap
        Sum of the certified gaps of the rows.
    worst_gap, worst_sample
        The largest of these gaps, and the number of its row in the whole data.
    penalty
        Penalties and prior counts of the rows.
    rates
        Σ_i τ_i W'_i with the rates τ of the prior counts, (K,).
    """

    totals: FeatureTotals
    gap: float
    worst_gap: float
    worst_sample: int
    penalty: float
    rates: Float

    def __add__(self, other: RowCheck) -> RowCheck:
        worst = max(self, other, key=lambda part: (part.worst_gap, -part.worst_sample))
        return RowCheck(
            self.totals + other.totals,
            self.gap + other.gap,
            worst.worst_gap,
            worst.worst_sample,
            self.penalty + other.penalty,
            self.rates + other.rates,
        )

    def __radd__(self, zero: int) -> RowCheck:
        return self  # `sum` begins with 0


def verify_factors(V: Any, W: Any, H: Any, statement: ProblemStatement) -> Verification:
    """Return objective and certified gap of the factors W (n, K) and H (m, K).

    V is anything that has `shape`, `dense`, `rows(begin, end)` and, if not dense, `indptr`; it is
    read once.
    """
    return conclude(check_rows(V, W, H, statement), H, statement)


def check_rows(V: Any, W: Any, H: Any, statement: ProblemStatement, first: int = 0) -> RowCheck:
    """Check rows of the data against the factors.

    V, W and the statement are those of some rows, of which `first` is the number of the first one
    in the whole data.
    """
    H = H.astype(np.float64) * statement.column_scale(len(H))[:, None]

    def check(begin: int, end: int) -> RowCheck:
        scaled = W[begin:end].astype(np.float64) * statement.row_scale(begin, end)[:, None]
        rows, totals = sum_over_rows(V.rows(begin, end), scaled, H, statement, begin)
        terms = RowTerms(statement, rows.c, H.sum(axis=0), begin)
        gaps = terms.gaps(scaled, rows)
        worst = int(gaps.argmax())
        return RowCheck(
            totals, float(gaps.sum()), float(gaps[worst]), first + begin + worst,
            terms.penalty(scaled), terms.rates @ scaled,
        )  # fmt: skip

    return sum(check(*group) for group in row_groups(V, statement.entry_weight))  # type: ignore[return-value]


def conclude(rows: RowCheck, H: Any, statement: ProblemStatement) -> Verification:
    """Return objective and certified gap from the check of all rows, and H (m, K)."""
    m, K = H.shape
    H_scale, sums, is_feasible = statement.column_scale(m), rows.totals, statement.is_feasible(H)
    H = H.astype(np.float64) * H_scale[:, None]
    terms_H = FeatureTerms(statement, H, H_scale, rows.rates)
    gaps_H = terms_H.gaps(sums)
    effect_gap, effect_penalty = effect_terms(statement, sums, H)
    total, tiny = float(sums.c.sum()), float(np.finfo(float).tiny)
    divergence = sums.log_term - total + float(sums.expected.sum())
    objective = divergence + rows.penalty + terms_H.penalty() + effect_penalty
    objective = objective if is_feasible else np.inf
    gap_W, gap_H, gap_effects = (
        float(gap) / max(total, tiny) for gap in (rows.gap, gaps_H.sum(), effect_gap)
    )
    gap = gap_W + gap_H + gap_effects
    is_finite = np.isfinite(objective)  # infinite also: a count with W Hᵀ = 0, a ≠ 0 with H = 0
    return Verification(
        divergence=max(divergence, 0.0),
        objective=objective,
        gap=gap if is_finite else np.inf,
        gap_W=gap_W,
        gap_H=gap_H,
        gap_effects=gap_effects,
        worst_sample=rows.worst_sample,
        worst_feature=int(gaps_H.argmax()),
        rounding=64 * EPS * K * (1 + (abs(objective) / max(total, tiny) if is_finite else 0)),
    )


def weighted_total(V: Any, statement: ProblemStatement) -> float:
    """Return Σ V', in one pass over the rows."""
    groups = row_groups(V, statement.entry_weight)
    return float(sum(statement.weigh(V.rows(*group), group[0])[0].sum() for group in groups))
