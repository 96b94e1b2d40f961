# SPDX-License-Identifier: BSD-3-Clause
"""What weights, missing values, batches and known components cost, and what they gain.

    python benchmarks/observed.py              # all parts
    python benchmarks/observed.py rounds       # or batches, confounded, imputation, signatures

rounds: seconds of a round of `auto` in its last phase with a mask or weights of 5 % of the entries
and with two batches, relative to a plain round and net of the 2·K flops per half for each special
entry (timed separately). KOS and WT, K = 20, float32, one thread, interleaved, best of several.

batches: mean cosine of matched components with the truth. Topics (600 x 400) in two batches with
effects of ±1 log unit on a third of the features, of opposite sign; and without effects.

confounded: how many fits of simulated cells in batches warn that a batch is confounded, for designs
in which one batch alone has a type of cells, and for designs in which all batches share all types
but differ by technical effects, proportions and sizes; and the cost of that check, in process time,
relative to the fit. The thresholds were chosen on the seeds from 0, so others are used.

imputation: mean Poisson deviance of a random 5 % of the entries, predicted by a fit that masks
them, by a fit that takes them for zeros, and by the column means.

signatures: cosine of a hidden fifth signature, given the other four.
"""

from __future__ import annotations

import sys
import warnings
from time import process_time
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
from sipower.nmf.batch_effects import BatchEffects, BatchFactorization, BatchFactors
from sipower.nmf.confounding import find_confounding
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


KINDS = {
    True: ("one batch is a type", "private type", "small private type", "every batch is a type",
           "two private types", "private type of one in six"),
    False: ("no effects", "technical effects", "capture panel", "unequal proportions",
            "six batches", "a small batch"),
}  # fmt: skip


def draw_profiles(rng: Any, types: int, features: int) -> Any:
    """Return types of cells with markers above common genes, or with genes of their own."""
    if rng.random() < 0.3:
        return rng.dirichlet(np.full(features, 0.1), types)
    common = rng.lognormal(0, 1.5, features)
    profiles = common * np.exp(rng.normal(0, 0.15, (types, features)))
    markers = rng.permutation(features)[: 25 * types].reshape(types, 25)
    for profile, own in zip(profiles, markers, strict=True):
        profile[own] += common.sum() * rng.uniform(0.003, 0.006)
    return profiles / profiles.sum(axis=1, keepdims=True)


def draw_proportions(rng: Any, kind: str, types: int) -> Any:
    """Return the share of every type in every batch; the last type is the private one."""
    six = kind in ("private type of one in six", "six batches")
    shares = rng.dirichlet(np.full(types, 30.0), 1).repeat(6 if six else 2, axis=0)
    if kind in KINDS[True]:
        shares[:, -1] = 0
    if kind == "one batch is a type":
        shares[0] = np.eye(types)[-1]
    elif kind == "every batch is a type":
        shares = np.eye(types)[:3]
    elif kind == "two private types":
        shares[0, -1], shares[0, -2] = 0.25, 0
    elif kind in KINDS[True]:
        low, high = (0.05, 0.08) if kind.startswith("small") else (0.15, 0.6)
        shares[0] *= 1 - rng.uniform(low, high)
        shares[0, -1] = 1 - shares[0].sum()
    elif kind in ("unequal proportions", "capture panel"):
        tilt = rng.uniform(1, 2, types) ** rng.choice([-1, 1], types)
        shares[0] *= tilt / tilt.max()
    return shares / shares.sum(axis=1, keepdims=True)


def simulate_design(seed: int, confounded: bool) -> tuple[Any, Any, int, str]:
    """Return counts, batches, a number of components and the kind of the design."""
    rng = np.random.default_rng([seed, confounded])
    kind = KINDS[confounded][seed % len(KINDS[confounded])]
    types, features = int(rng.integers(4, 8)), int(rng.integers(300, 800))
    profiles, shares = draw_profiles(rng, types, features), draw_proportions(rng, kind, types)
    sizes = rng.integers(150, 500, len(shares))
    if kind == "a small batch":
        sizes[0] = rng.integers(12, 40)
    spread = 0.0 if kind == "no effects" or rng.random() < 0.3 else rng.uniform(0.1, 0.5)
    effects = np.exp(rng.normal(0, spread, (len(shares), features)))
    if kind == "capture panel":
        effects[0, rng.choice(features, features // 50, replace=False)] *= 5
    batch = np.repeat(np.arange(len(shares)), sizes)
    labels = np.concatenate([rng.choice(types, n, p=p) for n, p in zip(sizes, shares, strict=True)])
    mean = profiles[labels] * effects[batch]
    depth = rng.lognormal(np.log(rng.uniform(800, 3000)), 0.3, (len(batch), 1))
    V = rng.poisson(depth * mean / mean.sum(axis=1, keepdims=True)) * 1.0
    rank = int((shares.sum(axis=0) > 0).sum()) + int(rng.choice([-1, 0, 0, 1, 3]))
    return V, batch, max(rank, 2), kind


def count_confounded(first: int = 2000, designs: int = 40) -> None:
    """Print how many designs are warned of, and the cost of the check."""
    costs = []
    for confounded in (True, False):
        warned = 0
        for seed in range(first, first + designs):
            V, batch, rank, kind = simulate_design(seed, confounded)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                started = process_time()
                model = KLNMF(rank, random_state=0, n_jobs=1)
                W = model.fit_transform(V, batch=batch)
                whole = process_time() - started
            found = [str(w.message) for w in caught if "only this batch" in str(w.message)]
            warned += bool(found)
            checked = time_check(V, batch, model, W)
            costs.append(checked / (whole - checked))
            if bool(found) is not confounded:
                print(f"seed {seed}, K = {rank}, {kind}: {found or 'not warned'}")
        print(f"{'confounded' if confounded else 'shared'}: {warned} of {designs} warned")
    print(f"cost of the check: median {np.median(costs):.0%} of a fit, largest {max(costs):.0%}")


def time_check(V: Any, batch: Any, model: Any, W: Any) -> float:
    """Return the process time of the check of a fit."""
    observed = as_observation(V.shape, (*(None,) * 5, batch))
    matrix = as_matrix(V, dtype=W.dtype, n_jobs=1)
    ready = prepare(matrix, observed, model.batch_effects_, model.batches_)
    problem = BatchFactorization(ready.V, W.shape[1], ModelTerms(ready.exposure), 10.0)
    x = BatchFactors(W, np.ascontiguousarray(model.components_.T), model.batch_effects_)
    started = process_time()
    find_confounding(problem, x)
    return process_time() - started


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
    parts = sys.argv[1:] or ["rounds", "batches", "confounded", "imputation", "signatures"]
    warnings.simplefilter("ignore")
    if "rounds" in parts:
        for name in ("kos", "wt"):
            compare_rounds(name)
    if "batches" in parts:
        compare_batches()
    if "confounded" in parts:
        count_confounded()
    if "imputation" in parts:
        compare_imputation()
    if "signatures" in parts:
        recover_signature()


if __name__ == "__main__":
    main()
