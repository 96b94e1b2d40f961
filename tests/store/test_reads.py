# SPDX-License-Identifier: BSD-3-Clause
"""The objective that a rule measures while it updates W: the same bits, with fewer reads."""

import numpy as np
import pytest
import scipy.sparse as sp

from oracles import counts
from sipower import as_matrix
from sipower.data.from_store import open_store
from sipower.nmf import Factorization
from sipower.nmf.alternating import Alternating
from sipower.nmf.auto import Auto
from sipower.nmf.coordinate import CCD
from sipower.nmf.extrapolated import Extrapolated
from sipower.nmf.meter import Meter
from sipower.nmf.mu import MU
from sipower.nmf.power_search import PowerSearch
from sipower.nmf.rule import HalfStep
from sipower.nmf.shared_newton import SharedNewton
from sipower.nmf.terms import ModelTerms
from sipower.store import write_store
from sipower.store.layout import OpenArray

V = counts(120, 70)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rule", [CCD(2, "active"), PowerSearch(), SharedNewton()])
@pytest.mark.parametrize("make", [sp.csr_array, np.asarray])
def test_a_measured_value_has_the_bits_of_the_quick_value(dtype, rule, make):
    problem = Factorization(as_matrix(make(V), dtype=dtype), 4)
    x = Alternating(rule).init(problem, None, 0).x
    meter = Meter(problem, rule)
    assert meter.divergences is not None
    half_step = HalfStep(rule.step, 0, 0, 0)
    rows = problem.half(0, x)
    W = rule.update(rows, x.W, half_step._replace(divergences=meter.divergences))
    assert W.tobytes() == rule.update(rows, x.W, half_step).tobytes()
    assert meter.value(x._replace(W=W)) == problem.quick_value(x._replace(W=W)) > 0


@pytest.mark.parametrize("rule", [CCD(), PowerSearch(), MU()])
def test_a_round_with_and_without_its_value(rule):
    problem, solver = Factorization(as_matrix(sp.csr_array(V)), 4), Alternating(rule)
    state = solver.init(problem, None, 0)
    for _ in range(3):  # also where the factors are balanced
        plain = solver.advance(problem, state)
        measured = solver.advance(problem, state, measure=True)
        assert np.isnan(plain.value)
        assert plain.W.tobytes() == measured.W.tobytes()
        assert measured.value == problem.quick_value(measured.x)
        state = measured


def test_other_problems_are_evaluated_separately():
    problem = Factorization(as_matrix(sp.csr_array(V)), 4, ModelTerms(l1=(0.5, 0.5)))
    assert Meter(problem, CCD()).divergences is None
    assert Meter(Factorization(V, 4), MU()).divergences is None
    state = Alternating(CCD()).init(problem, None, 0)
    measured = Alternating(CCD()).advance(problem, state, measure=True)
    assert measured.value == problem.quick_value(measured.x)


def test_a_round_on_disk_reads_the_rows_once_per_update(tmp_path, monkeypatch):
    """Before, the objective was a further read of the rows: 3 in place of 2, 5 in place of 4."""
    big = sp.csr_array(counts(900, 800, density=0.2))
    write_store(big, tmp_path / "v")
    read, sizes = OpenArray._read, []

    def count(array, view, at):
        sizes.append(read(array, view, at))
        return sizes[-1]

    monkeypatch.setattr(OpenArray, "_read", count)
    stored = open_store(tmp_path / "v", memory_limit=400_000)
    assert len(stored.windows_of_blocks) > 2
    once = big.nnz * (4 + stored.source.value_type.itemsize)
    problem = Factorization(stored, 3)
    for solver, expected in ((Extrapolated(CCD(2)), 2), (Auto(), 4)):
        state = solver.init(problem, None, 0)
        sizes.clear()
        solver.advance(problem, state)
        assert expected - 0.5 < sum(sizes) / once <= expected
