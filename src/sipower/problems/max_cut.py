# SPDX-License-Identifier: BSD-3-Clause
"""`max_cut`: a heavy cut of a graph and an upper bound on all cuts, from the SDP relaxation."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from sipower.kernels.seeds import DEFAULT_SEED, RNG, choose_seed
from sipower.loop.solve import Stop, hide_inner_results, solve
from sipower.problems.burer_monteiro import BurerMonteiro, Cut, round_to_cut
from sipower.solvers import SciPi


def max_cut(
    graph: Any,
    *,
    tol: float = 1e-6,
    rounds: int = 5000,
    seed: int = DEFAULT_SEED,
    rng: RNG = None,
) -> Cut:
    """Split the vertices of a graph into two sets so that much edge weight lies between them.

    Parameters
    ----------
    graph
        Symmetric weights (n, n), dense or sparse, non-negative.
    tol
        Residual of the Burer-Monteiro problem at which to stop.
    rounds
        Maximum number of sweeps over the vertices.
    seed
        Seed of the start and of the random hyperplanes.
    rng
        Seed or NumPy generator, instead of `seed`.

    Returns
    -------
    Cut
        Sides ±1, the weight of the cut, and an upper bound on the weight of every cut.

    Examples
    --------
    >>> import numpy as np
    >>> from sipower import max_cut
    >>> square = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
    >>> cut = max_cut(square)
    >>> cut.weight, round(cut.bound, 4)
    (4.0, 4.0)
    """
    seed = choose_seed(rng, "seed", seed)
    weights = sp.csr_array(check_array(graph, accept_sparse="csr", dtype=np.float64))
    if weights.nnz and weights.data.min() < 0:
        raise ValueError(f"The weights of `graph` must be non-negative, got {weights.data.min()}.")
    if not weights.data.any():  # every cut has weight 0
        return Cut(np.ones(weights.shape[0]), 0.0, 0.0)
    problem = BurerMonteiro(-weights)
    with hide_inner_results():
        result = solve(problem, SciPi(), stop=Stop(tol, rounds=rounds), seed=seed)
    return round_to_cut(weights, problem, result.x, seed)
