# SPDX-License-Identifier: BSD-3-Clause
"""Factors in the form of topic models: distributions of documents over topics, topics over words.

Samples are documents here, components topics and features words, as other libraries call them.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sipower.data.validate import as_matrix
from sipower.results.as_run import RunLike, as_run
from sipower.results.describe import describe
from sipower.results.run import Run, check_is_step
from sipower.results.run_coherence import item_positions

__all__ = ["to_pyldavis", "topic_frames"]

FLOOR = 1e-12


def to_pyldavis(
    run: RunLike, V: Any, W: Any = None, *, features: Sequence[str] | None = None, **key: str
) -> dict[str, Any]:
    """Return the keyword arguments of ``pyLDAvis.prepare`` for a fit.

    The topics are in the order of `describe`, the largest first; pyLDAvis sorts them by size too,
    unless it is called with ``sort_topics=False``.

    Parameters
    ----------
    run
        A run, a fitted `KLNMF`, an AnnData object after `sipower.tl.nmf`, or a pair (W, H).
    V
        The counts, (samples, features), for the lengths of the documents and the frequencies of
        the words.
    W
        The result of `fit_transform`, if `run` is a fitted model; None computes it from V.
    features
        Names of the words; None: those of the run or, if it has none, of the data frame V.
    **key
        ``key``: name of the results in an AnnData object.

    Returns
    -------
    dict
        ``topic_term_dists`` (K, features) and ``doc_topic_dists`` (samples, K), whose rows sum to
        1, ``doc_lengths``, ``vocab`` and ``term_frequency``. pyLDAvis takes logarithms, so 1e-12 is
        added to the probabilities of words, which are zero for many words of an NMF.

    Warns
    -----
    UserWarning
        If documents without words, words that never occur or empty topics are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from sipower import KLNMF
    >>> from sipower.results.topic_tables import to_pyldavis
    >>> V = np.random.default_rng(0).poisson(2.0, (60, 40))
    >>> arguments = to_pyldavis(KLNMF(3, random_state=0).fit(V), V)
    >>> sorted(arguments)
    ['doc_lengths', 'doc_topic_dists', 'term_frequency', 'topic_term_dists', 'vocab']
    """
    matrix = as_matrix(V)
    if W is None and hasattr(run, "get_params"):
        check_is_step(run)
        W = run.transform(V)
    result = as_run(run, W=W, **key)
    shape = len(result.W), result.H.shape[1]
    if matrix.shape != shape:
        raise ValueError(f"`V` must have the shape {shape} of W H, got {matrix.shape}.")
    totals = matrix.mass[item_positions(result, V, 0)]
    frequencies = matrix.column_mass[item_positions(result, V, 1)]
    if features is not None:
        result = replace(result, features=tuple(features))
    if result.features is None and matrix.column_names is not None:
        result = replace(result, features=tuple(map(str, matrix.column_names)))
    about = describe(result)
    documents = (totals > 0) & about.memberships.any(axis=1)
    words = frequencies > 0
    profiles = about.profiles[:, words]
    topics = profiles.any(axis=1) & (about.sizes > 0)
    _warn_of_empty(document=documents, word=words, topic=topics)
    return {
        "topic_term_dists": _distributions(profiles[topics] + FLOOR),
        "doc_topic_dists": _distributions(about.memberships[documents][:, topics]),
        "doc_lengths": totals[documents],
        "vocab": [name for name, is_kept in zip(about.features, words, strict=True) if is_kept],
        "term_frequency": frequencies[words],
    }


def _distributions(rows: Any) -> Any:
    return rows / rows.sum(axis=1, keepdims=True)


def _warn_of_empty(**kept: Any) -> None:
    numbers = {name: int((~which).sum()) for name, which in kept.items()}
    texts = [f"{n:,} {name}{'s' * (n > 1)}" for name, n in numbers.items() if n]
    if texts:
        warnings.warn(
            f"`V`: left out {' and '.join(texts)} without counts, which pyLDAvis cannot show.",
            UserWarning,
            stacklevel=3,
        )


def topic_frames(run: Run) -> tuple[Any, Any]:
    """Return data frames of p(topic | document) and p(word | topic), whose rows sum to 1.

    The first has a row for each document, the second for each topic. A document or topic without
    counts has a row of zeros.
    """
    import pandas as pd  # noqa: PLC0415 - optional

    about, named = describe(run), list(run.component_labels(prefix="topic "))
    documents, words = list(run.sample_names()), list(run.feature_names())
    return (
        pd.DataFrame(about.memberships, index=pd.Index(documents, name="document"), columns=named),
        pd.DataFrame(about.profiles, index=pd.Index(named, name="topic"), columns=words),
    )
