# SPDX-License-Identifier: BSD-3-Clause
"""`estimate`: what it counts, what it measures and what it advises."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from contract.small_fits import V
from sipower import KLNMF, estimate
from sipower.estimators import cost
from sipower.io import open_store, write_store


def test_memory_is_that_of_both_orientations_and_the_factors():
    sparse = sp.csr_array(V)
    factors = 6 * (60 + 40) * 3
    assert estimate(sparse, 3).memory == 2 * sparse.nnz * (8 + 4) + factors * 8
    assert estimate(sparse, KLNMF(3, dtype="f4")).memory == 2 * sparse.nnz * 8 + factors * 4
    assert estimate(V.astype(np.uint8), 3).memory == 2 * V.size + factors * 8


def test_memory_of_a_store_is_its_limit(tmp_path):
    write_store(sp.csr_array(V), tmp_path / "store")
    store = open_store(tmp_path / "store", memory_limit=500_000)
    assert estimate(store, 3).memory == 500_000 + 6 * 100 * 3 * 8


def test_limits_bound_the_range():
    free = estimate(V, KLNMF(3, n_jobs=1))
    assert 0 < free.seconds[0] < free.expected_seconds < free.seconds[1]
    assert free.threads == 1
    timed = estimate(V, KLNMF(3, max_time=1e-9))
    assert timed.seconds == (1e-9, 1e-9)
    rounds = estimate(V, KLNMF(3, solver="mu", tol=0, max_iter=7))
    assert rounds.expected_seconds == pytest.approx(7 * cost.OVERHEAD * rounds.seconds_per_round)
    assert rounds.seconds[1] / rounds.seconds[0] == pytest.approx(cost.NOISE**2)


def test_the_text_has_all_numbers():
    text = str(replace(estimate(V, 3), memory=12_400_000, seconds=(30.0, 400.0), threads=2))
    assert text.startswith("12 MB for data and factors; 30 s to 7 min in all, ")
    assert "per round, 2 threads." in text


def test_long_fits_and_lack_of_memory_get_advice(monkeypatch):
    monkeypatch.setattr(cost, "free_memory", lambda: 1000.0)
    monkeypatch.setattr(cost, "LONG", 0.0)
    advice = " ".join(estimate(V, KLNMF(3, solver="mu")).advice)
    for words in ("sipower convert", "solver='auto'", "dtype='float32'", "max_time"):
        assert words in advice
    monkeypatch.setattr(cost, "LONG", 1e9)
    monkeypatch.setattr(cost, "free_memory", lambda: np.inf)
    assert estimate(V, 3).advice == ()


def test_the_model_is_not_fitted():
    model = KLNMF(3)
    estimate(V, model)
    assert not hasattr(model, "components_")
    with pytest.raises(ValueError, match="`n_components` must be a number"):
        estimate(np.ones((3, 70)), KLNMF())
