# SPDX-License-Identifier: BSD-3-Clause
"""`Run`, the record of one fit, and its construction from a fitted model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sipower.estimators import KLNMF
from sipower.kernels import Array
from sipower.loop.solve import Record

__all__ = ["Names", "Run", "RunOrModel", "as_run", "recorded_parameters"]

Names = tuple[str, ...]
# Maps facts of a run to the attributes of a fitted model that hold them.
_ATTRIBUTES = {
    "status": "status_",
    "certified_gap": "kkt_residual_",
    "divergence": "kl_divergence_",
    "rounds": "n_iter_",
}
_NOT_RECORDED = ("on_round", "checkpoint", "checkpoint_every")  # they do not change the factors


@dataclass(frozen=True, eq=False)
class Run:
    """A finished fit: V ≈ W H, with its parameters, trace and names.

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
    """

    W: Array
    H: Array
    trace: Sequence[Record] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    samples: Names | None = None
    features: Names | None = None
    feature_ids: Names | None = None

    def __post_init__(self) -> None:
        for name in ("W", "H"):
            object.__setattr__(self, name, np.asarray(getattr(self, name)))
        W, H = self.W.shape, self.H.shape
        if not (len(W) == len(H) == 2 and W[1] == H[0]):
            raise ValueError(f"`W` and `H` must have shapes (n, K) and (K, m), got {W} and {H}.")
        for side, size in (("samples", W[0]), ("features", H[1]), ("feature_ids", H[1])):
            names = getattr(self, side)
            if names is not None:
                if len(names) != size:
                    raise ValueError(f"`{side}` must have {size} names, got {len(names)}.")
                object.__setattr__(self, side, tuple(map(str, names)))

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
        return cls(W, model.components_, trace, facts, samples, features)  # type: ignore[arg-type]

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
    return {k: v if isinstance(v, plain) else str(v) for k, v in parameters.items()}


RunOrModel: TypeAlias = Run | KLNMF


def as_run(run: RunOrModel, W: Any = None) -> Run:
    """Return a run unchanged, or convert a fitted model and its W to a run.

    Every plot and the report call this function, so they accept both.
    """
    if isinstance(run, Run):
        if W is not None:
            raise ValueError("`W` must be None with a Run, which has its own W.")
        return run
    if not hasattr(run, "get_params"):
        raise TypeError(f"`run` must be a Run or a fitted KLNMF, got a {type(run).__name__}.")
    if W is None:
        raise ValueError(
            "`W` must be given with a fitted model, which does not store it: pass what "
            "fit_transform returned, or model.transform(V)."
        )
    return Run.from_model(run, W)
