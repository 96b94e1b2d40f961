# SPDX-License-Identifier: BSD-3-Clause
"""`KLNMF` for data in row chunks on the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any, ClassVar, Literal

from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from sipower import estimators
from sipower.dask.fitting import WorkerFitting
from sipower.estimators.parameters import CONSTRAINTS
from sipower.loop.solve import Record

SHARED_PARAMETERS = (
    "n_init", "tol", "max_iter", "max_time", "random_state", "dtype", "transform_tol", "verbose",
    "on_round", "checkpoint", "checkpoint_every", "components_fixed", "components_zero", "prior_W",
    "prior_H", "guides", "guide_strength", "batch_prior", "missing", "alpha_W", "alpha_H",
    "l1_ratio", "verify",
)  # fmt: skip


class KLNMF(  # type: ignore[call-arg]
    WorkerFitting,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
    auto_wrap_output_keys=None,  # because W is lazy, and a DataFrame would load all of it
):
    """Non-negative matrix factorisation for the Kullback-Leibler divergence on a Dask cluster.

    Workers hold the rows of the data and, where it pays, their columns too (`dask.plan`). With
    columns, the fit has the same bits as `sipower.KLNMF` from the same start: the factors are on
    the client, and workers update the rows of W and H. Without columns, W stays on the workers,
    which sweep once over its rows in every round and send sums over them to the client.

    Parameters
    ----------
    n_components : int
        Number of components K.
    client : distributed.Client or None
        Client of the cluster; None means the client that was started last.
    solver : {"auto", "rows"}
        "rows" is the method without columns; "auto" takes the faster one, by an estimate from
        sizes alone.
    init : {"sample", "auto", "random"}
        Start of H. "sample" factorises up to 8,192 rows on the client with surplus components,
        then merges components until K are left. With known components or `components_zero` the rows
        are factorised with K components instead; `prior_H` and `guides` come last. "auto" and
        "random" are those of `sipower.KLNMF`.
    n_init : int
        Number of starts, as in `sipower.KLNMF`.
    tol, max_iter, max_time, random_state, dtype, verbose, on_round
        As in `sipower.KLNMF`. The same seed gives the same results up to the rounding of sums,
        because their order depends on which workers hold the chunks.
    transform_tol : float
        Certified gap to which `transform` solves every row; after `fit`, a quarter of `tol` if that
        is smaller.
    checkpoint, checkpoint_every
        As in `sipower.KLNMF`; the file is written where the client runs.
    components_fixed, components_zero, prior_W, prior_H, guides, guide_strength
        As in `sipower.KLNMF`.
    batch_prior, missing
        As in `sipower.KLNMF`. `missing` concerns arrays: NaN in a file is an error.
    alpha_W, alpha_H, l1_ratio
        As in `sipower.KLNMF`.
    verify
        As in `sipower.KLNMF`. Workers verify their rows of V and W.

    Attributes
    ----------
    components_, n_iter_, kl_divergence_, reconstruction_err_, kkt_residual_, status_, trace_
        As in `sipower.KLNMF`.
    verification_ : Verification or None
        As in `sipower.KLNMF`.
    guides_ : list of GuideReport
        As in `sipower.KLNMF`; only with `guides`.
    feature_names_in_ : ndarray of str
        Names of the features, if a file or a chunk has them.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sipower.dask import KLNMF
    >>> from sipower.datasets import poisson_topics
    >>> V = poisson_topics(400, 100, 3, length=200, seed=0).toarray()
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     model = KLNMF(3, random_state=0, tol=1e-2)
    ...     W = model.fit_transform(da.from_array(V, chunks=(100, -1)))
    ...     W.chunks, W.compute().shape, model.status_
    (((100, 100, 100, 100), (3,)), (400, 3), 'converged')
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": CONSTRAINTS["n_components"][:1],
        "client": "no_validation",
        "solver": [StrOptions({"auto", "rows"})],
        "init": [StrOptions({"sample", "auto", "random"})],
        **{name: CONSTRAINTS[name] for name in SHARED_PARAMETERS},
    }

    def __init__(  # noqa: PLR0913 - arguments of sipower.KLNMF
        self,
        n_components: int,
        *,
        client: Any = None,
        solver: str = "auto",
        init: str = "sample",
        n_init: int = 1,
        tol: float = 1e-3,
        max_iter: int = 500,
        max_time: float | None = None,
        random_state: Any = None,
        dtype: DTypeLike | None = None,
        transform_tol: float = 1e-6,
        verbose: int = 0,
        on_round: Callable[[Record], object] | None = None,
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
        components_fixed: Any = None,
        components_zero: Any = None,
        prior_W: Any = 0.0,
        prior_H: Any = 0.0,
        guides: Any = None,
        guide_strength: float | None = None,
        batch_prior: float = 10.0,
        missing: Literal["nan"] | None = None,
        alpha_W: float = 0.0,
        alpha_H: float | Literal["same"] = "same",
        l1_ratio: float = 0.0,
        verify: bool = True,
    ) -> None:
        self.n_components = n_components
        self.client = client
        self.solver = solver
        self.init = init
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.random_state = random_state
        self.dtype = dtype
        self.transform_tol = transform_tol
        self.verbose = verbose
        self.on_round = on_round
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.components_fixed = components_fixed
        self.components_zero = components_zero
        self.prior_W = prior_W
        self.prior_H = prior_H
        self.guides = guides
        self.guide_strength = guide_strength
        self.batch_prior = batch_prior
        self.missing = missing
        self.alpha_W = alpha_W
        self.alpha_H = alpha_H
        self.l1_ratio = l1_ratio
        self.verify = verify

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "client": None}  # a connection cannot be stored

    def __sklearn_clone__(self) -> KLNMF:
        return type(self)(**self.get_params(deep=False))  # keeps the same client

    def to_local(self) -> estimators.KLNMF:
        """Return the fitted model as a `sipower.KLNMF`, for data in memory."""
        check_is_fitted(self)
        parameters = self.get_params(deep=False)
        del parameters["client"]
        if self.init == "sample":
            del parameters["init"]
        local = estimators.KLNMF(**parameters)
        for name in vars(self).keys() - self.get_params().keys():
            setattr(local, name, getattr(self, name))
        return local
