# SPDX-License-Identifier: BSD-3-Clause
"""A fit that writes checkpoints, and what it means that two of them are the same."""

import scipy.sparse as sp

import oracles
from sipower import KLNMF

V = sp.csr_array(oracles.counts(120, 80, density=0.5))


def model(path=None, **more):
    settings = {"n_components": 4, "random_state": 1, "tol": 1e-6, "max_iter": 400}
    settings |= {"checkpoint_every": 1e9}
    return KLNMF(checkpoint=path, **(settings | more))


def same(a, b):
    assert a.components_.tobytes() == b.components_.tobytes()
    assert (a.kl_divergence_, a.kkt_residual_, a.n_iter_, a.status_) == (
        b.kl_divergence_, b.kkt_residual_, b.n_iter_, b.status_,
    )  # fmt: skip
    for one, other in zip(a.trace_, b.trace_, strict=True):
        assert (one.round, one.passes, one.objective) == (
            other.round,
            other.passes,
            other.objective,
        )
