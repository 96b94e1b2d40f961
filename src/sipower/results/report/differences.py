# SPDX-License-Identifier: BSD-3-Clause
"""The values that the report shows of the differences between components."""

from __future__ import annotations

from typing import Any

import numpy as np

from sipower.inference import Differences
from sipower.inference.differences import SIGNIFICANT
from sipower.kernels import Array
from sipower.results.describe import Description, readable
from sipower.results.plot_differences import leading_features
from sipower.selection import cosines, match

__all__ = ["difference_content", "difference_data"]

FEATURES_IN_TABLE, FEATURES_IN_PLOT = 10, 25  # per contrast
NAME_LENGTH = 60
MIN_AGREEMENT = 0.9  # similarity of the components in the given order, relative to the best order
COMPARISONS = {
    "least extreme": "A component is compared with the other component in which the feature is "
    "most similar, so a feature that is listed is more frequent in the component than in each of "
    "the others.",
    "null": "A component is compared with all data together.",
    "pairwise": "Every component is compared with every other one.",
}


def difference_content(
    differences: Differences | None, about: Description, excluded: Array
) -> dict[str, Any] | None:
    """Return the text and the table of the section, or None without differences.

    Parameters
    ----------
    differences
        The differences between the components of the run.
    about
        Description of the run, whose components are in the order of the report.
    excluded
        Whether a feature is left out of the lists, (features,).
    """
    if differences is None:
        return None
    _check_order(differences, about)
    labels, names = _labels(differences), about.features
    rows = []
    for contrast, label in enumerate(labels):
        for j in leading_features(differences, contrast, FEATURES_IN_TABLE, excluded):
            rows.append(_row(differences, contrast, int(j)) | {"label": label, "name": names[j]})
    changes = (differences.lfsr <= SIGNIFICANT).sum(axis=1)
    return {
        "verdict": str(differences.replication).replace("`check` is False", "by request"),
        "is_supported": differences.replication.is_supported,
        "comparison": COMPARISONS[differences.contrast],
        "level": f"{differences.level:.3g}",
        "choices": [(str(c), f"{label} ({changes[c]:,})") for c, label in enumerate(labels)],
        "rows": rows,
    }


def _check_order(differences: Differences, about: Description) -> None:
    """Check that the components are those of the run, in the same order."""
    if differences.profiles.shape != about.profiles.shape:
        raise ValueError(
            f"`differences` must have the components and features of the run, of shape "
            f"{about.profiles.shape}, got {differences.profiles.shape}."
        )
    similarity = cosines(differences.profiles, about.profiles)
    _, best = match(differences.profiles, about.profiles)
    if np.trace(similarity) < MIN_AGREEMENT * best.sum():
        raise ValueError(
            "`differences` must have the components of the report, which are ordered by size: "
            "compute them with differential(V, run.W), where run = Run.from_model(model, W)."
        )


def _labels(differences: Differences) -> list[str]:
    return [readable(differences.label(c), 2 * NAME_LENGTH) for c in range(len(differences.lfsr))]


def _row(differences: Differences, contrast: int, j: int) -> dict[str, Any]:
    """Return the cells of one feature."""
    against = int(differences.against[contrast, j])
    lower, upper = differences.lower[contrast, j], differences.upper[contrast, j]
    return {
        "contrast": contrast,
        "against": "all data" if against < 0 else differences.components[against],
        "mean": float(differences.posterior_mean[contrast, j]),
        "interval": f"{lower:.2f} to {upper:.2f}",
        "lfsr": rate(float(differences.lfsr[contrast, j])),
        "counts": float(differences.counts[j]),
    }


def rate(value: float) -> str:
    """Format a local false sign rate; the smallest ones are not known to more digits."""
    return "< 1e-16" if value < 1e-16 else f"{value:.2g}"


def difference_data(
    differences: Differences | None, about: Description, excluded: Array
) -> dict[str, Any]:
    """Return the data of the plot of the section, empty without differences."""
    if differences is None:
        return {}
    plots = []
    for contrast in range(len(differences.lfsr)):
        top = leading_features(differences, contrast, FEATURES_IN_PLOT, excluded)
        values = {
            name: np.round(getattr(differences, key)[contrast, top], 4).tolist()
            for name, key in (("mean", "posterior_mean"), ("lower", "lower"), ("upper", "upper"))
        }
        rates = [rate(value) for value in differences.lfsr[contrast, top].tolist()]
        texts = [readable(about.features[j], NAME_LENGTH) for j in top]
        plots.append({"names": texts, "lfsr": rates, **values})
    colours = differences.pairs[:, 0].tolist()
    return {"differences": {"plots": plots, "components": colours, "level": differences.level}}
