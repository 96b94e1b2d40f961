# SPDX-License-Identifier: BSD-3-Clause
"""`Profiles`: components with names, and matching of their features by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from sipower._files import shorten
from sipower.data.containers import frame_names
from sipower.data.validate import as_matrix
from sipower.estimators import KLNMF
from sipower.estimators.component_names import known_names

__all__ = ["Matching", "Profiles", "as_profiles", "match_features", "text_names"]

Names = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Profiles:
    """Components as probabilities of the features, with names.

    Parameters
    ----------
    values
        Components, (K, m); every row sums to 1.
    names
        Names of the components, (K,).
    features
        Names of the features, (m,); None: none.
    """

    values: NDArray[np.float64]
    names: Names
    features: Names | None = None


class Matching(NamedTuple):
    """The features that two tables share.

    Attributes
    ----------
    first, second
        Positions of the shared features in each table.
    is_same
        Whether both tables have the same features in the same order.
    """

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    is_same: bool


def as_profiles(argument: str, H: Any) -> Profiles:
    """Return components from an array, a data frame, a fitted model or a run.

    Parameters
    ----------
    argument
        Name of the argument, for messages.
    H
        Components (K, m): an array, a data frame with a row for each component, a fitted `KLNMF`,
        or an object with components H, such as a `Run` or a `Consensus`.
    """
    if isinstance(H, Profiles):
        return H
    names: Sequence[str | None] | None
    if isinstance(H, KLNMF):
        check_is_fitted(H)
        values, features = H.components_, getattr(H, "feature_names_in_", None)
        names = known_names(H, len(values))
    elif hasattr(H, "H") and hasattr(H, "W"):
        values, features = H.H, getattr(H, "features", None)
        names = H.component_labels() if hasattr(H, "component_labels") else None
    else:
        values = H
        rows, features = frame_names(H)
        names = None if rows is None else [row if isinstance(row, str) else None for row in rows]
    matrix = _as_array(argument, values)
    own = names or [None] * len(matrix)
    labels = [f"component {k}" if name is None else name for k, name in enumerate(own, 1)]
    _check_unique(argument, "component", labels)
    sums = matrix.sum(axis=1)
    if not (sums > 0).all():
        at = int(np.argmin(sums > 0))
        raise ValueError(f"`{argument}`: {labels[at]!r} is zero; leave it out.")
    return Profiles(matrix / sums[:, None], tuple(labels), text_names(features))


def _as_array(argument: str, values: Any) -> NDArray[np.float64]:
    try:
        matrix = as_matrix(values, dtype=np.float64)
    except ValueError as problem:
        raise ValueError(f"`{argument}`: {problem}") from None
    except TypeError as problem:
        raise TypeError(f"`{argument}`: {problem}") from None
    dense = matrix.array if matrix.dense else matrix.array.toarray()
    return np.asarray(dense, np.float64)


def text_names(names: Any) -> Names | None:
    """Return names as texts; None if they are numbers, as those of an unnamed data frame."""
    if names is None or not all(isinstance(name, str) for name in names):
        return None
    return tuple(map(str, names))


def match_features(
    arguments: tuple[str, str], first: tuple[int, Any], second: tuple[int, Any]
) -> Matching:
    """Match features by name or, if one side has no names, by their order.

    Parameters
    ----------
    arguments
        Names of the two arguments, for messages.
    first, second
        Number of the features of each, and their names or None.
    """
    (size, names), (other_size, others) = first, second
    if names is None or others is None or names == others:
        if size != other_size:
            raise ValueError(
                f"`{arguments[1]}` must have the {size} features of `{arguments[0]}`, got "
                f"{other_size}: give both names, as data frames, to match features by name."
            )
        same = np.arange(size)
        return Matching(same, same, True)
    for argument, each in zip(arguments, (names, others), strict=True):
        _check_unique(argument, "feature", each)
    places = {name: at for at, name in enumerate(others)}
    shared = [at for at, name in enumerate(names) if name in places]
    if not shared:
        raise ValueError(
            f"No feature of `{arguments[0]}`, such as {shorten(names[0])!r}, is in "
            f"`{arguments[1]}`, whose features are like {shorten(others[0])!r}: use the same names."
        )
    positions = np.array([places[names[at]] for at in shared])
    return Matching(np.array(shared), positions, False)


def _check_unique(argument: str, kind: str, names: Sequence[str]) -> None:
    repeated = next((name for name, uses in Counter(names).items() if uses > 1), None)
    if repeated is not None:
        raise ValueError(f"`{argument}` has the {kind} {shorten(repeated)!r} more than once.")
