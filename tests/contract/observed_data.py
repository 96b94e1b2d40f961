# SPDX-License-Identifier: BSD-3-Clause
"""Small data with weights and missing values, and a plain NumPy form of their divergence."""

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import rel_entr

import oracles
from sipower import KLNMF

V = oracles.counts(60, 40)
W0, H0 = oracles.factors(60, 40, 3)
START = {"W": W0, "H": H0.T}
rng = np.random.default_rng(1)
MASK = rng.random(V.shape) < 0.8
WEIGHTS = np.where(rng.random(V.shape) < 0.5, 1.0, rng.gamma(1.0, 1.0, V.shape))
SAMPLE_WEIGHT = rng.random(60) + 0.2
FEATURE_WEIGHT = rng.random(40) + 0.2
OFFSETS = rng.gamma(5.0, 0.2, 60)
ALL_WEIGHTS = MASK * WEIGHTS * SAMPLE_WEIGHT[:, None] * FEATURE_WEIGHT
EVERYTHING = {
    "mask": MASK,
    "weights": WEIGHTS,
    "sample_weight": SAMPLE_WEIGHT,
    "feature_weight": FEATURE_WEIGHT,
    "offsets": OFFSETS,
}


def from_start(**options):
    """Return a model that does a fixed number of rounds from a custom start."""
    fixed = {"random_state": 0, "max_iter": 20, "tol": 0, "init": "custom", "n_jobs": 1}
    return KLNMF(3, **{**fixed, **options})


def divergence(V, Z, weights=1.0):
    """Return Σ ω [V log(V/Z) − V + Z] over the entries with a positive weight."""
    terms = rel_entr(V, Z) - V + Z
    return float((weights * np.where(np.broadcast_to(weights, V.shape) > 0, terms, 0)).sum())


def mean_cosine(A, B):
    """Return the mean cosine of the best match of the rows of A and B."""
    A, B = (X / np.linalg.norm(X, axis=1, keepdims=True) for X in (A, B))
    cosine = A @ B.T
    return float(cosine[linear_sum_assignment(-cosine)].mean())
