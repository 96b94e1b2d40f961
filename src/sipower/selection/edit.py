# SPDX-License-Identifier: BSD-3-Clause
"""`edit_components`: merge, split and drop components by hand, and fit again from there."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from sipower.data.row_blocks import RowBlocks
from sipower.estimators import KLNMF
from sipower.estimators.observation import as_given, match_arguments
from sipower.kernels import Array
from sipower.loop.solve import hide_inner_results
from sipower.nmf.merging import FLOOR
from sipower.selection.edit_plan import EditPlan, edit_parameters, plan_edit
from sipower.selection.expected_counts import component_counts

__all__ = ["EditedFit", "edit_components"]

Numbers = NDArray[np.float64]
SPLIT_TOL = 1e-3


@dataclass(frozen=True, eq=False)
class EditedFit:
    """A fit after some of its components were merged, split or dropped.

    Parameters
    ----------
    model
        The fitted model with the new components.
    W
        Its weights, (samples, K').
    origins
        The components of the old model that each new one was made from.
    names
        Names of the new components.
    divergence_before, objective_start, divergence
        D of the old model; objective (D and penalties) of the edited factors before the refit; D
        after the refit.
    """

    model: KLNMF
    W: Array
    origins: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]
    divergence_before: float
    objective_start: float
    divergence: float

    def __str__(self) -> str:
        change = self.divergence - self.divergence_before
        relative = 100 * change / max(self.divergence_before, np.finfo(float).tiny)
        return (
            f"{len(self.names)} components, {self.model.status_} with a certified gap of "
            f"{self.model.kkt_residual_:.1e}: KL divergence {self.divergence:.6g}, before "
            f"{self.divergence_before:.6g} ({relative:+.2f} %)."
        )


def edit_components(
    V: Any,
    model: KLNMF,
    *,
    merge: Iterable[Sequence[int]] = (),
    split: Iterable[int] = (),
    drop: Iterable[int] = (),
    names: Sequence[str] | None = None,
    **observed: Any,
) -> EditedFit:
    """Merge, split and drop components of a fitted model, and fit again from the result.

    The refit has the parameters of the model and ends with a certified gap. No round of it raises
    the objective. The model itself is not changed.

    Parameters
    ----------
    V
        The data that the model was fitted to.
    model
        A fitted `KLNMF`.
    merge
        Tuples of two or more components that become one, which has the place of the first. The
        components are rows of `components_`, counted from 0.
    split
        Components that become two: the first part keeps the place, the second is the last
        component. The start is a fit with two components to the expected counts of the one.
    drop
        Components to leave out; the others explain their counts.
    names
        Names of the components of the model; None: those of guides and known components, else
        "component 1" and so on. A component that is not changed keeps its name.
    **observed
        Arguments of `KLNMF.fit` that say how the data were observed.

    Examples
    --------
    >>> from sipower import KLNMF
    >>> from sipower.datasets import poisson_topics
    >>> from sipower.selection import edit_components
    >>> V = poisson_topics(300, 200, 4, seed=0)
    >>> model = KLNMF(5, random_state=0).fit(V)
    >>> edited = edit_components(V, model, merge=[(0, 3)], names=list("abcde"))
    >>> edited.names, edited.model.status_
    (('a + d', 'b', 'c', 'e'), 'converged')
    """
    if not isinstance(model, KLNMF):
        raise TypeError(f"`model` must be a fitted KLNMF, got a {type(model).__name__}.")
    check_is_fitted(model)
    if not hasattr(model, "kl_divergence_"):
        raise ValueError("`model` must come from `fit`: after `partial_fit`, fit it again.")
    plan, observed = plan_edit(model, merge, split, drop, names), match_arguments(V, observed)
    data, observation = model._observe(V, as_given(observed), reset=False)
    W = model._exact_rows(data, observation.without_sample_weights())
    start = _edited_factors(data, model, plan, W, observed)
    refit: KLNMF = clone(model).set_output(transform="default")
    refit.set_params(init="custom", checkpoint=None, **edit_parameters(model, plan))
    with hide_inner_results():
        new_W = refit.fit_transform(V, W=start[0], H=start[1], **observed)
    divergences = float(model.kl_divergence_), float(refit.trace_[0].objective)
    return EditedFit(
        refit, new_W, plan.origins, plan.names, *divergences, float(refit.kl_divergence_)
    )


def _edited_factors(
    data: RowBlocks, model: KLNMF, plan: EditPlan, W: Array, observed: dict[str, Any]
) -> tuple[Array, Array]:
    """Return the factors of the edited components, all entries positive."""
    H = np.asarray(model.components_, np.float64)
    W = np.asarray(W, np.float64)
    halves: dict[int, list[tuple[Numbers, Numbers]]] = {}
    columns = []
    for origin in plan.origins:
        (k, *others) = origin
        if others:
            columns.append(_merged(W[:, list(origin)], H[list(origin)]))
        elif k in plan.split:
            if k not in halves:
                halves[k] = _halves(component_counts(data, W, H, k), model, k, observed)
            columns.append(halves[k].pop(0))
        else:
            columns.append((W[:, k], H[k]))
    new_W, new_H = (np.stack(part, axis=1) for part in zip(*columns, strict=True))
    # Rules cannot change zeros, and the counts of a dropped component need another one.
    new_W += FLOOR * new_W.mean()
    new_H += FLOOR * new_H.mean()
    dtype = model.components_.dtype
    return new_W.astype(dtype), np.ascontiguousarray(new_H.T, dtype)


def _merged(W: Numbers, H: Numbers) -> tuple[Numbers, Numbers]:
    """Return the sum of the weights in counts, and the mean profile weighted by their totals."""
    counts = W * H.sum(axis=1)
    mass = counts.sum(axis=0)
    profiles = H / np.maximum(H.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    return counts.sum(axis=1), mass @ profiles / max(float(mass.sum()), np.finfo(float).tiny)


@hide_inner_results()
def _halves(
    counts: Any, model: KLNMF, k: int, observed: dict[str, Any]
) -> list[tuple[Numbers, Numbers]]:
    """Fit two components to the expected counts of component k, and return their factors."""
    if not counts.nnz:
        raise ValueError(f"`split` must name components with counts, but component {k} has none.")
    two = KLNMF(
        2, tol=max(model.tol, SPLIT_TOL), random_state=model.random_state, n_jobs=model.n_jobs
    )
    known = {name: value for name, value in observed.items() if name != "batch"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # expected counts are no integers, and this is a start
        W = np.asarray(two.fit_transform(counts, **known), np.float64)
    H = two.components_.astype(np.float64)
    largest_first = np.argsort(-(W.sum(axis=0) * H.sum(axis=1)), kind="stable")
    return [(W[:, part], H[part]) for part in largest_first]
