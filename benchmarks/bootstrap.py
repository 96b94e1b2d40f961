# SPDX-License-Identifier: BSD-3-Clause
"""How often the intervals of `sipower.bootstrap` contain the truth.

    python benchmarks/bootstrap.py                 # all designs, seeds 10 to 13
    python benchmarks/bootstrap.py signatures 0 2  # one of them, seeds 0 and 1

Six designs of Poisson counts. In `topics`, `corpus` and `peaked` every component has features of
its own. In `types` (expression of genes that all cell types share) and `flat` (five profiles with a
small part in common) none has, and in `signatures` (eleven profiles with up to four fifths in
common, 250 samples) the parts in common are large.

For each: the share of the profile entries and of the weights, both with at least 10 counts, that
the intervals of 95 % contain, with 40 replicates; the same for quantiles of the replicates alone;
the largest widening, and the number of data sets with a warning. The constants of the exchange are
those of likelihood theory; the level of the warning was chosen on seeds 0 to 2 of similar designs.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np

from sipower import KLNMF, bootstrap
from sipower.inference.exchange import Exchange, find_exchange
from sipower.selection import match

SEEDS, REPLICATES, LARGE = (10, 14), 40, 10


def topics(rng: Any) -> tuple[Any, Any]:
    """Return weights and profiles of three topics of 60 words in 300 long texts."""
    return 1000 * rng.dirichlet(np.full(3, 0.5), 300), rng.dirichlet(np.full(60, 0.3), 3)


def corpus(rng: Any) -> tuple[Any, Any]:
    """Return weights and profiles of six topics of 250 words in 400 short texts."""
    return 300 * rng.dirichlet(np.full(6, 0.2), 400), rng.dirichlet(np.full(250, 0.1), 6)


def types(rng: Any) -> tuple[Any, Any]:
    """Return weights and profiles of 400 cells that are mixtures of five types."""
    raised = np.exp(rng.normal(0, 2, (5, 300)) * (rng.random((5, 300)) < 0.2))
    H = rng.lognormal(0, 1.3, 300) * raised
    sizes = rng.lognormal(np.log(2000), 0.4, (400, 1))
    return sizes * rng.dirichlet(np.full(5, 0.4), 400), H / H.sum(axis=1, keepdims=True)


def peaked(rng: Any) -> tuple[Any, Any]:
    """Return weights and profiles of five signatures with little in common."""
    H = rng.dirichlet(np.full(96, 0.08), 5)
    return _tumours(rng, 150, 5, 3), H


def flat(rng: Any) -> tuple[Any, Any]:
    """Return weights and profiles of five signatures with a small flat part in common."""
    return _tumours(rng, 150, 5, 3), _overlapping(rng, 5, 0.32)


def signatures(rng: Any) -> tuple[Any, Any]:
    """Return weights and profiles of eleven signatures with a large flat part in common."""
    return _tumours(rng, 250, 11, 4), _overlapping(rng, 11, 0.8)


def _tumours(rng: Any, n: int, K: int, active: int) -> Any:
    """Return weights of samples in which some of the signatures are active."""
    W = np.zeros((n, K))
    for row in W:
        mutations = rng.lognormal(np.log(1500), 0.7)
        row[rng.choice(K, active, replace=False)] = mutations * rng.dirichlet(np.ones(active))
    return W


def _overlapping(rng: Any, K: int, largest: float) -> Any:
    """Return profiles that share a flat part, of which each has at most the given share."""
    common, own = rng.dirichlet(np.full(96, 3.0)), rng.dirichlet(np.full(96, 0.15), K)
    share = largest * rng.random((K, 1))
    return share * common + (1 - share) * own


DESIGNS: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    design.__name__: design for design in (topics, corpus, peaked, types, flat, signatures)
}


def coverages(design: str, seed: int) -> tuple[list[float], float, bool]:
    """Return the four coverages of one data set, the largest widening, and whether it warned."""
    rng = np.random.default_rng([seed, list(DESIGNS).index(design)])
    W, H = DESIGNS[design](rng)
    V = rng.poisson(W @ H).astype(float)
    model = KLNMF(len(H), tol=1e-5, max_iter=3000, n_init=3, random_state=0, n_jobs=1).fit(V)
    with TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = bootstrap(V, model, REPLICATES, folder=folder)
        with patch(f"{bootstrap.__module__}.find_exchange", no_exchange):
            alone = bootstrap(V, model, REPLICATES, folder=folder)  # the same replicates
    order = match(model.components_, H)[0]
    H, W = H[order], W[:, order]
    counts, shares = H * W.sum(axis=0)[:, None], []
    for interval, truth, is_large in (
        (result.H, H, counts >= LARGE), (alone.H, H, counts >= LARGE),
        (result.W, W, W >= LARGE), (alone.W, W, W >= LARGE),
    ):  # fmt: skip
        covered = (interval.lower <= truth) & (truth <= interval.upper)
        shares.append(float(covered[is_large].mean()))
    return shares, float(result.widening.max()), bool(caught)


def no_exchange(*arguments: Any) -> Exchange:
    """Return that no component can be exchanged."""
    found = find_exchange(*arguments)
    none = [tuple(np.zeros_like(end) for end in ends) for ends in (found.W, found.H)]
    return Exchange(np.zeros_like(found.shares), *none)


def main() -> None:
    """Print a row for each design: means over the seeds."""
    names = [name for name in sys.argv[1:] if name in DESIGNS] or list(DESIGNS)
    seeds = [int(word) for word in sys.argv[1:] if word.isdigit()] or SEEDS
    print(f"{'design':12} {'H':>6} {'alone':>6} {'W':>6} {'alone':>6} {'wider':>6} {'warned':>7}")
    for name in names:
        found = [coverages(name, seed) for seed in range(*seeds)]
        shares = np.mean([shares for shares, _, _ in found], axis=0)
        wider, warned = np.mean([w for _, w, _ in found]), sum(warned for _, _, warned in found)
        numbers = " ".join(f"{share:6.3f}" for share in shares)
        print(f"{name:12} {numbers} {wider:6.2f} {warned:4} of {len(found)}", flush=True)


if __name__ == "__main__":
    main()
