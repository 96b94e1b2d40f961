# SPDX-License-Identifier: BSD-3-Clause
"""The compiled kernels, the threads that run them, and counter-based random numbers."""

from sipower._kernels import (
    Csr,
    Dense,
    EpochPlan,
    coordinate,
    divergence,
    epoch,
    gaps,
    gradient,
    mu,
    newton,
    power,
    power_search,
    projected_gradient,
    shared_newton,
    solve_items,
    sums,
)
from sipower._kernels import level as instruction_set
from sipower.kernels import threads
from sipower.kernels.doors import FLOOR, Array, Basis, Kernel, as_contiguous, basis
from sipower.kernels.random import Draw, Stream, batch_size
from sipower.kernels.threads import count_threads, run_blocks, sum_blocks

__all__ = [
    "FLOOR",
    "Array",
    "Basis",
    "Csr",
    "Dense",
    "Draw",
    "EpochPlan",
    "Kernel",
    "Stream",
    "as_contiguous",
    "basis",
    "batch_size",
    "coordinate",
    "count_threads",
    "divergence",
    "epoch",
    "gaps",
    "gradient",
    "instruction_set",
    "mu",
    "newton",
    "power",
    "power_search",
    "projected_gradient",
    "run_blocks",
    "shared_newton",
    "solve_items",
    "sum_blocks",
    "sums",
    "threads",
]
