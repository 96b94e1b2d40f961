# SPDX-License-Identifier: BSD-3-Clause
"""`compare`: which components are in a catalogue, which are mixtures of its entries, which are new.

Components are compared by the cosine of their profiles. A component that no entry resembles may be
a mixture of two or three of them, as when a fit has too few components: the best mixture minimises
the KL divergence, and entries are dropped one by one, the smallest first, until three are left.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from sipower.data.names import Matching, match_names
from sipower.inference.profiles import Profiles, as_profiles
from sipower.inference.supports import ExposureProblem
from sipower.selection.matching import cosines

__all__ = ["CatalogueComparison", "compare"]

Float = NDArray[np.float64]
MIN_MIXTURE = 0.95  # cosine of a component with a mixture that is reported
MAX_PARTS = 3  # entries in a mixture


@dataclass(frozen=True, eq=False, kw_only=True)
class CatalogueComparison:
    """The components of a fit and the entries of a catalogue that they resemble.

    Attributes
    ----------
    names : tuple of str
        What each component is called: the entry that it is matched with; its best entry with a
        number, such as "SBS5 (2)", if that one is matched with another component; the entries of a
        mixture; or "new 1" and so on.
    cosines : ndarray of shape (components, entries)
        Cosines of all pairs.
    partners : ndarray of shape (components,)
        Entry of the one-to-one matching with the largest sum of cosines, among the pairs whose
        cosine is at least the threshold; -1: none.
    best : ndarray of shape (components,)
        Entry with the largest cosine.
    is_new : ndarray of bool, (components,)
        Whether no entry and no mixture of entries resembles the component.
    mixtures : tuple of dict
        Shares of the entries in a mixture that resembles the component better than any single
        entry, by name; empty: there is none.
    mixture_cosines : ndarray of shape (components,)
        Cosines of the components with their mixtures; 0: there is none.
    components, catalogue : tuple of str
        Names of the components and of the entries.
    threshold : float
        The argument of `compare`.
    """

    names: tuple[str, ...]
    cosines: Float
    partners: NDArray[np.int64]
    best: NDArray[np.int64]
    is_new: NDArray[np.bool_]
    mixtures: tuple[dict[str, float], ...]
    mixture_cosines: Float
    components: tuple[str, ...]
    catalogue: tuple[str, ...]
    threshold: float

    @property
    def best_cosines(self) -> Float:
        """The largest cosine of every component, (components,)."""
        return np.asarray(self.cosines.max(axis=1))

    @property
    def partner_cosines(self) -> Float:
        """The cosine of every component with its partner, (components,); 0: it has none."""
        own = self.cosines[np.arange(len(self.best)), self.partners]
        return np.where(self.partners >= 0, own, 0.0)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each component."""
        import pandas as pd  # noqa: PLC0415 - an optional dependency

        entries = np.array([*self.catalogue, ""], dtype=object)
        columns = {
            "name": self.names,
            "best": entries[self.best],
            "best_cosine": self.best_cosines,
            "partner": entries[self.partners],
            "partner_cosine": self.partner_cosines,
            "mixture": [_mixture_text(mixture) for mixture in self.mixtures],
            "mixture_cosine": self.mixture_cosines,
            "is_new": self.is_new,
        }
        return pd.DataFrame(columns, pd.Index(self.components, name="component"))

    def __repr__(self) -> str:
        lines = [
            f"Comparison of {len(self.components)} components with {len(self.catalogue)} entries: "
            f"{int(self.is_new.sum())} new."
        ]
        for k, (component, name) in enumerate(zip(self.components, self.names, strict=True)):
            best = f"best {self.catalogue[self.best[k]]}, cosine {self.best_cosines[k]:.3f}"
            mixture = _mixture_text(self.mixtures[k])
            if mixture:
                best += f"; mixture {mixture}, cosine {self.mixture_cosines[k]:.3f}"
            lines.append(f"  {component}: {name} ({best})")
        return "\n".join(lines)


def compare(H: Any, catalogue: Any, *, threshold: float = 0.8) -> CatalogueComparison:
    """Compare components with a catalogue, and name them.

    Parameters
    ----------
    H
        Components, (K, n_features): an array, a data frame with a row for each component, a fitted
        `KLNMF`, or a run.
    catalogue
        Known components, given in the same ways. Features are matched by name if both sides have
        names; those that only one side has are left out, with a warning. Without names on either
        side the order counts. Names on one side only are refused.
    threshold
        Smallest cosine at which a component resembles an entry.

    Returns
    -------
    CatalogueComparison
        Cosines, the one-to-one matching, mixtures of entries and names.

    Warns
    -----
    UserWarning
        If features are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from sipower import compare
    >>> known = np.random.default_rng(0).dirichlet(np.full(96, 0.2), 9)
    >>> H = [known[4], 0.5 * known[1] + 0.5 * known[7]]
    >>> compare(H, known).names
    ('component 5', 'component 2 + component 8')
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"`threshold` must be above 0 and at most 1, got {threshold}.")
    own, known = as_profiles("H", H), as_profiles("catalogue", catalogue)
    matching = match_names(own.items("H", H), known.items("catalogue", catalogue))
    A, B = own.values[:, matching.first], known.values[:, matching.second]
    _warn_about_left_out(own, known, matching)
    table = cosines(A, B)
    partners = _match(table, threshold)
    best = np.asarray(table.argmax(axis=1), np.int64)
    mixtures, mixture_cosines = _find_mixtures(A, B, table.max(axis=1))
    named = [{known.names[k]: share for k, share in m.items()} for m in mixtures]
    names, is_new = _names(table, partners, known.names, named, threshold)
    return CatalogueComparison(
        names=names, cosines=table, partners=partners, best=best, is_new=is_new,
        mixtures=tuple(named), mixture_cosines=mixture_cosines, components=own.names,
        catalogue=known.names, threshold=threshold,
    )  # fmt: skip


def _match(table: Float, threshold: float) -> NDArray[np.int64]:
    """Match components and entries one to one; -1: no entry resembles the component."""
    close = np.where(table >= threshold, table, 0.0)
    rows, columns = linear_sum_assignment(close, maximize=True)
    partners = np.full(len(table), -1, np.int64)
    partners[rows] = np.where(close[rows, columns] > 0, columns, -1)
    return partners


def _warn_about_left_out(own: Profiles, known: Profiles, matching: Matching) -> None:
    shared = len(matching.first)
    for argument, profiles in (("H", own), ("catalogue", known)):
        count = profiles.values.shape[1] - shared
        if count:
            warnings.warn(
                f"`{argument}` has {count:,} features of its {shared + count:,} that the other "
                "side lacks: the profiles are compared without them.",
                UserWarning,
                stacklevel=3,
            )


def _find_mixtures(A: Float, B: Float, best: Float) -> tuple[list[dict[int, float]], Float]:
    """Return the shares of two or three entries that explain a component, and the cosines.

    The dictionary of a component is empty if one entry or no mixture explains it.
    """
    mixtures: list[dict[int, float]] = [{} for _ in A]
    reached = np.zeros(len(A))
    usable = np.flatnonzero(B.sum(axis=1) > 0)
    items = np.flatnonzero((best < MIN_MIXTURE) & (A.sum(axis=1) > 0))
    if len(usable) < 2 or not len(items):
        return mixtures, reached
    entries = B[usable]
    problem = ExposureProblem(np.ascontiguousarray(A[items] * entries.any(axis=0)), entries)
    samples = np.arange(len(items))
    w = problem.fit(samples, np.ones((len(items), len(usable)), bool))
    for parts in range(len(usable), 1, -1):
        rank = (-w).argsort(axis=1, kind="stable").argsort(axis=1)
        if parts < len(usable):
            w = problem.fit(samples, (rank < parts) & (w > 0))
        if parts > MAX_PARTS:
            continue
        cosine = np.diag(cosines(A[items], w @ entries))
        for i in np.flatnonzero((cosine >= MIN_MIXTURE) & ((w > 0).sum(axis=1) > 1)):
            order = np.argsort(-w[i], kind="stable")[: np.count_nonzero(w[i])]
            shares = w[i, order] / w[i].sum()
            mixtures[items[i]] = dict(zip(usable[order].tolist(), shares.tolist(), strict=True))
            reached[items[i]] = cosine[i]
    return mixtures, reached


def _names(
    table: Float,
    partners: NDArray[np.int64],
    known: tuple[str, ...],
    mixtures: list[dict[str, float]],
    threshold: float,
) -> tuple[tuple[str, ...], NDArray[np.bool_]]:
    """Return the names of the components, and which of them are new."""
    names: list[str] = [""] * len(table)
    is_new = np.zeros(len(table), bool)
    for k, partner in enumerate(partners):
        if partner >= 0:
            names[k] = known[partner]
    uses = dict.fromkeys(names, 1)
    for k, row in enumerate(table):
        if names[k]:
            continue
        if row.max() >= threshold:
            name = known[row.argmax()]
        elif mixtures[k]:
            name = " + ".join(mixtures[k])
        else:
            is_new[k] = True
            names[k] = f"new {int(is_new.sum())}"
            continue
        uses[name] = uses.get(name, 0) + 1
        names[k] = name if uses[name] == 1 else f"{name} ({uses[name]})"
    return tuple(names), is_new


def _mixture_text(mixture: dict[str, float]) -> str:
    return " + ".join(f"{share:.0%} {name}" for name, share in mixture.items())
