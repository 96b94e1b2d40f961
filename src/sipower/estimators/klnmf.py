# SPDX-License-Identifier: BSD-3-Clause
"""`KLNMF`: a drop-in replacement for scikit-learn's NMF, for the KL divergence."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any, ClassVar, Literal

from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin

from sipower.estimators.callbacks import CallbackSupportMixin
from sipower.estimators.fitting import Fitting
from sipower.estimators.parameters import CONSTRAINTS
from sipower.estimators.partial_fit import PartialFit
from sipower.loop.solve import Record

__all__ = ["KLNMF"]


class KLNMF(
    CallbackSupportMixin,  # type: ignore[misc]
    Fitting,
    PartialFit,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
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
        "newton", "shared-newton" or "rows". "auto" takes power steps, then extrapolated
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
    components_fixed : array of shape (at most n_components, n_features) or None
        Known components: the first rows of `components_`, which keep their values bit for bit (in
        the working type). The other components are fitted beside them. The features of a DataFrame
        are matched by name, here and in `components_zero` and `prior_H`.
    components_zero : boolean array of shape (n_components, n_features) or None
        True where an entry of `components_` must stay zero.
    prior_W : float or array of shape (n_components,)
        Prior counts of the weights of every sample: with 0.1, each component of a sample counts as
        if 0.1 more counts had been observed in it, so that no weight is zero. The expected total of
        a sample is unchanged. Prior counts are those of the mode, a Dirichlet parameter minus 1.
    prior_H : float or array of shape (n_features,) or (n_components, n_features)
        Prior counts of the features in every component, which smooth its profile. With `prior_W`,
        `prior_H` or `guides`, components sum to 1.
    guides : mapping, DataFrame or None
        Guided components: ``{"T cell": ["CD3D", "CD3E"]}``, with mappings from features to weights
        in place of lists, or a DataFrame (guides, features) of weights. Their features have prior
        counts in one component each, after the known components. Other components are free.
    guide_strength : float or None
        Prior counts of each guide in all; None: a hundredth of the counts per component.
    missing : "nan" or None
        "nan": NaN in the data means not observed. None: NaN is an error.
    batch_prior : float
        Number of prior counts that shrink every batch effect to 1.
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
    verify : bool
        Whether a fit that seems to have converged is verified (`sipower.verify`): "converged" then
        is the verdict of code that shares nothing with the solvers. On disk it is one more read.
    alpha_W, alpha_H, l1_ratio : float; float or "same"; float
        scikit-learn's penalties, with its scaling: α_W m [ρ‖W‖₁ + ½(1 − ρ)‖W‖²] with ρ = `l1_ratio`
        and m features, and the same for H with n samples. They prune and shrink components.
    beta_loss, shuffle
        scikit-learn's arguments. Only the KL divergence is supported, and nothing is shuffled.

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
        "converged", "max_rounds", "max_seconds", "stopped", "interrupted", "not_finite", "stalled",
        "working_precision" (stalled in float32) or "not_verified".
    verification_ : Verification or None
        Result of `sipower.verify`; None if the fit was not verified.
    trace_ : list of Record
        Objective (D, penalties, prior of batch effects) and gap over rounds, passes and seconds.
    guides_ : list of GuideReport
        What the data say about every guide; only with `guides`.
    batches_, batch_effects_ : ndarray of shape (n_batches,), (n_batches, n_features)
        Labels of the batches, and the fitted factor of every batch and feature; only with `batch`.
        Their logarithms have mean 0 for every feature or, with known components or prior counts,
        they themselves have mean 1.

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
        components_fixed: Any = None,
        components_zero: Any = None,
        prior_W: Any = 0.0,
        prior_H: Any = 0.0,
        guides: Any = None,
        guide_strength: float | None = None,
        missing: Literal["nan"] | None = None,
        batch_prior: float = 10.0,
        verbose: int = 0,
        on_round: Callable[[Record], object] | None = None,
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
        verify: bool = True,
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
        self.components_fixed = components_fixed
        self.components_zero = components_zero
        self.prior_W = prior_W
        self.prior_H = prior_H
        self.guides = guides
        self.guide_strength = guide_strength
        self.missing = missing
        self.batch_prior = batch_prior
        self.verbose = verbose
        self.on_round = on_round
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.verify = verify
        self.beta_loss = beta_loss
        self.alpha_W = alpha_W
        self.alpha_H = alpha_H
        self.l1_ratio = l1_ratio
        self.shuffle = shuffle

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "nan"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
