# SPDX-License-Identifier: BSD-3-Clause
"""The compiled kernels, the threads that run them, and counter-based random numbers."""

from sipower._kernels import (
    Csr,
    Dense,
    EpochPlan,
    certify,
    coordinate,
    curvatures,
    divergence,
    epoch,
    gaps,
    gradient,
    level,
    model_steps,
    mu,
    newton,
    power,
    power_search,
    projected_gradient,
    shared_newton,
    solve_items,
    sums,
)
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
    "certify",
    "coordinate",
    "count_threads",
    "curvatures",
    "divergence",
    "epoch",
    "gaps",
    "gradient",
    "instruction_set",
    "model_steps",
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


def instruction_set() -> str:
    """Return the instruction set of the kernels in use, "x86-64-v3" (with AVX2) or "baseline".

    It is the best one that the processor supports, unless the environment variable SIPOWER_ISA
    names the other one.

    Examples
    --------
    >>> from sipower import instruction_set
    >>> instruction_set() in ("x86-64-v3", "baseline")
    True
    """
    return level()
