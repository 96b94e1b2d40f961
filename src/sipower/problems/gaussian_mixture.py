# SPDX-License-Identifier: BSD-3-Clause
"""Gaussian mixtures with full covariances: max F = (1/n) Σ_i log Σ_k π_k N(x_i; μ_k, Σ_k).

For given densities, the weights solve a scale invariant problem (`MixtureProportions`); for given
responsibilities, means and covariances are sums. `solvers/gaussian_em.py` alternates between both.

======  ==============================================================  =========
symbol  meaning                                                         shape
======  ==============================================================  =========
X       observations x_i as rows                                        (n, d)
π       weights, a point of the simplex                                 (K,)
μ, Σ    means, covariances                                              (K, d), (K, d, d)
L       log N(x_i; μ_k, Σ_k)                                            (n, K)
R       responsibilities π_k N_ik / Σ_l π_l N_il                        (n, K)
G       Σ_i R_ik / (n π_k); at a solution 1 where π > 0, else ≤ 1       (K,)
s       standard deviations of the features of X                        (d,)
======  ==============================================================  =========

F has no maximum if a Gaussian may shrink onto one observation. Therefore the eigenvalues of every
covariance, computed with all features divided by s, must be at least `regularise`. The best such
Σ_k for given R is the weighted covariance with its small eigenvalues raised to this bound. Unlike a
ridge that is added to every covariance, this keeps EM monotone and changes no solution that
respects the bound. The units of the features do not matter.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp
from sklearn.utils import check_array

from sipower.kernels import Array

MIN_REGULARISE = 1e-10  # below this, rounding may make a Cholesky factorisation fail


class Gaussians(NamedTuple):
    """The parameters of a Gaussian mixture: π (K,), μ (K, d) and Σ (K, d, d)."""

    weights: Array
    means: Array
    covariances: Array


class GaussianMixture:
    """The maximum-likelihood problem of a mixture of Gaussians with full covariances.

    Parameters
    ----------
    X
        Observations as rows, (n, d).
    components
        Number of Gaussians K.
    regularise
        Smallest allowed eigenvalue of a covariance, in units of the features' variances.

    Examples
    --------
    >>> import numpy as np
    >>> from sipower import GaussianEM, Guarded, solve
    >>> from sipower.problems import GaussianMixture
    >>> centres = np.repeat([[0.0, 0], [9, 9]], [100, 300], axis=0)
    >>> X = centres + np.random.default_rng(0).normal(size=(400, 2))
    >>> result = solve(GaussianMixture(X, 2), Guarded(GaussianEM()))
    >>> str(result.status), np.sort(result.x.weights).round(3).tolist()
    ('converged', [0.25, 0.75])
    """

    maximise = True
    evaluation_passes = 1.5  # one pass computes the densities and the sums of one round
    value_passes = 0.5

    def __init__(self, X: Any, components: int, *, regularise: float = 1e-6) -> None:
        self.X: Array = check_array(X, dtype=np.float64)
        n, d = self.X.shape
        if not isinstance(components, Integral) or not 1 <= components <= n:
            raise ValueError(
                f"`components` must be an integer from 1 to the {n} observations, got {components}."
            )
        if not (isinstance(regularise, Real) and MIN_REGULARISE <= regularise < 1):
            raise ValueError(
                f"`regularise` must be a number in [{MIN_REGULARISE}, 1), got {regularise}."
            )
        constant = np.ptp(self.X, axis=0) == 0
        if constant.any():
            raise ValueError(f"Column {int(np.argmax(constant))} of `X` is constant: remove it.")
        with np.errstate(over="ignore", under="ignore"):
            variances = self.X.var(axis=0)
        if not (np.isfinite(variances) & (variances > 0)).all():
            raise ValueError("`X` must have variances in the range of float64: rescale it.")
        self.shape: tuple[int, int] = int(components), d
        self.regularise: float = float(regularise)
        self.deviations: Array = np.sqrt(variances)

    def __repr__(self) -> str:
        size, norm = self.X.shape, float(np.abs(self.X).sum())
        return (
            f"GaussianMixture({size}, norm {norm!r}, {self.shape[0]} components, "
            f"regularise {self.regularise})"
        )

    # ---- densities and responsibilities ------------------------------------------------------

    def log_densities(self, x: Gaussians) -> Array:
        """Return L_ik = −½ (d log 2π + log|Σ_k| + (x_i − μ_k)ᵀ Σ_k⁻¹ (x_i − μ_k))."""
        L = np.empty((len(self.X), self.shape[0]))
        for k, (mean, factor) in enumerate(zip(x.means, _factors(x), strict=True)):
            squares = _solve_lower(factor, (self.X - mean).T) ** 2
            L[:, k] = -0.5 * squares.sum(axis=0) - np.log(np.diag(factor)).sum()
        return np.asarray(L - 0.5 * self.shape[1] * np.log(2 * np.pi))

    def responsibilities(self, x: Gaussians) -> Array:
        """Return R, the probability of every component for every observation, (n, K)."""
        return posterior(self.log_densities(x), x.weights)

    def value(self, x: Gaussians) -> float:
        """Return F, the mean log-likelihood."""
        return float(logsumexp(self.log_densities(x), axis=1, b=x.weights).mean())

    # ---- the ordinary EM update --------------------------------------------------------------

    def m_step(self, R: Array, x: Gaussians) -> Gaussians:
        """Return x with the μ_k and Σ_k that maximise the expected log-likelihood for R.

        The weights do not change, and neither does a component whose responsibilities are all zero.
        """
        means, covariances = x.means.copy(), x.covariances.copy()
        masses = R.sum(axis=0)
        for k in np.flatnonzero(masses > 0):
            r = R[:, k] / masses[k]
            means[k] = r @ self.X
            centred = self.X - means[k]
            covariances[k] = self._bound_eigenvalues((r[:, None] * centred).T @ centred)
        return Gaussians(x.weights, means, covariances)

    def _bound_eigenvalues(self, covariance: Array) -> Array:
        """Return a covariance with its small eigenvalues raised to the bound (see the module)."""
        units = np.outer(self.deviations, self.deviations)
        values, vectors = np.linalg.eigh(covariance / units)
        if values[0] >= self.regularise:
            return covariance
        bounded = (vectors * np.maximum(values, self.regularise)) @ vectors.T
        return np.asarray((bounded + bounded.T) / 2 * units)

    # ---- optimality --------------------------------------------------------------------------

    def residual(self, x: Gaussians) -> float:
        """Return the distance of x from a stationary point.

        The distance is the largest of three quantities over all components: G_k − 1, which bounds
        the gain from changing the weights alone, and π_k times the changes in an EM update, which
        are ‖μ⁺ − μ‖ in the norm of Σ⁻¹ and ‖Σ^(−½) (Σ⁺ − Σ) Σ^(−½)‖.
        """
        L = self.log_densities(x)
        mixed = logsumexp(L, axis=1, b=x.weights)
        G = np.exp(L - mixed[:, None]).mean(axis=0)
        new = self.m_step(posterior(L, x.weights), x)
        changes = [G.max() - 1]
        for k, factor in enumerate(_factors(x)):
            change = _solve_lower(factor, new.covariances[k] - x.covariances[k])
            shift = _solve_lower(factor, new.means[k] - x.means[k])
            change = _solve_lower(factor, change.T)
            changes.append(x.weights[k] * max(np.linalg.norm(shift), np.linalg.norm(change)))
        return float(max(changes))

    def quick_value(self, x: Gaussians) -> float:
        """Return the objective; there is no faster method than `value`."""
        return self.value(x)

    def rounding(self, value: float) -> float:
        """Return the rounding error that F = `value` may have: 8 eps (d + |F|).

        d is included because L holds sums of d squares.
        """
        return 8 * float(np.finfo(np.float64).eps) * (self.shape[1] + abs(value))

    def is_finite(self, x: Gaussians) -> bool:
        """Return whether x holds neither NaN nor infinity."""
        return all(bool(np.isfinite(part).all()) for part in x)

    # ---- starts ------------------------------------------------------------------------------

    def start(self, seed: int) -> Gaussians:
        """Return a start with k-means++ centres, equal weights and one covariance for all."""
        # Imported here: sklearn.cluster takes longer to import than the rest of the package.
        from sklearn.cluster import kmeans_plusplus  # noqa: PLC0415
        from sklearn.metrics import pairwise_distances_argmin  # noqa: PLC0415

        K, scaled = self.shape[0], self.X / self.deviations
        _, chosen = kmeans_plusplus(scaled, K, random_state=seed % 2**32)
        means = self.X[chosen]
        centred = self.X - means[pairwise_distances_argmin(scaled, scaled[chosen])]
        pooled = self._bound_eigenvalues(centred.T @ centred / len(centred))
        return Gaussians(np.full(K, 1 / K), means, np.stack([pooled] * K))

    def check_start(self, x0: Any) -> Gaussians:
        """Return a checked copy of `x0`, with small eigenvalues of its covariances raised."""
        K, d = self.shape
        expected = (K,), (K, d), (K, d, d)
        try:
            parts = [np.array(part, np.float64) for part in x0]
        except (TypeError, ValueError):
            raise ValueError("`x0` must hold weights, means and covariances as arrays.") from None
        shapes = tuple(part.shape for part in parts)
        if shapes != expected:
            raise ValueError(
                f"weights, means and covariances of `x0` must have shapes {expected}, got {shapes}."
            )
        x = Gaussians(*parts)
        if not self.is_finite(x):
            raise ValueError("weights, means and covariances of `x0` must be finite.")
        if not (x.weights > 0).all() or abs(x.weights.sum() - 1) > 1e-6:
            raise ValueError("The weights of `x0` must be positive and sum to 1.")
        for k, covariance in enumerate(x.covariances):
            asymmetry = np.abs(covariance - covariance.T).max()
            size = np.abs(covariance).max()
            if asymmetry > 1e-8 * size or np.linalg.eigvalsh(covariance)[0] < -1e-10 * size:
                raise ValueError(
                    f"Covariance {k} of `x0` must be symmetric and positive semi-definite."
                )
        bounded = np.stack([self._bound_eigenvalues(covariance) for covariance in x.covariances])
        return Gaussians(x.weights / x.weights.sum(), x.means, bounded)


def posterior(L: Array, weights: Array) -> Array:
    """Return the responsibilities R: π∘exp(L), with each row divided by its sum."""
    shares = weights * np.exp(L - L.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _factors(x: Gaussians) -> Array:
    """Return the lower Cholesky factors of all Σ_k."""
    return np.asarray(np.linalg.cholesky(x.covariances))


def _solve_lower(factor: Array, right: Array) -> Array:
    return np.asarray(solve_triangular(factor, right, lower=True, check_finite=False))
