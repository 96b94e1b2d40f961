# SPDX-License-Identifier: BSD-3-Clause
"""The numbers that the plots of the report draw; the template inserts them as JSON."""

from __future__ import annotations

from typing import Any

import numpy as np

from sipower.kernels import Array
from sipower.results import describe
from sipower.results.describe import Description, Indices
from sipower.results.plot import palette
from sipower.results.run import Run
from sipower.selection import Consensus, RankSelection

__all__ = ["plot_data"]

FEATURES = 25  # number of features in the plot of a component
NAME_LENGTH = 60
SHARES = 10_000  # shares of a sample are whole numbers of this


def plot_data(
    run: Run,
    about: Description,
    drawn: Indices,
    selection: RankSelection | None,
    consensus: Consensus | None,
) -> dict[str, Any]:
    """Return everything that is drawn; a plot without data is missing."""
    found: dict[str, Any] = {
        "colours": palette(len(about.sizes)),
        "sizes": _numbers(about.sizes),
        "features": _features(run, about),
        "samples": _samples(run, about, drawn),
    }
    if run.trace:
        curves = describe.convergence(run)
        found["convergence"] = {key: _numbers(values, 6) for key, values in vars(curves).items()}
    if len(about.sizes) > 1:
        found["correlations"] = {
            "samples": _numbers(describe.correlations(about.memberships), 3),
            "features": _numbers(describe.correlations(about.profiles.T), 3),
        }
    if selection is not None:
        found["rank"] = {
            "ranks": selection.ranks,
            "deviance": _numbers(selection.deviance, 6),
            "stability": _numbers(selection.stability),
            "best": selection.best,
        }
    if consensus is not None:
        order = describe.describe(consensus.W, consensus.H).order
        found["consensus"] = {
            "stability": _numbers(consensus.stability[order]),
            "similarity": _numbers(consensus.similarity),
        }
    return found


def _features(run: Run, about: Description) -> list[dict[str, Any]]:
    """Return the most probable and most distinctive features of each component."""
    names, lift = run.feature_names(), about.lift()

    def feature_list(k: int, values: Array) -> dict[str, Any]:
        top = describe.largest(values, FEATURES)
        return {
            "names": [describe.readable(names[f], NAME_LENGTH) for f in top],
            "probability": _numbers(about.profiles[k, top]),
            "overall": _numbers(about.overall[top]),
            "lift": _numbers(lift[k, top]),
        }

    return [
        {"probable": feature_list(k, profile), "distinctive": feature_list(k, telling)}
        for k, (profile, telling) in enumerate(
            zip(about.profiles, about.distinctiveness(), strict=True)
        )
    ]


def _samples(run: Run, about: Description, drawn: Indices) -> dict[str, Any]:
    names, memberships = run.sample_names(), about.memberships[drawn]
    return {
        "names": [describe.readable(names[i], NAME_LENGTH) for i in drawn],
        "shares": np.rint(SHARES * memberships.T).astype(int).tolist(),
        "whole": SHARES,
        "similar": describe.order_by_similarity(memberships).tolist(),
    }


def _numbers(values: Array, digits: int = 4) -> Any:
    """Return lists of numbers with few significant digits, and None for NaN."""
    if values.ndim > 1:
        return [_numbers(part, digits) for part in values]
    return [float(f"{value:.{digits}g}") if np.isfinite(value) else None for value in values]
