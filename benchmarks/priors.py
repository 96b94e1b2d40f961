# SPDX-License-Identifier: BSD-3-Clause
"""What guides and penalties do: guided topics, and penalised objectives beside scikit-learn's.

    python benchmarks/priors.py                # both parts
    python benchmarks/priors.py guides         # one of: guides, penalties

guides: generated text (600 x 500, 8 topics), three components guided by five of the twenty most
frequent words of a topic. Number of seeds in which all guided words are among the first twenty of
their component, held-out log-likelihood of a fifth of the counts relative to the unguided fit
(both with `prior_H` = 0.01, because an unseen word has the likelihood 0), how often a guide of
random words is reported, and how often a good one is. The default strength was chosen on the seeds
0 to 9; others are printed here.

penalties: scikit-learn's objective with equal penalties, from the same start, after 500 iterations
of scikit-learn's MU and at the certified end of `auto`. KOS and generated data.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from common import paper_data
from scipy import sparse
from sklearn.decomposition import non_negative_factorization as scikit_learns

from sipower import KLNMF, as_matrix
from sipower.datasets import poisson_topics
from sipower.problems.kl import KLBlock

SAMPLES, WORDS, RANK, GUIDED, SEED_WORDS, TOP = 600, 500, 8, 3, 5, 20
SEEDS = range(100, 110)


def generated_text(seed: int) -> tuple[Any, Any]:
    """Return counts (600, 500) and the profiles of eight topics."""
    rng = np.random.default_rng(seed)
    profiles = rng.dirichlet(np.full(WORDS, 0.05), RANK)
    weights = rng.dirichlet(np.full(RANK, 0.2), SAMPLES)
    return rng.poisson(rng.poisson(150, SAMPLES)[:, None] * (weights @ profiles)), profiles


def held_out(model: KLNMF, train: Any, test: Any, share: float) -> float:
    """Return the Poisson log-likelihood of the test counts up to a constant."""
    Z = share / (1 - share) * (model.transform(train) @ model.components_)
    return float((test * np.log(Z) - Z).sum())


def compare_guides() -> None:
    """Print how guided topics differ from free ones."""
    holds, contradicted, false_alarms, changes, cosines = 0, 0, 0, [], []
    for seed in SEEDS:
        V, profiles = generated_text(seed)
        rng = np.random.default_rng(seed)
        test = rng.binomial(V, 0.2)
        train = sparse.csr_array(V - test)
        tops = [np.argsort(-profile)[:TOP] for profile in profiles[:GUIDED]]
        guides = {
            f"topic {k}": rng.choice(top, SEED_WORDS, replace=False).tolist()
            for k, top in enumerate(tops)
        }
        options: dict[str, Any] = {"random_state": seed, "prior_H": 0.01}
        free = KLNMF(RANK, **options).fit(train)
        guided = KLNMF(RANK, guides=guides, **options).fit(train)
        first = np.argsort(-guided.components_, axis=1)[:, :TOP]
        holds += all(set(words) <= set(first[k]) for k, words in enumerate(guides.values()))
        scores = [held_out(model, train, test, 0.2) for model in (free, guided)]
        changes.append((scores[1] - scores[0]) / abs(scores[0]))
        norms = [np.linalg.norm(H[:GUIDED], axis=1) for H in (guided.components_, profiles)]
        products = (guided.components_[:GUIDED] * profiles[:GUIDED]).sum(axis=1)
        cosines.append((products / norms[0] / norms[1]).min())
        false_alarms += sum(not report.is_supported for report in guided.guides_)
        random = {"random": rng.choice(WORDS, SEED_WORDS, replace=False).tolist()}
        wrong = KLNMF(RANK, guides=guides | random, **options).fit(train)
        contradicted += not wrong.guides_[GUIDED].is_supported
    n = len(SEEDS)
    print(f"guided words among the first {TOP}: {holds} of {n} seeds; cosine {min(cosines):.3f}")
    print(f"held-out log-likelihood: mean {np.mean(changes):+.3%}, lowest {min(changes):+.3%}")
    print(
        f"reported: {contradicted} of {n} random guides, {false_alarms} of {GUIDED * n} good ones"
    )


def objective(V: Any, W: Any, H: Any, alpha: float, l1_ratio: float) -> float:
    """Return scikit-learn's objective of factors W (n, K) and H (K, m)."""
    value = KLBlock(as_matrix(V), np.ascontiguousarray(H.T)).divergence(np.ascontiguousarray(W))
    for factor, size in ((W, V.shape[1]), (H, V.shape[0])):
        penalty = l1_ratio * factor.sum() + (1 - l1_ratio) / 2 * (factor**2).sum()
        value += alpha * size * penalty
    return value


def compare_penalties() -> None:
    """Print penalised objectives of both libraries."""
    sets = {"topics": (poisson_topics(400, 300, 6, seed=1), 6), "KOS": (paper_data("kos"), 20)}
    for name, (V, rank) in sets.items():
        for alpha, l1_ratio in ((1e-4, 0.0), (1e-4, 0.5), (1e-4, 1.0), (1e-3, 1.0)):
            rng, mean = np.random.default_rng(0), np.sqrt(V.mean() / rank)
            W, H = mean * rng.random((V.shape[0], rank)), mean * rng.random((rank, V.shape[1]))
            settings: dict[str, Any] = {"alpha_W": alpha, "l1_ratio": l1_ratio}
            theirs = scikit_learns(
                V.astype(float), W.copy(), H.copy(), rank, init="custom", solver="mu",
                beta_loss="kullback-leibler", tol=0, max_iter=500, **settings,
            )  # fmt: skip
            model = KLNMF(rank, init="custom", max_iter=3000, random_state=0, **settings)
            ours = model.fit_transform(V, W=W, H=H), model.components_
            values = [objective(V, *x, alpha, l1_ratio) for x in (theirs[:2], ours)]
            left = int((model.components_.sum(axis=1) > 0).sum())
            print(
                f"{name:7}alpha {alpha:g}, l1_ratio {l1_ratio:g}: scikit-learn {values[0]:.6g}, "
                f"sipower {values[1]:.6g} ({model.status_}, gap {model.kkt_residual_:.0e}, "
                f"{left} of {rank} components left)"
            )


def main() -> None:
    parts = sys.argv[1:] or ["guides", "penalties"]
    warnings.simplefilter("ignore")
    if "guides" in parts:
        compare_guides()
    if "penalties" in parts:
        compare_penalties()


if __name__ == "__main__":
    main()
