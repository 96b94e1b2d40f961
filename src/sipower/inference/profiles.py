# SPDX-License-Identifier: BSD-3-Clause
"""`Profiles`: components with their names and those of their features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from sipower._files import quote
from sipower.data.containers import as_frame
from sipower.data.names import Items, Names, as_names, axis_labels, plain_form
from sipower.data.validate import as_matrix
from sipower.estimators import KLNMF
from sipower.estimators.component_names import known_names

__all__ = ["Profiles", "as_profiles"]


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

    def items(self, argument: str, given: Any) -> Items:
        """Return the features as one side that is matched; `given` is the value of `argument`."""
        title, form = f"`{argument}`", plain_form(argument, given)
        named = f"{title} as a DataFrame"
        count = self.values.shape[1]
        return Items("feature", count, self.features, None, title, named, form)


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
        rows, features = axis_labels(as_frame(H)) or (None, None)
        names = None if rows is None else [row if isinstance(row, str) else None for row in rows]
    matrix = _as_array(argument, values)
    own = names or [None] * len(matrix)
    labels = [f"component {k}" if name is None else name for k, name in enumerate(own, 1)]
    repeated = next((label for label, uses in Counter(labels).items() if uses > 1), None)
    if repeated is not None:
        raise ValueError(f"`{argument}` has the component {quote(repeated)} more than once.")
    sums = matrix.sum(axis=1)
    if not (sums > 0).all():
        at = int(np.argmin(sums > 0))
        raise ValueError(f"`{argument}`: {labels[at]!r} is zero; leave it out.")
    return Profiles(matrix / sums[:, None], tuple(labels), as_names(features))


def _as_array(argument: str, values: Any) -> NDArray[np.float64]:
    try:
        matrix = as_matrix(values, dtype=np.float64)
    except ValueError as problem:
        raise ValueError(f"`{argument}`: {problem}") from None
    except TypeError as problem:
        raise TypeError(f"`{argument}`: {problem}") from None
    dense = matrix.array if matrix.dense else matrix.array.toarray()
    return np.asarray(dense, np.float64)
