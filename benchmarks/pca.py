# SPDX-License-Identifier: BSD-3-Clause
"""Count passes to the first principal component against the eigengap, with and without sampling.

Data with an exact spectrum, n = 100,000 and d = 100: λ₁ = 1, λ₂ = 1 − gap, then a flat tail (all
equal λ₂) or a decaying one (λ₂/k). Counted: passes until 1 − (x·v₁)² ≤ 1e-10 from the same random
start, median over the seeds. Writes docs/images/pca_passes.png.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

import matplotlib as mpl
import numpy as np

from sipower import SciPi, SSciPi
from sipower.problems import PCA

mpl.use("Agg")
import matplotlib.pyplot as plt

N, D, SEEDS = 100_000, 100, (1, 2, 3)
GAPS = (0.2, 0.1, 0.05, 0.02, 0.01, 0.005)
SOLVERS = {"SCI-PI (power iteration)": SciPi(), "damped, η = ½": SciPi(0.5), "S-SCI-PI": SSciPi()}
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "pca_passes.png"


def draw_samples(gap: float, tail: str) -> tuple[np.ndarray, np.ndarray]:
    """Return A such that AᵀA/n has the given spectrum exactly, and its first eigenvector."""
    rng = np.random.default_rng(0)
    rest = np.ones(D - 1) if tail == "flat" else 1 / np.arange(1, D)
    values = np.concatenate([[1.0], (1 - gap) * rest])
    Q = np.linalg.qr(rng.normal(size=(N, D)))[0]
    R = np.linalg.qr(rng.normal(size=(D, D)))[0]
    return (Q * np.sqrt(N * values)) @ R.T, R[:, 0]


def count_passes(problem: PCA, v: np.ndarray, solver: SciPi | SSciPi, seed: int) -> float:
    """Return the passes until 1 − (x·v)² ≤ 1e-10."""
    state = solver.init(problem, problem.start(seed), seed)
    while np.linalg.norm(state.x[0] - (state.x[0] @ v) * v) ** 2 > 1e-10:
        state = solver.advance(problem, state)
    return state.passes


def main() -> None:
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True)
    for axis, tail in zip(axes, ("flat", "decaying"), strict=True):
        counts: dict[str, list[float]] = {name: [] for name in SOLVERS}
        for gap in GAPS:
            A, v = draw_samples(gap, tail)
            # SCI-PI depends on AᵀA/n only, so its thousands of passes run on a small root of it.
            small = np.linalg.cholesky(A.T @ A / N).T * np.sqrt(D)
            for name, solver in SOLVERS.items():
                problem = PCA(A if isinstance(solver, SSciPi) else small)
                counts[name].append(median(count_passes(problem, v, solver, s) for s in SEEDS))
            power, ours = counts["SCI-PI (power iteration)"][-1], counts["S-SCI-PI"][-1]
            print(
                f"{tail:9} gap {gap:<6} power {power:7.0f}  S-SCI-PI {ours:6.1f}"
                f"  1/{power / ours:.1f}"
            )
        for (name, values), color in zip(
            counts.items(), ("#0072B2", "#E69F00", "#009E73"), strict=True
        ):
            axis.loglog(GAPS, values, "o-", label=name, color=color)
        axis.set(xlabel="eigengap (λ₁ − λ₂)/λ₁", title=f"{tail} tail, n = {N:,}, d = {D}")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("passes to 1 − (x·v₁)² ≤ 1e-10")
    axes[0].legend()
    figure.tight_layout()
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=110)


if __name__ == "__main__":
    main()
