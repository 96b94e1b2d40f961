# SPDX-License-Identifier: BSD-3-Clause
"""The problems of the zoo: kinds of data that people factorise, each in a tuning and a test half.

The constants of `auto` may be chosen on the tuning half alone. The test half has the same kinds
with other parameters, sizes and seeds, and is measured once, when all constants are fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from zoo import counts, signals

from sipower import datasets

TUNING, TEST = HALVES = ("tuning", "test")


@dataclass(frozen=True)
class ZooProblem:
    """One problem of the zoo.

    Parameters
    ----------
    name
        Unique name.
    kind
        Kind of data; every kind is in both halves.
    half
        "tuning" or "test".
    rank
        Number of components K.
    build
        Function that returns the data.
    sparse
        Whether `make` converts dense data to CSR.
    """

    name: str
    kind: str
    half: str
    rank: int
    build: Callable[[], Any]
    sparse: bool = False

    @property
    def is_present(self) -> bool:
        """Whether the data can be made here; a real set may be absent."""
        return self.kind != "paper" or datasets.is_present(self.name.split("-")[0])

    def make(self) -> Any:
        """Return the data without empty rows and columns, as an ndarray or a csr_array."""
        V = drop_empty(self.build())
        return sp.csr_array(V) if self.sparse or sp.issparse(V) else np.ascontiguousarray(V)


def drop_empty(V: Any) -> Any:
    """Return V without its empty rows and columns."""
    V = V[np.asarray(V.sum(axis=1)).ravel() > 0]
    return V[:, np.asarray(V.sum(axis=0)).ravel() > 0]


def problems(half: str | None = None) -> list[ZooProblem]:
    """Return the problems of one half, or all of them."""
    return [problem for problem in ZOO if half is None or problem.half == half]


def select_problems(half: str | None, names: list[str] | None) -> list[ZooProblem]:
    """Return the problems of a half and of these names, and report those whose data are absent.

    Parameters
    ----------
    half
        "tuning" or "test"; None for both.
    names
        Names of problems; None for all.
    """
    unknown = set(names or ()) - {problem.name for problem in ZOO}
    if unknown:
        raise SystemExit(f"There is no problem {', '.join(sorted(unknown))} in the zoo.")
    selection = [p for p in problems(half) if not names or p.name in names]
    for problem in selection:
        if not problem.is_present:
            print(f"{problem.name} is left out: set SIPOWER_DATA to the folder that contains it.")
    return [problem for problem in selection if problem.is_present]


def paper(name: str) -> Callable[[], Any]:
    """Return the function that loads a set of the paper."""
    return partial(datasets.load, name)


ZOO = (
    ZooProblem("text", "text", TUNING, 20, partial(counts.text, (2500, 4000), 25, 120, 1)),
    ZooProblem("text-k2", "text", TUNING, 2, partial(counts.text, (3000, 2500), 12, 60, 2)),
    ZooProblem("text-k100", "text", TUNING, 100, partial(counts.text, (1500, 3000), 80, 150, 3)),
    ZooProblem("news", "text", TEST, 30, partial(counts.text, (4000, 7000), 40, 90, 101, 0.15)),
    ZooProblem("news-k3", "text", TEST, 3, partial(counts.text, (1500, 6000), 20, 150, 102)),
    ZooProblem("news-k80", "text", TEST, 80, partial(counts.text, (2500, 2000), 120, 70, 103)),
    ZooProblem("tfidf", "tf-idf", TUNING, 15, partial(counts.tfidf, (2500, 3000), 20, 80, 4)),
    ZooProblem("tfidf-long", "tf-idf", TEST, 25, partial(counts.tfidf, (1200, 5000), 35, 250, 104)),
    ZooProblem("docstrings", "docstrings", TUNING, 20, counts.docstring_words),
    ZooProblem("trigrams", "docstrings", TEST, 30, counts.docstring_trigrams),
    ZooProblem("cells", "cells", TUNING, 10, partial(counts.cells, (1200, 1500), 8, 900, 5), True),
    ZooProblem("cells-dense", "cells", TUNING, 12, partial(counts.cells, (800, 600), 9, 6000, 6)),
    ZooProblem(
        "tissue", "cells", TEST, 16, partial(counts.cells, (2500, 1200), 14, 350, 105, 1.0), True
    ),
    ZooProblem(
        "tissue-dense", "cells", TEST, 8, partial(counts.cells, (500, 1500), 6, 20_000, 106, 4.0)
    ),
    ZooProblem(
        "signatures", "signatures", TUNING, 10, partial(signals.signatures, 2500, 12, 40, 7)
    ),
    ZooProblem(
        "genomes", "signatures", TEST, 20, partial(signals.signatures, 5000, 25, 150, 107, 1.4)
    ),
    ZooProblem("melody", "spectrogram", TUNING, 12, partial(signals.melody, 15.0, 10, 1024, 8)),
    ZooProblem("drums", "spectrogram", TEST, 25, partial(signals.drums, 20.0, 6, 512, 108)),
    ZooProblem("digits-low", "digits", TUNING, 10, partial(signals.digits, 0, 4)),
    ZooProblem("digits-high", "digits", TEST, 16, partial(signals.digits, 5, 9)),
    ZooProblem("digits-low-sparse", "digits", TUNING, 32, partial(signals.digits, 0, 4), True),
    ZooProblem("digits-high-sparse", "digits", TEST, 8, partial(signals.digits, 5, 9), True),
    ZooProblem(
        "patches-china", "patches", TUNING, 25, partial(signals.patches, "china.jpg", 8, 4000, 9)
    ),
    ZooProblem(
        "patches-flower",
        "patches",
        TEST,
        40,
        partial(signals.patches, "flower.jpg", 9, 2500, 109, gray=False),
    ),
    ZooProblem(
        "ratings", "ratings", TUNING, 10, partial(counts.ratings, (3000, 1500), 5, 60, 5, 10)
    ),
    ZooProblem(
        "ratings-ten", "ratings", TEST, 30, partial(counts.ratings, (5000, 4000), 10, 40, 12, 110)
    ),
    ZooProblem("graph", "graph", TUNING, 16, partial(counts.graph, 3000, 20, 20, 0.2, 11)),
    ZooProblem("graph-mixed", "graph", TEST, 40, partial(counts.graph, 6000, 30, 12, 0.5, 111)),
    ZooProblem("tall", "tall", TUNING, 5, partial(signals.mixture, (30_000, 40), 6, 20, 12)),
    ZooProblem(
        "tall-sparse", "tall", TEST, 8, partial(counts.sparse_mixture, (40_000, 150), 10, 15, 112)
    ),
    ZooProblem(
        "wide-sparse",
        "wide",
        TUNING,
        12,
        partial(counts.sparse_mixture, (120, 15_000), 15, 6000, 13),
    ),
    ZooProblem("wide", "wide", TEST, 6, partial(signals.mixture, (60, 20_000), 8, 10, 113)),
    ZooProblem(
        "rank-one", "nearly rank one", TUNING, 5, partial(signals.rank_one, (600, 400), 30, 14)
    ),
    ZooProblem(
        "rank-one-sparse",
        "nearly rank one",
        TEST,
        10,
        partial(counts.sparse_rank_one, (3000, 2000), 60, 114),
    ),
    ZooProblem(
        "overlap", "overlap", TUNING, 20, partial(counts.text, (3000, 2000), 20, 150, 15, 0.85)
    ),
    ZooProblem(
        "overlap-dense",
        "overlap",
        TEST,
        15,
        partial(signals.mixture, (1000, 500), 15, 25, 115, 0.8),
    ),
    ZooProblem("spectra", "spectra", TUNING, 8, partial(signals.spectra, (2000, 300), 8, 60, 16)),
    ZooProblem(
        "spectra-sharp",
        "spectra",
        TEST,
        30,
        partial(signals.spectra, (600, 1000), 25, 300, 116, 0.006),
    ),
    ZooProblem("exact", "exact", TUNING, 10, partial(signals.exact, (400, 300), 10, 0.4, 17)),
    ZooProblem(
        "exact-sparse", "exact", TEST, 20, partial(signals.exact, (1500, 1000), 20, 0.1, 117), True
    ),
    ZooProblem("tiny", "tiny", TUNING, 3, partial(signals.mixture, (40, 30), 4, 10, 18)),
    ZooProblem("tiny-sparse", "tiny", TEST, 4, partial(signals.mixture, (80, 50), 5, 1, 118), True),
    ZooProblem("flat", "noise", TUNING, 20, partial(signals.flat, (200, 100), 5, 0)),
    ZooProblem(
        "poisson-sparse", "noise", TEST, 20, partial(datasets.poisson, 2000, 1500, 0.1, 119)
    ),
    ZooProblem(
        "dense-k100",
        "many components",
        TUNING,
        100,
        partial(signals.mixture, (900, 400), 60, 30, 19),
    ),
    ZooProblem(
        "dense-k64", "many components", TEST, 64, partial(signals.mixture, (500, 1200), 90, 12, 120)
    ),
    ZooProblem(
        "large", "large", TUNING, 20, partial(counts.sparse_mixture, (50_000, 2000), 30, 130, 20)
    ),
    ZooProblem(
        "large-text", "large", TEST, 12, partial(counts.text, (20_000, 15_000), 40, 190, 121)
    ),
    ZooProblem("kos", "paper", TUNING, 20, paper("kos")),
    ZooProblem("wt", "paper", TUNING, 20, paper("wt")),
    ZooProblem("nips", "paper", TEST, 20, paper("nips")),
    ZooProblem("mitf", "paper", TEST, 20, paper("mitf")),
)
