# SPDX-License-Identifier: BSD-3-Clause
"""As many components as features, samples or rows of a chunk: nothing is told by its length."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
import sipower
from lazy_fits import lazy, model
from model_options import make_arguments

pytest.importorskip("distributed.client")

RANK = 6
SIZES = {  # the shape of the data, and the rows of the chunks
    "features": ((96, RANK), (7, 40, 0, 49)),
    "samples": ((RANK, 40), (2, 4)),
    "rows of a chunk": ((36, 40), (RANK, 0, 30)),
    "both": ((RANK, RANK), (3, 3)),
}


def make_models(shape):
    """Return parameters and arguments of models whose terms have one row for each item, or not."""
    given = make_arguments(shape, seed=1)
    given["sample_weight"] = np.linspace(0.5, 2, shape[0])
    zero = np.random.default_rng(1).random((RANK, shape[1])) < 0.2
    zero[:, zero.all(axis=0)] = False
    observed = {name: given[name] for name in ("sample_weight", "feature_weight", "offsets")}
    return {
        "L1": ({"alpha_W": 0.05, "alpha_H": 0.05, "l1_ratio": 1.0}, {}),
        "ridge beside weights": ({"alpha_W": 0.02, "alpha_H": 0.01}, observed),
        "prior counts": ({"prior_W": np.linspace(0.1, 0.5, RANK), "prior_H": 0.2}, {}),
        "known zeros": ({"components_zero": zero}, {}),
        "mask": ({}, {"mask": given["mask"]}),
        "weights of entries": ({}, {"weights": given["weights"]}),
    }


def make_data(shape):
    return oracles.counts(*shape, rank=3, seed=2) + 1.0 * (np.indices(shape).sum(axis=0) % 3 == 0)


CASES = [(size, "auto", "sparse") for size in SIZES]
CASES += [("features", "auto", "dense"), ("features", "rows", "sparse")]
CASES += [("rows of a chunk", "rows", "dense")]


@pytest.mark.parametrize(("size", "solver", "layout"), CASES)
def test_the_fit_is_the_local_one(client, size, solver, layout):
    shape, rows = SIZES[size]
    V = make_data(shape)
    settings = {"init": "random", "random_state": 0, "tol": 0, "max_iter": 3, "solver": solver}
    for name, (parameters, given) in make_models(shape).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            there = model(max_iter=3, solver=solver, **parameters).set_params(n_components=RANK)
            W = there.fit_transform(lazy(V, rows, layout == "sparse"), **given, gather=True)
            here = sipower.KLNMF(RANK, **settings, **parameters)
            expected = here.fit_transform(sp.csr_array(V) if layout == "sparse" else V, **given)
        assert there.kl_divergence_ == pytest.approx(here.kl_divergence_, rel=1e-9), name
        assert there.kkt_residual_ == pytest.approx(here.kkt_residual_, rel=1e-5), name
        scale = 1e-9 * here.components_.max()
        np.testing.assert_allclose(
            there.components_, here.components_, rtol=1e-9, atol=scale, err_msg=name
        )
        if solver == "auto":  # a row that hides a feature has many best W; those of "rows" differ
            tol = {"rtol": 1e-9, "atol": 1e-9 * expected.max()}
            np.testing.assert_allclose(W, expected, **tol, err_msg=name)
