# SPDX-License-Identifier: BSD-3-Clause
"""`consensus`: the same fit from many starts, and how stable its components are."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower.data.plausibility import warn_about_values
from sipower.data.validate import as_matrix
from sipower.estimators import KLNMF
from sipower.estimators.fingerprints import fingerprints
from sipower.estimators.missing import without_missing
from sipower.estimators.observation import as_given, as_observation
from sipower.selection.matching import match
from sipower.selection.outcome import Consensus
from sipower.selection.replicates import Replicates, first_seed
from sipower.selection.saved_fits import SavedFits

MAX_EXCESS = 0.02  # a replicate whose divergence is further above the lowest is worse
MAX_SPREADS = 5.0  # likewise, in units of the lower quartile's distance from the lowest
NEGLIGIBLE = 1e-4  # nats per count
NEAREST = 0.3  # share of the other replicates, the most similar ones, that distance is taken to
MAX_DISTANCE = 0.3  # of unit vectors: a mean cosine of 0.955
MIN_FOR_DISTANCE = 4  # replicates


def consensus(  # noqa: PLR0913 - the public entry point
    V: Any,
    model: KLNMF,
    *,
    replicates: int = 20,
    folder: str | PathLike[str] | None = None,
    on_fit: Callable[[int, int], object] | None = None,
    client: Any = None,
    drop_outliers: bool = True,
    **observed: Any,
) -> Consensus:
    """Fit from several starts, match the components, and return the most central replicate.

    Replicates that ended in a clearly worse local minimum, and those that are unlike all others,
    are dropped first; `Consensus.outliers` and `Consensus.summary` say which and why.

    Parameters
    ----------
    V
        Data (samples, features): anything `KLNMF` accepts.
    model
        Rank, solver, tolerance, limits, threads; replicate r has the seed `random_state` + r.
    replicates
        Number of fits.
    folder
        Folder in which finished fits are saved. After an interruption, the same call continues
        from there and gives the same bits.
    on_fit
        Called with the number of finished fits and the total number of fits.
    client
        A client of Dask's `distributed`: the fits then run on its workers and give the same bits.
    drop_outliers
        Whether to drop replicates. A replicate is worse if its divergence is above the lowest by
        more than 2 %, 1e-4 nats per count and 5 times the distance of the lower quartile. It is
        far if its mean distance √(2 − 2 cosine) to the nearest 30 % of the others, as in cNMF's
        density filter, is more than 0.3 and more than twice the median.
    **observed
        Arguments of `KLNMF.fit` that say how the data were observed: sample_weight,
        feature_weight, weights, mask, offsets, batch.

    Returns
    -------
    Consensus
        Factors of the medoid, stability of its components, similarity of the replicates.

    Examples
    --------
    >>> from sipower import KLNMF, consensus
    >>> from sipower.datasets import poisson_topics
    >>> V = poisson_topics(200, 150, 4, length=200, seed=0)
    >>> found = consensus(V, KLNMF(4, random_state=0), replicates=5)
    >>> found.stability.shape
    (4,)
    """
    V, observed = without_missing(model, V, observed)
    seed, data = first_seed(model, replicates), as_matrix(V, dtype=model.dtype, n_jobs=1)
    warn_about_values(V, data)
    as_observation(data.shape, as_given(observed))
    settings = model.get_params() | {"n_jobs": None, "on_round": None}
    hashed = data.sha256 if folder else ""
    task = {"task": "consensus", "data": hashed, "model": settings}
    saved = SavedFits(folder, task | ({"observed": fingerprints(observed)} if observed else {}))
    replicas = Replicates(model, on_fit, replicates, client)
    shared = replicas.scatter(data)

    def replicate(r: int) -> dict[str, Any]:
        name = f"replicate-{r:03d}"
        n, m = data.shape
        piece = saved.load(name, W=(n, -1), H=(-1, m), numbers=(2,), status=())
        if piece is None:
            own_model = replicas.model_for_one_thread(random_state=seed + r)
            piece = replicas.compute(_fit, own_model, shared, observed)
            saved.save(name, piece)
        replicas.count_finished(1)
        return piece

    fits = replicas.run(replicate, replicates)
    return _choose(fits, data.total if drop_outliers else None)


def _fit(model: KLNMF, V: Any, observed: dict[str, Any]) -> dict[str, Any]:
    """Fit a model and return the arrays to save."""
    W = model.fit_transform(V, **observed)
    numbers = np.array([model.kl_divergence_, model.kkt_residual_])
    piece = {"W": W, "H": model.components_, "numbers": numbers, "status": np.array(model.status_)}
    effects = getattr(model, "batch_effects_", None)
    return piece if effects is None else piece | {"batch_effects": effects}


def _choose(fits: list[dict[str, Any]], total: float | None) -> Consensus:
    """Return the medoid of the fits; `total`, the sum of the data, is None if all are kept."""
    count, rank = len(fits), len(fits[0]["H"])
    partners = np.ones((count, count, rank))  # [a, b, k]: component k of a and its partner in b
    for a in range(count):
        for b in range(a + 1, count):
            other, cosine = match(fits[a]["H"], fits[b]["H"])
            partners[a, b] = cosine
            partners[b, a, other] = cosine
    similarity: NDArray[np.float64] = partners.mean(axis=2)
    divergences, gaps = np.stack([piece["numbers"] for piece in fits], axis=1)
    outliers = ("",) * count
    if total is not None:
        outliers = _find_outliers(divergences, similarity, total)
    kept = np.array([not reason for reason in outliers])
    # The replicate nearest to all others; among equals, the one with the lowest divergence.
    centrality = np.where(kept, similarity[:, kept].sum(axis=1), -np.inf)
    medoid = int(np.lexsort((divergences, -centrality))[0])
    is_other = kept & (np.arange(count) != medoid)
    stability = np.full(rank, np.nan)
    if is_other.any():
        stability = partners[medoid, is_other].mean(axis=0)
    W, H = fits[medoid]["W"], fits[medoid]["H"]
    statuses = tuple(str(piece["status"]) for piece in fits)
    effects = fits[medoid].get("batch_effects")
    return Consensus(
        W, H, medoid, stability, similarity, divergences, gaps, statuses, outliers, effects
    )


def _find_outliers(
    divergences: NDArray[np.float64],
    similarity: NDArray[np.float64],
    total: float,
) -> tuple[str, ...]:
    """Return "worse", "far" or "" for each replicate; `total` is the sum of the data."""
    count, lowest = len(divergences), float(divergences.min())
    spread = float(np.quantile(divergences, 0.25)) - lowest  # of the better fits
    is_worse = divergences - lowest > max(
        MAX_EXCESS * lowest, MAX_SPREADS * spread, NEGLIGIBLE * total
    )
    is_far = np.zeros(count, bool)
    if count >= MIN_FOR_DISTANCE:
        nearest = max(1, round(NEAREST * (count - 1)))
        others = similarity - 2 * np.eye(count)  # a replicate is not its own neighbour
        closest = np.sort(others, axis=1)[:, -nearest:].mean(axis=1)
        distance = np.sqrt(np.maximum(2 - 2 * closest, 0))
        is_far = distance > max(MAX_DISTANCE, 2 * float(np.median(distance)))
        is_far &= divergences > lowest  # one fit is always kept
    pairs = zip(is_worse, is_far, strict=True)
    return tuple("worse" if worse else "far" if far else "" for worse, far in pairs)
