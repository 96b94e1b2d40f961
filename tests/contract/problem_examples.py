# SPDX-License-Identifier: BSD-3-Clause
"""One example of every registered problem."""

import numpy as np

import oracles
from sipower.problems import (
    ICA,
    PCA,
    BurerMonteiro,
    KLBlock,
    LpKernelPCA,
    MixtureProportions,
)

RNG = np.random.default_rng(0)


def symmetric(n):
    A = RNG.normal(size=(n, n))
    return A + A.T


EXAMPLES = {
    "burer-monteiro": lambda: BurerMonteiro(symmetric(14), rank=6),
    "mixture": lambda: MixtureProportions(
        RNG.gamma(1.0, 1.0, (60, 5)) + 0.01, RNG.random(60) + 0.1
    ),
    "ica": lambda: ICA(RNG.laplace(size=(400, 4)) @ RNG.normal(size=(4, 4))),
    "lp-kernel-pca": lambda: LpKernelPCA(RNG.normal(size=(40, 5)), p=3.0, kernel="rbf", gamma=0.1),
    "pca": lambda: PCA(RNG.normal(size=(30, 6)) * [3, 1, 1, 1, 1, 1]),
    "kl": lambda: KLBlock(RNG.poisson(4.0, (5, 40)) + 1.0, oracles.factors(5, 40, 6, seed=1)[1]),
}
