# SPDX-License-Identifier: BSD-3-Clause
"""What the penalties of `KLNMF` do under the KL divergence; the guide quotes these numbers.

    python benchmarks/penalties.py              # all parts
    python benchmarks/penalties.py prune        # one of: prune, rescale, refit, rows, smooth

prune: components left, share of zeros, and share of the counts that the model explains, for fits of
ten topic models (300 x 200, five topics) with 10 and with 5 components, by strength of L1 and L2.
A zero is a share of a sample below 0.001.

rescale: exposures of 100 tumours to eight known signatures that sum to 1, with an L1 penalty of W:
largest difference from W/(1 + penalty), and whether the zeros are the same.

refit: the same exposures, of which 60 % are zero. Share of true exposures that are kept, share of
the others that are not zero, and mean error in mutations: plain, after a second fit of each tumour
without the signatures whose share is below a limit, and by `sipower.refit`.

rows: a topic model in which every tenth sample has lost all but 10 of 200 features. Mean error of
its predicted expected counts without and with a small penalty. The counts have a mean of 2.

smooth: prior counts of H instead of a penalty. Topics of 75 short documents; half of the words of
75 others give their weights, and the other half is predicted: divergence per word, with expected
counts of at least 1e-6, and the share of words whose expected count is zero.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from scipy.special import kl_div

from sipower import KLNMF, non_negative_factorization, refit
from sipower.datasets import poisson_topics

SEEDS = range(10)


def summarise(V: Any, K: int, alpha: float, l1_ratio: float) -> tuple[float, ...]:
    """Return components left, share of zeros in W, and the share of counts that is explained."""
    model = KLNMF(K, alpha_W=alpha, l1_ratio=l1_ratio, max_iter=5000, random_state=0)
    W = model.fit_transform(V) * model.components_.sum(axis=1)
    used = W[:, W.sum(axis=0) > 1e-6 * W.sum()]
    zeros = (used < 1e-3 * used.sum(axis=1, keepdims=True)).mean()
    return used.shape[1], zeros, W.sum() / V.sum(), used.max() / used.mean()


def compare_strengths() -> None:
    """Print what fits with penalties look like, by kind and strength of the penalty."""
    print("  K  kind  alpha   left   zeros  explained  max/mean")
    data = [poisson_topics(300, 200, 5, alpha=0.3, beta=0.3, seed=seed) for seed in SEEDS]
    for K in (10, 5):
        for kind, l1_ratio in (("L1", 1.0), ("L2", 0.0)):
            for alpha in (0.0, 0.01, 0.03, 0.1, 0.2):
                each = np.array([summarise(V, K, alpha, l1_ratio) for V in data])
                left, zeros, explained, ratio = each.mean(axis=0)
                spread = f"{each[:, 0].min():.0f}-{each[:, 0].max():.0f}"
                print(f"{K:3} {kind:>5} {alpha:6g} {left:6.1f} ({spread}) {zeros:6.3f} "
                      f"{explained:9.3f} {ratio:9.1f}")  # fmt: skip


def simulate_exposures(seed: int) -> tuple[Any, Any, Any]:
    """Return the counts of 100 tumours, eight signatures and sparse exposures."""
    rng = np.random.default_rng(seed)
    H = np.concatenate([rng.dirichlet(np.full(96, 0.2), 5), rng.dirichlet(np.full(96, 3.0), 3)])
    W = rng.gamma(1, 300, (100, 8)) * (rng.random((100, 8)) < 0.4)
    W = W[W.sum(axis=1) > 0]
    return rng.poisson(W @ H), H, W


def expose(V: Any, H: Any, **penalty: float) -> Any:
    """Return the exposures of V to H."""
    return non_negative_factorization(V, H=H, n_components=len(H), update_H=False, **penalty)[0]


def compare_with_rescaled() -> None:
    """Print how far an L1 penalty of W for normalised components is from a change of scale."""
    for alpha in (0.01, 0.1, 1.0):
        differences, same = [], True
        for seed in SEEDS:
            V, H, _ = simulate_exposures(seed)
            plain = expose(V, H)
            penalised = expose(V, H, alpha_W=alpha, l1_ratio=1.0) * (1 + 96 * alpha)
            differences.append(np.abs(penalised - plain).max())
            same = same and bool(((penalised > 0) == (plain > 0)).all())
        print(f"alpha_W {alpha:g}: largest difference {max(differences):.2g} mutations, "
              f"{'the same zeros' if same else 'other zeros'}")  # fmt: skip


def cut_off(V: Any, H: Any, W: Any, limit: float) -> Any:
    """Fit every tumour again, without the signatures whose share is below the limit."""
    kept, sparse = limit * W.sum(axis=1, keepdims=True) <= W, np.zeros(W.shape)
    for support in np.unique(kept, axis=0):
        rows = (kept == support).all(axis=1)
        sparse[np.ix_(rows, support)] = expose(V[rows], H[support])
    return sparse


def compare_refits() -> None:
    """Print how well exposures and their zeros are recovered."""
    methods: dict[str, Any] = {
        f"limit {limit:g}": lambda V, H, limit=limit: cut_off(V, H, expose(V, H), limit)
        for limit in (0.02, 0.05, 0.1)
    }
    methods = {"plain": expose} | methods
    methods["refit"] = lambda V, H: refit(V, H, intervals=False).exposures
    for name, method in methods.items():
        results = []
        for seed in SEEDS:
            V, H, truth = simulate_exposures(seed)
            W = method(V, H)
            kept, added = (W > 0)[truth > 0].mean(), (W > 0)[truth == 0].mean()
            results.append((kept, added, np.abs(W - truth).mean()))
        kept, added, error = np.mean(results, axis=0)
        print(f"{name}: {kept:.3f} kept, {added:.3f} added, mean error {error:.1f}")


def compare_rows() -> None:
    """Print the error of samples that have lost most of their features."""
    for alpha, l1_ratio in ((0.0, 0.0), (1e-3, 0.0), (1e-2, 0.0), (1e-3, 1.0)):
        errors = []
        for seed in SEEDS:
            rng = np.random.default_rng(seed)
            expected = (
                400 * rng.dirichlet(np.full(5, 0.3), 300) @ rng.dirichlet(np.full(200, 0.1), 5)
            )
            observed = np.ones(expected.shape, bool)
            observed[::10] = rng.permuted(np.arange(200) < 10 + np.zeros((30, 1)), axis=1)
            model = KLNMF(5, alpha_W=alpha, l1_ratio=l1_ratio, max_iter=3000, random_state=0)
            W = model.fit_transform(rng.poisson(expected), mask=observed)
            error = np.abs(W @ model.components_ - expected)[::10]
            errors.append((error.mean(), np.median(error), error.max()))
        each = np.array(errors)
        print(f"alpha_W {alpha:g}, l1_ratio {l1_ratio:g}: mean {each[:, 0].mean():.3g}, "
              f"worst seed {each[:, 0].max():.3g}, largest {each[:, 2].max():.3g}")  # fmt: skip


def compare_prior_counts() -> None:
    """Print how well topics with prior counts predict words of new documents."""
    for prior in (0.0, 0.01, 0.1, 0.5):
        results = []
        for seed in range(5):
            V = poisson_topics(150, 500, 5, alpha=0.3, beta=0.1, length=60, seed=seed).toarray()
            model = KLNMF(5, prior_H=prior, random_state=0).fit(V[:75])
            half = np.random.default_rng(seed).binomial(V[75:], 0.5)
            rest = V[75:] - half
            expected = model.transform(half) @ model.components_
            loss = kl_div(rest, np.maximum(expected, 1e-6)).sum() / rest.sum()
            results.append((loss, rest[expected <= 1e-6].sum() / rest.sum()))
        loss, impossible = np.mean(results, axis=0)
        print(f"prior_H {prior:g}: {loss:.2f} nats per word, {impossible:.3f} impossible")


PARTS = {
    "prune": compare_strengths,
    "rescale": compare_with_rescaled,
    "refit": compare_refits,
    "rows": compare_rows,
    "smooth": compare_prior_counts,
}


def main() -> None:
    warnings.simplefilter("ignore")
    for part in sys.argv[1:] or PARTS:
        print(part)
        PARTS[part]()


if __name__ == "__main__":
    main()
