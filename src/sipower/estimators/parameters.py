# SPDX-License-Identifier: BSD-3-Clause
"""Parameters of the estimator: their allowed values, and the start and settings they define."""

from __future__ import annotations

import hashlib
from numbers import Integral, Real
from os import PathLike
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from sipower.data.containers import as_numbers
from sipower.data.names import arrange, axis_labels, data_items, has_labels
from sipower.data.row_blocks import RowBlocks
from sipower.estimators.callbacks import Listener
from sipower.estimators.fingerprints import describe_value
from sipower.estimators.fit import FitSettings
from sipower.estimators.observation import ARGUMENTS
from sipower.kernels import Array
from sipower.loop.checkpoint import Checkpoint
from sipower.loop.solve import Stop
from sipower.nmf import SOLVERS, Factors
from sipower.nmf.init import INITS, initial_factors, random_factor

__all__ = [
    "CONSTRAINTS",
    "as_custom_factor",
    "as_seed",
    "check_supported",
    "fit_rank",
    "fit_settings",
    "initial_components",
    "initial_point",
]

# Parameters that a checkpoint names if they differ; the digest of the model contains all.
_MODEL_PARAMETERS = (
    "components_fixed", "components_zero", "guides", "guide_strength", "alpha_W", "alpha_H",
    "prior_W", "prior_H",
)  # fmt: skip
MAX_AUTO_RANK = 64  # largest number of features for which "auto" means one component each
CONSTRAINTS: dict[str, Any] = {
    "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), None],
    "solver": [StrOptions({*SOLVERS, "cd"})],
    "init": [StrOptions({"auto", *INITS, "custom"}), None],
    "n_init": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "max_time": [Interval(Real, 0, None, closed="left"), None],
    "random_state": ["random_state"],
    "n_jobs": [Integral, None],
    "dtype": "no_validation",
    "transform_tol": [Interval(Real, 0, None, closed="neither")],
    "forget_factor": [Interval(Real, 0, 1, closed="both")],
    "components_fixed": "no_validation",
    "components_zero": "no_validation",
    "prior_W": "no_validation",
    "prior_H": "no_validation",
    "guides": "no_validation",
    "guide_strength": [Interval(Real, 0, None, closed="neither"), None],
    "missing": [StrOptions({"nan"}), None],
    "batch_prior": [Interval(Real, 0, None, closed="neither")],
    "verbose": ["verbose"],
    "checkpoint": [str, PathLike, None],
    "checkpoint_every": [Interval(Real, 0, None, closed="left")],
    "on_round": [callable, None],
    "verify": ["boolean"],
    "beta_loss": [StrOptions({"kullback-leibler", "frobenius", "itakura-saito"}), Real],
    "alpha_W": [Interval(Real, 0, None, closed="left")],
    "alpha_H": [Interval(Real, 0, None, closed="left"), StrOptions({"same"})],
    "l1_ratio": [Interval(Real, 0, 1, closed="both")],
    "shuffle": ["boolean"],
}


def check_supported(model: Any) -> None:
    """Check that scikit-learn's parameters have supported values."""
    if model.beta_loss not in ("kullback-leibler", 1):
        raise ValueError(
            f"`beta_loss` must be 'kullback-leibler', got {model.beta_loss!r}: use "
            "sklearn.decomposition.NMF for other losses."
        )
    if model.solver == "cd":
        raise ValueError("solver='cd' is for the Frobenius norm: use 'ccd' or 'auto'.")


def fit_rank(model: Any, V: RowBlocks, start: Factors | None) -> int:
    """Return the rank K of the start or, if it is None, of the parameter `n_components`."""
    if start is not None:
        return int(start.W.shape[1])
    if model.n_components not in ("auto", None):
        return int(model.n_components)
    if V.shape[1] > MAX_AUTO_RANK:
        raise ValueError(
            f"`n_components` must be a number for data with more than {MAX_AUTO_RANK} features, "
            f"got {model.n_components!r} and {V.shape[1]:,} features: choose one, such as "
            "KLNMF(10), for example by sipower.rank_selection(V, range(2, 21)).best."
        )
    return V.shape[1]


def initial_point(model: Any, V: RowBlocks, seed: int, W: Any, H: Any) -> Factors | None:
    """Return the start for `init`, or None if the solver draws a random one.

    W (n, K) and H (K, m) are given by the user if init="custom"; they are copied.
    """
    custom = model.init == "custom"
    if custom and (W is None or H is None):
        raise ValueError("`W` and `H` must both be given with init='custom'.")
    if not custom and (W is not None or H is not None):
        raise ValueError(
            f"`W` and `H` are used only with init='custom', got init={model.init!r}: change it, or "
            "leave out W and H."
        )
    if model.n_init > 1 and model.init not in ("auto", "random", "sample"):
        raise ValueError(
            f"`n_init` must be 1 with init={model.init!r}, which has a single start, got "
            f"{model.n_init}: use init='auto' or 'random'."
        )
    if not custom:
        rank = fit_rank(model, V, None)
        init: Any = model.init or ("nndsvda" if rank <= min(V.shape) else "random")
        if init in ("auto", "random", "sample"):
            return None
        return Factors(*initial_factors(V, rank, seed, init))
    H = as_custom_factor("H", H, (model.n_components, V.shape[1]), V)
    W = as_custom_factor("W", W, (V.shape[0], H.shape[0]), V)
    return Factors(W, np.ascontiguousarray(H.T))


def initial_components(model: Any, V: RowBlocks, seed: int, W: Any, H: Any) -> Array:
    """Return the H (m, K) that `partial_fit` starts from."""
    start = initial_point(model, V, seed, W, H)
    if start is not None:
        return start.H
    return random_factor(V, fit_rank(model, V, None), seed, side=1).astype(V.dtype)


NAMED_PARAMETERS = ("components_fixed", "components_zero", "prior_H")  # of features


def in_order(model: Any, name: str, V: RowBlocks, *, warn: bool = True) -> Any:
    """Return a parameter whose last axis are the features, in the order of the data V.

    `warn` says whether features that are not in the data draw a warning.
    """
    value = getattr(model, name)
    if not has_labels(value):
        return value
    others, say = len(axis_labels(value)) - 1, None if warn else _say_nothing
    return arrange(name, value, *[None] * others, data_items(V)[1], say=say)


def _say_nothing(remark: str) -> None:
    pass


def as_custom_factor(name: str, factor: Any, shape: tuple[Any, Any], V: RowBlocks) -> Array:
    """Validate the user's factor and return a copy in the data type of V.

    Parameters
    ----------
    name
        The parameter, "W" or "H", for messages.
    factor
        The user's array.
    shape
        The expected shape. A size that is not an integer ("auto" or None) matches any number.
    V
        The data.
    """
    if has_labels(factor):
        samples, features = data_items(V)
        factor = arrange(name, factor, *((samples, None) if name == "W" else (None, features)))
    with np.errstate(over="ignore"):
        factor = np.array(as_numbers(name, factor, "a dense array of numbers", V.dtype), order="C")
    if not _fits(factor.shape, shape):
        raise ValueError(f"`{name}` must have shape {shape}, got {factor.shape}.")
    if not np.isfinite(factor).all() or (factor < 0).any():
        raise ValueError(f"`{name}` must be finite and non-negative in {V.dtype}.")
    if not factor.any():
        raise ValueError(f"`{name}` must not be all zero in {V.dtype}: no update changes zeros.")
    return np.asarray(factor)


def _fits(shape: tuple[int, ...], expected: tuple[Any, ...]) -> bool:
    if len(shape) != len(expected):
        return False
    return all(e == s for s, e in zip(shape, expected, strict=True) if isinstance(e, Integral))


def as_seed(random_state: Any) -> int:
    """Return the seed of the random numbers: an integer itself, else one drawn from the state."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def fit_settings(
    model: Any,
    V: RowBlocks,
    start: Factors | None,
    *,
    seed: int,
    started: float,
    listener: Listener,
    digest: str | None = None,
) -> FitSettings:
    """Return the settings of a fit from the parameters of a model.

    `digest` is a fingerprint of everything but V that the result depends on.
    """
    stop = Stop(model.tol, rounds=model.max_iter, seconds=model.max_time)
    return FitSettings(
        model.solver,
        stop,
        seed,
        model.transform_tol_,
        started,
        listener,
        _checkpoint(model, V, start, digest),
        surplus=start is None and model.init == "auto",
        n_init=model.n_init,
        sample=start is None and model.init == "sample",
    )


def _checkpoint(
    model: Any, V: RowBlocks, start: Factors | None, digest: str | None
) -> Checkpoint | None:
    """Return the checkpoint of a fit; its `run` holds everything that the result depends on.

    Limits on rounds and seconds are not part of it: a fit may be resumed with other limits.
    """
    if model.checkpoint is None:
        return None
    if not isinstance(model.random_state, Integral):
        raise ValueError(
            "`random_state` must be an integer if `checkpoint` is given: only a fit with the "
            "same seed can be resumed."
        )
    # These come first, so that the message about another fit names what the data depend on as well.
    # None for what is not given, so that older checkpoints agree.
    observed = getattr(model, "_observed", {})
    run: dict[str, Any] = {name: observed.get(name) for name in ARGUMENTS}
    for name in _MODEL_PARAMETERS:
        value = describe_value(getattr(model, name, None))
        run[name] = None if value in (0, "same") else value
    run |= {
        "data": V.sha256,
        "layout": V.layout,
        "rank": fit_rank(model, V, start),
        "solver": model.solver,
        "init": model.init if start is None or model.init != "custom" else _digest(start),
        "n_init": int(model.n_init),
        "random_state": int(model.random_state),
        "dtype": str(V.dtype),
        "tol": float(model.tol),
        "transform_tol": float(model.transform_tol),
    }
    if digest is not None:
        run["model"] = digest
    return Checkpoint(model.checkpoint, float(model.checkpoint_every), run)


def _digest(start: Factors) -> str:
    return hashlib.sha256(b"".join(factor.tobytes() for factor in start)).hexdigest()
