# SPDX-License-Identifier: BSD-3-Clause
"""Parameters of a model in the form of `run.json`."""

from __future__ import annotations

from typing import Any

import numpy as np

from sipower.estimators.fingerprints import describe_value

__all__ = ["recorded_parameters"]

_NOT_RECORDED = (
    "on_round",
    "checkpoint",
    "checkpoint_every",
    "verify",
)  # they do not change the factors


def recorded_parameters(model: Any) -> dict[str, Any]:
    """Return the parameters that determine the factors of a model, in the form of `run.json`."""
    parameters = {k: v for k, v in model.get_params().items() if k not in _NOT_RECORDED}
    if parameters.get("dtype") is not None:
        parameters["dtype"] = np.dtype(parameters["dtype"]).name
    return {name: describe_value(value) for name, value in parameters.items()}
