# SPDX-License-Identifier: BSD-3-Clause
"""The contestants of the zoo: `auto`, our other solvers, and imitations of the peers.

fastTopics (Carbonetto et al., 2021) alternates four sweeps of coordinate descent over each factor
and extrapolates after Ang and Gillis (2019). The same method in our kernels needs no R, and its
counted passes can be compared.
"""

from __future__ import annotations

from typing import Any

from sipower.nmf import CCD, Auto, Extrapolated, make_solver

SCIKIT_LEARN = "scikit-learn MU"
FAST_TOPICS = "fastTopics-like"
RIVALS = ("mu", "sci-pi", "s-sci-pi", "ccd", "ccd+extrapolation")
SOLVERS: dict[str, Any] = {
    "auto": Auto(),
    **{name: make_solver(name) for name in RIVALS[:-1]},
    "ccd+extrapolation": Extrapolated(CCD()),
    FAST_TOPICS: Extrapolated(CCD(4)),
}
