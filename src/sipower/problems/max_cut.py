# SPDX-License-Identifier: BSD-3-Clause
"""`max_cut`: a heavy cut of a graph and a certified bound on every cut, by SCI-PI on the SDP."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from sipower.loop.solve import Stop, solve
from sipower.problems.burer_monteiro import BurerMonteiro, Cut, cut_from
from sipower.solvers import SciPi

__all__ = ["max_cut"]


def max_cut(graph: Any, *, tol: float = 1e-6, rounds: int = 5000, seed: int = 0) -> Cut:
    """Split the vertices of a graph so that heavy edges cross the cut.

    Parameters
    ----------
    graph
        Symmetric weights (n, n), dense or sparse, non-negative.
    tol, rounds
        Residual and most sweeps of the Burer-Monteiro problem.
    seed
        Of the start and of the random hyperplanes.

    Returns
    -------
    Cut
        Sides ±1, the weight that crosses, and an upper bound on the weight of every cut.

    Examples
    --------
    >>> import numpy as np
    >>> from sipower import max_cut
    >>> square = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
    >>> cut = max_cut(square)
    >>> cut.weight, round(cut.bound, 4)
    (4.0, 4.0)
    """
    weights = sp.csr_array(check_array(graph, accept_sparse="csr", dtype=np.float64))
    if weights.nnz and weights.data.min() < 0:
        raise ValueError("The graph has a negative weight; max_cut needs non-negative ones.")
    if not weights.data.any():  # no cut weighs anything
        return Cut(np.ones(weights.shape[0]), 0.0, 0.0)
    problem = BurerMonteiro(-weights)
    result = solve(problem, SciPi(), stop=Stop(tol, rounds=rounds), seed=seed)
    return cut_from(weights, problem, result.x, seed)
