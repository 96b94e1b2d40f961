# SPDX-License-Identifier: BSD-3-Clause
"""Workers verify their rows: what they find together is what `sipower.verify` finds here."""

import os
import warnings
from dataclasses import asdict

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import sipower
from lazy_fits import RANK, UNEVEN, V, lazy, model
from model_options import make_options
from sipower.dask import verifying

da = pytest.importorskip("dask.array")
psutil = pytest.importorskip("psutil")

BATCH = np.repeat(["a", "b", "c"], 80)
SIDES = ["rows", "auto"]
OPTIONS = {
    "plain": ({}, {}),
    **make_options(V.shape, RANK),
    "batch": ({"batch_prior": 5.0}, {"batch": BATCH}),
    "batch beside weights": (
        {"prior_W": 0.1},
        {"batch": BATCH, "offsets": np.linspace(0.5, 2, 240), "mask": np.arange(60) % 7 > 0},
    ),
}
CASES = [(name, solver) for name in OPTIONS for solver in SIDES if "batch" not in name[:5]]
CASES += [(name, "auto") for name in OPTIONS if name.startswith("batch")]


@pytest.fixture(autouse=True)
def quiet():
    """Some features are hidden altogether, and random guides contradict the data."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*no observed entry")
        warnings.filterwarnings("ignore", ".*The data do not support this guide")
        yield


def local(given, **parameters):
    result = sipower.KLNMF(RANK, init="random", random_state=0, **parameters)
    return result.fit(sp.csr_array(V), **given)


@pytest.mark.parametrize(("name", "solver"), CASES)
def test_workers_find_what_one_machine_finds(client, name, solver):
    parameters, given = OPTIONS[name]
    parameters = parameters | {"tol": 3e-2, "max_iter": 300, "solver": solver}
    result = model(**parameters).fit(lazy(), **given)
    expected = local(given, **parameters)
    assert result.status_ == expected.status_ == "converged"
    found, wanted = asdict(result.verification_), asdict(expected.verification_)
    assert found == pytest.approx(wanted, rel=1e-6)
    assert found["gap"] == pytest.approx(result.kkt_residual_, rel=1e-3)
    assert found["divergence"] == pytest.approx(result.kl_divergence_, rel=1e-9)


@pytest.mark.parametrize("solver", SIDES)
@pytest.mark.parametrize("rows", [(240,), UNEVEN, (20,) * 12, (239, 1)])
def test_the_chunks_change_nothing(client, solver, rows):
    """The worst sample keeps its number, too."""
    settings = {"tol": 1e-2, "max_iter": 300, "solver": solver}
    result = model(**settings).fit(lazy(rows=rows))
    W = result.to_local().transform(sp.csr_array(V))
    assert result.verification_.worst_sample == local({}, **settings).verification_.worst_sample
    assert sipower.verify(sp.csr_array(V), W, result.components_).gap <= 1e-2


@pytest.mark.parametrize("solver", SIDES)
def test_the_verifier_changes_no_bit(client, solver):
    settings = {"tol": 1e-2, "max_iter": 300, "solver": solver}
    with_it = model(**settings).fit(lazy(rows=(240,)))
    without = model(verify=False, **settings).fit(lazy(rows=(240,)))
    assert without.verification_ is None
    assert with_it.components_.tobytes() == without.components_.tobytes()
    assert with_it.kkt_residual_ == without.kkt_residual_


@pytest.mark.parametrize("solver", SIDES)
def test_a_certificate_that_is_too_small_is_caught(client, solver):
    """The fault is planted in the kernels of every process."""

    def plant(restore=False):
        from sipower import kernels  # noqa: PLC0415 - of the worker

        if restore:
            kernels.sums, kernels.gaps = kernels.real
            return
        kernels.real = real_sums, _ = kernels.sums, kernels.gaps

        def half_sums(data, basis, h, begin, end, out, *rest):
            real_sums(data, basis, h, begin, end, out, *rest)
            out /= 2

        def no_gaps(data, basis, h, begin, end, out, *rest):
            out[begin:end] = 0

        no_gaps.__name__ = "gaps"  # workers find a kernel by its name
        kernels.sums, kernels.gaps = half_sums, no_gaps

    client.run(plant)
    try:
        plant()
        faulty = model(solver=solver, tol=1e-3, max_iter=30)
        with pytest.warns(ConvergenceWarning, match=r"Not (verified|converged)"):
            faulty.fit(lazy())
    finally:
        plant(restore=True)
        client.run(plant, restore=True)
    assert faulty.status_ != "converged"
    assert model(solver=solver, tol=1e-2, max_iter=300).fit(lazy()).status_ == "converged"


@pytest.mark.parametrize("solver", SIDES)
def test_a_worker_that_dies_while_it_verifies_changes_nothing(client, solver, monkeypatch):
    settings = {"tol": 1e-2, "max_iter": 300, "solver": solver}
    expected = model(**settings).fit(lazy()).verification_
    killed, add_results = [], verifying.add_results

    def kill(*arguments):
        pids = client.run(os.getpid)
        killed.append(pids[min(pids)])
        psutil.Process(killed[-1]).kill()
        return add_results(*arguments)

    monkeypatch.setattr(verifying, "add_results", kill)
    result = model(**settings).fit(lazy())
    assert len(killed) == 1
    assert asdict(result.verification_) == pytest.approx(asdict(expected), rel=1e-9)
