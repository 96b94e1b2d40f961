# SPDX-License-Identifier: BSD-3-Clause
"""Programs over several groups: components of the groups are clustered and fitted jointly.

The similarity of two components is the cosine of their profiles. The two clusters with the largest
mean cosine are combined as long as it is at least `min_cosine`. A cluster has at most one component
of each group, since components of one fit are different programs.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sipower.data.row_blocks import RowBlocks
from sipower.estimators import KLNMF
from sipower.kernels import Array
from sipower.loop.solve import hide_inner_results
from sipower.nmf.merging import FLOOR
from sipower.selection.group_consensus import GroupConsensus
from sipower.selection.grouped_data import Part
from sipower.selection.matching import cosines
from sipower.selection.medoid import fit_replicate
from sipower.selection.outcome import Consensus
from sipower.selection.saved_fits import SavedFits

__all__ = ["MIN_COSINE", "MIN_GROUPS", "GroupConsensus", "ProgramSettings", "combine_groups"]

Numbers = NDArray[np.float64]
MIN_COSINE, MIN_GROUPS = 0.8, 2


@dataclass(frozen=True, eq=False)
class ProgramSettings:
    """The options of programs over groups, checked when they are made.

    Parameters
    ----------
    model
        The model of the fits.
    min_groups, min_cosine
        As for `consensus`.
    count
        Number of groups.
    """

    model: KLNMF
    min_groups: int
    min_cosine: float
    count: int

    def __post_init__(self) -> None:
        if not 2 <= self.min_groups <= self.count:
            raise ValueError(
                f"`min_groups` must be an integer from 2 to {self.count}, the number of groups, "
                f"got {self.min_groups}."
            )
        if not 0 < self.min_cosine <= 1:
            raise ValueError(f"`min_cosine` must be in (0, 1], got {self.min_cosine}.")
        own = ("components_fixed", "components_zero", "guides")
        given = [name for name in own if getattr(self.model, name) is not None]
        given += [name for name in ("prior_W", "prior_H") if self._is_per_component(name)]
        if given:
            raise ValueError(
                f"`groups` cannot be used with `{given[0]}`, since the joint fit has other "
                "components than the fits of the groups: leave it out."
            )

    def _is_per_component(self, name: str) -> bool:
        return bool(np.ndim(getattr(self.model, name)) == (1 if name == "prior_W" else 2))

    def task(self) -> dict[str, Any]:
        """Return the options that saved fits depend on."""
        return {"min_groups": self.min_groups, "min_cosine": self.min_cosine}


def combine_groups(
    parts: list[Part],
    results: list[Consensus],
    settings: ProgramSettings,
    whole: tuple[RowBlocks, Array, dict[str, Any]],
    saved: SavedFits,
) -> GroupConsensus:
    """Cluster the components of the groups, and fit the programs to all samples.

    Parameters
    ----------
    parts, results
        The groups and the consensus of each.
    settings
        Options.
    whole
        All data, the group of every sample, and arguments of `KLNMF.fit`.
    saved
        Where the joint fit is saved.
    """
    data, labels, observed = whole
    members = cluster_components(
        [result.H for result in results],
        [_is_stable(result, settings.min_cosine) for result in results],
        settings.min_cosine,
    )
    if not members.shape[1]:
        raise ValueError(
            f"No component of any group has a stability of `min_cosine`, {settings.min_cosine}: "
            "lower it, or fit fewer components."
        )
    profiles = [_profiles(result.H) for result in results]
    centres = np.stack([_centre(profiles, column) for column in members.T])
    piece = saved.load("programs", W=(data.shape[0], -1), H=(-1, data.shape[1]), numbers=(2,))
    if piece is None:
        piece = _fit_jointly(data, settings.model, centres, observed)
        saved.save("programs", piece)
    names = tuple(map(str, np.unique(labels)))
    usage = _usage(piece["W"], piece["H"], labels, names)
    shared = (members >= 0).sum(axis=0) >= settings.min_groups
    order = _order(members, shared, usage)
    W, H = (np.ascontiguousarray(F) for F in (piece["W"][:, order], piece["H"][order]))
    divergence, gap = map(float, piece["numbers"])
    return GroupConsensus(
        W, H, names, members[:, order], shared[order],
        similarity=_similarity(profiles, members[:, order], H),
        cohesion=np.array([_cohesion(profiles, members[:, at]) for at in order]),
        usage=usage[:, order],
        drift=1 - np.diag(cosines(centres[order], H)),
        divergence=divergence, gap=gap, status=str(piece["status"]), by_group=tuple(results),
        batch_effects=piece.get("batch_effects"),
    )  # fmt: skip


def cluster_components(
    profiles: list[Array], usable: list[NDArray[np.bool_]], min_cosine: float
) -> NDArray[np.int64]:
    """Return the component of each group in each cluster, (groups, clusters), −1 if it has none."""
    group = np.repeat(np.arange(len(profiles)), [int(use.sum()) for use in usable])
    number = np.concatenate([np.flatnonzero(use) for use in usable])
    stacked = np.concatenate([H[use] for H, use in zip(profiles, usable, strict=True)])
    mean = cosines(stacked, stacked)  # of clusters: average linkage
    count = len(mean)
    members = np.full((len(profiles), count), -1, np.int64)
    members[group, np.arange(count)] = number
    mean[group[:, None] == group] = -1.0
    size = np.ones(count)
    while count and mean.max() >= min_cosine:
        a, b = sorted(int(i) for i in np.unravel_index(np.argmax(mean), mean.shape))
        row = (size[a] * mean[a] + size[b] * mean[b]) / (size[a] + size[b])
        size[a] += size[b]
        members[:, a] = np.maximum(members[:, a], members[:, b])
        members[:, b] = -1
        common = ((members[:, [a]] >= 0) & (members >= 0)).any(axis=0)
        mean[b] = mean[:, b] = -1.0
        row[common | (members < 0).all(axis=0)] = -1.0
        mean[a] = mean[:, a] = row
    return members[:, (members >= 0).any(axis=0)]


def _is_stable(result: Consensus, min_stability: float) -> NDArray[np.bool_]:
    """Return which components are used: those with counts that most replicates have."""
    is_unstable = result.stability < min_stability  # false for NaN, which is for one replicate
    return np.asarray(~is_unstable & (result.H.sum(axis=1) > 0))


def _profiles(H: Array) -> Numbers:
    H = np.asarray(H, np.float64)
    return np.asarray(H / np.maximum(H.sum(axis=1, keepdims=True), np.finfo(float).tiny))


def _centre(profiles: list[Numbers], column: NDArray[np.int64]) -> Numbers:
    own = [H[k] for H, k in zip(profiles, column, strict=True) if k >= 0]
    centre = np.mean(own, axis=0)
    return np.asarray(centre + FLOOR * centre.mean())  # rules cannot change zeros


@hide_inner_results()
def _fit_jointly(
    data: RowBlocks, model: KLNMF, centres: Numbers, observed: dict[str, Any]
) -> dict[str, Any]:
    """Fit the weights of all samples for the centres, and then both factors from there."""
    joint: KLNMF = clone(model).set_output(transform="default")
    joint.set_params(n_components=len(centres), checkpoint=None, n_init=1)
    known = clone(joint).set_params(components_fixed=centres, init="random")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is a start only
        W = known.fit_transform(data, **observed)
    joint.set_params(init="custom")
    start = {"W": W + FLOOR * W.mean(), "H": centres.astype(W.dtype)}
    return fit_replicate(joint, data, observed | start)


def _usage(W: Array, H: Array, labels: Array, names: tuple[str, ...]) -> Numbers:
    """Return the share of the counts of each group that each program explains."""
    counts = W.astype(np.float64) * H.sum(axis=1, dtype=np.float64)
    sums = np.stack([counts[labels == name].sum(axis=0) for name in names])
    return np.asarray(sums / np.maximum(sums.sum(axis=1, keepdims=True), np.finfo(float).tiny))


def _order(members: Array, shared: Array, usage: Numbers) -> NDArray[np.intp]:
    """Return shared programs first, those of most groups before others; then by group and use."""
    present = members >= 0
    count, use = present.sum(axis=0), np.where(present, usage, 0).sum(axis=0)
    first = np.where(shared, 0, present.argmax(axis=0))
    return np.lexsort((-use, np.where(shared, -count, 0), first, ~shared))


def _similarity(profiles: list[Numbers], members: Array, H: Array) -> Numbers:
    """Return the cosine of each program with the component of each group; NaN if it has none."""
    table = np.full(members.shape, np.nan)
    for g, column in zip(*np.nonzero(members >= 0), strict=True):
        component = profiles[g][members[g, column]]
        table[g, column] = cosines(component[None], H[column][None])[0, 0]
    return table


def _cohesion(profiles: list[Numbers], column: NDArray[np.int64]) -> float:
    """Return the mean cosine of the pairs of components of a program; NaN for a single one."""
    own = np.stack([H[k] for H, k in zip(profiles, column, strict=True) if k >= 0])
    upper = cosines(own, own)[np.triu_indices(len(own), 1)]
    return float(upper.mean()) if len(upper) else float("nan")
