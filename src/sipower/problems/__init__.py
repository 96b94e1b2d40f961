# SPDX-License-Identifier: BSD-3-Clause
"""Scale invariant problems: one formula sheet a file."""

from sipower.problems.base import REGISTRY, Problem, Sampling
from sipower.problems.kl import KLBlock
from sipower.problems.pca import PCA

__all__ = ["PCA", "REGISTRY", "KLBlock", "Problem", "Sampling"]
