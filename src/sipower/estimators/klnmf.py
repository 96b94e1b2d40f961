# SPDX-License-Identifier: BSD-3-Clause
"""`KLNMF`: a drop-in replacement for scikit-learn's NMF, for the KL divergence."""

from __future__ import annotations

import time
from collections.abc import Callable
from os import PathLike
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from sipower.data.plausibility import warn_about_values
from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import as_matrix
from sipower.estimators.attributes import FittedAttributes, restore_on_failure, row_tolerance
from sipower.estimators.callbacks import CallbackSupportMixin, Listener
from sipower.estimators.fit import as_fit, exact_rows, fit
from sipower.estimators.parameters import (
    CONSTRAINTS,
    as_custom_factor,
    as_seed,
    check_supported,
    fit_rank,
    fit_settings,
    initial_components,
    initial_point,
)
from sipower.estimators.remarks import warn_about_data, warn_unless_converged
from sipower.kernels import Array
from sipower.loop.solve import Interrupted, Record
from sipower.nmf import Factorization
from sipower.problems.kl import KLBlock

__all__ = ["KLNMF"]


class KLNMF(
    CallbackSupportMixin,  # type: ignore[misc]
    FittedAttributes,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Non-negative matrix factorisation for the Kullback-Leibler divergence (Poisson NMF).

    min D(V ‖ W H) = Σ_ij [ V_ij log(V_ij/(WH)_ij) − V_ij + (WH)_ij ] over W, H ≥ 0.

    Parameters
    ----------
    n_components : int or "auto"
        Rank K. "auto" means the rank of a custom start, or else the number of features, of which
        there may then be at most 64: `sipower.rank_selection` recommends a K for other data.
    solver : str
        "auto", "s-sci-pi", "sci-pi", "power-search", "vanilla", "mu", "ccd", "scd", "pgd",
        "newton", "shared-newton" or "profile". "auto" takes power steps, then extrapolated
        second-order steps; the others are update rules. No round of any raises the divergence.
    init : {"auto", "random", "nndsvd", "nndsvda", "nndsvdar", "custom"} or None
        Start. "auto": random. If `solver` is "auto" and does not begin with a sample of the data,
        a second start is made from surplus components, which are then merged, and the better
        start is kept. None: "nndsvda" if K ≤ min(n_samples, n_features), else "random".
    n_init : int
        Number of random starts, compared by successive halving; their cost is counted in passes.
        The rounds of all count towards `max_iter`. Checkpoints begin once the best is known.
    tol : float
        Stop when the certified gap (`kkt_residual_`) is at most this. It bounds how far D can fall
        by changing one factor alone, relative to the sum of the data. scikit-learn's `tol` differs.
    max_iter, max_time : int; float or None
        Maximum number of rounds and of seconds of wall time. A fit that reaches `max_time`
        returns the W of the last round, not the exact W of `transform`.
    random_state : int, RandomState or None
        Seed; the same seed gives the same bits for any number of threads.
    n_jobs : int or None
        Number of threads; None: all cores, or one inside a joblib or Dask worker.
    dtype : {float32, float64} or None
        Working type; None means float32 for float32 data, else float64.
    transform_tol : float
        `transform` solves every row to this certified gap, or to tol/4 if that is smaller.
    forget_factor : float
        Decay of the statistics of earlier batches in `partial_fit`.
    verbose : int
        If nonzero, progress is printed.
    on_round : callable or None
        Called with a `Record` after every round; if it returns true, the fit stops. Callbacks of
        scikit-learn 1.9 and later are set by `set_callbacks`.
    checkpoint, checkpoint_every : str, path or None; float
        File that the state of the fit is saved to, so that at most `checkpoint_every` seconds or
        one round can be lost. If it exists, the fit is resumed from it and gives the same bits; a
        checkpoint of other data or parameters is refused. `max_iter` and `max_time` may differ,
        and `max_time` counts from the resumption.
    beta_loss, alpha_W, alpha_H, l1_ratio, shuffle
        scikit-learn's arguments. Only the KL divergence without penalties is supported.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Factor H.
    n_components_, n_iter_, n_features_in_ : int
        Number of components, of rounds and of features.
    kl_divergence_, reconstruction_err_ : float
        Divergence D of the returned factors, in float64; √(2 D), scikit-learn's definition.
    kkt_residual_ : float
        Certified gap of both convex halves (one factor fixed), not of the global minimum.
    status_ : str
        "converged", "max_rounds", "max_seconds", "stopped", "interrupted" or "not_finite".
    trace_ : list of Record
        Objective and gap over rounds, passes and seconds.

    Examples
    --------
    >>> import numpy as np
    >>> from sipower import KLNMF
    >>> V = np.random.default_rng(0).poisson(3.0, (40, 30))
    >>> model = KLNMF(n_components=3, random_state=0)
    >>> W = model.fit_transform(V)
    >>> W.shape, model.components_.shape, model.status_
    ((40, 3), (3, 30), 'converged')
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS

    def __init__(  # noqa: PLR0913 - scikit-learn's arguments and ours
        self,
        n_components: int | Literal["auto"] | None = "auto",
        *,
        solver: str = "auto",
        init: str | None = "auto",
        n_init: int = 1,
        tol: float = 1e-3,
        max_iter: int = 500,
        max_time: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        dtype: DTypeLike | None = None,
        transform_tol: float = 1e-6,
        forget_factor: float = 0.7,
        verbose: int = 0,
        on_round: Callable[[Record], object] | None = None,
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
        beta_loss: str | float = "kullback-leibler",
        alpha_W: float = 0.0,
        alpha_H: float | Literal["same"] = "same",
        l1_ratio: float = 0.0,
        shuffle: bool = False,
    ) -> None:
        self.n_components = n_components
        self.solver = solver
        self.init = init
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.dtype = dtype
        self.transform_tol = transform_tol
        self.forget_factor = forget_factor
        self.verbose = verbose
        self.on_round = on_round
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.beta_loss = beta_loss
        self.alpha_W = alpha_W
        self.alpha_H = alpha_H
        self.l1_ratio = l1_ratio
        self.shuffle = shuffle

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    # ---- fitting -----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, W: Any = None, H: Any = None) -> Self:
        """Learn the components of X, (n_samples, n_features)."""
        self.fit_transform(X, W=W, H=H)
        return self

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit_transform(self, X: Any, y: Any = None, W: Any = None, H: Any = None) -> Array:
        """Learn the components of X and return the W that `transform` would return.

        W (n_samples, n_components) and H (n_components, n_features) are the start if init is
        "custom".
        """
        started = time.monotonic()
        check_supported(self)
        listener = Listener(self, X)
        with restore_on_failure(self, Interrupted):
            V = self._matrix(X, reset=True)
            warn_about_data(V, self.n_components)
            seed = as_seed(self.random_state)
            self.transform_tol_ = row_tolerance(self.transform_tol, self.tol)
            start = initial_point(self, V, seed, W, H)
            problem = Factorization(V, fit_rank(self, V, start))
            settings = fit_settings(self, V, start, seed=seed, started=started, listener=listener)
            try:
                result = fit(problem, start, settings)
            except Interrupted as interrupt:
                self._set_fit(as_fit(interrupt.result))
                raise
            self._set_fit(result)
        listener.end()
        warn_unless_converged(result, self.tol, self.solver)
        return result.W

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None, W: Any = None, H: Any = None) -> Self:
        """Update the components from a batch of samples.

        The rows of the batch are solved exactly for the current H. Then H ← A/B with the statistics
        A = Σ H∘Wᵀ(V ⊘ WH) and B = Σ colsum(W) of all batches, which decay by `forget_factor`.
        """
        check_supported(self)
        with restore_on_failure(self):
            self._learn_batch(X, W, H)
        return self

    def _learn_batch(self, X: Any, W: Any, H: Any) -> None:
        first = not hasattr(self, "components_")
        V = self._matrix(X, reset=first)
        if not first and (W is not None or H is not None):
            raise ValueError("`W` and `H` must be None after the first partial_fit.")
        # If no batch so far had counts, the start is drawn again from the first one that has.
        if first or (V.total > 0 and not self.components_.any()):
            first_H = initial_components(self, V, as_seed(self.random_state), W, H)
            self.transform_tol_ = self.transform_tol
            self._set_components(first_H.T)
            self._set_statistics(np.zeros(self.n_components_))
        self._learn_from(V, self.forget_factor)

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def _rows_for(self, X: Any, H: Any) -> Array:
        """Return W for a given H, without a fit."""
        check_supported(self)
        if H is None:
            raise ValueError("`H` must be given with update_H=False.")
        V = self._matrix(X, reset=True)
        H = as_custom_factor("H", H, (self.n_components, V.shape[1]), V)
        return exact_rows(V, np.ascontiguousarray(H.T), self.transform_tol)

    # ---- using -------------------------------------------------------------------------------

    def transform(self, X: Any) -> Array:
        """Return W (n_samples, n_components) for the fitted components, certified row by row.

        Each row of W depends only on its row of X: order and batching change no bit.
        """
        check_is_fitted(self)
        V = self._matrix(X, reset=False)
        basis = np.ascontiguousarray(self.components_.T, V.dtype)
        return exact_rows(V, basis, self.transform_tol_)

    def inverse_transform(self, X: Any) -> Array:
        """Return W H for X = W, (n_samples, n_components)."""
        check_is_fitted(self)
        W: Any = X if sp.issparse(X) else np.asarray(X)
        if W.ndim != 2 or W.shape[1] != self.n_components_:
            raise ValueError(f"`X` must have shape (samples, {self.n_components_}), got {W.shape}.")
        return np.asarray(W @ self.components_)

    def score(self, X: Any, y: Any = None) -> float:
        """Return −D(X ‖ transform(X) H)/ΣX; higher is better, 0 is a perfect fit.

        W is fitted to the rows that are scored, so more components always score better. Counts of
        features that no component contains are left out, as in `transform`.
        """
        W = self.transform(X)
        covered = self.components_.any(axis=0)
        if not covered.any():
            return 0.0
        V, H = self._matrix(X, reset=False), self.components_.T
        if V.dense or V.column_mass[~covered].any():
            V = as_matrix(V.array[:, np.flatnonzero(covered)], dtype=V.dtype, n_jobs=self.n_jobs)
            H = H[covered]
        block = KLBlock(V, np.ascontiguousarray(H, V.dtype))
        return -block.divergence(W) / V.total if V.total > 0 else 0.0

    # ---- arguments ---------------------------------------------------------------------------

    def _matrix(self, X: Any, *, reset: bool) -> RowBlocks:
        dtype = self.dtype if reset else self.components_.dtype
        matrix = as_matrix(X, dtype=dtype, n_jobs=self.n_jobs)
        validate_data(self, X, reset=reset, skip_check_array=True)
        if reset:
            self._remarks = warn_about_values(X, matrix)
        return matrix
