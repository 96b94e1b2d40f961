# SPDX-License-Identifier: BSD-3-Clause
"""`ResampledFits`: the fits of a bootstrap, which run in parallel and are saved."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sipower.data.row_blocks import RowBlocks
from sipower.estimators import KLNMF
from sipower.inference.intervals import part_shapes, split_factor
from sipower.kernels import Array, Draw
from sipower.kernels.random import Stream
from sipower.loop.solve import hide_inner_results
from sipower.selection.matching import match
from sipower.selection.replicates import Replicates
from sipower.selection.saved_fits import SavedFits

__all__ = ["ResampledFits", "draw_counts", "ignore_fit_warnings", "replicate_name", "to_counts"]

START_FLOOR = 1e-3  # of the mean of a component: no update rule must start from zeros


class ResampledFits(NamedTuple):
    """The fits of a bootstrap: that of the data, from which all others start, and the replicates.

    Attributes
    ----------
    replicas, saved
        How the fits run, and where they are saved.
    data, W, H
        The data, and the factors of the model, (n, K) and (K, m).
    observed
        Arguments of the fits that say how the data were observed.
    """

    replicas: Replicates
    saved: SavedFits
    data: RowBlocks
    W: Array
    H: Array
    observed: dict[str, Any]

    def run(self, count: int) -> list[tuple[Any, ...]]:
        """Fit and save all replicates; return cosines, divergence, gap and status of each."""
        replicas, K = self.replicas, len(self.H)
        shapes = part_shapes("W", len(self.W), K) | part_shapes("H", self.H.shape[1], K)
        shapes |= {"cosines": (K,), "numbers": (2,), "status": ()}
        V = replicas.scatter(self.data)
        start = [
            replicas.scatter(_raise_zeros(factor, side))
            for side, factor in enumerate(self._start(V))
        ]

        def replicate(r: int) -> tuple[Any, ...]:
            piece = self.saved.load(replicate_name(r), **shapes)
            if piece is None:
                draw = Draw(replicas.model.random_state, Stream.BOOTSTRAP, r)
                arguments = replicas.model_for_one_thread(), V, *start, tuple(draw), self.observed
                piece = self._match(*replicas.compute(_fit, *arguments))
                self.saved.save(replicate_name(r), piece)
            replicas.count_finished(1)
            return piece["cosines"], *piece["numbers"], str(piece["status"])

        return replicas.run(replicate, count)

    def _start(self, V: Any) -> tuple[Array, Array]:
        """Return W and H, fitted to the data as exactly as the replicates."""
        piece = self.saved.load("start", W=self.W.shape, H=self.H.shape)
        if piece is None:
            model = self.replicas.model_for_one_thread(n_jobs=self.replicas.model.n_jobs)
            start = _raise_zeros(self.W, 0), _raise_zeros(self.H, 1)
            W, H, *_ = self.replicas.compute(_fit, model, V, *start, None, self.observed)
            order = match(self.H, H)[0]
            piece = {"W": W[:, order], "H": H[order]}
            self.saved.save("start", piece)
        return piece["W"], piece["H"]

    def shifts(self, sd: Array) -> NDArray[np.float64]:
        """Return the distance of each profile from the minimum in units of its deviation, (K,).

        `sd` (m, K) holds the standard deviations of the profiles.
        """
        start, own = (to_counts(self.W, H)[1] for H in (self.saved.read("start", "H"), self.H))
        distance, deviation = (np.linalg.norm(part, axis=0) for part in (start - own, sd))
        shifts = np.divide(distance, deviation, out=np.zeros(len(self.H)), where=deviation > 0)
        return np.asarray(shifts)

    def _match(self, W: Array, H: Array, numbers: Array, status: str) -> dict[str, Array]:
        """Return a replicate, with components in the order of the model, as arrays to save."""
        partners, cosines = match(self.H, H)
        counts, profiles = to_counts(W[:, partners], H[partners])
        piece = {"cosines": cosines, "numbers": numbers, "status": np.array(status)}
        return split_factor("W", counts) | split_factor("H", profiles) | piece


@hide_inner_results()
def _fit(
    model: KLNMF,
    V: RowBlocks,
    W: Array,
    H: Array,
    draw: tuple[int, ...] | None,
    observed: dict[str, Any],
) -> tuple[Array, Array, Array, str]:
    """Return W, H, divergence and gap, and status of one fit; draw None stands for the data."""
    counts = V if draw is None else draw_counts(V, Draw(*draw))
    W = model.fit_transform(counts, W=W, H=H, **observed)
    numbers = np.array([model.kl_divergence_, model.kkt_residual_])
    return W, model.components_, numbers, model.status_


def draw_counts(V: RowBlocks, draw: Draw) -> RowBlocks:
    """Return Poisson counts with the means V, in the layout of V and with its names."""
    if V.dense:
        counts: Any = draw.poisson(V.array).astype(V.dtype)
    else:
        values = draw.poisson(V.array.data).astype(V.dtype)
        counts = sparse.csr_array((values, V.array.indices, V.array.indptr), V.shape, copy=True)
        counts.eliminate_zeros()
    return V.with_data(counts).with_names(V.row_names, V.column_names)


def _raise_zeros(factor: Array, axis: int) -> Array:
    """Return a factor whose entries are at least a small share of the mean of their component."""
    lowest = START_FLOOR * factor.mean(axis=axis, keepdims=True)
    return np.asarray(np.maximum(factor, lowest.astype(factor.dtype)))


def to_counts(W: Array, H: Array) -> tuple[Array, Array]:
    """Return W in counts and the profiles, both with one column for each component."""
    S = H.sum(axis=1, dtype=np.float64)
    profiles = np.divide(H.T, S, out=np.zeros(H.T.shape), where=S > 0)
    return (W * S).astype(W.dtype), profiles.astype(H.dtype)


def replicate_name(replicate: int) -> str:
    """Return the name under which a replicate is saved."""
    return f"replicate-{replicate:03d}"


@contextmanager
def ignore_fit_warnings() -> Iterator[None]:
    """Ignore warnings of single fits in all threads; `Bootstrap.statuses` says how they ended."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield
