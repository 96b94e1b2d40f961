# SPDX-License-Identifier: BSD-3-Clause
"""Data that are divided into groups of samples, each with its part of the observation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower.data.row_blocks import RowBlocks
from sipower.estimators.observation import Observation
from sipower.kernels import Array

__all__ = ["Part", "as_groups", "split_groups"]


@dataclass(frozen=True, eq=False)
class Part:
    """A group of samples.

    Parameters
    ----------
    suffix
        End of the names of its saved fits.
    data
        Its samples.
    observed
        Arguments of `KLNMF.fit` for these samples.
    """

    suffix: str
    data: RowBlocks
    observed: dict[str, Any]


def as_groups(groups: Any, data: RowBlocks) -> NDArray[np.str_]:
    """Return the label of every sample as a string; raise an error if labels are missing."""
    n = data.shape[0]
    labels = np.asarray(groups, object)
    if labels.shape != (n,):
        raise ValueError(
            f"`groups` must have one label for each of the {n} samples, got shape {labels.shape}."
        )
    texts = np.array([str(label) for label in labels])
    absent = np.isin(texts, ["", "None", "nan", "NaT", "<NA>"])
    if absent.any():
        raise ValueError(
            f"`groups` must have a label for every sample, got none for sample "
            f"{int(np.argmax(absent))}."
        )
    names, sizes = np.unique(texts, return_counts=True)
    if len(names) < 2:
        raise ValueError(
            f"`groups` must have two or more different labels, got {str(names[0])!r} only."
        )
    counts = np.array([data.mass[texts == name].sum() for name in names])
    if not (counts > 0).all():
        empty, size = names[np.argmin(counts)], sizes[np.argmin(counts)]
        raise ValueError(f"`groups`: the {size} samples of {str(empty)!r} are all zero.")
    return texts


def split_groups(data: RowBlocks, observation: Observation, labels: Array) -> list[Part]:
    """Return the groups in order of their labels."""
    parts = []
    for number, name in enumerate(np.unique(labels)):
        rows = np.flatnonzero(labels == name)
        own = data.with_data(data.take(rows)).with_names(None, data.column_names)
        given = observation.take(rows).arguments()
        observed = {key: value for key, value in given.items() if value is not None}
        if "batch" in observed and len(np.unique(observed["batch"])) < 2:
            del observed["batch"]  # a single batch has no effect
        parts.append(Part(f"-group-{number:03d}", own, observed))
    return parts
