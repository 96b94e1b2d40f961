# SPDX-License-Identifier: BSD-3-Clause
"""A small matrix and the layouts in which it is held."""

import numpy as np
import scipy.sparse as sp

import oracles
from sipower.kernels import Draw

V = oracles.counts(12, 9)
LAYOUTS = {"dense": np.asarray, "csr": sp.csr_array, "uint8": lambda v: v.astype(np.uint8)}
DRAW = Draw(5, round=3)


def as_dense(matrix):
    return matrix.array if matrix.dense else matrix.array.toarray()
