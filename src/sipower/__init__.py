# SPDX-License-Identifier: BSD-3-Clause
"""Scale-invariant power iteration, and the KL-divergence NMF built on it."""

import importlib
import warnings
from types import ModuleType

from sipower import datasets, nmf, problems
from sipower.data.memory import Matrix
from sipower.data.validate import as_matrix
from sipower.estimators import KLNMF, LpPCA, non_negative_factorization
from sipower.kernels import level as instruction_set
from sipower.loop.check_problem import check_problem
from sipower.loop.checkpoint import load_state, save_state
from sipower.loop.solve import Interrupted, Record, Result, Status, Stop, solve
from sipower.max_cut import max_cut
from sipower.selection import consensus, rank_selection
from sipower.solvers import GaussianEM, Guarded, SciPi, SSciPi
from sipower.theory import diagnose

__version__ = "0.1.0"

__all__ = [
    "KLNMF",
    "GaussianEM",
    "Guarded",
    "Interrupted",
    "LpPCA",
    "Matrix",
    "Record",
    "Result",
    "SSciPi",
    "SciPi",
    "Status",
    "Stop",
    "as_matrix",
    "check_problem",
    "consensus",
    "datasets",
    "diagnose",
    "instruction_set",
    "load_state",
    "max_cut",
    "nmf",
    "non_negative_factorization",
    "problems",
    "rank_selection",
    "save_state",
    "solve",
]

LOADED_ON_FIRST_USE = ("dask", "io", "pl", "report", "tl")


def __getattr__(name: str) -> ModuleType:
    """Load the modules that are not needed by every program when they are first used."""
    if name == "plot":
        warnings.warn("sipower.plot is now called sipower.pl.", DeprecationWarning, stacklevel=2)
        name = "pl"
    if name in LOADED_ON_FIRST_USE:
        return importlib.import_module(f"sipower.{name}")
    raise AttributeError(f"module 'sipower' has no attribute {name!r}")
