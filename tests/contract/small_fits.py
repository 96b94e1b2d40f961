# SPDX-License-Identifier: BSD-3-Clause
"""A small matrix, a start for it, and a model that fits it in moments."""

import oracles
from sipower import KLNMF

V = oracles.counts(60, 40)


W0, H0 = oracles.factors(60, 40, 3)


def quick(**options):
    options = {"n_components": 3, "random_state": 0, "max_iter": 300, "tol": 1e-3, **options}
    return KLNMF(**options)
