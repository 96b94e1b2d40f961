# SPDX-License-Identifier: BSD-3-Clause
"""`rank_selection`: estimate how many components the data support.

Each replicate holds out counts, fits the largest rank from a random start and reaches the smaller
ranks one after another by merging components and fitting again. So every rank gets a good local
minimum; if each rank had its own random start, differences would often be due to luck.

Over-dispersed counts are split so that the held-out part is independent of the rest, with the
dispersions that a fit with the largest rank shows (see `estimators.dispersion` and `holdout`).
Otherwise the held-out error would fall with every component that follows the noise. The same
dispersions decide which components are merged: with the divergence of plain counts, components that
follow the noise of frequent features would outlast those that differ in many rare ones.
"""

from __future__ import annotations

import operator
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import combinations
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sipower.data.plausibility import warn_about_values
from sipower.estimators import KLNMF
from sipower.estimators.dispersion import estimate_dispersion
from sipower.estimators.fingerprints import fingerprints
from sipower.estimators.missing import without_missing
from sipower.estimators.observation import as_given, as_observation
from sipower.kernels import count_threads
from sipower.loop.solve import hide_inner_results
from sipower.selection.coherence import rank_coherence
from sipower.selection.guided import merge_free, place_guides
from sipower.selection.holdout import (
    GROUPS,
    Halved,
    Thinned,
    are_counts,
    halve,
    perplexities,
    thin,
)
from sipower.selection.matching import match
from sipower.selection.outcome import RankSelection
from sipower.selection.recommendation import explain, recommend, standard_errors
from sipower.selection.replicates import Replicates, first_seed
from sipower.selection.saved_fits import SavedFits
from sipower.selection.stored_rows import load_rows
from sipower.selection.worker_fits import check_local_model

Numbers = NDArray[np.float64]
FIRST_ROUNDS, NEXT_ROUNDS = 30, 10  # rounds from a random start, and after a merger


def rank_selection(
    V: Any,
    ranks: Iterable[int],
    model: KLNMF | None = None,
    *,
    replicates: int = 5,
    folder: str | PathLike[str] | None = None,
    on_fit: Callable[[int, int], object] | None = None,
    client: Any = None,
    **observed: Any,
) -> RankSelection:
    """Find the smallest number of components that predicts unseen counts as well as any other.

    "As well" means within one standard error. Counts that vary more than Poisson counts are split
    with their estimated dispersion, so that noise cannot be predicted.

    Parameters
    ----------
    V
        Data (samples, features): anything `KLNMF` accepts. Whole numbers are thinned; other data
        are split into blocks of rows and columns. Of data on disk with more than 20 million
        nonzeros, random rows with about so many are used.
    ranks
        Numbers of components to try.
    model
        Solver, tolerance, limits, seed and threads of the fits; by default
        ``KLNMF(init="random", tol=1e-2, random_state=0)``.
    replicates
        Number of independent splits of the data; stability needs two of them.
    folder
        Folder for finished fits; after an interruption, the same call continues from there.
    on_fit
        Called with the number of finished fits and the total number of fits.
    client
        A client of Dask's `distributed`: the fits then run on its workers and give the same bits.
    **observed
        Arguments of `KLNMF.fit` that say how the data were observed: sample_weight,
        feature_weight, weights, mask, offsets, batch.

    Returns
    -------
    RankSelection
        Errors, stability, coherence, diversity, perplexity, the recommended rank and the reason.

    Examples
    --------
    >>> from sipower import rank_selection
    >>> from sipower.datasets import poisson_topics
    >>> V = poisson_topics(200, 150, 4, length=200, seed=0)
    >>> rank_selection(V, range(1, 8), replicates=2).best
    4
    """
    sorted_ranks = _check_ranks(ranks, replicates)
    model = KLNMF(init="random", tol=1e-2, random_state=0) if model is None else model
    V, observed = without_missing(check_local_model(model), V, observed)
    seed = first_seed(model, replicates)
    data, observed, sampled = load_rows(V, model.dtype, observed, seed)
    warn_about_values(V, data)
    counts = are_counts(data)
    as_observation(data.shape, as_given(observed))
    if observed and not counts:
        raise ValueError(
            f"The data are not counts, so `{next(iter(observed))}` cannot be used to choose a "
            "rank: leave it out, or pass raw counts."
        )
    settings = model.get_params() | {"n_components": None, "n_jobs": None, "on_round": None}
    model, data, first = place_guides(model, data, sorted_ranks, counts)
    task = {"task": "rank selection", "data": data.sha256 if folder else "", "ranks": sorted_ranks}
    replicas = Replicates(model, on_fit, len(sorted_ranks) * replicates, client)
    task |= {"model": settings} | ({"observed": fingerprints(observed)} if observed else {})
    saved = SavedFits(folder, task)
    shared = replicas.scatter(data)
    with _ignore_fit_warnings():
        dispersion = np.zeros(data.shape[1])
        if counts:
            largest = replicas.model_for_one_thread(
                n_components=sorted_ranks[-1], random_state=seed
            )
            dispersion = _dispersion(largest, saved, replicas, shared, observed, data.shape[1])
        masses = np.asarray(data.array.sum(axis=0), np.float64)
        varies = bool(dispersion.any())
        weights = 1 / (1 + dispersion * masses / data.shape[0]) if varies else None

        def replicate(r: int) -> dict[str, Any]:
            if counts:
                split = replicas.submit(thin, shared, seed + r, dispersion)
            else:
                split = replicas.submit(halve, shared, seed + r)
            path = Path(sorted_ranks, seed + r, saved, replicas, observed, first, weights)
            return _fit_path(path, split, f"replicate-{r:03d}")

        paths = replicas.run(replicate, replicates)
    groups = np.stack([piece["errors"] for piece in paths], axis=1)  # (ranks, replicates, groups)
    features = [piece["features"] for piece in paths]
    profiles = [[piece[f"H{k}"] for piece in paths] for k in sorted_ranks]
    stability = np.array([_stability(H, features) for H in profiles])
    errors, standard_error = groups.sum(axis=2), standard_errors(groups)
    at = recommend(errors, standard_error)
    plain = counts and not observed
    return RankSelection(
        ranks=sorted_ranks,
        deviance=errors,
        stability=stability,
        best=sorted_ranks[at],
        reason=explain(sorted_ranks, errors.mean(axis=1), stability, at)
        + _remark(dispersion, masses)
        + sampled,
        method="thinning" if counts else "bi-cross-validation",
        standard_error=standard_error,
        dispersion=float(np.average(dispersion, weights=masses)),
        feature_dispersion=dispersion if counts else np.empty(0),
        still_falling=0 < at == len(sorted_ranks) - 1,
        perplexity=perplexities(data, errors, seed, dispersion) if plain else np.empty(0),
        **rank_coherence(data, profiles, features),
    )


def _remark(dispersion: Numbers, masses: Numbers) -> str:
    if not dispersion.any():
        return ""
    mean = f"{np.average(dispersion, weights=masses):.2g}"
    low, high = (f"{q:.2g}" for q in np.quantile(dispersion[masses > 0], [0.05, 0.95]))
    if low != high:
        mean += f" for the average count, {low} to {high} for nine of ten features"
    return (
        f" The counts vary more than Poisson counts (dispersion {mean}); the splits allow for that."
    )


def _dispersion(
    model: KLNMF,
    saved: SavedFits,
    replicas: Replicates,
    V: Any,
    observed: dict[str, Any],
    features: int,
) -> Numbers:
    """Return the dispersion of each feature, from the folder of saved fits if it is there.

    Folders of older versions have one dispersion for all features.
    """
    for shape in ((features,), ()):
        piece = saved.load("dispersion", dispersion=shape)
        if piece is not None:
            return np.broadcast_to(piece["dispersion"], features)
    dispersion = replicas.compute(estimate_dispersion, model, V, observed)
    saved.save("dispersion", {"dispersion": dispersion})
    return dispersion


@hide_inner_results()
def estimated_seconds(
    V: Any, ranks: Iterable[int], model: KLNMF | None = None, *, replicates: int = 5
) -> float:
    """Estimate how long `rank_selection` will take, from a few rounds at the largest rank.

    Examples
    --------
    >>> from sipower.selection import estimated_seconds
    >>> estimated_seconds([[3, 1], [2, 4], [5, 0]], [1, 2]) > 0
    True
    """
    sorted_ranks = _check_ranks(ranks, replicates)
    model = KLNMF(init="random", tol=1e-2, random_state=0) if model is None else model
    data = load_rows(V, model.dtype, {}, 0)[0]
    limits = {"max_iter": 3, "tol": 0.0, "n_jobs": 1, "random_state": 0}
    trial, started = clone(model), time.perf_counter()
    trial.set_params(n_components=sorted_ranks[-1], checkpoint=None, **limits)
    with _ignore_fit_warnings():
        trial.fit(data)
    seconds, in_rounds = time.perf_counter() - started, trial.trace_[-1].seconds
    per_round, overhead = in_rounds / max(trial.n_iter_, 1), seconds - in_rounds
    rounds = [NEXT_ROUNDS] * (len(sorted_ranks) - 1) + [FIRST_ROUNDS]
    fits = zip(sorted_ranks, rounds, strict=True)
    work = sum(k / sorted_ranks[-1] * (overhead + n * per_round) for k, n in fits)
    jobs = min(count_threads(model.n_jobs), replicates)
    first_fit = (
        overhead + FIRST_ROUNDS * per_round if are_counts(data) else 0.0
    )  # for the dispersion
    return float(work * -(-replicates // jobs) + first_fit)


@contextmanager
def _ignore_fit_warnings() -> Iterator[None]:
    """Ignore warnings of single fits in all threads, since the held-out error shows bad fits."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "No component has feature")
        warnings.filterwarnings("ignore", "`guides`: ")
        warnings.filterwarnings("ignore", ".*KL-NMF models counts")  # said of the whole data
        warnings.filterwarnings("ignore", "`n_components` is")
        yield


def _check_ranks(ranks: Iterable[int], replicates: int) -> tuple[int, ...]:
    sorted_ranks = tuple(sorted({operator.index(k) for k in ranks}))
    if not sorted_ranks or sorted_ranks[0] < 1:
        raise ValueError(f"`ranks` must be one or more positive integers, got {[*sorted_ranks]}.")
    if replicates < 1:
        raise ValueError(f"`replicates` must be a positive integer, got {replicates}.")
    return sorted_ranks


class Path(NamedTuple):
    """The fits of all ranks to one split of the data."""

    ranks: tuple[int, ...]
    seed: int
    saved: SavedFits
    replicas: Replicates
    observed: dict[str, Any]
    first: int  # the first component that is neither known nor guided
    weights: Numbers | None  # of features, for mergers; None: 1


def _fit_path(path: Path, split: Any, name: str) -> dict[str, Any]:
    """Fit all ranks to one split of the data, and return their errors and components.

    The fits go from the largest rank down. With a client, `split` is a future.
    """
    ranks, seed, saved, replicas, observed, first, weights = path
    shape = len(ranks), GROUPS
    piece = saved.load(name, W=(-1, -1), errors=shape, features=(-1,)) or {
        "errors": np.full(shape, np.nan),
    }
    done = sum(f"H{k}" in piece for k in ranks)
    replicas.count_finished(done)
    for at in range(len(ranks) - 1 - done, -1, -1):
        rank, start = ranks[at], {}
        model = replicas.model_for_one_thread(n_components=rank, random_state=seed)
        if "W" in piece:
            start = merge_free(piece["W"], piece[f"H{ranks[at + 1]}"], rank, first, weights)
            model.set_params(init="custom")
        result = replicas.compute(_fit_and_score, model, split, start, observed)
        piece["W"], piece[f"H{rank}"], piece["errors"][at], piece["features"] = result
        saved.save(name, piece)
        replicas.count_finished(1)
    return piece


@hide_inner_results()
def _fit_and_score(
    model: KLNMF, split: Thinned | Halved, start: dict[str, Any], observed: dict[str, Any]
) -> tuple[Any, ...]:
    """Return W, H and errors of one fit, and the features it has seen."""
    W = model.fit_transform(split.train, **start, **observed)
    return W, model.components_, split.errors(model, W, observed), split.features


def _stability(profiles: list[Any], features: list[Any]) -> float:
    """Return the mean cosine of matched components over pairs of replicates.

    The cosines are computed from the features that both replicates have.
    """
    cosines = []
    for a, b in combinations(range(len(profiles)), 2):
        both = np.intersect1d(features[a], features[b], assume_unique=True)
        places = (np.searchsorted(features[i], both) for i in (a, b))
        left, right = (profiles[i][:, at] for i, at in zip((a, b), places, strict=True))
        cosines.append(match(left, right)[1].mean())
    return float(np.mean(cosines)) if cosines else float("nan")
