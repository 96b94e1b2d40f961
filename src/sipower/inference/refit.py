# SPDX-License-Identifier: BSD-3-Clause
"""`refit`: exposures to known components, of which each sample has few.

The components of every sample are selected by likelihood-ratio tests (`supports`); the exposures
have profile-likelihood intervals (`profile_intervals`), and the deviance says whether the known
components explain a sample (`goodness`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from sipower.data.names import Matching, as_names, data_items, match_names
from sipower.data.plausibility import (
    likely_kind,
    orientation_remark,
    total_remarks,
    warn_user,
)
from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import as_matrix
from sipower.estimators.observation import is_sparse
from sipower.inference.goodness import goodness_of_fit
from sipower.inference.profile_intervals import profile_intervals
from sipower.inference.profiles import Profiles, as_profiles
from sipower.inference.refitted import Refit
from sipower.inference.supports import (
    MAX_ENTRIES,
    ExposureProblem,
    plain_supports,
    select_supports,
    threshold,
)

__all__ = ["refit"]

Float = NDArray[np.float64]
MAX_ROWS = 4096


class _SharedFeatures(NamedTuple):
    """The components on the features that V shares with them, and which these are in V."""

    H: Float
    columns: NDArray[np.intp] | None
    remarks: list[str]


class _Options(NamedTuple):
    sparse: bool
    level: float
    confidence: float | None
    n_jobs: int | None


def refit(
    V: Any,
    H: Any,
    *,
    sparse: bool = True,
    level: float = 0.005,
    intervals: bool = True,
    confidence: float = 0.95,
    n_jobs: int | None = None,
) -> Refit:
    """Estimate how many counts of each sample are due to each of the known components.

    Parameters
    ----------
    V
        Counts, (n_samples, n_features): an array, a sparse matrix, a data frame, row blocks, or a
        `Table` of `sipower.io.read`.
    H
        Known components, (K, n_features): an array, a data frame with a row for each component, a
        fitted `KLNMF`, or a run. If V and H have names, features are matched by name: those that
        V lacks were not observed, and those that H lacks are left out, with a warning. Add a column
        of zeros to V for a feature that was observed but does not occur. If neither has names, the
        order counts. Names on one side only are refused.
    sparse
        Whether to select the components of each sample by likelihood-ratio tests. False estimates
        all exposures, which leaves many small ones that are noise.
    level
        Significance level of a test: the probability that a component that is absent is kept.
        Lower values select fewer components.
    intervals
        Whether to compute intervals, which takes longer than the fit.
    confidence
        Confidence of the intervals.
    n_jobs
        Number of threads; None: all cores.

    Returns
    -------
    Refit
        Exposures in counts, selected components, intervals and goodness of fit of every sample. If
        V lacks features, exposures include the counts that are expected there.

    Warns
    -----
    UserWarning
        If features or counts are left out, or if V does not hold counts.

    Examples
    --------
    >>> import numpy as np
    >>> from sipower import refit
    >>> rng = np.random.default_rng(0)
    >>> H = rng.dirichlet(np.full(96, 0.2), 20)  # 20 known signatures
    >>> result = refit(rng.poisson(300 * H[:1] + 200 * H[1:2]), H)
    >>> np.flatnonzero(result.support[0])
    array([0, 1])
    """
    _check_options(level, confidence)
    matrix, profiles = as_matrix(V, n_jobs=n_jobs), as_profiles("H", H)
    features = replace(data_items(V, "`V`")[1], count=matrix.shape[1])
    matching = match_names(features, profiles.items("H", H))
    shared = _share_features(matrix, profiles, matching)
    options = _Options(sparse, level, confidence if intervals else None, n_jobs)
    parts, counts_ok = [], True
    for rows, left_out in _chunks(matrix, shared):
        values = rows.data if is_sparse(rows) else rows
        counts_ok = counts_ok and bool((values == np.floor(values)).all())
        parts.append({**_refit_rows(rows, shared.H, options), "left_out": left_out})
    remarks = shared.remarks + _remarks(parts, matrix.shape[1] == shared.H.shape[1])
    remarks += _data_remarks(V, matrix, counts_ok)
    for remark in remarks:
        warn_user(remark)
    arrays: dict[str, Any] = {
        name: None if first is None else np.concatenate([part[name] for part in parts])
        for name, first in parts[0].items()
    }
    return Refit(
        components=profiles.names, samples=as_names(matrix.row_names), sparse=sparse,
        level=level, confidence=confidence, remarks=tuple(remarks), **arrays,
    )  # fmt: skip


def _check_options(level: float, confidence: float) -> None:
    for name, value in (("level", level), ("confidence", confidence)):
        if not 0 < value < 1:
            raise ValueError(f"`{name}` must be between 0 and 1, got {value}.")


def _share_features(V: RowBlocks, profiles: Profiles, matching: Matching) -> _SharedFeatures:
    """Return the components on the features that V shares with them."""
    H = np.ascontiguousarray(profiles.values[:, matching.second])
    unseen = np.flatnonzero(H.sum(axis=1) <= 0)
    if len(unseen):
        raise ValueError(
            f"`V` has no feature of component {profiles.names[unseen[0]]!r} of `H`: its exposures "
            "cannot be estimated; leave it out of `H`."
        )
    columns = None if matching.is_same else matching.first
    return _SharedFeatures(H, columns, _matching_remarks(V, profiles, matching))


def _matching_remarks(V: RowBlocks, profiles: Profiles, matching: Matching) -> list[str]:
    remarks = []
    known, shared = profiles.values.shape[1], len(matching.first)
    if shared < known:
        remarks.append(
            f"`V` lacks {known - shared:,} of {known:,} features of `H`: the exposures are "
            "estimated from the others, as if these were not observed. Add columns of zeros for "
            "features that do not occur."
        )
    if shared < V.shape[1]:
        mass = V.column_mass
        share = 1 - mass[matching.first].sum() / max(mass.sum(), np.finfo(float).tiny)
        remarks.append(
            f"`H` lacks {V.shape[1] - shared:,} of {V.shape[1]:,} features of `V`: {share:.2%} of "
            "all counts are left out with them."
        )
    return remarks


def _chunks(V: RowBlocks, shared: _SharedFeatures) -> Iterator[tuple[Any, Float]]:
    """Yield rows on the shared features, and the counts that no component can explain."""
    rank, features = shared.H.shape
    size = int(np.clip(MAX_ENTRIES // max(features, rank**2), 1, MAX_ROWS))
    is_known = shared.H.any(axis=0)
    for begin in range(0, V.shape[0], size):
        rows = V.rows(begin, min(begin + size, V.shape[0])).astype(np.float64)
        total = np.asarray(rows.sum(axis=1), np.float64)
        rows = rows if shared.columns is None else rows[:, shared.columns]
        if not is_known.all():
            rows = rows.multiply(is_known).tocsr() if is_sparse(rows) else rows * is_known
        left_out = np.maximum(total - np.asarray(rows.sum(axis=1), np.float64), 0.0)
        yield rows, np.where(left_out > 1e-12 * total, left_out, 0.0)


def _refit_rows(rows: Any, H: Float, options: _Options) -> dict[str, Any]:
    """Return the arrays of `Refit` for some samples."""
    problem = ExposureProblem(rows, H, options.n_jobs)
    fit = plain = plain_supports(problem)
    if options.sparse:
        fit = select_supports(problem, plain, threshold(options.level))
    lower = upper = None
    if options.confidence is not None:
        lower, upper = profile_intervals(problem, plain, fit, options.confidence)
    v = problem.dense
    deviance, p_value = goodness_of_fit(v, fit.w @ H, fit.support.sum(axis=1))
    return {
        "exposures": fit.w, "support": fit.support, "lower": lower, "upper": upper,
        "log_likelihood": fit.log_likelihood - gammaln(v + 1).sum(axis=1),
        "deviance": deviance, "p_value": p_value,
    }  # fmt: skip


def _data_remarks(V: Any, matrix: RowBlocks, counts_ok: bool) -> list[str]:
    """Return remarks on the data; those on totals only if nobody has looked at them before."""
    remarks: list[str] = []
    if not counts_ok:
        looks = likely_kind(matrix)
        remarks.append(
            f"`V` holds numbers that are no counts{'' if looks is None else f', and {looks}'}: "
            "tests, intervals and p-values assume Poisson counts."
        )
    if not isinstance(V, RowBlocks):
        names = matrix.row_names, matrix.column_names
        remarks += [*total_remarks(matrix, *names), *orientation_remark(*names, "`V.T`")]
    return remarks


def _remarks(parts: list[dict[str, Any]], all_shared: bool) -> list[str]:
    remarks = []
    left_out = np.concatenate([part["left_out"] for part in parts])
    if left_out.any() and all_shared:  # else the remark about missing features names them
        remarks.append(
            f"`V` has counts of features that no component of `H` has, in {(left_out > 0).sum():,} "
            f"samples: {left_out.sum():,.0f} counts are left out."
        )
    return remarks
