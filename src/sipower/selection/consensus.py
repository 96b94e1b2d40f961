# SPDX-License-Identifier: BSD-3-Clause
"""`consensus`: the same fit from many starts, and how stable its components are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from typing import Any, overload

from sipower.data.names import arrange, as_names, data_items
from sipower.data.plausibility import warn_about_values
from sipower.data.validate import as_matrix
from sipower.estimators import KLNMF
from sipower.estimators.fingerprints import fingerprints
from sipower.estimators.missing import without_missing
from sipower.estimators.observation import as_given, as_observation
from sipower.selection.grouped_data import Part, as_groups, split_groups
from sipower.selection.medoid import choose_medoid, fit_replicate
from sipower.selection.outcome import Consensus
from sipower.selection.programs import (
    MIN_COSINE,
    MIN_GROUPS,
    GroupConsensus,
    ProgramSettings,
    combine_groups,
)
from sipower.selection.replicates import Replicates, first_seed
from sipower.selection.saved_fits import SavedFits
from sipower.selection.stored_fits import fit_together
from sipower.selection.worker_fits import check_cluster_model, fit_on_workers


@overload
def consensus(
    V: Any,
    model: Any,
    *,
    groups: None = None,
    replicates: int = 20,
    folder: str | PathLike[str] | None = None,
    on_fit: Callable[[int, int], object] | None = None,
    client: Any = None,
    drop_outliers: bool = True,
    min_groups: int = MIN_GROUPS,
    min_cosine: float = MIN_COSINE,
    **observed: Any,
) -> Consensus: ...


@overload
def consensus(
    V: Any,
    model: Any,
    *,
    groups: Any,
    replicates: int = 20,
    folder: str | PathLike[str] | None = None,
    on_fit: Callable[[int, int], object] | None = None,
    client: Any = None,
    drop_outliers: bool = True,
    min_groups: int = MIN_GROUPS,
    min_cosine: float = MIN_COSINE,
    **observed: Any,
) -> GroupConsensus: ...


def consensus(  # noqa: PLR0913 - the public entry point
    V: Any,
    model: Any,
    *,
    groups: Any = None,
    replicates: int = 20,
    folder: str | PathLike[str] | None = None,
    on_fit: Callable[[int, int], object] | None = None,
    client: Any = None,
    drop_outliers: bool = True,
    min_groups: int = MIN_GROUPS,
    min_cosine: float = MIN_COSINE,
    **observed: Any,
) -> Consensus | GroupConsensus:
    """Fit from several starts, match the components, and return the most central replicate.

    Replicates that ended in a clearly worse local minimum, and those that are unlike all others,
    are dropped first; `Consensus.outliers` and `Consensus.summary` say which and why.

    With `groups`, this is done for every group of samples on its own. Components of different
    groups that are alike are then combined to shared programs, the others are programs of single
    groups, and a joint fit gives the profiles of the programs and their weights in all samples.

    Parameters
    ----------
    V
        Data (samples, features): anything that the model accepts. Fits of data on disk run
        together and read every window once for all of them.
    model
        A `KLNMF` with rank, solver, tolerance, limits, threads; replicate r has the seed
        `random_state` + r. With `groups`, the rank is that of each group. With a
        `sipower.dask.KLNMF`, V is loaded to its workers once, and they fit one replicate after
        another.
    groups
        Label of the group of every sample, such as a donor; None: no groups.
    replicates
        Number of fits, of each group if there are groups.
    folder
        Folder in which finished fits are saved. After an interruption, the same call continues
        from there and gives the same bits.
    on_fit
        Called with the number of finished fits and the total number of fits.
    client
        A client of Dask's `distributed`: the fits then run on its workers and give the same bits.
        Data on disk must have a path that every worker can open; the fits of a worker share reads.
    drop_outliers
        Whether to drop replicates. A replicate is worse if its divergence is above the lowest by
        more than 2 %, 1e-4 nats per count and 5 times the distance of the lower quartile. It is
        far if its mean distance √(2 − 2 cosine) to the nearest 30 % of the others, as in cNMF's
        density filter, is more than 0.3 and more than twice the median.
    min_groups
        Number of groups in which a shared program was found, at least.
    min_cosine
        Mean cosine of the profiles that are combined to a program, at least. Components whose
        stability in their group is smaller are left out.
    **observed
        Arguments of `KLNMF.fit` that say how the data were observed: sample_weight,
        feature_weight, weights, mask, offsets, batch.

    Returns
    -------
    Consensus or GroupConsensus
        Factors of the medoid, stability of its components, similarity of the replicates. With
        `groups`: factors of the joint fit, and in which groups each program was found.

    Examples
    --------
    >>> from sipower import KLNMF, consensus
    >>> from sipower.datasets import poisson_topics
    >>> V = poisson_topics(200, 150, 4, length=200, seed=0)
    >>> found = consensus(V, KLNMF(4, random_state=0), replicates=5)
    >>> found.stability.shape
    (4,)
    """
    if not isinstance(model, KLNMF):
        check_cluster_model(model, groups=groups, client=client)
        pieces, total = fit_on_workers(V, model, observed, replicates, folder, on_fit)
        return choose_medoid(pieces, total if drop_outliers else None)
    V, observed = without_missing(model, V, observed)
    seed, data = first_seed(model, replicates), as_matrix(V, dtype=model.dtype, n_jobs=1)
    warn_about_values(V, data)
    observation = as_observation(data.shape, as_given(observed))
    settings = model.get_params() | {"n_jobs": None, "on_round": None}
    task = {"task": "consensus", "data": data.sha256 if folder else "", "model": settings}
    task |= {"observed": fingerprints(observed)} if observed else {}
    parts, extra, labels = [Part("", data, observed)], 0, None
    if groups is not None:
        labels = as_groups(arrange("groups", groups, data_items(data)[0]), data)
        options = ProgramSettings(model, min_groups, min_cosine, len(set(labels.tolist())))
        parts, extra = split_groups(data, observation, labels), 1
        task |= options.task() | {"groups": fingerprints({"groups": labels})}
    saved = SavedFits(folder, task)
    replicas = Replicates(model, on_fit, replicates * len(parts) + extra, client)
    fits = _fit_parts(parts, replicas, saved, seed, replicates)
    results = [
        choose_medoid(pieces, part.data.total if drop_outliers else None)
        for part, pieces in zip(parts, fits, strict=True)
    ]
    names: dict[str, Any] = {
        "samples": as_names(data.row_names), "features": as_names(data.column_names)
    }  # fmt: skip
    if labels is None:
        return replace(results[0], **names)
    result = combine_groups(parts, results, options, (data, labels, observed), saved)
    replicas.count_finished(1)
    return replace(result, **names)


def _fit_parts(
    parts: list[Part], replicas: Replicates, saved: SavedFits, seed: int, replicates: int
) -> list[list[dict[str, Any]]]:
    """Return the fits of each part of the data; all of them run in parallel."""
    if replicas.client is not None and not parts[0].data.is_in_memory:
        return [_fit_store_on_workers(parts[0], replicas, saved, seed, replicates)]
    shared = [replicas.scatter(part.data) for part in parts]

    def fit(number: int) -> dict[str, Any]:
        at, r = divmod(number, replicates)
        piece = _load_fit(saved, parts[at], r)
        if piece is None:
            own_model = replicas.model_for_one_thread(random_state=seed + r)
            piece = replicas.compute(fit_replicate, own_model, shared[at], parts[at].observed)
            saved.save(_fit_name(parts[at], r), piece)
        replicas.count_finished(1)
        return piece

    fits = replicas.run(fit, len(parts) * replicates, parts[0].data)
    return [fits[at * replicates : (at + 1) * replicates] for at in range(len(parts))]


def _fit_store_on_workers(
    part: Part, replicas: Replicates, saved: SavedFits, seed: int, replicates: int
) -> list[dict[str, Any]]:
    """Return the fits of a store, which every worker opens; those of a worker share its reads."""
    fits = {r: _load_fit(saved, part, r) for r in range(replicates)}
    missing = [r for r, piece in fits.items() if piece is None]
    replicas.count_finished(replicates - len(missing))
    store, shares = part.data.__reduce__(), replicas.divide(missing)
    threads = replicas.client.nthreads()

    def fit(number: int) -> None:
        worker, own = shares[number]
        models = [replicas.model_for_one_thread(random_state=seed + r) for r in own]
        settings = threads[worker], len(threads)
        pieces = replicas.compute(
            fit_together, models, store, part.observed, *settings, worker=worker
        )
        for r, piece in zip(own, pieces, strict=True):
            fits[r] = piece
            saved.save(_fit_name(part, r), piece)
            replicas.count_finished(1)

    if shares:
        replicas.run(fit, len(shares))
    return [piece for piece in fits.values() if piece is not None]


def _fit_name(part: Part, r: int) -> str:
    return f"replicate-{r:03d}{part.suffix}"


def _load_fit(saved: SavedFits, part: Part, r: int) -> dict[str, Any] | None:
    n, m = part.data.shape
    return saved.load(_fit_name(part, r), W=(n, -1), H=(-1, m), numbers=(2,), status=())
