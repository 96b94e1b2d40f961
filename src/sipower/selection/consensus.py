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
from sipower.selection.matching import match
from sipower.selection.outcome import Consensus
from sipower.selection.replicates import Replicates, first_seed
from sipower.selection.saved_fits import SavedFits


def consensus(
    V: Any,
    model: KLNMF,
    *,
    replicates: int = 20,
    folder: str | PathLike[str] | None = None,
    on_fit: Callable[[int, int], object] | None = None,
    client: Any = None,
) -> Consensus:
    """Fit from several starts, match the components, and return the most central replicate.

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
    seed, data = first_seed(model, replicates), as_matrix(V, dtype=model.dtype, n_jobs=1)
    warn_about_values(V, data)
    settings = model.get_params() | {"n_jobs": None, "on_round": None}
    hashed = data.sha256 if folder else ""
    saved = SavedFits(folder, {"task": "consensus", "data": hashed, "model": settings})
    replicas = Replicates(model, on_fit, replicates, client)
    shared = replicas.scatter(data)

    def replicate(r: int) -> dict[str, Any]:
        name = f"replicate-{r:03d}"
        n, m = data.shape
        piece = saved.load(name, W=(n, -1), H=(-1, m), numbers=(2,), status=())
        if piece is None:
            own_model = replicas.model_for_one_thread(random_state=seed + r)
            piece = replicas.compute(_fit, own_model, shared)
            saved.save(name, piece)
        replicas.count_finished(1)
        return piece

    return _medoid(replicas.run(replicate, replicates))


def _fit(model: KLNMF, V: Any) -> dict[str, Any]:
    """Fit a model and return the arrays to save."""
    W = model.fit_transform(V)
    numbers = np.array([model.kl_divergence_, model.kkt_residual_])
    return {"W": W, "H": model.components_, "numbers": numbers, "status": np.array(model.status_)}


def _medoid(fits: list[dict[str, Any]]) -> Consensus:
    count, rank = len(fits), len(fits[0]["H"])
    partners = np.ones((count, count, rank))  # [a, b, k]: component k of a and its partner in b
    for a in range(count):
        for b in range(a + 1, count):
            other, cosine = match(fits[a]["H"], fits[b]["H"])
            partners[a, b] = cosine
            partners[b, a, other] = cosine
    similarity: NDArray[np.float64] = partners.mean(axis=2)
    divergences, gaps = np.stack([piece["numbers"] for piece in fits], axis=1)
    # The replicate nearest to all others; among equals, the one with the lowest divergence.
    medoid = int(np.lexsort((divergences, -similarity.sum(axis=1)))[0])
    is_other = np.arange(count) != medoid
    stability = partners[medoid, is_other].mean(axis=0) if count > 1 else np.full(rank, np.nan)
    W, H = fits[medoid]["W"], fits[medoid]["H"]
    statuses = tuple(str(piece["status"]) for piece in fits)
    return Consensus(W, H, medoid, stability, similarity, divergences, gaps, statuses)
