# SPDX-License-Identifier: BSD-3-Clause
"""`Run`, the record of one fit, and its construction from a model, an AnnData object or arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeAlias, TypedDict, Unpack

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sipower.estimators import KLNMF
from sipower.estimators.fingerprints import fingerprint
from sipower.kernels import Array
from sipower.loop.solve import Record
from sipower.results.normalisation import order_by_size, to_counts, to_profiles

__all__ = [
    "ARRAY",
    "Names",
    "Run",
    "RunLike",
    "RunParts",
    "as_run",
    "is_anndata",
    "recorded_parameters",
]

ARRAY = "array"  # a recorded parameter that was an array begins with this word
MAX_NUMBERS = 256  # length of an array that a run records in full
Names = tuple[str, ...]
# Maps facts of a run to the attributes of a fitted model that hold them.
_ATTRIBUTES = {
    "status": "status_",
    "certified_gap": "kkt_residual_",
    "divergence": "kl_divergence_",
    "rounds": "n_iter_",
}
_NOT_RECORDED = ("on_round", "checkpoint", "checkpoint_every")  # they do not change the factors


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
    """

    W: Array
    H: Array
    trace: Sequence[Record] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    samples: Names | None = None
    features: Names | None = None
    feature_ids: Names | None = None
    order: Any = None

    def __post_init__(self) -> None:
        for name in ("W", "H"):
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name)))
        W, H = self.W.shape, self.H.shape
        if not (len(W) == len(H) == 2 and W[1] == H[0]):
            raise ValueError(f"`W` and `H` must have shapes (n, K) and (K, m), got {W} and {H}.")
        self._sort_components()
        for side, size in (("samples", W[0]), ("features", H[1]), ("feature_ids", H[1])):
            names = getattr(self, side)
            if names is not None:
                if len(names) != size:
                    raise ValueError(f"`{side}` must have {size} names, got {len(names)}.")
                object.__setattr__(self, side, tuple(map(str, names)))

    def _sort_components(self) -> None:
        if self.order is not None:
            order = np.asarray(self.order, dtype=np.intp)
            if not np.array_equal(np.sort(order), np.arange(len(self.H))):
                raise ValueError(f"`order` must hold each of 0 to {len(self.H) - 1} once.")
            object.__setattr__(self, "order", order)
            return
        order = order_by_size(self.W, self.H)
        object.__setattr__(self, "order", order)
        if (order != np.arange(len(order))).any():
            object.__setattr__(self, "W", np.ascontiguousarray(self.W[:, order]))
            object.__setattr__(self, "H", self.H[order])

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
        _check_is_step(model)
        check_is_fitted(model, "components_")
        facts = {key: getattr(model, a) for key, a in _ATTRIBUTES.items() if hasattr(model, a)}
        trace = getattr(model, "trace_", ())
        if trace:
            facts |= {"passes": trace[-1].passes, "seconds": trace[-1].seconds}
        if features is None:
            features = getattr(model, "feature_names_in_", None)
        if getattr(model, "_remarks", ()):
            facts["remarks"] = list(model._remarks)
        facts["parameters"] = recorded_parameters(model)
        if getattr(model, "_observed", None):
            facts["observed"] = dict(model._observed)
        return cls(W, model.components_, trace, facts, samples, features)  # type: ignore[arg-type]

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
        samples = tuple(adata.obs_names) if W is None else None
        W = adata.obsm[f"X_{key}"] if W is None else W
        known = {name: facts[name] for name in _ATTRIBUTES if name in facts}
        columns = [np.asarray(facts.get("trace", {}).get(f.name, ())) for f in fields(Record)]
        trace = [Record(int(row[0]), *map(float, row[1:])) for row in zip(*columns, strict=True)]
        known["parameters"] = dict(facts.get("params", {}))
        features, order = tuple(adata.var_names), np.arange(len(H))
        return cls(W, H, trace, known, samples, features, order=order)

    def sample_names(self) -> Names:
        """Return the names of the rows of W, or numbers from 1 if the data have none."""
        return self.samples or tuple(str(i + 1) for i in range(len(self.W)))

    def feature_names(self) -> Names:
        """Return the names of the columns of H, or numbers from 1 if the data have none."""
        return self.features or tuple(str(j + 1) for j in range(self.H.shape[1]))


def recorded_parameters(model: KLNMF) -> dict[str, Any]:
    """Return the parameters that determine the factors of a model, in the form of `run.json`."""
    parameters = {k: v for k, v in model.get_params().items() if k not in _NOT_RECORDED}
    if parameters.get("dtype") is not None:
        parameters["dtype"] = np.dtype(parameters["dtype"]).name
    plain = bool | int | float | str | None
    return {k: v if isinstance(v, plain) else _describe(v) for k, v in parameters.items()}


def _describe(value: Any) -> str | list[float]:
    """Return a short text that identifies a parameter, or a few numbers themselves."""
    if hasattr(value, "to_numpy"):  # a DataFrame, whose text leaves out most of it
        value = value.to_numpy()
    if not isinstance(value, np.ndarray | list):
        return str(value)
    if np.ndim(value) == 1 and len(value) <= MAX_NUMBERS:
        return [float(number) for number in value]
    return f"{ARRAY} of shape {np.shape(value)}, SHA-256 {fingerprint(value)}"


def is_anndata(data: Any) -> bool:
    """Return whether an object is an AnnData object, without importing anndata."""
    return type(data).__module__.partition(".")[0] == "anndata" and hasattr(data, "obsm")


def _check_is_step(model: Any) -> None:
    if hasattr(model, "steps"):
        raise TypeError(
            "`model` must be a fitted KLNMF, got a Pipeline: pass its KLNMF step, pipe[-1]."
        )


RunLike: TypeAlias = Any  # a Run, a fitted KLNMF, an AnnData object, or a pair (W, H)


class RunParts(TypedDict, total=False):
    """Keyword arguments that plots, report and `describe` pass on to `as_run`."""

    W: Any
    samples: Sequence[str] | None
    features: Sequence[str] | None
    key: str


def _check_known(parts: Mapping[str, Any]) -> None:
    for name in parts:
        if name not in RunParts.__annotations__:
            raise TypeError(f"`{name}` is not an argument here.")


def as_run(run: RunLike, **parts: Unpack[RunParts]) -> Run:
    """Convert what plots, report and `describe` accept to a run.

    Parameters
    ----------
    run
        A run; a fitted `KLNMF`, which needs `W`; an AnnData object after `sipower.tl.nmf`; or a
        pair of arrays (W, H).
    **parts
        ``W``: weights, the result of `fit_transform` or ``model.transform(V)``.
        ``samples``, ``features``: names. ``key``: name of the results in an AnnData object.
    """
    _check_known(parts)
    W, names = parts.get("W"), {k: parts.get(k) for k in ("samples", "features")}
    names = {side: value for side, value in names.items() if value is not None}
    if "key" in parts and not is_anndata(run):
        raise ValueError("`key` must only be given with an AnnData object.")
    if isinstance(run, tuple | list) and len(run) == 2:
        run = Run(*run)
    if isinstance(run, Run):
        if W is not None:
            raise ValueError("`W` must be None with a Run, which has its own W.")
        return replace(run, **names)  # type: ignore[arg-type]
    if is_anndata(run):
        return replace(Run.from_anndata(run, parts.get("key", "nmf"), W=W), **names)  # type: ignore[arg-type]
    if not hasattr(run, "get_params"):
        raise TypeError(
            "`run` must be a Run, a fitted KLNMF, an AnnData object or a pair (W, H), got a "
            f"{type(run).__name__}."
        )
    _check_is_step(run)
    if W is None:
        raise ValueError(
            "`W` must be given with a fitted model, which does not store it: pass what "
            "fit_transform returned, or model.transform(V)."
        )
    return Run.from_model(run, W, **names)  # type: ignore[arg-type]
