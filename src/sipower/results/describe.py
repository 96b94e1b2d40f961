# SPDX-License-Identifier: BSD-3-Clause
"""Descriptions of factors that do not depend on their scale or order.

V ≈ W H is read as a probability model: a count belongs to component k with probability size_k, and
then to feature f with probability profile_kf. Components are numbered from 1 in decreasing order of
size, whatever their order in the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.cluster import hierarchy

from sipower.inference import TopicQuality
from sipower.inference.quality import frex_scores, rate_factors
from sipower.kernels import Array
from sipower.results.as_run import RunLike, RunParts, as_run
from sipower.results.names import Exclude, is_excluded, readable
from sipower.results.normalisation import divide, explained_counts, to_profiles, to_shares
from sipower.results.run import Names, Run
from sipower.results.run_coherence import recorded_coherence
from sipower.selection.coherence import Coherence

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
NAME_LENGTH = 40
MAX_LISTED, MAX_COMPONENTS = 5, 20  # features of a component, and components, in `repr`


@dataclass(frozen=True, eq=False, repr=False)
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
    coherence
        Coherence of the components; None if the counts were not available.
    """

    order: Indices
    sizes: Numbers
    profiles: Numbers
    overall: Numbers
    memberships: Numbers
    features: Names
    components: Names
    coherence: Coherence | None = None

    @cached_property
    def quality(self) -> TopicQuality | None:
        """Coherence, exclusivity and diversity; None if the counts were not available."""
        if self.coherence is None:
            return None
        factors, labels = (self.memberships, self.profiles), (self.components, self.features)
        return rate_factors(*factors, self.coherence, components=labels[0], features=labels[1])

    def __repr__(self) -> str:
        """Return a line for each component: its size, its quality if known, and features."""
        (n, K), m = self.memberships.shape, len(self.overall)
        lines = [f"Description of {K} components, {n:,} samples, {m:,} features"]
        quality = self.quality
        for k, names in enumerate(self.top_features(MAX_LISTED)[:MAX_COMPONENTS]):
            measures = [f"{self.sizes[k]:.1%} of the counts"]
            if quality is not None:
                measures += [f"NPMI {quality.npmi[k]:.2f}"]
                measures += [f"exclusivity {quality.exclusivity[k]:.2f}"]
            listed = ", ".join(readable(name, NAME_LENGTH) for name in names)
            lines.append(f"  {self.components[k]}: {', '.join(measures)}; {listed}")
        more = [f"  and {K - MAX_COMPONENTS} more components"] if K > MAX_COMPONENTS else []
        return "\n".join(lines + more)

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

        A feature that is frequent in every component, such as a housekeeping gene, has a low
        exclusivity, and one that hardly occurs has a low frequency; see `frex_scores`.
        """
        return frex_scores(self.profiles)

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
    samples the order may differ, and a warning says that W is not that of the fit. With `V` a
    warning says if W H does not belong to it.

    Parameters
    ----------
    run
        A run; a fitted `KLNMF` or another model of W H, which needs `W`; scikit-learn's
        LatentDirichletAllocation, which needs `W` and `V`, because its weights are shares; an
        AnnData object after `sipower.tl.nmf`; or the array W, (samples, K), with the array `H`.
    H
        (K, features), if `run` is the array W.
    **parts
        ``W``, the result of `fit_transform`; ``features``, their names; ``key``, the name of the
        results in an AnnData object; ``V``, the counts, for the coherence of the components.

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
    found = recorded_coherence(run)
    return Description(run.order, sizes, profiles, overall, shares, *names, coherence=found)


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
