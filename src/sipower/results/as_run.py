# SPDX-License-Identifier: BSD-3-Clause
"""`as_run`: what plots, report and `describe` accept, as a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, TypedDict, Unpack

import numpy as np

from sipower.data.containers import as_numbers
from sipower.data.names import Names, arrange, as_names, axis_labels, data_items
from sipower.data.plausibility import warn_user
from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import as_matrix
from sipower.estimators.verdict import divergence_remark, sums_remark
from sipower.inference.spectra import is_topic_model
from sipower.kernels import Array
from sipower.results.anndata_columns import COLUMN_KEYS
from sipower.results.normalisation import to_profiles, to_shares
from sipower.results.run import Run, check_is_step, is_anndata
from sipower.results.run_coherence import item_positions, with_coherence

__all__ = ["RunLike", "RunParts", "as_run", "plain_divergence", "warn_if_other_data"]

RunLike: TypeAlias = Any  # a Run, a fitted model, an AnnData object, or a pair (W, H)


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
        A run; a fitted `KLNMF`, or another model of W H, which needs `W`; scikit-learn's
        LatentDirichletAllocation with `W` and `V`; an AnnData object after `sipower.tl.nmf`; or a
        pair of arrays (W, H).
    **parts
        ``W``: weights, the result of `fit_transform` or ``model.transform(V)``.
        ``samples``, ``features``: names. ``key``: name of the results in an AnnData object. ``V``:
        the counts, for the coherence of the components. A warning says if W H does not belong to
        them.
    """
    _check_known(parts)
    counts = parts.pop("V", None)
    if is_topic_model(run):
        return _from_topic_model(run, counts, **parts)
    result = _convert(run, **parts)
    if counts is None:
        return result
    result = with_coherence(result, counts)
    rows, columns = (np.argsort(item_positions(result, counts, side)) for side in (0, 1))
    warn_if_other_data(as_matrix(counts), result, result.W[rows], result.H[:, columns])
    return result


def warn_if_other_data(V: RowBlocks, run: Run, W: Array, H: Array) -> None:
    """Warn if W H, the factors of a run in the order of V, is not what was fitted to V."""
    divergence = plain_divergence(run)
    remark = divergence_remark(V, W, H, divergence)
    if divergence is None and _sums_are_those_of_data(run):
        remark = sums_remark(V, W, H)
    if remark is not None:
        warn_user(remark)


def plain_divergence(run: Run) -> float | None:
    """Return the divergence of a run if it is D(V ‖ W H), without weights and the like, or None."""
    facts, parameters = run.facts, run.facts.get("parameters") or {}
    columns = [parameters.get(name) for name in COLUMN_KEYS]
    others = (facts.get("observed"), run.batch_effects, parameters.get("missing"), *columns)
    return facts.get("divergence") if all(other is None for other in others) else None


def _sums_are_those_of_data(run: Run) -> bool:
    """Return whether the rows of W H would sum to those of V: they do without penalties."""
    parameters = run.facts.get("parameters") or {}
    names = ("alpha_W", "alpha_H", "prior_W", "prior_H", "guides", "missing", *COLUMN_KEYS)
    return not run.facts.get("observed") and not any(
        np.any(parameters.get(name)) for name in names if parameters.get(name) != "same"
    )


def _from_topic_model(model: Any, counts: Any, **parts: Unpack[RunParts]) -> Run:
    """Return a run of scikit-learn's LatentDirichletAllocation: W in counts, H as profiles.

    Its components are pseudo-counts; the expected profiles are their shares. What it transforms
    documents to are shares of topics.
    """
    W = parts.get("W")
    if W is None or counts is None:
        raise ValueError(
            "`run` is a LatentDirichletAllocation, whose weights are shares of topics: give `W`, "
            "the result of its transform, and `V`, the counts, so that components have a size."
        )
    V = as_matrix(counts)
    shares = as_numbers("W", arrange("W", W, data_items(counts)[0], None))
    if shares.ndim != 2 or len(shares) != V.shape[0]:
        raise ValueError(
            f"`W` must have a row for each of the {V.shape[0]} samples of `V`, got shape "
            f"{shares.shape}."
        )
    names = {side: parts.get(side) for side in ("samples", "features")}
    if names["features"] is None:
        names["features"] = getattr(model, "feature_names_in_", None)
    if names["samples"] is None:
        names["samples"] = _names(counts, 0)
    weights = to_shares(shares, np.ones((shares.shape[1], 1))) * V.mass[:, np.newaxis]
    profiles = to_profiles(np.asarray(model.components_, np.float64))
    run = Run(weights, profiles, samples=names["samples"], features=names["features"])  # type: ignore[arg-type]
    return with_coherence(run, counts)


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
