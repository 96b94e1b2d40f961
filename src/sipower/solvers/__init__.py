# SPDX-License-Identifier: BSD-3-Clause
"""SCI-PI, S-SCI-PI (Algorithm 1) and the guard for any problem; EM for Gaussian mixtures."""

from sipower.solvers.gaussian_em import GaussianEM
from sipower.solvers.guarded import Guarded
from sipower.solvers.s_sci_pi import SSciPi
from sipower.solvers.sci_pi import SciPi

REGISTRY = {"sci-pi": SciPi, "s-sci-pi": SSciPi}

__all__ = ["REGISTRY", "GaussianEM", "Guarded", "SSciPi", "SciPi"]
