# SPDX-License-Identifier: BSD-3-Clause
"""The data and the model of the recorded files."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sipower import KLNMF

SAMPLES = tuple(f"day {i}" for i in range(1, 13))
FEATURES = ("apples", "pears", "plums", "figs", "kiwis", "limes", "nuts", "Öl")
BATCHES = ("north", "south") * 6


def counts():
    """Return 12 x 8 counts that follow from a formula, so that no generator can change them."""
    i, j = np.ogrid[:12, :8]
    return (((3 * i + 5 * j + i * j) % 7) * (((i < 6) == (j < 4)) * 4 + 1) // 2).astype(float)


def frame():
    return pd.DataFrame(counts(), list(SAMPLES), list(FEATURES))


@dataclass(frozen=True)
class Example:
    write: Callable[[Path], Any]
    read: Callable[[Path], Any]
    rewrite: Callable[[Path, Path], Any] | None = None


def small_model(**options):
    return KLNMF(2, random_state=0, n_jobs=1, tol=1e-6, max_iter=50, **options)
