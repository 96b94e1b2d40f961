# SPDX-License-Identifier: BSD-3-Clause
"""The dispersion of counts: how much more they vary than Poisson counts of the same mean.

Counts with the mean Λ_ij and the dispersion φ_j of their feature have the variance
Λ_ij + φ_j Λ_ij²; φ = 0 for Poisson counts. All estimates come from a fit Z with as many components
as will be tried.

**Are the counts over-dispersed?** One φ for all entries, by the method of moments,

    φ = Σ_ij u_ij [(V_ij − Z_ij)² / f − Z_ij] / Σ_ij u_ij Z_ij²,    u_ij = 1 / (1 + Z_ij)²,

where f = 1 − K (n + m − K) / (n m) is the share of the freedom of V that the fit leaves. If it
cannot be told from 0, all dispersions are 0.

**Which features are?** The same moments for each feature, with u = Z / (1 + Z)³, which gives rare
features less noise, and with the freedom 1 − h_ij that the fit leaves to each entry (h is its
leverage). A frequent and over-dispersed feature attracts components that follow its noise; its
leverage is near 1, and its residuals say nothing. Therefore the model is fitted a second time with
the weights 1 / (1 + φ_j μ_j) of features, the inverse of their variance in units of that of Poisson
counts; features that still have a high leverage get the trend.

The estimates are then shrunk towards a smooth trend over the mean μ_j, by as much as their own
sampling errors and their scatter around the trend say: frequent features keep their own dispersion,
rare ones get that of others with a similar mean. (Love et al., 2014, "Moderated estimation of fold
change and dispersion for RNA-seq data with DESeq2", shrink towards a0 + a1/μ; here the trend is a
local mean, because it may rise as well.)

    Z_ij    fitted mean of a count, (n, m)
    x_ij    derivative of Z_ij in (W H)_ij: size factor times batch effect
    w_j     weights of features in the fit
    h_ij    leverage of an entry, w_j x_ij² Σ_k [H_kj² / Σ_l (w_l x_il² H_kl² / Z_il)] / Z_ij for W
            given H, as if components did not overlap, and K_j / n for H given W, where K_j is the
            number of components with feature j
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sipower.data.row_blocks import RowBlocks
from sipower.data.weighting import Weights
from sipower.estimators.klnmf import KLNMF
from sipower.estimators.observation import Observation, as_given, as_observation
from sipower.loop.solve import hide_inner_results

__all__ = ["FeatureMoments", "estimate_dispersion", "feature_moments", "shrunk_dispersions"]

Numbers = NDArray[np.float64]
NO_ARGUMENTS: Mapping[str, Any] = MappingProxyType({})
MAX_ENTRIES = 20_000_000  # of the rows that the dispersion is estimated from
MIN_FREEDOM = 0.2
MIN_DISPERSION = 1e-3
STANDARD_ERRORS = 3.0  # a smaller estimate is not distinguished from 0
ROWS_AT_A_TIME = 256
MAX_LEVERAGE = 0.5  # entries with a higher one are not used
MAX_MEAN_LEVERAGE = 0.3  # features with a higher one get the trend
MIN_NEIGHBOURS, NEIGHBOUR_SHARE = 50, 0.05  # features that determine the trend at a mean
MIN_WIDTH = 0.3  # of a neighbourhood, in log μ
GRID_SIZE = 64  # means at which the trend is computed; it is interpolated between them
TREND_ROUNDS = 5
MIN_TREND = 1e-4


@hide_inner_results()
def estimate_dispersion(
    model: KLNMF, V: RowBlocks, observed: Mapping[str, Any] = NO_ARGUMENTS
) -> Numbers:
    """Fit the model to V, or to some rows of large data, and return the dispersions, (m,).

    All are 0 if one dispersion for all features cannot be told from 0, and if the data are so small
    that the fit explains nearly everything.
    """
    K: Any = model.n_components
    n, m = V.shape
    rows = min(n, max(MAX_ENTRIES // m, 2 * K))
    chosen = np.arange(rows) * n // rows
    given = as_observation(V.shape, as_given(observed)).take(chosen)
    is_used = _is_used(given.weights, (rows, m))
    n_used, m_used = (is_used.any(axis=axis).sum() for axis in (1, 0))
    freedom = 1 - K * (n_used + m_used - K) / max(is_used.sum(), 1)
    if freedom < MIN_FREEDOM:
        return np.zeros(m)
    part: Any = V.take(chosen)
    W = model.fit_transform(part, **given.arguments())
    common = common_dispersion(_fitted_rows(part, model, W, given, is_used), freedom)
    if not common > 0:
        return np.zeros(m)
    own = np.ones(m) if given.weights.columns is None else given.weights.columns
    first = feature_moments(
        _fitted_rows(part, model, W, given, is_used), model.components_, own, is_used
    )
    weights = own / (1 + shrunk_dispersions(first, common) * first.means)
    W = model.fit_transform(part, **given.arguments() | {"feature_weight": weights})
    second = feature_moments(
        _fitted_rows(part, model, W, given, is_used), model.components_, weights, is_used
    )
    return shrunk_dispersions(second, common)


class FittedRows(NamedTuple):
    """Some rows of the data and of a fit."""

    counts: Numbers  # (rows, m)
    means: Numbers  # Z, (rows, m)
    exposure: Any  # x, (rows, m) or (rows, 1)
    W: Numbers
    is_used: NDArray[np.bool_]


def _fitted_rows(
    V: Any, model: KLNMF, W: Any, given: Observation, is_used: NDArray[np.bool_]
) -> Iterator[FittedRows]:
    """Yield all rows of the data and of a fit, some at a time."""
    sizes = np.ones(len(W)) if given.offsets is None else given.offsets
    for at in range(0, len(W), ROWS_AT_A_TIME):
        block = slice(at, at + ROWS_AT_A_TIME)
        # No BLAS: the same bits for any number of threads.
        z = np.einsum("ik,kj->ij", W[block], model.components_, dtype=np.float64)
        exposure = sizes[block, None]
        z *= exposure
        if given.batch is not None:
            effects = model.batch_effects_[np.searchsorted(model.batches_, given.batch[block])]
            z *= effects
            exposure = exposure * effects
        yield FittedRows(_dense(V[block]), z, exposure, W[block], is_used[block])


def common_dispersion(rows: Iterable[FittedRows], freedom: float) -> float:
    """Return one dispersion for all entries, or 0 if it cannot be told from 0."""
    excess, scale, variance = 0.0, 0.0, 0.0
    for v, z, _, _, is_used in rows:
        weight = 1 / np.square(1 + z)
        weight *= is_used
        excess += float((weight * (np.square(v - z) / freedom - z)).sum())
        scale += float((weight * z * z).sum())
        # For Poisson counts (v − z)² has the variance 2 z² + z.
        variance += float((weight * weight * (2 * z * z + z)).sum())
    if not scale > 0:
        return 0.0
    dispersion = excess / scale
    threshold = max(STANDARD_ERRORS * np.sqrt(variance) / scale, MIN_DISPERSION)
    return dispersion if dispersion > threshold else 0.0


@dataclass(frozen=True, eq=False)
class FeatureMoments:
    """Sums over the samples, from which the dispersion of each feature is estimated.

    Parameters
    ----------
    means
        Mean count of each feature, (m,).
    excess, scale
        Σ_i u_ij [(V_ij − Z_ij)² / (1 − h_ij) − Z_ij] and Σ_i u_ij Z_ij², (m,). Both are 0 where the
        fit follows the counts too closely.
    powers
        Σ_i u_ij² Z_ij^p for p = 1 to 4, (4, m).
    """

    means: Numbers
    excess: Numbers
    scale: Numbers
    powers: Numbers

    def variances(self, dispersion: Numbers) -> Numbers:
        """Return the sampling variances of excess/scale for counts with this dispersion.

        A negative binomial count with the variance s has E (v − z)⁴ = s² (3 + 6 φ) + s.
        """
        one, two, three, four = self.powers
        squares = two + 2 * dispersion * three + dispersion**2 * four
        sums = (2 + 6 * dispersion) * squares + one + dispersion * two
        return np.asarray(sums / self.scale**2)

    def take(self, features: NDArray[np.int64]) -> FeatureMoments:
        """Return the moments of some features."""
        return FeatureMoments(
            self.means[features],
            self.excess[features],
            self.scale[features],
            self.powers[:, features],
        )


def feature_moments(
    rows: Iterable[FittedRows], H: Any, weights: Numbers, is_used: NDArray[np.bool_]
) -> FeatureMoments:
    """Return the moments of each feature from a fit with these components and feature weights."""
    H = np.asarray(H, np.float64)
    squares, samples = np.square(H), np.maximum(is_used.sum(axis=0), 1)
    of_columns = (H > 0).sum(axis=0) / samples
    totals, excess, scale, leverage, all_scale = np.zeros((5, H.shape[1]))
    powers = np.zeros((4, H.shape[1]))
    for v, z, exposure, W, used in rows:
        information = np.divide(weights * exposure**2, z, out=np.zeros_like(z), where=z > 0)
        information *= used
        of_rows = np.einsum("ij,kj->ik", information, squares)
        inverse = np.divide(W > 0, of_rows, out=np.zeros_like(of_rows), where=of_rows > 0)
        h = information * np.einsum("ik,kj->ij", inverse, squares) + of_columns
        u = used * z / (1 + z) ** 3
        leverage += (u * z * z * h).sum(axis=0)
        all_scale += (u * z * z).sum(axis=0)
        u *= h < MAX_LEVERAGE
        freedom = np.maximum(1 - h, 1 - MAX_LEVERAGE)
        excess += (u * (np.square(v - z) / freedom - z)).sum(axis=0)
        scale += (u * z * z).sum(axis=0)
        totals += (v * used).sum(axis=0)
        power = u * u
        for p in range(4):
            power *= z
            powers[p] += power.sum(axis=0)
    is_known = (leverage < MAX_MEAN_LEVERAGE * all_scale) & (totals > 0) & (scale > 0)
    return FeatureMoments(totals / samples, excess * is_known, scale * is_known, powers)


def shrunk_dispersions(moments: FeatureMoments, common: float) -> Numbers:
    """Return the dispersion of each feature, shrunk towards the trend over the mean.

    It is `common` if the residuals of no feature can be used. Dispersions below `MIN_DISPERSION`
    and those of features without counts are 0.
    """
    counted = moments.means > 0
    known, dispersions = np.flatnonzero(moments.scale > 0), np.where(counted, common, 0.0)
    if not len(known):
        return dispersions
    part = moments.take(known)
    x, estimates = np.log(part.means), part.excess / part.scale
    grid = np.unique(np.quantile(x, np.linspace(0, 1, GRID_SIZE)))
    distances = np.abs(grid[:, None] - x)
    neighbours = min(len(x), max(MIN_NEIGHBOURS, int(NEIGHBOUR_SHARE * len(x))))
    farthest = np.partition(distances, neighbours - 1, axis=1)[:, neighbours - 1]
    widths = np.maximum(farthest, MIN_WIDTH)
    kernel = np.maximum(1 - np.square(distances / widths[:, None]), 0)
    at_grid = np.full(len(grid), max(part.excess.sum() / part.scale.sum(), MIN_TREND))
    for _ in range(TREND_ROUNDS):
        trend = np.interp(x, grid, at_grid)
        # Features scatter around the trend by about as much as its value.
        precision = 1 / (part.variances(trend) + np.square(trend))
        means = (kernel @ (precision * estimates)) / (kernel @ precision)
        at_grid = np.maximum(means, MIN_TREND)
    trend = np.interp(x, grid, at_grid)
    errors = part.variances(np.maximum(trend, estimates)) / np.square(trend)
    deviations = estimates / trend - 1
    precision = 1 / np.square(1 + errors)
    scatter = (kernel @ (precision * (np.square(deviations) - errors))) / (kernel @ precision)
    scatter = np.interp(x, grid, np.maximum(scatter, 0))
    dispersions[counted] = np.interp(np.log(moments.means[counted]), grid, at_grid)
    dispersions[known] = trend * (1 + deviations * scatter / (scatter + errors))
    return np.where(dispersions < MIN_DISPERSION, 0.0, dispersions)


def _is_used(weights: Weights, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Return which entries have a positive weight."""
    used = np.ones(shape, bool)
    if weights.rows is not None:
        used &= weights.rows[:, None] > 0
    if weights.columns is not None:
        used &= weights.columns > 0
    if weights.entries is not None:
        hidden = sparse.csr_array(weights.entries)
        hidden.data = (hidden.data == 0).astype(np.float64)
        used &= hidden.toarray() == 0
    return used


def _dense(rows: Any) -> Any:
    return rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows, np.float64)
