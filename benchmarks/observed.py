# SPDX-License-Identifier: BSD-3-Clause
"""What weights, missing values, batches and known components cost, and what they gain.

    python benchmarks/observed.py              # all parts
    python benchmarks/observed.py rounds       # one of: rounds, batches, imputation, signatures

rounds: seconds of a round of `auto` in its last phase with a mask or weights of 5 % of the entries
and with two batches, relative to a plain round and net of the 2·K flops per half for each special
entry (timed separately). KOS and WT, K = 20, float32, one thread, interleaved, best of several.

batches: mean cosine of matched components with the truth. Topics (600 x 400) in two batches with
effects of ±1 log unit on a third of the features, of opposite sign; and without effects.

imputation: mean Poisson deviance of a random 5 % of the entries, predicted by a fit that masks
them, by a fit that takes them for zeros, and by the column means.

signatures: cosine of a hidden fifth signature, given the other four.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from common import best_seconds, paper_data
from scipy import sparse
from scipy.special import kl_div

from sipower import KLNMF, as_matrix
from sipower.datasets import poisson_topics
from sipower.estimators.observation import as_observation
from sipower.estimators.prepared import prepare
from sipower.nmf import CCD, Extrapolated, Factorization, Factors, SharedNewton
from sipower.nmf.batch_effects import BatchEffects, BatchFactorization
from sipower.nmf.terms import ModelTerms
from sipower.selection.matching import match

RANK, SHARE, REPEATS = 20, 0.05, 15


def compare_rounds(name: str) -> None:
    """Print the time of a round with a mask, with weights and with batches."""
    V, rng = paper_data(name), np.random.default_rng(0)
    n, m = V.shape
    dense = as_matrix(V).dense
    at = rng.choice(n * m, int(SHARE * (n * m if dense else V.nnz)), replace=False)
    special = sparse.csr_array((np.ones(len(at)), np.divmod(np.sort(at), m)), V.shape)
    hidden, weighted = special.copy(), special.copy()
    hidden.data[:] = 0
    weighted.data[:] = rng.uniform(0.5, 2.0, len(at))
    matrix = as_matrix(V, dtype=np.float32, n_jobs=1)
    batch = rng.integers(0, 2, n)
    none = (None,) * 6
    cases = {
        "plain": none,
        "mask": (None, None, hidden, None, None, None),
        "weights": (None, None, weighted, None, None, None),
        "batches": (None, None, None, None, None, batch),
    }
    start = Factors(*(np.asarray(rng.random((k, RANK)), np.float32) for k in (n, m)))
    actions: dict[str, Any] = {}
    for case, given in cases.items():
        observed = as_observation(V.shape, given)
        ready = prepare(matrix, observed, np.ones((2, m)), np.arange(2))
        terms = ModelTerms(ready.exposure)
        problem: Any = Factorization(ready.V, RANK, terms)
        rule = SharedNewton() if dense else CCD(2, "active")
        solver: Any = Extrapolated(rule)
        if case == "batches":
            problem, solver = (
                BatchFactorization(ready.V, RANK, terms, 10.0),
                BatchEffects(near=True),
            )
        state = solver.init(problem, start, 0)
        for _ in range(3):
            state = solver.advance(problem, state)
        actions[case] = lambda p=problem, s=solver, x=state: s.advance(p, x)
        if case == "mask":
            exposure = ready.exposure

            def correct(e: Any = exposure) -> None:
                e.linear_terms(0, start.H)
                e.linear_terms(1, start.W)

            actions["corrections of d"] = correct
    seconds = best_seconds(actions, REPEATS)
    plain = seconds["plain"]
    for case, time in seconds.items():
        print(f"{name:5}{case:18}{1e3 * time:9.2f} ms{time / plain:7.2f}")


def simulate_batches(seed: int, size: float) -> tuple[Any, Any, Any]:
    """Return counts, true components and batches."""
    rng, n, m, rank = np.random.default_rng(seed), 600, 400, 6
    H, W = rng.dirichlet(np.full(m, 1.0), rank), 400 * rng.dirichlet(np.full(rank, 0.3), n)
    effect = np.where(rng.random(m) < 1 / 3, rng.choice([-1, 1], m), 0) * size
    batch = rng.integers(0, 2, n)
    return rng.poisson(W @ H * np.exp(np.stack([effect, -effect])[batch])) * 1.0, H, batch


def compare_batches() -> None:
    """Print how well the components match the truth with and without `batch`."""
    for size in (1.0, 0.0):
        cosines = []
        for seed in range(100, 110):
            V, H, batch = simulate_batches(seed, size)
            models = KLNMF(6, random_state=0), KLNMF(6, random_state=0)
            fits = models[0].fit(V), models[1].fit(V, batch=batch)
            cosines.append([match(fit.components_, H)[1].mean() for fit in fits])
        plain, corrected = np.mean(cosines, axis=0)
        print(f"effects of {size:g}: plain {plain:.3f}, with batch {corrected:.3f} (10 seeds)")


def compare_imputation() -> None:
    """Print the mean deviance of masked entries on three generated sets."""
    rng = np.random.default_rng(7)
    sets = {
        "topics": poisson_topics(400, 300, 6, seed=1).toarray() * 1.0,
        "gamma": rng.poisson(rng.gamma(0.5, 2, (300, 5)) @ rng.gamma(0.5, 2, (5, 80))) * 1.0,
        "signatures": simulate_signatures(3)[0],
    }
    for name, V in sets.items():
        mask = rng.random(V.shape) >= SHARE
        masked = np.where(mask, V, 0)
        fits = {"masked": {"mask": mask}, "as zeros": {}}
        predictions = {"column means": masked.sum(axis=0) / mask.sum(axis=0) * np.ones(V.shape)}
        for label, given in fits.items():
            model = KLNMF(6, random_state=0)
            predictions[label] = model.fit_transform(masked, **given) @ model.components_
        losses = {k: kl_div(V, np.maximum(z, 1e-3))[~mask].mean() for k, z in predictions.items()}
        print(name, ", ".join(f"{label} {loss:.3f}" for label, loss in losses.items()))


def simulate_signatures(seed: int) -> tuple[Any, Any]:
    """Return the counts of 300 tumours in 96 channels, and five signatures."""
    rng = np.random.default_rng(seed)
    H = rng.dirichlet(np.full(96, 0.15), 5)
    W = rng.gamma(0.7, 1.0, (300, 5)) * rng.lognormal(5.5, 0.8, (300, 1))
    return rng.poisson(W @ H) * 1.0, H


def recover_signature() -> None:
    """Print the cosine of a hidden signature, given the other four, for ten seeds."""
    cosines = []
    for seed in range(10):
        V, H = simulate_signatures(seed)
        model = KLNMF(5, components_fixed=H[:4], random_state=0).fit(V)
        found = model.components_[4]
        cosines.append(found @ H[4] / np.linalg.norm(found) / np.linalg.norm(H[4]))
    print(f"hidden signature: smallest cosine {min(cosines):.4f} of 10 seeds")


def main() -> None:
    parts = sys.argv[1:] or ["rounds", "batches", "imputation", "signatures"]
    warnings.simplefilter("ignore")
    if "rounds" in parts:
        for name in ("kos", "wt"):
            compare_rounds(name)
    if "batches" in parts:
        compare_batches()
    if "imputation" in parts:
        compare_imputation()
    if "signatures" in parts:
        recover_signature()


if __name__ == "__main__":
    main()
