# SPDX-License-Identifier: BSD-3-Clause
"""`Listener`: report every round of a fit to `verbose`, `on_round` and scikit-learn callbacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sipower.loop.solve import Record
from sipower.nmf import Factors

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """A placeholder for versions without callbacks."""


__all__ = ["CallbackSupportMixin", "Listener"]


class Listener:
    """A function that reports every round to the listeners of a model.

    If `on_round` or a callback returns true, the fit stops.

    If `on_round` has a method `on_stage`, it is called with a sentence before data are loaded.

    For scikit-learn's callbacks each round is a subtask of the fit, with the attributes that the
    model would have if the fit ended there.
    """

    def __init__(self, model: Any, X: Any) -> None:
        self.model, self.X, self.root = model, X, None
        self.restore: Callable[[Any], Any] = lambda x: x  # from the scale of the solver
        if hasattr(model, "_skl_callbacks"):
            self.root = model._init_callback_context(max_subtasks=model.max_iter)
            self.root.call_on_fit_task_begin(estimator=model, X=X)

    def __call__(self, record: Record, x: Factors) -> bool:
        """Call all listeners after a round, and return whether to stop."""
        if self.model.verbose and not np.isnan(record.gap):
            _print(record)
        is_stopped = self.model.on_round is not None and self.model.on_round(record)
        return bool(is_stopped) | self._end_task(x)

    def begin_stage(self, text: str) -> None:
        """Report a stage before the first round."""
        if self.model.verbose:
            print(text)  # noqa: T201 - verbose prints
        on_stage = getattr(self.model.on_round, "on_stage", None)
        if on_stage is not None:
            on_stage(text)

    def _end_task(self, x: Factors) -> bool:
        if self.root is None:
            return False
        task = self.root.subcontext(task_name="round")
        task.call_on_fit_task_begin(estimator=self.model, X=self.X)
        return bool(
            task.call_on_fit_task_end(
                estimator=self.model,
                X=self.X,
                reconstruction_attributes=lambda: _fitted_attributes(self.restore(x)),
            )
        )

    def end(self) -> None:
        """Tell scikit-learn's callbacks that the fit has ended."""
        if self.root is not None:
            self.root.call_on_fit_task_end(estimator=self.model, X=self.X)


def _fitted_attributes(x: Factors) -> dict[str, Any]:
    rank = x.H.shape[1]
    attributes = {"components_": x.H.T.copy(), "n_components_": rank, "_n_features_out": rank}
    effects = getattr(x, "effects", None)
    return attributes if effects is None else {**attributes, "batch_effects_": effects}


def _print(record: Record) -> None:
    print(  # noqa: T201 - verbose prints
        f"round {record.round:5d}  passes {record.passes:8.1f}  {record.seconds:8.2f} s  "
        f"KL {record.objective:.6e}  gap {record.gap:.2e}"
    )
