# SPDX-License-Identifier: BSD-3-Clause
"""Differences of a small data set, with names of the caller's choice."""

from collections.abc import Sequence
from functools import cache

import numpy as np
import pandas as pd

from sipower import differential
from sipower.inference import Differences, Replication
from sipower.inference.fold_changes import CONTRASTS

RANK = 3


@cache
def data(features: int) -> tuple[np.ndarray, np.ndarray]:
    """Return counts and weights of 80 samples."""
    rng = np.random.default_rng(0)
    W = rng.gamma(0.5, 60, (80, RANK))
    return rng.poisson(W @ rng.dirichlet(np.full(features, 0.5), RANK)), W


def example(
    contrast: str = CONTRASTS[0],
    *,
    named: bool = True,
    names: Sequence[str] | None = None,
    check: bool = False,
) -> Differences:
    """Return differences of 8 features with names, or of 30."""
    V, W = data(30 if names is None else len(names))
    columns = [f"feature {j}" for j in range(30)] if names is None else names
    table = pd.DataFrame(V, columns=columns) if named else V
    return differential(table, W, contrast=contrast, check=check)


NOISE = Replication(50, 0.52, np.array([0.5, 0.5, np.nan]), np.ones(RANK))
