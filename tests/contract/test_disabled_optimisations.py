# SPDX-License-Identifier: BSD-3-Clause
"""Each optimisation can be switched off, and the fit ends in the same minimum.

All fits end at a certified gap of 1e-8, so that the divergences of fits to the same minimum agree
to well below 1e-6 of ΣV. Fits that share a start begin near the minimum; the others have data whose
components are so distinct that all starts end in one minimum.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from sipower import KLNMF, verify
from sipower.nmf.coordinate import CCD

RANK, TOL, AGREEMENT = 3, 1e-8, 1e-6


def distinct_counts(n, m, seed=0):
    """Draw Poisson counts of components with few common features, one per sample for the most."""
    rng = np.random.default_rng(seed)
    H = rng.dirichlet(np.full(m, 0.1), RANK)
    W = 400 * rng.dirichlet(np.full(RANK, 0.2), n)
    return rng.poisson(W @ H + 0.01).astype(float)


V = distinct_counts(300, 60)
LAYOUTS = {"dense": np.asarray, "sparse": sp.csr_array}
SPARSE_ONLY, DENSE_ONLY = ("sparse",), ("dense",)
BOTH = ("dense", "sparse")


def cyclic(sweeps=1, order="cyclic"):
    return CCD(sweeps)


def no_extrapolation(new, last, beta):
    return new


# Per optimisation: the layouts that use it, what replaces it, and whether fits share a start.
SWITCHES = {
    "active sets": (SPARSE_ONLY, {"sipower.nmf.auto.CCD": cyclic}, True),
    "sampled Hessians": (DENSE_ONLY, {"sipower.nmf.shared_newton.ROWS_PER_COMPONENT": 10**9}, True),
    "extrapolation": (BOTH, {"sipower.nmf.extrapolated.extrapolate": no_extrapolation}, True),
    "power steps": (
        SPARSE_ONLY,
        {"sipower.nmf.auto.MIN_RELATIVE_GAIN": dict.fromkeys(BOTH, 1e9)},
        False,
    ),
    "sampled items": (DENSE_ONLY, {"sipower.nmf.sampled_items.MIN_RATIO": 1e9}, False),
    "threads": (BOTH, {"sipower.kernels.threads.MIN_PARALLEL_SECONDS": 0.0}, False),
}


@pytest.fixture(scope="module")
def near():
    """A start near the minimum: factors to a gap of 1e-4, with changes of some per cent."""
    model = KLNMF(RANK, random_state=0, tol=1e-4)
    W = model.fit_transform(V)
    rng = np.random.default_rng(1)
    return [factor * rng.lognormal(0, 0.05, factor.shape) for factor in (W, model.components_)]


def fit(layout, start=None, **parameters):
    """Return a model that has converged, after verifying it."""
    settings = {"random_state": 0, "tol": TOL, "max_iter": 5000, "n_jobs": 1, **parameters}
    given = {}
    if start is not None:
        settings["init"], given = "custom", {"W": start[0], "H": start[1]}
    model, X = KLNMF(RANK, **settings), LAYOUTS[layout](V)
    W = model.fit_transform(X, **given)
    assert model.status_ == "converged"
    assert verify(X, W, model.components_).gap <= settings["tol"] * (1 + 1e-6)
    return model


def check_same(model, reference):
    difference = abs(model.kl_divergence_ - reference.kl_divergence_)
    assert difference <= AGREEMENT * V.sum()
    scales = (m.components_.sum(axis=1, keepdims=True) for m in (model, reference))
    profiles = [m.components_ / scale for m, scale in zip((model, reference), scales, strict=True)]
    cosine = profiles[0] @ profiles[1].T
    norms = [np.linalg.norm(profile, axis=1) for profile in profiles]
    best = (cosine / np.outer(*norms)).max(axis=1)
    np.testing.assert_allclose(best, 1, atol=1e-6)


CASES = [(name, layout) for name, (layouts, _, _) in SWITCHES.items() for layout in layouts]


@pytest.mark.parametrize(("name", "layout"), CASES)
def test_the_minimum_is_the_same_without_an_optimisation(name, layout, near, monkeypatch):
    _, patches, shares_start = SWITCHES[name]
    start = near if shares_start else None
    with_it = fit(layout, start)
    calls = []
    for target, value in patches.items():
        if callable(value):

            def counted(*arguments, value=value, **named):
                calls.append(1)
                return value(*arguments, **named)

            monkeypatch.setattr(target, counted)
        else:
            monkeypatch.setattr(target, value)
    without = fit(layout, start, n_jobs=2 if name == "threads" else 1)
    assert calls or not any(map(callable, patches.values()))  # the replacement was used
    check_same(without, with_it)
    if name != "active sets":  # which leave out steps that would change nothing
        is_same = without.components_.tobytes() == with_it.components_.tobytes()
        assert is_same == (name == "threads")  # the others take other steps


@pytest.mark.parametrize("layout", BOTH)
@pytest.mark.parametrize(
    "off", [{"init": "random"}, {"solver": "ccd"}, {"solver": "newton"}], ids=str
)
def test_the_minimum_is_the_same_without_surplus_starts_or_auto(layout, off):
    check_same(fit(layout, **off), fit(layout))


@pytest.mark.parametrize("layout", BOTH)
def test_float64_ends_in_the_minimum_of_float32(layout, near):
    small = fit(layout, near, dtype=np.float32, tol=1e-6)
    check_same(small, fit(layout, near))


PROGRAM = """
import json, sys
import numpy as np
from contract.test_disabled_optimisations import fit
from sipower import instruction_set
results = {layout: fit(layout) for layout in ("dense", "sparse")}
print(json.dumps([instruction_set(), {
    layout: [model.kl_divergence_, model.kkt_residual_, model.components_.tolist()]
    for layout, model in results.items()
}]))
"""


def test_the_minimum_is_the_same_without_avx2():
    """The bits may differ: fused multiply-add is used where the processor has it."""
    tests = os.path.dirname(os.path.dirname(__file__))
    environment = {**os.environ, "SIPOWER_ISA": "baseline", "PYTHONPATH": tests}
    command = [sys.executable, "-c", PROGRAM]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    level, results = json.loads(run.stdout)
    assert level == "baseline"
    for layout, (divergence, gap, components) in results.items():
        here = fit(layout)
        assert gap <= TOL
        assert abs(divergence - here.kl_divergence_) <= AGREEMENT * V.sum()
        np.testing.assert_allclose(components, here.components_, rtol=1e-3, atol=1e-5 * V.sum())
