# SPDX-License-Identifier: BSD-3-Clause
"""`bootstrap`: the same fit to resampled counts, and what that says about W and H.

Replicate r has the counts V*_ij ~ Poisson(V_ij), which vary around the data as Poisson data vary
around their means, and it is fitted from the factors of the model. The data themselves are fitted
first in the same way, so that a model that stopped early does not shift all replicates.

A fit stops at a certified gap, relative to the sum of the data. Noise lowers the divergence by
about half a nat for each of the K m parameters of H. A replicate is therefore fitted to a gap of at
most a tenth of K m/(2 ΣV): at a larger gap, the factors of the model would count as converged on
resampled data too, and the intervals would be too short.

Replicates start from the factors of the model and see the noise around them, but not the shift that
these factors share with all replicates. `exchange` says how far components may be shifted towards
each other, and the intervals are widened by as much.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from os import PathLike
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import as_matrix
from sipower.estimators import KLNMF
from sipower.estimators.fingerprints import fingerprint, fingerprints
from sipower.estimators.missing import hide_unobserved, without_missing
from sipower.estimators.observation import as_given, as_observation
from sipower.estimators.parameters import as_seed
from sipower.inference.exchange import find_exchange
from sipower.inference.intervals import Bootstrap, Interval, estimate_interval
from sipower.inference.resampled_fits import (
    ResampledFits,
    ignore_fit_warnings,
    replicate_name,
    to_counts,
)
from sipower.kernels import Array
from sipower.kernels.seeds import DEFAULT_SEED, RNG, choose_seed
from sipower.selection.replicates import Replicates
from sipower.selection.saved_fits import SavedFits

__all__ = ["bootstrap"]

NOISE_SHARE = 0.1  # of the decrease by noise that a replicate may be away from its minimum
MIN_TOL = {"float32": 1e-6, "float64": 1e-10}  # smaller gaps cost many rounds
MAX_SHIFT = 1.0  # of the components of the model, in standard deviations of a replicate
SAME = 0.8  # cosine of a component with its partner in a replicate, if it is the same one
CHANGED_SHARE = 0.05  # of the replicates in which a component may be another one
MAX_WIDENING = 1.5  # of the intervals of a profile, for components that can be exchanged
LARGEST_MEAN = 2.0**62


def bootstrap(  # noqa: PLR0913 - the public entry point
    V: Any,
    model: KLNMF,
    n: int = 50,
    *,
    random_state: Any = DEFAULT_SEED,
    rng: RNG = None,
    level: float = 0.95,
    n_jobs: int | None = None,
    folder: str | PathLike[str] | None = None,
    client: Any = None,
    on_replicate: Callable[[int, int], object] | None = None,
    **observed: Any,
) -> Bootstrap:
    """Fit a model to resampled counts, and return intervals of W and H and the stability of both.

    A replicate has the counts V* ~ Poisson(V), with the same zeros and more, and is fitted from the
    factors of the model with its solver and terms. Its components are matched to those of the
    model. The intervals are quantiles over the replicates, widened where the counts cannot tell a
    component from its mixtures with others (`exchange`, `widening`); a warning names components
    that this concerns most. They do not show other local minima, which `consensus` compares.

    Parameters
    ----------
    V
        Data (n_samples, n_features) that the model was fitted to, in memory. They should be
        counts. Other values are used as means of Poisson counts, so their unit matters: values
        that are scaled down have wider intervals.
    model
        A fitted model. `max_time`, `on_round` and `checkpoint` do not apply to replicates.
    n
        Number of replicates, at least 2. With fewer than 39, the ends of 95 % intervals are the
        smallest and the largest value of all replicates, and the true level is lower.
    random_state
        Seed of the counts. The result depends neither on the number of threads nor on the order in
        which replicates are fitted.
    rng
        Seed or NumPy generator, instead of `random_state`.
    level
        Level of the intervals, between 0 and 1.
    n_jobs
        Number of replicates that are fitted at a time; None: the `n_jobs` of the model.
    folder
        Folder in which finished replicates are saved. After an interruption, the same call
        continues from there and gives the same bits; a larger `n` adds replicates. None: a
        temporary folder.
    client
        A client of Dask's `distributed`: the fits then run on its workers and give the same bits.
    on_replicate
        Called with the number of finished replicates and n.
    **observed
        Arguments of `KLNMF.fit` that say how the data were observed: sample_weight,
        feature_weight, weights, mask, offsets, batch.

    Returns
    -------
    Bootstrap
        Intervals of the weights in counts and of the profiles, and stability of the components.

    Notes
    -----
    Each fit that runs needs up to three times the memory of V, for its own counts. The replicates
    are on disk, n times the size of W and H; quantiles are computed from parts of half a megabyte
    of each.

    Examples
    --------
    >>> from sipower import KLNMF, bootstrap
    >>> from sipower.datasets import poisson_topics
    >>> V = poisson_topics(200, 150, 4, length=200, seed=0)
    >>> model = KLNMF(4, random_state=0).fit(V)
    >>> found = bootstrap(V, model, n=20)
    >>> found.H.lower.shape, found.W.upper.shape
    ((4, 150), (200, 4))
    >>> bool(found.stability.min() > 0.9)
    True
    """
    _check_arguments(model, n, level)
    random_state = choose_seed(rng, "random_state", random_state)
    V, observed = without_missing(model, V, observed)
    if observed.get("mask") is not None:
        V = hide_unobserved(V, observed["mask"])
    data = as_matrix(V, dtype=model.dtype, n_jobs=1)
    _check_data(data)
    observation = as_observation(data.shape, as_given(observed)).without_sample_weights()
    W, H = np.asarray(model.transform(V, **observed)), model.components_
    settings = _replicate_model(model, data, n_jobs, random_state)
    task = {"task": "bootstrap", "model": settings.get_params() | {"random_state": random_state}}
    if folder is not None:
        task |= {"data": data.sha256, "layout": data.layout, "observed": fingerprints(observed)}
        task |= {"start": [fingerprint(W), fingerprint(H)]}
    task["model"]["n_jobs"] = None
    replicas = Replicates(settings, on_replicate, n, client)
    with _folder(folder) as path, ignore_fit_warnings():
        saved = SavedFits(path, task)
        fits = ResampledFits(replicas, saved, data, W, H, observed)
        numbers = fits.run(n)
        names, (counts, profiles) = [replicate_name(r) for r in range(n)], to_counts(W, H)
        rows = estimate_interval("W", counts, saved, names, level)
        columns = estimate_interval("H", profiles, saved, names, level)
        shifts = fits.shifts(columns.sd)
    exchange = find_exchange(model, data, observation, H)
    widened = columns.widen(exchange.H)
    widening = _relative_widths(widened, columns)
    cosines, divergences, gaps, statuses = zip(*numbers, strict=True)
    result = Bootstrap(
        rows.widen(exchange.W), widened.T, float(level), np.array(cosines), exchange.shares,
        widening, np.array(divergences), np.array(gaps), statuses, data.row_names,
        data.column_names, model.get_feature_names_out(),
    )  # fmt: skip
    _warn_if_shifted(shifts, settings.tol)
    _warn_if_undetermined(result)
    return result


def _relative_widths(widened: Interval, columns: Interval) -> NDArray[np.float64]:
    """Return the widths of the intervals of each profile relative to those of other intervals."""
    after, before = (
        (part.upper - part.lower).sum(axis=0, dtype=np.float64) for part in (widened, columns)
    )
    return np.asarray(np.divide(after, before, out=np.ones_like(after), where=before > 0))


def _replicate_model(model: KLNMF, V: RowBlocks, n_jobs: int | None, seed: Any) -> KLNMF:
    """Return the model of the replicates, which is not fitted."""
    K = model.n_components_
    noise = K * V.shape[1] / (2 * V.total)
    tol = min(model.tol, max(NOISE_SHARE * noise, MIN_TOL[str(V.dtype)]))
    settings: KLNMF = clone(model)
    settings.set_params(
        n_components=K, init="custom", n_init=1, tol=tol, random_state=as_seed(seed),
        n_jobs=model.n_jobs if n_jobs is None else n_jobs,
        max_time=None, on_round=None, checkpoint=None, verbose=0,
    )  # fmt: skip
    return settings


def _warn_if_shifted(shifts: Array, tol: float) -> None:
    """Warn if the model is further from the minimum than the noise explains."""
    if shifts.max() > MAX_SHIFT:
        warnings.warn(
            f"`model` is not close enough to its minimum for these counts: component "
            f"{int(shifts.argmax())} is {shifts.max():.1f} standard deviations away from it, so "
            f"intervals may not contain the values of the model. Fit it with tol={tol:.1e}.",
            UserWarning,
            stacklevel=3,
        )


def _warn_if_undetermined(result: Bootstrap) -> None:
    """Warn about components that differ between replicates, or can be exchanged for others."""
    changes = (result.cosines < SAME).mean(axis=0)
    if changes.max() > CHANGED_SHARE:
        names = ", ".join(result.component_names[changes > CHANGED_SHARE].tolist())
        warnings.warn(
            f"The components {names} of `model` became others in up to {changes.max():.0%} of the "
            f"replicates (cosine below {SAME:g}), so their intervals do not hold: fit fewer "
            "components, or compare solutions by sipower.consensus.",
            UserWarning,
            stacklevel=3,
        )
    elif result.widening.max() > MAX_WIDENING:
        names = ", ".join(result.component_names[result.widening > MAX_WIDENING].tolist())
        warnings.warn(
            f"The counts cannot tell the components {names} of `model` from mixtures with each "
            f"other: their intervals are up to {result.widening.max():.1f} times as wide as those "
            "of the replicates alone (`widening`). Fit fewer components, or fix known ones by "
            "`components_fixed`.",
            UserWarning,
            stacklevel=3,
        )


# ---- arguments -------------------------------------------------------------------------------


def _check_arguments(model: KLNMF, n: Any, level: Any) -> None:
    check_is_fitted(model)
    if not isinstance(n, Integral) or n < 2:
        raise ValueError(f"`n` must be an integer of at least 2, got {n}.")
    if not isinstance(level, Real) or not 0 < float(level) < 1:
        raise ValueError(f"`level` must be a number between 0 and 1, got {level}.")


def _check_data(V: RowBlocks) -> None:
    if not V.is_in_memory:
        raise ValueError(
            "The data must be in memory, because every replicate has its own counts: read the "
            "whole file with sipower.io.read, or draw a sample of the rows."
        )
    if not V.total > 0:
        raise ValueError("The data are all zero: to resample counts, some must be positive.")
    values = V.array if V.dense else V.array.data
    if values.max() > LARGEST_MEAN:
        raise ValueError(
            f"The data must be at most 2^62 to draw Poisson counts, got {values.max():g}: divide "
            "them by a number."
        )


@contextmanager
def _folder(folder: str | PathLike[str] | None) -> Iterator[str | PathLike[str]]:
    """Yield the folder of the saved replicates; without one, a temporary folder."""
    if folder is not None:
        yield folder
    else:
        with TemporaryDirectory(prefix="sipower-bootstrap-") as temporary:
            yield temporary
