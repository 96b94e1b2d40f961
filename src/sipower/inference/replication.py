# SPDX-License-Identifier: BSD-3-Clause
"""`check_replication`: test whether differences appear again in independent counts.

Weights that were learned from the same counts as the differences also fit their noise, and even
pure noise then gives differences of many standard errors. So the counts are split into two
independent halves (`thin`). The model is fitted to one half. For its weights, the differences
between components are estimated from each half. The signs of those that are significant in the
first half are compared with the second: they agree in nearly all cases if the differences are
real, and in about half of the cases if they are noise.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import as_matrix
from sipower.estimators import KLNMF
from sipower.estimators.observation import as_given
from sipower.inference.fold_changes import FoldChanges, fold_changes
from sipower.inference.regression import regress_prepared
from sipower.kernels import Array
from sipower.loop.solve import hide_inner_results
from sipower.selection.holdout import are_counts, thin
from sipower.selection.matching import match

__all__ = ["Replication", "check_replication"]

MIN_SCORE = 3.0  # standard errors of a difference in the first half
MIN_AGREEMENT = 0.75  # share of equal signs; noise has a half
TOL = 1e-2  # certified gap of the fit to one half


@dataclass(frozen=True, eq=False)
class Replication:
    """Whether the differences between components appear again in independent counts.

    Attributes
    ----------
    differences
        Number of significant differences in the first half of the counts.
    agreement
        Share of them that have the same sign in the second half; NaN if there are none.
    components
        The same share for every component (K,), by its match in the fit of the first half.
    similarity
        Cosine of every component with its match, (K,).
    reason
        Why there was no check; empty if there was one.
    """

    differences: int = 0
    agreement: float = np.nan
    components: NDArray[np.float64] | None = None
    similarity: NDArray[np.float64] | None = None
    reason: str = ""

    @property
    def is_supported(self) -> bool | None:
        """Whether the differences appear again; None if there was no check."""
        return None if self.reason else bool(self.agreement >= MIN_AGREEMENT)

    def __str__(self) -> str:
        if self.reason:
            return f"Not checked on independent counts: {self.reason}."
        if not self.differences:
            return "No difference is significant in one half of the counts."
        text = (
            f"{self.agreement:.0%} of {self.differences:,} differences that are significant in one "
            "half of the counts have the same sign in the other half (noise: 50%)."
        )
        if not self.is_supported:
            text += " The components fit noise: do not interpret the differences."
        return text


def check_replication(
    V: RowBlocks, model: KLNMF, H: Array, prior: float, observed: Mapping[str, Any]
) -> Replication:
    """Fit one half of the counts and compare its differences with those in the other half.

    Parameters
    ----------
    V
        The data, (n, m).
    model
        An unfitted model with the parameters of the fit. Its seed is also that of the split.
    H
        The components whose differences are checked, (K, m).
    prior
        Prior counts of every coefficient.
    observed
        Arguments of `KLNMF.fit` that say how the data were observed.
    """
    if not V.is_in_memory:
        return Replication(reason="the data are on disk")
    if not are_counts(V):
        return Replication(reason="the data are no counts")
    halves = thin(V, int(model.random_state), share=0.5)
    first, second = (
        as_matrix(half, n_jobs=V.threads).with_names(V.row_names, V.column_names)
        for half in (halves.train, halves.test)
    )
    with warnings.catch_warnings(), hide_inner_results():
        warnings.simplefilter("ignore")
        W = model.fit_transform(first, **observed).astype(np.float64)
        own, other = (_changes(half, model, W, prior, observed) for half in (first, second))
    scores = own.estimates / own.errors
    is_significant = np.abs(scores) > MIN_SCORE
    agrees = (np.sign(scores) == np.sign(other.estimates)) & is_significant
    count = int(is_significant.sum())
    partners, similarity = match(H, model.components_)
    counts, agreeing = is_significant.sum(axis=1), agrees.sum(axis=1)
    share = np.divide(agreeing, counts, out=np.full(len(counts), np.nan), where=counts > 0)
    agreement = float(agrees.sum() / count) if count else np.nan
    return Replication(count, agreement, share[partners], similarity)


def _changes(
    half: RowBlocks, model: KLNMF, W: Array, prior: float, observed: Mapping[str, Any]
) -> FoldChanges:
    """Return the differences of one half of the counts against all data, given W."""
    V, observation = model._observe(half, as_given(observed), reset=False)
    prepared = model._prepare(V, observation)
    return fold_changes(regress_prepared(prepared, W, prior), "null")
