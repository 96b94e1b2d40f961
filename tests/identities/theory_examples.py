# SPDX-License-Identifier: BSD-3-Clause
"""Problems whose optimum the theory describes."""

import numpy as np

import oracles
from sipower.problems import (
    ICA,
    PCA,
    KLBlock,
    LpKernelPCA,
    MixtureProportions,
)

PROBLEMS = {
    "pca": lambda: PCA(np.random.default_rng(1).normal(size=(40, 4)) * [3, 2, 1, 1]),
    "l3-pca": lambda: LpKernelPCA(np.random.default_rng(5).normal(size=(200, 4)) * [2, 1, 1, 1], 3),
    "l4-pca": lambda: LpKernelPCA(np.random.default_rng(5).normal(size=(200, 4)) * [2, 1, 1, 1], 4),
    "mixture": lambda: MixtureProportions(np.random.default_rng(4).gamma(2.0, 1.0, (80, 4))),
    "ica": lambda: ICA(np.random.default_rng(3).laplace(size=(600, 3))),
    "kl": lambda: KLBlock(
        np.random.default_rng(2).poisson(9.0, (3, 60)) + 1.0, oracles.factors(3, 60, 4, seed=1)[1]
    ),
}
