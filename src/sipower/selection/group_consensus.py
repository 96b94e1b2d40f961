# SPDX-License-Identifier: BSD-3-Clause
"""`GroupConsensus`: the result of a consensus over groups of samples."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower.kernels import Array
from sipower.selection.outcome import Consensus

__all__ = ["GroupConsensus"]

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GroupConsensus:
    """Programs that several groups of samples share, and programs of single groups.

    Shared programs come first.

    Parameters
    ----------
    W, H
        Factors of the joint fit: weights of all programs in all samples, (samples, programs), and
        profiles, (programs, features).
    groups
        Labels of the groups, sorted.
    members
        Component of each group that a program was made from, (groups, programs); −1 if none was.
        Components are numbered as in `by_group`.
    shared
        Whether a program was found in at least `min_groups` groups, (programs,).
    similarity
        Cosine of a program with the component of each group, (groups, programs); NaN if none.
    cohesion
        Mean cosine of the pairs of components that a program was made from, (programs,); NaN for a
        single one.
    usage
        Share of the counts of a group that a program explains, (groups, programs).
    drift
        1 − cosine of a program and the mean of its components, which the joint fit began from.
    divergence, gap, status
        KL divergence and certified gap of the joint fit, and how it ended.
    by_group
        The consensus of each group.
    batch_effects
        Batch effects of the joint fit, (batches, features); None without batches.
    samples, features
        Names, or None if the data have none. Files of outcomes do not contain them.
    """

    W: Array
    H: Array
    groups: tuple[str, ...]
    members: NDArray[np.int64]
    shared: NDArray[np.bool_]
    similarity: Numbers
    cohesion: Numbers
    usage: Numbers
    drift: Numbers
    divergence: float
    gap: float
    status: str
    by_group: tuple[Consensus, ...]
    batch_effects: Array | None = None
    samples: tuple[str, ...] | None = None
    features: tuple[str, ...] | None = None

    @property
    def presence(self) -> NDArray[np.bool_]:
        """Whether a program was found in each group, (groups, programs)."""
        return np.asarray(self.members >= 0)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the programs: "shared 1", or the labels of their groups and a number."""
        seen: Counter[str] = Counter()
        names = []
        for is_shared, column in zip(self.shared, self.presence.T, strict=True):
            own = " and ".join(self.groups[g] for g in np.flatnonzero(column))
            kind = "shared" if is_shared else own
            seen[kind] += 1
            names.append(f"{kind} {seen[kind]}")
        return tuple(names)

    @property
    def left_out(self) -> tuple[int, ...]:
        """The number of components of each group that belong to no program, since not stable."""
        return tuple(
            len(result.H) - int(row.sum())
            for result, row in zip(self.by_group, self.presence, strict=True)
        )

    @property
    def summary(self) -> str:
        """Sentences about the numbers of programs and what was left out."""
        count = int(self.shared.sum())
        text = (
            f"{len(self.shared)} programs of {len(self.groups)} groups: {count} shared, "
            f"{len(self.shared) - count} specific."
        )
        pairs = zip(self.groups, self.left_out, strict=True)
        absent = [f"{number} of {group}" for group, number in pairs if number]
        if absent:
            text += f" Components that are not stable are left out: {', '.join(absent)}."
        return text

    def table(self) -> dict[str, list[Any]]:
        """Return one row per program, as columns for a data frame or a CSV file."""
        columns: dict[str, list[Any]] = {
            "program": list(self.names),
            "shared": self.shared.tolist(),
            "groups": self.presence.sum(axis=0).tolist(),
            "cohesion": self.cohesion.tolist(),
            "drift": self.drift.tolist(),
        }
        for group, similar, use in zip(self.groups, self.similarity, self.usage, strict=True):
            columns[f"cosine in {group}"] = similar.tolist()
            columns[f"share of {group}"] = use.tolist()
        return columns
