# SPDX-License-Identifier: BSD-3-Clause
"""The comparison of docs/howto/cnmf.md, small: both functions in the workflow of cNMF."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
from scipy.special import kl_div

from sipower.datasets import negative_binomial_topics

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "cnmf.py"


def test_both_functions_find_the_programs_and_sipower_reaches_a_lower_divergence() -> None:
    benchmark = runpy.run_path(str(SCRIPT))
    counts = negative_binomial_topics(
        150, 80, 3, dispersion=0.3, alpha=0.2, beta=0.1, length=800, seed=1
    )
    X = benchmark["normalised"](counts)
    np.testing.assert_allclose(X.toarray().std(axis=0), 1, rtol=0.05)  # some rows may be left out
    theirs, ours = benchmark["compare"](X, [3], replicates=3)
    assert (theirs.name, ours.name) == ("scikit-learn", "sipower")
    assert ours.divergence < theirs.divergence * 1.001
    assert ours.silhouette > 0.9
    assert ours.consensus_divergence == pytest.approx(ours.divergence, rel=0.02)


def test_divergence_is_the_generalised_one() -> None:
    benchmark = runpy.run_path(str(SCRIPT))
    X = benchmark["normalised"](negative_binomial_topics(20, 15, 2, seed=0))
    rng = np.random.default_rng(0)
    W, H = rng.random((X.shape[0], 2)), rng.random((2, X.shape[1]))
    expected = kl_div(X.toarray(), W @ H).sum()
    assert benchmark["kl_divergence"](X, W, H) == pytest.approx(expected, rel=1e-10)
