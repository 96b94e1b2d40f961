# SPDX-License-Identifier: BSD-3-Clause
"""Scale-invariant power iteration, and the KL-divergence NMF built on it.

Every public name is imported when it is first used, which keeps `import sipower` fast.
`__init__.pyi` tells type checkers what the names are.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_MODULES = (
    "dask",
    "datasets",
    "io",
    "nmf",
    "pl",
    "problems",
    "report",
    "results",
    "selection",
    "tl",
)
_HOMES = {  # maps every other public name to the module that defines it
    "KLNMF": "estimators",
    "LpPCA": "estimators",
    "estimate": "estimators",
    "non_negative_factorization": "estimators",
    "verify": "estimators",
    "GaussianEM": "solvers",
    "Guarded": "solvers",
    "SSciPi": "solvers",
    "SciPi": "solvers",
    "Interrupted": "loop.solve",
    "Record": "loop.solve",
    "Result": "loop.solve",
    "Status": "loop.solve",
    "Stop": "loop.solve",
    "solve": "loop.solve",
    "check_problem": "loop.check_problem",
    "load_state": "loop.checkpoint",
    "save_state": "loop.checkpoint",
    "Matrix": "data.memory",
    "as_matrix": "data.validate",
    "describe": "results.describe",
    "bootstrap": "inference",
    "standard_errors": "inference",
    "compare": "inference",
    "consensus": "selection",
    "differential": "inference",
    "topic_quality": "inference",
    "rank_selection": "selection",
    "spectra": "inference",
    "refit": "inference",
    "diagnose": "theory",
    "instruction_set": "kernels",
    "max_cut": "problems.max_cut",
}

__all__ = sorted((*_MODULES, *_HOMES))  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in _MODULES:
        return importlib.import_module(f"sipower.{name}")
    if name in _HOMES:
        value = getattr(importlib.import_module(f"sipower.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'sipower' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
