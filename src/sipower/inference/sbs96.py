# SPDX-License-Identifier: BSD-3-Clause
"""The 96 channels of single-base substitutions: six substitutions in sixteen contexts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

__all__ = ["CHANNELS", "SUBSTITUTIONS", "sbs96_order"]

SUBSTITUTIONS = ("C>A", "C>G", "C>T", "T>A", "T>C", "T>G")
CHANNELS = tuple(f"{a}[{s}]{b}" for s, a, b in product(SUBSTITUTIONS, "ACGT", "ACGT"))


def sbs96_order(features: Sequence[str] | None) -> NDArray[np.intp] | None:
    """Return the positions of the channels in their usual order, (96,).

    Returns None if the names are not those of the 96 channels, such as "A[C>A]A".
    """
    if features is None or len(features) != len(CHANNELS):
        return None
    places = {str(name).strip(): at for at, name in enumerate(features)}
    if any(channel not in places for channel in CHANNELS):
        return None
    return np.array([places[channel] for channel in CHANNELS])
