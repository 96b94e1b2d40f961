# SPDX-License-Identifier: BSD-3-Clause
"""`Run`, the record of one fit, and its construction from a model or an AnnData object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sipower.data.plausibility import warn_user
from sipower.estimators import KLNMF
from sipower.estimators.component_names import known_names
from sipower.estimators.verdict import is_fitted_W
from sipower.inference.spectra import Spectra, is_topic_model
from sipower.io.base import unique_names
from sipower.kernels import Array
from sipower.loop.solve import Record
from sipower.results.normalisation import order_by_size, to_counts, to_profiles, to_shares
from sipower.results.recorded import recorded_parameters

__all__ = ["Names", "Run", "check_is_step", "is_anndata"]

Names = tuple[str, ...]
# Maps facts of a run to the attributes of a fitted model that hold them.
_ATTRIBUTES = {
    "status": "status_",
    "certified_gap": "kkt_residual_",
    "divergence": "kl_divergence_",
    "rounds": "n_iter_",
    "whole_numbers": "_whole_numbers",  # their share in the data
}


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A finished fit: V ≈ W H, with its parameters, trace and names.

    The components of a run are in decreasing order of size, whatever their order in the model.

    Parameters
    ----------
    W, H
        (samples, K) and (K, features).
    trace
        Objective and gap over rounds, passes and seconds.
    facts
        Contents of `run.json`: "parameters", "input", "status", "certified_gap", "divergence", ...
    samples, features
        Names, or None if the data have none.
    feature_ids
        Ids of the features, such as ENSG00000284770, or None if the data have none.
    order
        Position of each component in the factors of the model, (K,). None sorts the components of
        `W` and `H` by size; otherwise they are in this order already.
    component_names
        Names of the components of `W` and `H`, such as those of guides, None for each that has
        none; None: no component has a name.
    batches, batch_effects
        Labels of the batches and the fitted factors of every batch and feature, (batches,
        features); None: the fit had no batches.
    spectra
        Result of `sipower.inference.spectra` for the features of the run, with the components in
        the order of the run; None: not computed.
    """

    W: Array
    H: Array
    trace: Sequence[Record] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    samples: Names | None = None
    features: Names | None = None
    feature_ids: Names | None = None
    order: Any = None
    component_names: Sequence[str | None] | None = None
    batches: Names | None = None
    batch_effects: Array | None = None
    spectra: Spectra | None = None

    def __post_init__(self) -> None:
        for name in ("W", "H"):
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name)))
        W, H = self.W.shape, self.H.shape
        if not (len(W) == len(H) == 2 and W[1] == H[0]):
            raise ValueError(f"`W` and `H` must have shapes (n, K) and (K, m), got {W} and {H}.")
        if self.spectra is not None and self.spectra.z_scores.shape != H:
            raise ValueError(
                f"`spectra` must have the shape {H} of `H`, got {self.spectra.z_scores.shape}."
            )
        self._check_names()
        self._sort_components()

    def _check_names(self) -> None:
        K, m = self.H.shape
        sizes = {"samples": len(self.W), "features": m, "feature_ids": m, "component_names": K}
        if self.batch_effects is not None:
            effects = np.asarray(self.batch_effects)
            if effects.ndim != 2 or effects.shape[1] != m:
                raise ValueError(
                    f"`batch_effects` must have shape (batches, {m}), got {effects.shape}."
                )
            sizes["batches"] = len(effects)
        for side, size in sizes.items():
            names = getattr(self, side)
            if names is not None:
                if len(names) != size:
                    raise ValueError(f"`{side}` must have {size} names, got {len(names)}.")
                texts = tuple(name if name is None else str(name) for name in names)
                object.__setattr__(self, side, texts)

    def _sort_components(self) -> None:
        if self.order is not None:
            order = np.asarray(self.order)
            is_integer = order.dtype.kind in "iu"
            if not (is_integer and np.array_equal(np.sort(order), np.arange(len(self.H)))):
                raise ValueError(f"`order` must hold each of 0 to {len(self.H) - 1} once.")
            object.__setattr__(self, "order", order.astype(np.intp))
            return
        order = order_by_size(self.W, self.H)
        object.__setattr__(self, "order", order)
        if (order != np.arange(len(order))).any():
            object.__setattr__(self, "W", np.ascontiguousarray(self.W[:, order]))
            object.__setattr__(self, "H", self.H[order])
            if self.component_names is not None:
                names = tuple(self.component_names[k] for k in order)
                object.__setattr__(self, "component_names", names)

    def __repr__(self) -> str:
        """Return at most five lines: sizes, status, what was reached, and the file."""
        shape = f"{len(self.W):,} samples x {self.H.shape[1]:,} features"
        lines = [f"Run of {shape}, {len(self.H)} components ({self.W.dtype})"]
        for titles in (("status", "rounds", "seconds"), ("divergence", "certified_gap")):
            values = [(title, self.facts.get(title)) for title in titles]
            texts = [
                f"{title.replace('_', ' ')}: {value if isinstance(value, str) else f'{value:.6g}'}"
                for title, value in values
                if value is not None
            ]
            lines += [", ".join(texts)] if texts else []
        file = (self.facts.get("input") or {}).get("file")
        return "\n  ".join([*lines, f"file: {file}"] if file else lines)

    def normalised(self) -> Run:
        """Return the run with W in counts and rows of H that sum to 1; W H is the same."""
        return replace(self, W=to_counts(self.W, self.H), H=to_profiles(self.H))

    @classmethod
    def from_model(
        cls,
        model: KLNMF,
        W: Any,
        *,
        samples: Sequence[str] | None = None,
        features: Sequence[str] | None = None,
    ) -> Run:
        """Return the run of a fitted model.

        Parameters
        ----------
        model
            A fitted `KLNMF`.
        W
            Result of `fit_transform` or ``model.transform(V)``, (samples, K).
        samples, features
            Names. If the model was fitted to a data frame, its feature names are the default.

        Examples
        --------
        >>> import numpy as np
        >>> from sipower import KLNMF
        >>> from sipower.results import Run
        >>> V = np.random.default_rng(0).poisson(2.0, (30, 20))
        >>> model = KLNMF(2, random_state=0)
        >>> run = Run.from_model(model, model.fit_transform(V))
        >>> run.facts["status"], run.W.shape
        ('converged', (30, 2))
        """
        check_is_step(model)
        check_is_fitted(model, "components_")
        _check_components(model)
        facts = {key: getattr(model, a) for key, a in _ATTRIBUTES.items() if hasattr(model, a)}
        trace = getattr(model, "trace_", ())
        if not is_fitted_W(model, W):
            warn_user(
                "`W` is not that of the fit: sizes and shares are those of its samples, and the "
                "divergence, gap and trace of the fit, which are not theirs, are left out."
            )
            facts, trace = {}, ()
        if trace:
            facts |= {"passes": trace[-1].passes, "seconds": trace[-1].seconds}
        if features is None:
            features = getattr(model, "feature_names_in_", None)
        if getattr(model, "_remarks", ()):
            facts["remarks"] = list(model._remarks)
        facts["parameters"] = recorded_parameters(model)
        if getattr(model, "_observed", None):
            facts["observed"] = dict(model._observed)
        if getattr(model, "guides_", None):
            facts["guides"] = list(map(str, model.guides_))
        more: dict[str, Any] = {"component_names": known_names(model, len(model.components_))}
        if hasattr(model, "batch_effects_"):
            more |= {"batches": model.batches_, "batch_effects": model.batch_effects_}
        return cls(W, model.components_, trace, facts, samples, features, **more)  # type: ignore[arg-type]

    @classmethod
    def from_anndata(cls, adata: Any, key: str = "nmf", *, W: Any = None) -> Run:
        """Return the run that `sipower.tl.nmf` has stored in an AnnData object.

        Parameters
        ----------
        adata
            AnnData object with the results.
        key
            Their name, `key_added` of `sipower.tl.nmf`.
        W
            Weights of other cells for the same programs, as `sipower.tl.project` stores them.
        """
        facts = adata.uns.get(key, {})
        if key not in adata.varm or (W is None and f"X_{key}" not in adata.obsm):
            raise ValueError(
                f"`adata` must have varm[{key!r}] and obsm['X_{key}']: call sipower.tl.nmf first, "
                "or give the name of its results as `key`."
            )
        H = np.asarray(adata.varm[key]).T
        samples, attributes = (tuple(adata.obs_names), _ATTRIBUTES) if W is None else (None, ())
        W = adata.obsm[f"X_{key}"] if W is None else W
        known = {name: facts[name] for name in attributes if name in facts}
        columns = [np.asarray(facts.get("trace", {}).get(f.name, ())) for f in fields(Record)]
        trace = [Record(int(row[0]), *map(float, row[1:])) for row in zip(*columns, strict=True)]
        known["parameters"] = dict(facts.get("params", {}))
        features, order = tuple(adata.var_names), np.arange(len(H))
        names = [str(name) for name in facts.get("components", ())]
        default = [f"component {k + 1}" for k in order]
        own = [n if n != d else None for n, d in zip(names, default, strict=False)] or None
        run = cls(W, H, trace, known, samples, features, order=order, component_names=own)
        if "median_total" not in facts or f"{key}_z" not in adata.varm:
            return run
        z, median = (np.asarray(adata.varm[f"{key}_{name}"]).T for name in ("z", "median"))
        return run.with_spectra(median, z, float(facts["median_total"]))

    def with_spectra(self, median_units: Array, z_scores: Array, median_total: float) -> Run:
        """Return the run with spectra that were read from a file or an AnnData object."""
        usages = np.asarray(to_shares(self.W.astype(np.float64), self.H), np.float64)
        parts = usages, median_units, z_scores, median_total, self.component_labels()
        return replace(self, spectra=Spectra(*parts, self.samples, self.features))

    def component_labels(self, prefix: str = "component ") -> Names:
        """Return the names of the components, and numbers after a prefix for those without."""
        names = self.component_names or [None] * len(self.H)
        labels = [f"{prefix}{k}" if name is None else name for k, name in enumerate(names, 1)]
        return unique_names(labels)

    def sample_names(self) -> Names:
        """Return the names of the rows of W, or numbers from 1 if the data have none."""
        return self.samples or tuple(str(i + 1) for i in range(len(self.W)))

    def feature_names(self) -> Names:
        """Return the names of the columns of H, or numbers from 1 if the data have none."""
        return self.features or tuple(str(j + 1) for j in range(self.H.shape[1]))


def _check_components(model: Any) -> None:
    """Raise an error for a model of another library that does not factorise V as W H."""
    if is_topic_model(model):
        raise TypeError(
            "`model` is a LatentDirichletAllocation, whose components are pseudo-counts and whose "
            "weights are shares: use sipower.describe with `W` and `V`."
        )
    if (np.asarray(model.components_) < 0).any():
        raise TypeError(
            f"`model` must have non-negative components, got a {type(model).__name__} whose "
            "components have negative entries."
        )


def is_anndata(data: Any) -> bool:
    """Return whether an object is an AnnData object, without importing anndata."""
    return type(data).__module__.partition(".")[0] == "anndata" and hasattr(data, "obsm")


def check_is_step(model: Any) -> None:
    """Raise an error for a pipeline, which has a model as one of its steps."""
    if hasattr(model, "steps"):
        raise TypeError(
            "`model` must be a fitted KLNMF, got a Pipeline: pass its KLNMF step, pipe[-1]."
        )
