# SPDX-License-Identifier: BSD-3-Clause
"""Fits of a store that run together, and what must hold for them."""

import scipy.sparse as sp

import oracles
from sipower import KLNMF

V = sp.csr_array(oracles.counts(900, 400, density=0.5))
SMALL = 1_070_000  # a memory limit that leads to several windows


def model(**parameters):
    settings = {"random_state": 0, "init": "random", "tol": 0, "max_iter": 5}
    return KLNMF(4, **settings | parameters)


def assert_same(found, expected):
    assert found.W.tobytes() == expected.W.tobytes()
    assert found.H.tobytes() == expected.H.tobytes()
    assert found.divergences.tobytes() == expected.divergences.tobytes()
    assert found.gaps.tobytes() == expected.gaps.tobytes()
    assert found.statuses == expected.statuses


def assert_free(matrix):
    """Check that another scan can begin."""
    assert matrix.buffers.shared is None
    assert not matrix.buffers.lock.locked()
    assert sum(data.row_sums().sum() for data, _ in matrix.windows()) == V.sum()


def window_bytes(matrix):
    return matrix.buffers.limit / 2
