# SPDX-License-Identifier: BSD-3-Clause
"""Replicates of a fit of data that only the workers of a Dask cluster hold."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any

from sipower.estimators import KLNMF
from sipower.estimators.fingerprints import fingerprints
from sipower.selection.medoid import fit_replicate
from sipower.selection.replicates import first_seed
from sipower.selection.saved_fits import SavedFits

__all__ = ["check_cluster_model", "check_local_model", "fit_on_workers"]


def check_cluster_model(model: Any, **unsupported: Any) -> None:
    """Check that a model is `sipower.dask.KLNMF`, and that no unsupported argument is given."""
    if not hasattr(model, "load"):
        raise TypeError(
            f"`model` must be a sipower.KLNMF or a sipower.dask.KLNMF, got a "
            f"{type(model).__name__}."
        )
    for name, value in unsupported.items():
        if value is not None:
            raise ValueError(
                f"`{name}` must be None with a model of `sipower.dask`: leave it out, or use "
                "sipower.KLNMF with data in memory or on disk."
            )


def check_local_model(model: Any) -> KLNMF:
    """Return the model unless it is one of `sipower.dask`, which cannot hold out counts."""
    if not isinstance(model, KLNMF):
        raise TypeError(
            f"`model` must be a sipower.KLNMF to choose a rank, got {type(model).__module__}."
            f"{type(model).__name__}: use a sample of the rows in memory."
        )
    return model


def fit_on_workers(
    X: Any,
    model: Any,
    observed: dict[str, Any],
    replicates: int,
    folder: str | PathLike[str] | None,
    on_fit: Callable[[int, int], object] | None,
) -> tuple[list[dict[str, Any]], float]:
    """Load X once, fit the replicates one after another, and return them and the sum of X.

    Parameters
    ----------
    X, model
        Data for a model of `sipower.dask`, whose workers work together on every fit.
    observed
        Arguments of `fit`.
    replicates, folder, on_fit
        As in `consensus`.
    """
    seed, settings = first_seed(model, replicates), model.get_params(deep=False)
    loaded = model.load(X, **observed)
    rows, (n, m) = loaded.rows, loaded.rows.shape
    task = {"task": "consensus", "model": settings | {"client": None, "on_round": None}}
    if folder is not None:
        labels = fingerprints({"batch": observed.get("batch")})
        task |= {"data": rows.sha256, "observed": rows.digest or ""} | labels
    saved, fits = SavedFits(folder, task), []
    for r in range(replicates):
        name = f"replicate-{r:03d}"
        piece = saved.load(name, W=(n, -1), H=(-1, m), numbers=(2,), status=())
        if piece is None:
            # Not a clone, which would copy the client.
            own = type(model)(**settings | {"random_state": seed + r, "checkpoint": None})
            piece = fit_replicate(own, loaded, {})
            saved.save(name, piece)
        fits.append(piece)
        if on_fit is not None:
            on_fit(r + 1, replicates)
    return fits, rows.total
