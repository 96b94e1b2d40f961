# SPDX-License-Identifier: BSD-3-Clause
"""Arguments of the estimator: what each may be, and one sentence for what is not offered."""

from __future__ import annotations

import hashlib
from numbers import Integral, Real
from os import PathLike
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from sipower.data.fingerprint import fingerprint
from sipower.data.memory import Matrix
from sipower.estimators.callbacks import Listener
from sipower.estimators.fitting import Settings
from sipower.kernels import Array
from sipower.loop.checkpoint import Checkpoint
from sipower.loop.solve import Stop
from sipower.nmf import SOLVERS, Factors
from sipower.nmf.init import INITS, initial_factors

__all__ = [
    "CONSTRAINTS",
    "custom_factor",
    "refuse_what_is_not_offered",
    "seed_of",
    "settings_of",
    "start_of",
]

CONSTRAINTS: dict[str, Any] = {
    "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), None],
    "solver": [StrOptions({*SOLVERS, "cd"})],
    "init": [StrOptions({*INITS, "custom"}), None],
    "tol": [Interval(Real, 0, None, closed="left")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "max_time": [Interval(Real, 0, None, closed="left"), None],
    "random_state": ["random_state"],
    "n_jobs": [Integral, None],
    "dtype": "no_validation",
    "transform_tol": [Interval(Real, 0, None, closed="neither")],
    "forget_factor": [Interval(Real, 0, 1, closed="both")],
    "verbose": ["verbose"],
    "checkpoint": [str, PathLike, None],
    "checkpoint_every": [Interval(Real, 0, None, closed="left")],
    "on_round": [callable, None],
    "beta_loss": [StrOptions({"kullback-leibler", "frobenius", "itakura-saito"}), Real],
    "alpha_W": [Interval(Real, 0, None, closed="left")],
    "alpha_H": [Interval(Real, 0, None, closed="left"), StrOptions({"same"})],
    "l1_ratio": [Interval(Real, 0, 1, closed="both")],
    "shuffle": ["boolean"],
}


def refuse_what_is_not_offered(model: Any) -> None:
    """scikit-learn's arguments are accepted; what they would ask for may not be there."""
    if model.beta_loss not in ("kullback-leibler", 1):
        raise ValueError(
            f"beta_loss is {model.beta_loss!r}; this is NMF for 'kullback-leibler': use "
            "sklearn.decomposition.NMF for other losses."
        )
    if model.solver == "cd":
        raise ValueError("solver='cd' is for the Frobenius norm: use 'ccd' or 'auto'.")
    if model.alpha_W != 0 or model.alpha_H not in ("same", 0):
        raise ValueError("Penalties are not offered yet: leave alpha_W and alpha_H at 0.")


def start_of(model: Any, V: Matrix, seed: int, W: Any, H: Any) -> Factors:
    """The start that a model asks for, or that its user gives: W (n, K) and H (K, m), copied."""
    custom = model.init == "custom"
    if custom and (W is None or H is None):
        raise ValueError("init='custom' needs both W and H.")
    if not custom and (W is not None or H is not None):
        raise ValueError(f"W and H are given but init is {model.init!r}: use init='custom'.")
    if not custom:
        rank = V.shape[1] if model.n_components in ("auto", None) else int(model.n_components)
        init: Any = model.init or ("nndsvda" if rank <= min(V.shape) else "random")
        return Factors(*initial_factors(V, rank, seed, init))
    H = custom_factor("H", H, (model.n_components, V.shape[1]), V)
    W = custom_factor("W", W, (V.shape[0], H.shape[0]), V)
    return Factors(W, np.ascontiguousarray(H.T))


def custom_factor(name: str, factor: Any, shape: tuple[Any, Any], V: Matrix) -> Array:
    """One given factor in the working type; a size that is no number may be any."""
    try:
        with np.errstate(over="ignore"):
            factor = np.array(factor, V.dtype, order="C")
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a dense array of numbers.") from None
    if not _fits(factor.shape, shape):
        raise ValueError(f"{name} has shape {factor.shape}, expected {shape}.")
    if not np.isfinite(factor).all() or (factor < 0).any():
        raise ValueError(f"{name} must be finite and non-negative in {V.dtype}.")
    if not factor.any():
        raise ValueError(f"{name} is zero everywhere in {V.dtype}: no rule can leave that.")
    return np.asarray(factor)


def _fits(found: tuple[int, ...], wanted: tuple[Any, ...]) -> bool:
    if len(found) != len(wanted):
        return False
    return all(w == f for f, w in zip(found, wanted, strict=True) if isinstance(w, Integral))


def seed_of(random_state: Any) -> int:
    """A seed for the counter-based numbers: an integer stands for itself."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def settings_of(
    model: Any,
    V: Any,
    start: Factors,
    *,
    seed: int,
    started: float,
    listener: Listener,
    **how: Any,
) -> Settings:
    """The settings of the fit that a model asks for; `how` are those that it does not know."""
    stop = Stop(model.tol, rounds=model.max_iter, seconds=model.max_time)
    checkpoint = _checkpoint_of(model, V, start)
    row_tol = model.transform_tol_
    return Settings(model.solver, stop, seed, row_tol, started, listener, checkpoint, **how)


def _checkpoint_of(model: Any, V: Any, start: Factors) -> Checkpoint | None:
    """The checkpoint that a model asks for; everything that decides the bits belongs to its run.

    Limits on rounds and seconds do not: a run may go on with larger ones.
    """
    if model.checkpoint is None:
        return None
    if not isinstance(model.random_state, Integral):
        raise ValueError(
            "A run with a checkpoint needs a number as random_state: only the same seed can go on."
        )
    run = {
        "data": fingerprint(V),
        "layout": V.layout,
        "rank": start.W.shape[1],
        "solver": model.solver,
        "init": _fingerprint(start) if model.init == "custom" else model.init,
        "random_state": int(model.random_state),
        "dtype": str(V.dtype),
        "tol": float(model.tol),
        "transform_tol": float(model.transform_tol),
    }
    return Checkpoint(model.checkpoint, float(model.checkpoint_every), run)


def _fingerprint(start: Factors) -> str:
    return hashlib.sha256(b"".join(factor.tobytes() for factor in start)).hexdigest()
