# SPDX-License-Identifier: BSD-3-Clause
"""Fits of lazy rows on a cluster, and the local fits they are compared with."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import sipower
from sipower.datasets import poisson_topics

da = pytest.importorskip("dask.array")

from sipower.dask import KLNMF  # noqa: E402 - optional

RANK = 4
V = poisson_topics(240, 60, RANK, length=80, seed=0).toarray().astype(float)
V[100:110] = 0  # rows without a count
EVEN, UNEVEN = (120, 120), (7, 100, 0, 103, 30)


def lazy(data=V, rows=UNEVEN, sparse=True):
    array = da.from_array(data, chunks=(rows, -1))
    return array.map_blocks(sp.csr_array) if sparse else array


def model(**parameters):
    settings = {
        "solver": "rows", "init": "random", "random_state": 0, "tol": 0, "max_iter": 12,
    }  # fmt: skip
    return KLNMF(RANK, **settings | parameters)


def local(data=V, *, tol=0.0, rounds=12, sparse=True):
    settings = {"init": "random", "random_state": 0, "solver": "rows"}
    result = sipower.KLNMF(RANK, tol=tol, max_iter=rounds, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return result.fit(sp.csr_array(data) if sparse else data)


def curve(trace):
    """Objectives of the rounds that were evaluated; at the start W is that of no round."""
    return np.array([record.objective for record in trace if record.round > 0])
