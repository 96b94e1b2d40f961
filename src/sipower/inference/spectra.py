# SPDX-License-Identifier: BSD-3-Clause
"""`spectra`: usages, spectra in counts of a median sample, and z-scores, as cNMF defines them.

The formulas are in `sipower.inference.spectra_fits`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower.data.containers import as_numbers
from sipower.data.names import Items, arrange, as_names, data_items, match_all
from sipower.data.plausibility import warn_user
from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import as_matrix
from sipower.inference.spectra_fits import ScaledSamples, fit_median_units, fit_z_scores

__all__ = ["Spectra", "is_topic_model", "spectra"]

Float = NDArray[np.float64]
Names = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Spectra:
    """The usages and spectra of components, in the units that users of cNMF expect.

    Parameters
    ----------
    usages
        Share of every component in every sample, (samples, K). Rows sum to 1; the row of a sample
        that no component explains, such as an empty one, is 0.
    median_units
        Expected counts of every feature in a sample of median total that consists of one component
        alone, (K, features).
    z_scores
        By how many standard deviations the scaled counts of a feature exceed their mean in a sample
        that consists of one component alone, (K, features); 0 for a feature that does not vary.
        Large values mark the features of a component.
    median_total
        The median of the totals of the samples that are not empty.
    components
        Names of the components.
    samples, features
        Names, or None if the data have none.
    """

    usages: Float
    median_units: Float
    z_scores: Float
    median_total: float
    components: Names
    samples: Names | None = None
    features: Names | None = None

    def top_features(self, n: int = 10) -> list[list[str]]:
        """Return the names of the n features with the largest positive z-scores, by component.

        Features without names are numbered from 1.
        """
        names = self.features or tuple(str(j + 1) for j in range(self.z_scores.shape[1]))
        orders = np.argsort(-self.z_scores, axis=1, kind="stable")[:, :n]
        rows = zip(orders, self.z_scores, strict=True)
        return [[names[j] for j in order if scores[j] > 0] for order, scores in rows]

    def to_frames(self) -> dict[str, Any]:
        """Return the arrays as data frames with one column for each component.

        The rows of "usages" are samples, those of "median_units" and "z_scores" are features.
        """
        import pandas as pd  # noqa: PLC0415 - optional

        arrays = {
            "usages": (self.usages, self.samples),
            "median_units": (self.median_units.T, self.features),
            "z_scores": (self.z_scores.T, self.features),
        }
        columns = list(self.components)
        return {
            name: pd.DataFrame(array, None if index is None else list(index), columns)
            for name, (array, index) in arrays.items()
        }


def spectra(
    V: Any,
    model: Any,
    *,
    W: Any = None,
    totals: Any = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
) -> Spectra:
    """Compute usages, spectra in counts of a median sample, and z-scores of all features.

    They correspond to the usages, `gene_spectra_tpm` and `gene_spectra_score` of cNMF (Kotliar et
    al. 2019), with the median total of the samples in place of a million:

    - The usages are the shares of a sample's counts that the components explain.
    - The spectra in median units are the exact minimum of the KL divergence of the counts, given
      the usages and the totals of the samples. If V are the data of a converged fit without
      penalties, priors and batches, they are the profiles times the median total.
    - The z-scores are the coefficients of a least-squares regression, without an intercept, of the
      standardised counts of samples scaled to the median total on the usages.

    Batch effects of a model are not removed from V.

    Parameters
    ----------
    V
        Counts (n, m), in memory or on disk. The features may be other ones than those of the fit,
        such as all genes after a fit of the variable ones.
    model
        The components: a fitted `KLNMF`; a `Run` or `Consensus` of the samples; a pair (W, H); or
        weights W in counts, (n, K), as `sipower.tl.nmf` stores them.
    W
        Weights of the samples, only with a `KLNMF`; None: ``model.transform(V)``.
    totals
        Totals of the samples, (n,), such as those over more features than V has; None: the row sums
        of V.
    sample_weight
        Weights of the samples in both fits, (n,); None: 1.
    n_jobs
        Number of threads; None: as for V, or all cores.

    Examples
    --------
    >>> import numpy as np
    >>> from sipower import KLNMF
    >>> from sipower.inference import spectra
    >>> V = np.array([[9, 1, 2], [8, 0, 1], [1, 5, 1], [0, 7, 1]])
    >>> result = spectra(V, KLNMF(2, random_state=0).fit(V))
    >>> result.usages.sum(axis=1)
    array([1., 1., 1., 1.])
    >>> sorted(result.top_features(1))
    [['1'], ['2']]
    """
    data = as_matrix(V, n_jobs=n_jobs)
    n, items = data.shape[0], data_items(V, "`V`")[0]
    weights = _component_weights(V, model, W, items)
    if len(weights) != n:
        raise ValueError(
            f"`W` must have a row for each of the {n} samples of `V`, got {len(weights)} rows."
        )
    t = data.mass if totals is None else _as_vector("totals", arrange("totals", totals, items), n)
    without = np.flatnonzero((t == 0) & (data.mass > 0))
    if len(without):
        raise ValueError(f"`totals` must be positive in row {without[0]}, which has counts, got 0.")
    usages = _to_shares(np.where(t[:, np.newaxis] > 0, weights, 0))
    rho = np.ones(n)
    if sample_weight is not None:
        rho = _as_vector("sample_weight", arrange("sample_weight", sample_weight, items), n)
    rho = np.where(usages.any(axis=1), rho, 0)
    if not rho.any():
        raise ValueError("`W` and `sample_weight` must be positive for a sample with counts.")
    median = float(np.median(t[t > 0]))
    samples = ScaledSamples(data, usages, t / median, rho)
    return Spectra(
        usages,
        fit_median_units(samples),
        fit_z_scores(samples),
        median,
        _component_names(model, usages.shape[1]),
        _item_names(data, 0, model),
        _item_names(data, 1, model),
    )


def _factors(V: Any, model: Any, W: Any) -> tuple[Any, Any]:
    """Return W and H, or None for H if W is in counts already."""
    if hasattr(model, "components_"):
        H = np.asarray(model.components_)
        if is_topic_model(model):  # whose weights are shares already
            H = H / H.sum(axis=1, keepdims=True)
        return (model.transform(V) if W is None else W), H
    if W is not None:
        raise ValueError("`W` must be None unless `model` is a fitted KLNMF.")
    if hasattr(model, "W") and hasattr(model, "H"):
        return model.W, model.H
    if hasattr(model, "get_params"):
        raise ValueError("`model` must be fitted: call its fit first.")
    return model if isinstance(model, tuple) else (model, None)


def is_topic_model(model: Any) -> bool:
    """Return whether a model is scikit-learn's LatentDirichletAllocation.

    Its components are pseudo-counts, and what it transforms samples to are shares, so that their
    product is not V.
    """
    return any(kind.__name__ == "LatentDirichletAllocation" for kind in type(model).__mro__)


def _component_weights(V: Any, model: Any, W: Any, samples: Items) -> Float:
    """Return the weights in counts, up to a factor for each sample, (n, K)."""
    name, rows = "W" if W is not None else "model", getattr(model, "samples", None)
    W, H = _factors(V, model, W)
    if rows is not None:  # a run, or a consensus of named data
        side = Items(
            "sample", len(W), as_names(rows), None, "`model`", plain_form="(model.W, model.H)"
        )
        W = W[match_all(samples, side)[0]]
    weights = as_numbers("W", arrange(name, W, samples, None))
    if weights.ndim != 2 or not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError(
            "`W` must be finite, non-negative and of shape (samples, components), got shape "
            f"{weights.shape}."
        )
    if H is None:
        return weights
    mass = np.asarray(H).sum(axis=1, dtype=np.float64)
    if len(mass) != weights.shape[1]:
        raise ValueError(f"`W` must have {len(mass)} columns, got {weights.shape[1]}.")
    return np.asarray(weights * mass)


def _to_shares(weights: Float) -> Float:
    sums = weights.sum(axis=1, keepdims=True)
    shares: Float = np.divide(weights, sums, where=sums > 0, out=np.zeros_like(weights))
    return shares


def _as_vector(name: str, values: Any, n: int) -> Float:
    vector = as_numbers(name, values)
    if vector.shape != (n,) or not (np.isfinite(vector) & (vector >= 0)).all():
        raise ValueError(
            f"`{name}` must be a finite, non-negative number for each of the {n} samples."
        )
    return vector


def _component_names(model: Any, K: int) -> Names:
    if hasattr(model, "component_labels"):  # a Run
        return tuple(model.component_labels())
    if hasattr(model, "get_feature_names_out"):
        return tuple(map(str, model.get_feature_names_out()))
    names = getattr(model, "columns", None)  # a data frame of weights
    return (
        tuple(f"component {k + 1}" for k in range(K)) if names is None else tuple(map(str, names))
    )


def _item_names(data: RowBlocks, side: int, model: Any) -> Names | None:
    """Return the names of the samples (side 0) or features (side 1), of the data or of a run."""
    own = as_names((data.row_names, data.column_names)[side])
    if own is not None or side == 0:
        return own
    known = getattr(model, "features", getattr(model, "feature_names_in_", None))
    if known is None or len(known) != data.shape[1]:
        return None
    warn_user("`V` has no names of features: those of `model` are used, in the same order.")
    return tuple(map(str, known))
