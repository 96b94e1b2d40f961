# SPDX-License-Identifier: BSD-3-Clause
"""The public functions and classes of sipower, found by introspection, for tests that walk them."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import is_dataclass
from typing import Any

import sipower
from sipower import KLNMF
from sipower.results import Run
from sipower.results.topic_tables import to_pyldavis

MODULES = ("", "io", "pl", "problems", "report", "results", "selection", "inference", "tl",
           "datasets", "nmf")  # fmt: skip
METHODS = ("fit", "fit_transform", "transform", "score", "partial_fit")


def public_callables() -> dict[str, Any]:
    """Return public functions, classes and methods of the estimator by name, without results."""
    found: dict[str, Any] = {"results.to_pyldavis": to_pyldavis}
    for module in MODULES:
        content = importlib.import_module(f"sipower.{module}".rstrip("."))
        for name in content.__all__:
            value = getattr(content, name)
            if not (inspect.isfunction(value) or inspect.isclass(value)):
                continue
            if is_dataclass(value) or (
                inspect.isclass(value) and issubclass(value, (Exception, tuple))
            ):
                continue
            is_home = getattr(sipower, name, None) is value
            found[name if is_home or not module else f"{module}.{name}"] = value
    found |= {f"KLNMF.{name}": getattr(KLNMF, name) for name in METHODS}
    found |= {f"results.Run.{name}": getattr(Run, name) for name in ("from_model", "from_anndata")}
    return found
