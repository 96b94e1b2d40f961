# SPDX-License-Identifier: BSD-3-Clause
"""Every option of the general model, as parameters of `KLNMF` and arguments of its `fit`."""

import numpy as np
import scipy.sparse as sp

GUIDES = {"first": [1, 2, 3], "second": {10: 2.0, 11: 1.0}}


def make_arguments(shape, seed=0):
    """Return all arguments of `fit` for data of a given shape; the first rows have no mask."""
    rng, (n, m) = np.random.default_rng(seed), shape
    mask = rng.random(shape) < 0.9
    mask[:7] = True
    weights = np.where(rng.random(shape) < 0.8, 1.0, rng.gamma(1.0, 1.0, shape))
    sample_weight = rng.integers(0, 3, n) + 0.5
    sample_weight[20:30] = 0
    return {
        "mask": mask,
        "weights": weights,
        "sample_weight": sample_weight,
        "feature_weight": rng.random(m) + 0.2,
        "offsets": rng.gamma(5.0, 0.2, n),
    }


def make_options(shape, rank):
    """Return pairs of parameters and arguments, by name."""
    given, rng = make_arguments(shape), np.random.default_rng(1)
    zero = rng.random((rank, shape[1])) < 0.2
    zero[:, zero.all(axis=0)] = False
    known = rng.gamma(1.0, 1.0, (1, shape[1]))
    weights = sp.csr_array(np.where(given["weights"] == 1, 0, given["weights"]))
    both = {"components_fixed": known, "guides": GUIDES, "prior_H": 0.1}
    return {
        "mask": ({}, {"mask": given["mask"]}),
        "mask of features": ({}, {"mask": np.arange(shape[1]) % 5 > 0}),
        "weights": ({}, {"weights": weights}),
        "sample_weight": ({}, {"sample_weight": given["sample_weight"]}),
        "feature_weight": ({}, {"feature_weight": given["feature_weight"]}),
        "offsets": ({}, {"offsets": given["offsets"]}),
        "components_fixed": ({"components_fixed": known}, {}),
        "components_zero": ({"components_zero": zero}, {}),
        "L1": ({"alpha_W": 0.05, "l1_ratio": 1.0}, {}),
        "L2": ({"alpha_W": 0.02, "alpha_H": 0.01}, {}),
        "prior_W": ({"prior_W": 0.1}, {}),
        "prior_H": ({"prior_H": 0.2}, {}),
        "guides": ({"guides": GUIDES, "prior_W": 0.05}, {}),
        "all weights": ({}, given),
        "known beside guides": (both, given),
        "penalties beside weights": ({"alpha_W": 0.01, "l1_ratio": 0.5}, given),
    }
