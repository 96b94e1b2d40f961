# SPDX-License-Identifier: BSD-3-Clause
"""What an edit does to each component of a model, and to the parameters of single components."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sipower.estimators import KLNMF

__all__ = ["EditPlan", "edit_parameters", "plan_edit"]


@dataclass(frozen=True)
class EditPlan:
    """The components after an edit.

    Parameters
    ----------
    origins
        The old components that each new one is made from; a component that is split occurs twice.
    names
        Names of the new components.
    split
        The old components that are split.
    """

    origins: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]
    split: tuple[int, ...]


def plan_edit(
    model: KLNMF,
    merge: Iterable[Sequence[int]],
    split: Iterable[int],
    drop: Iterable[int],
    names: Sequence[str] | None,
) -> EditPlan:
    """Check the components of an edit and return what happens to each."""
    rank = len(model.components_)
    merges = tuple(sorted(tuple(sorted(_as_indices("merge", group, rank))) for group in merge))
    splits, drops = _as_indices("split", split, rank), _as_indices("drop", drop, rank)
    for group in merges:
        if len(group) < 2:
            raise ValueError(f"`merge` must hold tuples of two or more components, got {group}.")
    named = [k for group in merges for k in group] + [*splits, *drops]
    twice = next((k for k in named if named.count(k) > 1), None)
    if twice is not None:
        raise ValueError(
            f"`merge`, `split` and `drop` must name a component once, got {twice} more than once."
        )
    if not named:
        raise ValueError("`merge`, `split` or `drop` must name a component: nothing would change.")
    if len(drops) == rank:
        raise ValueError(f"`drop` must leave a component, got all {rank}.")
    _check_known(model, merges, splits)
    labels = _component_names(model, names)
    first = {group[0]: group for group in merges}
    gone = {*drops, *(k for group in merges for k in group[1:])}
    kept = [first.get(k, (k,)) for k in range(rank) if k not in gone]
    new_names = [" + ".join(labels[k] for k in origin) for origin in kept]
    new_names = [
        f"{name} (part 1)" if origin[0] in splits else name
        for name, origin in zip(new_names, kept, strict=True)
    ]
    origins = (*kept, *((k,) for k in splits))
    parts = [f"{labels[k]} (part 2)" for k in splits]
    return EditPlan(origins, (*new_names, *parts), splits)


def edit_parameters(model: KLNMF, plan: EditPlan) -> dict[str, Any]:
    """Return the parameters of the model that belong to single components, for the new ones.

    A new component has the parameters of the first old one that it is made from. The second part of
    a guided component that is split has no guide.
    """
    known, guided = _count_known(model)
    first = [origin[0] for origin in plan.origins]
    kept = first[: len(first) - len(plan.split)]
    changed: dict[str, Any] = {"n_components": len(first)}
    if known:
        rows = [k for k in kept if k < known]
        changed["components_fixed"] = _rows(model.components_fixed, rows) if rows else None
    if guided:
        rows = [k - known for k in kept if known <= k < known + guided]
        changed["guides"] = _guide_rows(model.guides, rows) if rows else None
    for name in ("components_zero", "prior_W", "prior_H"):
        value = getattr(model, name)
        ndim = 1 if name == "prior_W" else 2
        if value is not None and np.ndim(value) == ndim:
            changed[name] = _rows(value, first)
    return changed


def _as_indices(name: str, values: Any, rank: int) -> tuple[int, ...]:
    try:
        indices = tuple(operator.index(value) for value in values)
    except TypeError:
        inner = "tuples of integers" if name == "merge" else "integers"
        raise TypeError(f"`{name}` must be a list of {inner}, got {values!r}.") from None
    wrong = next((k for k in indices if not 0 <= k < rank), None)
    if wrong is not None:
        raise ValueError(f"`{name}` must name components from 0 to {rank - 1}, got {wrong}.")
    return indices


def _count_known(model: KLNMF) -> tuple[int, int]:
    known = 0 if model.components_fixed is None else len(model.components_fixed)
    return known, 0 if model.guides is None else len(model.guides)


def _check_known(model: KLNMF, merges: Sequence[tuple[int, ...]], splits: Sequence[int]) -> None:
    known, guided = _count_known(model)
    fixed = next((k for k in (*(k for g in merges for k in g), *splits) if k < known), None)
    if fixed is not None:
        raise ValueError(
            f"`merge` and `split` cannot change component {fixed}, one of `components_fixed`: drop "
            "it, or fit without it."
        )
    both = next((g for g in merges if sum(k < known + guided for k in g) > 1), None)
    if both is not None:
        raise ValueError(f"`merge` cannot join {both}, which have a guide each: drop one of them.")


def _component_names(model: KLNMF, names: Sequence[str] | None) -> list[str]:
    rank = len(model.components_)
    if names is not None:
        if len(names) != rank:
            raise ValueError(
                f"`names` must have one name for each of the {rank} components, got {len(names)}."
            )
        return list(map(str, names))
    labels = [f"component {k + 1}" for k in range(rank)]
    for k, row in enumerate(getattr(model.components_fixed, "index", ())):
        labels[k] = row if isinstance(row, str) else labels[k]
    for guide in getattr(model, "guides_", ()):
        labels[guide.component] = guide.name
    return labels


def _rows(table: Any, rows: Sequence[int]) -> Any:
    if hasattr(table, "iloc"):
        return table.iloc[list(rows)]
    return np.asarray(table)[list(rows)]


def _guide_rows(guides: Any, rows: Sequence[int]) -> Any:
    if isinstance(guides, Mapping):
        names = list(guides)
        return {names[k]: guides[names[k]] for k in rows}
    return _rows(guides, rows)
