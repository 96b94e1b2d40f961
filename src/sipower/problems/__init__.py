# SPDX-License-Identifier: BSD-3-Clause
"""Scale invariant problems; one file per problem holds all of its formulas."""

from sipower.problems.base import REGISTRY, Problem, Sampling
from sipower.problems.burer_monteiro import BurerMonteiro
from sipower.problems.gaussian_mixture import GaussianMixture, Gaussians
from sipower.problems.ica import ICA
from sipower.problems.kl import KLBlock
from sipower.problems.lp_kernel_pca import LpKernelPCA
from sipower.problems.mixture import MixtureProportions, mixture_proportions
from sipower.problems.pca import PCA

__all__ = [
    "ICA",
    "PCA",
    "REGISTRY",
    "BurerMonteiro",
    "GaussianMixture",
    "Gaussians",
    "KLBlock",
    "LpKernelPCA",
    "MixtureProportions",
    "Problem",
    "Sampling",
    "mixture_proportions",
]
