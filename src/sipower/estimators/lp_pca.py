# SPDX-License-Identifier: BSD-3-Clause
"""`LpPCA`: kernel PCA by Lp-norm dispersion, as a scikit-learn estimator.

Each component maximises (1/np) Σ_i |a_i·x|^p over unit x orthogonal to the earlier ones, where the
features a_i are the rows of the pivoted Cholesky factor of the (centred) kernel matrix.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from sipower.estimators.attributes import restore_on_failure
from sipower.estimators.parameters import as_seed
from sipower.kernels import Array
from sipower.loop.solve import Result, Status, Stop, hide_inner_results, solve
from sipower.problems.lp_kernel_pca import LpKernelPCA, check_kernel_matrix, pivoted_cholesky
from sipower.solvers import SciPi
from sipower.solvers.state import PointState

KERNELS = {"linear", "poly", "rbf", "sigmoid", "cosine", "precomputed"}
MIN_REST = 1e-12  # share of the trace that the Cholesky factor may leave out


class LpPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Principal directions by Lp-norm dispersion, in the feature space of a kernel.

    With p = 2 this is kernel PCA, with p = 1 L1-norm PCA, which outliers affect far less. The
    problem is not concave: each component is the best of `n_init` runs of SCI-PI, the first of them
    from the direction for p = 2, so that no component is worse than that one.

    Parameters
    ----------
    n_components : int
        Number of directions, at most the rank of the (centred) kernel matrix.
    p : float
        Exponent of the norm, at least 1.
    kernel : {"linear", "poly", "rbf", "sigmoid", "cosine", "precomputed"} or callable
        As in `sklearn.decomposition.KernelPCA`; it must be positive semi-definite.
    gamma, degree, coef0, kernel_params
        Parameters of the kernel; `kernel_params` is for a callable.
    center : bool
        Whether to subtract the mean of the features, whatever p is.
    n_init : int
        Number of runs per component; all but the first start at random.
    tol : float
        A run stops when ‖∇f − λx‖/λ is at most this.
    max_iter : int
        Maximum number of steps of a run.
    random_state : int, RandomState or None
        Seed of the random starts.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, rank)
        Orthonormal directions in the coordinates of the Cholesky features, not of the inputs.
    dispersion_ : ndarray of shape (n_components,)
        (1/np) Σ_i |a_i·x|^p of every direction over the training samples.
    pivots_ : ndarray of shape (rank,)
        Indices of the training samples whose features span those of all samples.
    n_iter_ : int
        Largest number of steps of a run.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> import numpy as np
    >>> from sipower import LpPCA
    >>> X = np.random.default_rng(0).normal(size=(100, 3)) * [5, 2, 1]
    >>> LpPCA(n_components=2, p=1.0, random_state=0).fit_transform(X).shape
    (100, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "p": [Interval(Real, 1, None, closed="left")],
        "kernel": [StrOptions(KERNELS), callable],
        "gamma": [Interval(Real, 0, None, closed="left"), None],
        "degree": [Interval(Real, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "kernel_params": [dict, None],
        "center": ["boolean"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(  # noqa: PLR0913 - KernelPCA's arguments and ours
        self,
        n_components: int = 2,
        *,
        p: float = 1.0,
        kernel: str | Callable[..., Any] = "linear",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1.0,
        kernel_params: dict[str, Any] | None = None,
        center: bool = True,
        n_init: int = 5,
        tol: float = 1e-9,
        max_iter: int = 1000,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.p = p
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.center = center
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    # ---- fitting and using -------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the directions of X, (n_samples, n_features), or of its kernel matrix."""
        self.fit_transform(X)
        return self

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Find the directions of X and return its scores, (n_samples, n_components)."""
        with restore_on_failure(self):
            return self._fit(X)

    def _fit(self, X: Any) -> Array:
        X = self._validate(X, reset=True)
        # Centring the samples also centres a linear kernel. It avoids the cancellation that large
        # offsets would cause if the kernel itself were centred.
        centre_samples = self.center and self.kernel == "linear" and not sp.issparse(X)
        self._offset = X.mean(axis=0) if centre_samples else 0.0
        X = X - self._offset if centre_samples else X
        K = self._kernel(X)
        tol = self._centre(K)
        self._cholesky = pivoted_cholesky(K, tol)
        self.pivots_ = self._cholesky.pivots
        self._X = None if self.kernel == "precomputed" else X
        A = self._cholesky.A
        if self.n_components > A.shape[1]:
            n, d = X.shape
            raise ValueError(
                f"`n_components` must be at most {A.shape[1]}, the rank of the features of X "
                f"(n_samples={n}, n_features={d}) under this kernel, got {self.n_components}."
            )
        self._find_directions(A)
        return np.asarray(A @ self.components_.T)

    def transform(self, X: Any) -> Array:
        """Return the scores of new samples, or of their kernels with the training samples."""
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        X = X - self._offset if np.ndim(self._offset) else X
        K = X if self._X is None else self._kernel(X, self._X)
        if self.center:
            K = self._centerer.transform(K)
        features = self._cholesky.features(K[:, self.pivots_])
        return np.asarray(features @ self.components_.T)

    # ---- the kernel --------------------------------------------------------------------------

    def _validate(self, X: Any, *, reset: bool) -> Any:
        sparse = False if self.kernel == "precomputed" else "csr"
        return validate_data(
            self, X, reset=reset, accept_sparse=sparse, dtype=np.float64, copy=True
        )

    def _kernel(self, X: Any, Y: Any = None) -> Array:
        if self.kernel == "precomputed":
            return np.asarray(X)
        if self.kernel == "rbf" and not sp.issparse(X):
            # Computed from differences: norms minus products would cancel far from zero.
            gamma = 1 / X.shape[1] if self.gamma is None else self.gamma
            return np.asarray(np.exp(-gamma * cdist(X, X if Y is None else Y, "sqeuclidean")))
        # Imported here: sklearn.metrics takes longer to import than the rest of the package.
        from sklearn.metrics.pairwise import pairwise_kernels  # noqa: PLC0415

        named = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        parameters = (self.kernel_params or {}) if callable(self.kernel) else named
        K = pairwise_kernels(X, Y, metric=self.kernel, filter_params=True, **parameters)
        return np.asarray(K, np.float64)

    def _centre(self, K: Array) -> float:
        """Centre K in place and return the share of its trace that is rounding error."""
        from sklearn.preprocessing import KernelCenterer  # noqa: PLC0415

        check_kernel_matrix(K)
        largest = float(np.abs(K).max())
        if self.center:
            self._centerer = KernelCenterer().set_output(transform="default").fit(K)
            centred = self._centerer.transform(K)
            K[:] = (centred + centred.T) / 2
        trace = float(np.trace(K))
        rounding = 16 * float(np.finfo(np.float64).eps) * len(K) * largest
        if not trace > rounding:
            what = "differ from their mean" if self.center else "differ from zero"
            raise ValueError(
                f"No sample of `X` (n_samples={len(K)}) has features that {what}: X has no "
                "principal direction."
            )
        return max(MIN_REST, rounding / trace)

    # ---- the directions ----------------------------------------------------------------------

    def _find_directions(self, A: Array) -> None:
        # With features of norm at most 1 no power overflows.
        scale = float(np.sqrt((A**2).sum(axis=1).max()))
        seed, components = as_seed(self.random_state), np.zeros((0, A.shape[1]))
        values, rounds, worst = [], 0, 0.0
        for k in range(self.n_components):
            problem = LpKernelPCA.from_features(A / scale, self.p, orthogonal_to=components)
            runs = self._run_all_starts(problem, seed + k * self.n_init)
            best = max(runs, key=lambda run: run.value)
            scores = A @ best.x[0]
            sign = np.sign(scores[np.argmax(np.abs(scores))]) or 1.0
            components = np.vstack([components, sign * best.x])
            values.append(best.value)
            rounds = max(rounds, *(run.state.round for run in runs))
            worst = max(worst, 0.0 if best.status is Status.CONVERGED else best.residual)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            self.dispersion_ = np.array(values) * np.float64(scale) ** self.p
        if not (np.isfinite(self.dispersion_) & (self.dispersion_ > 0)).all():
            raise ValueError(
                f"Powers of X with p={self.p} are outside the range of float64: rescale X or "
                "choose a smaller p."
            )
        self.components_, self.n_iter_ = components, rounds
        if worst > self.tol:
            warnings.warn(
                f"Not converged after {self.max_iter} steps: a residual is {worst:.2e}, tol is "
                f"{self.tol:.2e}. Increase `max_iter` or `tol`.",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _run_all_starts(self, problem: LpKernelPCA, seed: int) -> list[Result[PointState]]:
        rest = problem.project(problem.A)
        starts = [np.linalg.eigh(rest.T @ rest)[1][:, -1:].T]  # the direction for p = 2
        starts += [problem.start(seed + i) for i in range(1, self.n_init)]
        stop = Stop(self.tol, rounds=self.max_iter)
        with hide_inner_results():
            return [solve(problem, SciPi(), start, stop=stop) for start in starts]
