# SPDX-License-Identifier: BSD-3-Clause
"""`as_run`: what plots, report and `describe` accept, as a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, TypedDict, Unpack

from sipower.data.names import Names, as_names, axis_labels
from sipower.results.run import Run, check_is_step, is_anndata
from sipower.results.run_coherence import with_coherence

__all__ = ["RunLike", "RunParts", "as_run"]

RunLike: TypeAlias = Any  # a Run, a fitted KLNMF, an AnnData object, or a pair (W, H)


class RunParts(TypedDict, total=False):
    """Keyword arguments that plots, report and `describe` pass on to `as_run`."""

    W: Any
    samples: Sequence[str] | None
    features: Sequence[str] | None
    key: str
    V: Any


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
        ``samples``, ``features``: names. ``key``: name of the results in an AnnData object. ``V``:
        the counts, for the coherence of the components.
    """
    _check_known(parts)
    counts = parts.pop("V", None)
    result = _convert(run, **parts)
    return result if counts is None else with_coherence(result, counts)


def _convert(run: RunLike, **parts: Unpack[RunParts]) -> Run:
    W, names = parts.get("W"), {k: parts.get(k) for k in ("samples", "features")}
    names = {side: value for side, value in names.items() if value is not None}
    if "key" in parts and not is_anndata(run):
        raise ValueError("`key` must only be given with an AnnData object.")
    if isinstance(run, tuple | list) and len(run) == 2:
        W_given, H = run
        run = Run(W_given, H, samples=_names(W_given, 0), features=_names(H, 1))
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
    check_is_step(run)
    if W is None:
        raise ValueError(
            "`W` must be given with a fitted model, which does not store it: pass what "
            "fit_transform returned, or model.transform(V)."
        )
    names.setdefault("samples", _names(W, 0))
    return Run.from_model(run, W, **names)  # type: ignore[arg-type]


def _names(factor: Any, side: int) -> Names | None:
    """Return the names of the rows or the columns of a data frame, None for an array."""
    labels = axis_labels(factor)
    return as_names(labels[side]) if len(labels) == 2 else None
