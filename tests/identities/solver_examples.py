# SPDX-License-Identifier: BSD-3-Clause
"""Problems of PCA and KL on which a round of a solver is computed by hand."""

import numpy as np

from sipower.problems import KLBlock, LpKernelPCA

RNG = np.random.default_rng(0)


A = RNG.normal(size=(30, 6)) * [3, 2, 1, 1, 1, 1]


CUBIC = LpKernelPCA.from_features(A, 3.0)


def kl(items=4, n=40, rank=5):
    rng = np.random.default_rng(3)
    B = rng.gamma(0.3, 1.0, (n, rank)) + 1e-3
    return KLBlock(rng.poisson(9 * rng.gamma(0.3, 1.0, (items, rank)) @ B.T) + 1.0, B)
