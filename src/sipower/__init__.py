# SPDX-License-Identifier: BSD-3-Clause
"""Scale-invariant power iteration, and the KL-divergence NMF built on it."""

import importlib
import sys
import warnings
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # at run time each name is imported when it is first used
    from sipower import dask, datasets, io, nmf, pl, problems, report, results, selection, tl
    from sipower.data.memory import Matrix
    from sipower.data.validate import as_matrix
    from sipower.estimators import KLNMF, LpPCA, non_negative_factorization
    from sipower.kernels import level as instruction_set
    from sipower.loop.check_problem import check_problem
    from sipower.loop.checkpoint import load_state, save_state
    from sipower.loop.solve import Interrupted, Record, Result, Status, Stop, solve
    from sipower.problems.max_cut import max_cut
    from sipower.selection.consensus import consensus
    from sipower.selection.rank import rank_selection
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
    "dask",
    "datasets",
    "diagnose",
    "instruction_set",
    "io",
    "load_state",
    "max_cut",
    "nmf",
    "non_negative_factorization",
    "pl",
    "problems",
    "rank_selection",
    "report",
    "results",
    "save_state",
    "selection",
    "solve",
    "tl",
]

# Where each name is defined; the names that are not here are modules of the package.
_PLACES = {
    "KLNMF": "estimators.KLNMF",
    "GaussianEM": "solvers.GaussianEM",
    "Guarded": "solvers.Guarded",
    "Interrupted": "loop.solve.Interrupted",
    "LpPCA": "estimators.LpPCA",
    "Matrix": "data.memory.Matrix",
    "Record": "loop.solve.Record",
    "Result": "loop.solve.Result",
    "SSciPi": "solvers.SSciPi",
    "SciPi": "solvers.SciPi",
    "Status": "loop.solve.Status",
    "Stop": "loop.solve.Stop",
    "as_matrix": "data.validate.as_matrix",
    "check_problem": "loop.check_problem.check_problem",
    "consensus": "selection.consensus",
    "diagnose": "theory.diagnose",
    "instruction_set": "kernels.level",
    "load_state": "loop.checkpoint.load_state",
    "max_cut": "problems.max_cut.max_cut",
    "non_negative_factorization": "estimators.non_negative_factorization",
    "rank_selection": "selection.rank_selection",
    "save_state": "loop.checkpoint.save_state",
    "solve": "loop.solve.solve",
}

_OLD_MODULES = {
    "describe": "results.describe",
    "plot": "pl",
    "run_folder": "results",
    "stored": "io",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, which keeps `import sipower` fast."""
    if name in _OLD_MODULES:
        _warn_of_old_module(name, stacklevel=3)
        return importlib.import_module(f"sipower.{_OLD_MODULES[name]}")
    if name not in __all__:
        raise AttributeError(f"module 'sipower' has no attribute {name!r}")
    if name in _PLACES:
        module, _, attribute = _PLACES[name].rpartition(".")
        found = getattr(importlib.import_module(f"sipower.{module}"), attribute)
    else:
        found = importlib.import_module(f"sipower.{name}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)


def _warn_of_old_module(old: str, stacklevel: int) -> None:
    message = f"sipower.{old} is now called sipower.{_OLD_MODULES[old]}."
    warnings.warn(message, DeprecationWarning, stacklevel=stacklevel)


def _keep_old_module(old: str) -> None:
    """Let `from sipower.old import name` work, with a warning."""
    module = ModuleType(f"sipower.{old}")

    def find(name: str) -> Any:
        if name.startswith("__"):  # the import system asks for these
            raise AttributeError(name)
        _warn_of_old_module(old, stacklevel=3)
        return getattr(importlib.import_module(f"sipower.{_OLD_MODULES[old]}"), name)

    module.__getattr__ = find  # type: ignore[method-assign]
    sys.modules[module.__name__] = module


for _old in _OLD_MODULES:
    _keep_old_module(_old)
