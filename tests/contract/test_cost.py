# SPDX-License-Identifier: BSD-3-Clause
"""`estimate`: what it counts, what it measures and what it advises."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from contract.small_fits import V
from sipower import KLNMF, estimate
from sipower.estimators import cost
from sipower.io import open_store, write_store


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="/proc has the memory of a process")
@pytest.mark.parametrize("case", ["like KOS", "int64 indptr", "store 20MB"])
def test_memory_is_what_a_fit_adds_to_the_process(case):
    """The benchmark measures more cases, of which each should be within 10 %."""
    script = Path(__file__).parents[2] / "benchmarks" / "footprint.py"
    command = [sys.executable, str(script), "--only", case]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    ratio = float(output.strip().rpartition("(")[2].rstrip(")"))
    assert 0.75 <= ratio <= 1.25, output


def test_memory_counts_arrays_that_the_fit_does_not_share():
    sparse = sp.csr_array(V, dtype=np.float64)
    memory = estimate(sparse, 3).memory
    assert estimate(sparse.astype(np.int64), 3).memory == memory + 8 * sparse.nnz
    wide = sparse.copy()
    wide.indices = wide.indices.astype(np.int64)
    wide.indptr = wide.indptr.astype(np.int64)
    assert estimate(wide, 3).memory == memory + 8 * (sparse.nnz + len(V) + 1)
    assert estimate(sparse, KLNMF(3, dtype="f4")).memory > estimate(sparse.astype("f4"), 3).memory


def test_memory_of_a_store_is_bounded_by_its_limit(tmp_path):
    tall = np.tile(V, (40, 1))
    write_store(sp.csr_array(tall), tmp_path / "store")
    large, small = (
        estimate(open_store(tmp_path / "store", memory_limit=limit), 3).memory
        for limit in ("1GB", "500kB")
    )
    content = 2 * np.count_nonzero(tall) * 5  # 5 bytes for a small count
    assert large - small == pytest.approx((content - 500_000) * 4 / 3, abs=2)


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
