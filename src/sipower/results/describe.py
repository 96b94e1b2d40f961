# SPDX-License-Identifier: BSD-3-Clause
"""Descriptions of factors that do not depend on their scale or order.

V ≈ W H is read as a probability model: a count belongs to component k with probability size_k, and
then to feature f with probability profile_kf. Components are numbered from 1 in decreasing order of
size, whatever their order in the model.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.cluster import hierarchy
from scipy.stats import rankdata

from sipower.kernels import Array
from sipower.results.as_run import RunLike, RunParts, as_run
from sipower.results.normalisation import divide, explained_counts, to_profiles, to_shares
from sipower.results.run import Names, Run

__all__ = [
    "Description",
    "Exclude",
    "choose_evenly",
    "convergence",
    "correlations",
    "describe",
    "is_excluded",
    "largest",
    "order_by_similarity",
    "readable",
    "total",
]

Numbers = NDArray[np.float64]
Indices = NDArray[np.intp]
Exclude: TypeAlias = str | Sequence[str] | None  # a regular expression, or names

# Bidirectional control characters reorder the text around them, so one name could look like
# another.
DIRECTION_MARKS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


@dataclass(frozen=True, eq=False)
class Description:
    """The sizes, profiles and memberships of the components of a factorisation.

    Index 0 along every axis of components is component "1", the largest.

    Parameters
    ----------
    order
        Position of each component in the model: in the columns of its W and the rows of its
        `components_`, (K,).
    sizes
        Share of all counts that a component explains, (K,); they sum to 1.
    profiles
        p(feature | component), (K, features); zero for a component of size 0.
    overall
        p(feature), (features,): the average of the profiles, weighted by size.
    memberships
        Share of a sample's counts that a component explains, (samples, K); zero for a zero row.
    features
        Names of the features; their numbers from 1 if the data have none.
    components
        Names of the components, such as those of guides; numbers for those that have none.
    """

    order: Indices
    sizes: Numbers
    profiles: Numbers
    overall: Numbers
    memberships: Numbers
    features: Names
    components: Names

    def top_features(
        self, n: int = 10, *, by: str = "frex", exclude: Exclude = None
    ) -> list[list[str]]:
        """Return the names of the n highest-ranked features of each component.

        Parameters
        ----------
        n
            Largest number of features per component.
        by : {"frex", "probability", "lift", "information"}
            The score, see `scores`.
        exclude
            Features to leave out: a regular expression that is searched in the names, such as
            ``"^RP[LS]"``, or a list of names.
        """
        excluded = is_excluded(self.features, exclude)
        scores = np.where(excluded, 0, self.scores(by))
        return [[self.features[f] for f in largest(row, n)] for row in scores]

    def scores(self, by: str) -> Numbers:
        """Return a score of each feature in each component, (K, features).

        It is the probability, the `lift`, the `frex` score, or the information, which is
        `distinctiveness`.
        """
        if by not in ("frex", "probability", "lift", "information"):
            raise ValueError(f"`by` must be frex, probability, lift or information, got {by!r}.")
        if by == "probability":
            return self.profiles
        return {"frex": self.frex, "lift": self.lift, "information": self.distinctiveness}[by]()

    def frex(self) -> Numbers:
        """Return how frequent and how exclusive each feature is, from 0 to 1, (K, features).

        It is the harmonic mean of two ranks within the component, each divided by the number of
        features: of the probability, and of the exclusivity, the share of the component in the
        sum of the probabilities over the components (Bischof and Airoldi 2012, FREX with weight
        1/2). A feature that is frequent in every component, such as a housekeeping gene, has a low
        exclusivity, and one that hardly occurs has a low frequency.
        """
        occurs = self.overall > 0
        profiles = self.profiles[:, occurs]
        exclusivity = divide(profiles, profiles.sum(axis=0))
        frequency, exclusive = (
            rankdata(values, method="max", axis=1) / values.shape[1]
            for values in (profiles, exclusivity)
        )
        scores = np.zeros_like(self.profiles)
        scores[:, occurs] = np.where(profiles > 0, 2 / (1 / frequency + 1 / exclusive), 0)
        return scores

    def lift(self) -> Numbers:
        """Return p(feature | component) / p(feature), (K, features); 0 where both are 0."""
        return divide(self.profiles, self.overall)

    def distinctiveness(self) -> Numbers:
        """Return p(feature | component) · log2(lift), in bits, (K, features).

        It is large for features that are frequent in a component and less frequent elsewhere;
        the lift alone would rank the rarest features first. Each row sums to the KL divergence
        of the component's profile from the overall profile.
        """
        lift = self.lift()
        return self.profiles * np.log2(lift, where=lift > 0, out=np.zeros_like(lift))

    def leading_samples(self) -> Indices:
        """Return the number of samples in which each component is the largest, (K,)."""
        leaders = self.memberships.argmax(axis=1)[self.memberships.any(axis=1)]
        return np.bincount(leaders, minlength=len(self.sizes))


def describe(run: RunLike, H: Any = None, **parts: Unpack[RunParts]) -> Description:
    """Describe the factors of a fit as probabilities.

    The components of arrays and models are numbered by their size in the given W; with other
    samples the order may differ.

    Parameters
    ----------
    run
        A run; a fitted `KLNMF`, which needs `W`; an AnnData object after `sipower.tl.nmf`; or the
        array W, (samples, K), with the array `H`.
    H
        (K, features), if `run` is the array W.
    **parts
        ``W``, the result of `fit_transform`; ``features``, their names; ``key``, the name of the
        results in an AnnData object.

    Examples
    --------
    >>> import numpy as np
    >>> from sipower import describe
    >>> W, H = np.array([[3.0, 0.0], [0.0, 1.0]]), np.array([[0.5, 0.5], [0.0, 1.0]])
    >>> about = describe(W, H, features=["apples", "pears"])
    >>> about.sizes
    array([0.75, 0.25])
    >>> about.top_features(1)
    [['apples'], ['pears']]
    """
    run = as_run(run if H is None else (run, H), **parts)
    _check_factors(run)
    counts = explained_counts(run.W, run.H)
    if not counts.any():
        raise ValueError("`W` and `H` must have a positive product, got zero everywhere.")
    sizes = counts / counts.sum()
    profiles = np.where(sizes[:, np.newaxis] > 0, to_profiles(run.H.astype(np.float64)), 0)
    shares = to_shares(run.W.astype(np.float64), run.H)
    overall = sizes @ profiles
    names = run.feature_names(), run.component_labels(prefix="")
    return Description(run.order, sizes, profiles, overall, shares, *names)


def _check_factors(run: Run) -> None:
    """Raise an error with the place in the factors of the model, if a value is not valid."""
    for name, factor in (("W", run.W), ("H", run.H)):
        wrong = np.argwhere(~(np.isfinite(factor) & (factor >= 0)))
        if len(wrong):
            row, column = wrong[0]
            value = factor[row, column]
            if name == "W":
                column = run.order[column]
            else:
                row = run.order[row]
            raise ValueError(
                f"{name} has {value} in row {row}, column {column} (counted from 0): "
                "expected finite, non-negative values."
            )


def is_excluded(names: Sequence[str], exclude: Exclude) -> NDArray[np.bool_]:
    """Return for each name whether it matches a regular expression, or is in a list of names."""
    if exclude is None:
        return np.zeros(len(names), dtype=np.bool_)
    if not isinstance(exclude, str):
        listed = set(map(str, exclude))
        return np.array([name in listed for name in names], dtype=np.bool_)
    try:
        pattern = re.compile(exclude)
    except re.error as problem:
        raise ValueError(
            f"`exclude` must be a regular expression or a list, got {exclude!r}: {problem}."
        ) from None
    return np.array([pattern.search(name) is not None for name in names], dtype=np.bool_)


def convergence(run: Run) -> dict[str, Numbers]:
    """Return "seconds", "passes", "excess" and "gap" of the trace, with NaN if not evaluated.

    The excess is the objective minus its lowest value. Gap and excess are relative to the sum of
    the counts. At the lowest value the excess is NaN instead of 0, which has no logarithm.
    """
    seconds, passes, objective, gap = (
        np.array([getattr(record, name) for record in run.trace], dtype=np.float64)
        for name in ("seconds", "passes", "objective", "gap")
    )
    finite = objective[np.isfinite(objective)]
    excess = (objective - finite.min()) / total(run) if len(finite) else objective
    excess = np.where(excess > 0, excess, np.nan)
    return {"seconds": seconds, "passes": passes, "excess": excess, "gap": gap}


def total(run: Run) -> float:
    """Return the sum of the counts, or of W H if it is not recorded; both agree at the minimum."""
    recorded = (run.facts.get("input") or {}).get("total")
    if recorded:
        return float(recorded)
    return float(run.W.sum(axis=0, dtype=np.float64) @ run.H.sum(axis=1, dtype=np.float64))


def correlations(columns: Array) -> Numbers:
    """Return the Pearson correlations of the columns; NaN for a column that does not vary.

    Applied to the memberships, they show which components share samples; applied to the transposed
    profiles, which components share features.
    """
    centred: Numbers = columns - columns.mean(axis=0, dtype=np.float64)
    norms = np.linalg.norm(centred, axis=0)
    varies = norms > 1e-12 * np.linalg.norm(columns, axis=0)  # above rounding error
    scaled: Numbers = centred / np.where(varies, norms, np.nan)
    return (scaled.T @ scaled).clip(-1, 1)


def largest(values: Array, n: int) -> Indices:
    """Return the positions of the n largest positive values, the largest first."""
    order = np.argsort(-values, kind="stable")[:n]
    return order[values[order] > 0]


def choose_evenly(count: int, max_count: int) -> Indices:
    """Return at most `max_count` evenly spaced numbers of ``range(count)``, with both ends."""
    return np.linspace(0, count - 1, min(count, max_count)).round().astype(np.intp)


def order_by_similarity(memberships: Array) -> Indices:
    """Order samples by the leaves of Ward's clustering tree, so that similar ones are adjacent.

    The distance is the Hellinger distance, between square roots of probabilities. Time and memory
    grow with the square of the number of samples, so use a few thousand samples at most.
    """
    if len(memberships) < 3:
        return np.arange(len(memberships))
    tree: Any = hierarchy.linkage(np.sqrt(memberships), method="ward")
    return np.asarray(hierarchy.leaves_list(tree), dtype=np.intp)


def readable(name: str, max_length: int) -> str:
    """Return a name on one line, with symbols for unprintable characters, shortened with "…"."""
    text = "".join(map(_sign, name[:max_length]))
    return text if len(name) <= max_length else text[:-1] + "…"


def _sign(character: str) -> str:
    if character < " ":
        return chr(0x2400 + ord(character))  # Unicode's symbols for control characters
    hidden = unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
    return "\ufffd" if hidden or character in DIRECTION_MARKS else character
