# SPDX-License-Identifier: BSD-3-Clause
"""Epochs of S-SCI-PI without a guard, which would hide one that failed behind another step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import strategies as st

from properties.generated import Fits, generated
from properties.matrices import Recipe, recipes
from properties.test_klnmf import dense, divergence, make_sampling_rule, ranks, run_em
from sipower import Status, Stop, as_matrix, solve
from sipower.data.sampling import SCHEMES
from sipower.nmf import Alternating, Factorization

ROWS_ONLY = "rows only"  # as of data on disk: their columns are sampled by the generic solver


@dataclass(frozen=True)
class Epochs:
    """The recipe of a run of sampled epochs."""

    recipe: Recipe
    rank: int
    kind: str
    step: float
    dtype: str
    replace: bool
    rounds: int

    def run(self):
        Fits.number += 1
        rows_only = self.kind == ROWS_ONLY
        V = as_matrix(self.recipe.matrix(), dtype=self.dtype, rows_only=rows_only)
        rule = make_sampling_rule(
            None if rows_only else self.kind, step=self.step, replace=self.replace
        )
        assert all(rule.plan(side, self.rank).is_sampled for side in (V, V.columns))
        stop = Stop(0, rounds=self.rounds)
        return solve(Factorization(V, self.rank), Alternating(rule), stop=stop, trace="every")


def epochs(kind):
    return st.builds(
        Epochs,
        recipes(),
        ranks,
        kind,
        st.sampled_from([0.3, 1.0, 4.0]),  # a guard lets steps grow up to 4
        st.sampled_from(["float32", "float64"]),
        st.booleans(),
        st.sampled_from([1, 3, 10]),
    )


@generated(epochs, (*SCHEMES, ROWS_ONLY), share=60, stress=300)
def test_epochs_of_sampled_steps_need_no_guard_to_stay_finite(case):
    """Finite, non-negative, every D as it is and finite too, the certificate no lie."""
    result = case.run()
    assert result.status in (Status.MAX_ROUNDS, Status.CONVERGED)
    W, H = result.x
    for factor in (W, H):
        assert np.isfinite(factor).all()
        assert (factor >= 0).all()
    assert np.isfinite([record.objective for record in result.trace]).all()
    data = dense(case.recipe.matrix()).astype(case.dtype).astype(np.longdouble)
    value, size = divergence(data, W, H.T)
    assert result.value == pytest.approx(value, abs=1e-13 * (case.rank + 20) * size)
    W, H, total = W.astype(float), H.T.astype(float), float(data.sum())
    better_w = divergence(data, run_em(data, W, H), H)[0]
    better_h = divergence(data, W, run_em(data.T, H.T, W.T).T)[0]
    gained = max(value - better_w, 0) + max(value - better_h, 0)
    assert gained <= result.residual * total + 1e-9 * total + 1e-13 * size
