# SPDX-License-Identifier: BSD-3-Clause
"""Draw the pictures of README.md and docs/index.md: python docs/images/readme.py.

Left: the shares of eight topics in the docstrings of the installed numpy, scipy and scikit-learn.
Right: the divergence against time on the KOS corpus, from benchmarks/results/paper.csv, and the
times of fastTopics from the table in docs/benchmarks.md.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from sipower import KLNMF, pl
from sipower.datasets import docstrings
from sipower.results.describe import describe, largest

HERE = Path(__file__).parent
CURVES = HERE.parents[1] / "benchmarks" / "results" / "paper.csv"
FAST_TOPICS = ((13, 1e-1), (34, 3e-2), (62, 1e-2))  # iterations of scikit-learn, level
COLOURS = {"auto": ("sipower, solver auto", "#D55E00"), "mu": ("sipower, solver mu", "#56B4E9"),
           "scikit-learn MU": ("scikit-learn, solver mu", "#000000")}  # fmt: skip


def draw_topics(ax: Axes) -> None:
    """Draw the structure plot with the distinctive words of each topic in the legend."""
    corpus = docstrings()
    model = KLNMF(8, tol=1e-2, random_state=0, dtype=np.float32)
    W = model.fit_transform(corpus.counts)
    pl.structure(model, ax, W=W)
    words = [
        ", ".join(corpus.words[j] for j in largest(bits, 3))
        for bits in describe(W, model.components_).distinctiveness()
    ]
    for text in ax.get_legend().get_texts():  # the legend counts components from 1
        text.set_text(words[int(text.get_text()) - 1])
    ax.get_legend().set_title("topic")
    ax.set(title="Topics of docstrings", xlabel="docstrings", ylabel="share of the words")


def draw_times(ax: Axes) -> None:
    """Draw the median over the seeds of the level that each solver has reached by a time."""
    rows = pd.read_csv(CURVES, comment="#")
    rows["first"] = rows.groupby(["data", "seed"])["D"].transform("first")  # D at time 0
    rows = rows[(rows["data"] == "kos") & (rows["seconds"] > 0)]
    times = np.geomspace(0.2, 30, 100)
    for solver, (label, colour) in COLOURS.items():
        runs = [run for _, run in rows[rows["solver"] == solver].groupby("seed")]
        levels = np.median([level_at(run, times) for run in runs], axis=0)
        ax.loglog(times, levels, color=colour, label=label)
    ax.loglog(*zip(*FAST_TOPICS, strict=True), "s", color="#0072B2", label="fastTopics (R)")
    ax.set(
        title="Time to a divergence, KOS corpus",
        xlabel="time in iterations of scikit-learn (50 ms)",
        ylabel="share of the decrease still missing",
        ylim=(3e-3, 1.1),
    )
    ax.grid(visible=True, color="#dddddd", linewidth=0.6)
    ax.legend(loc="lower left")


def level_at(run: pd.DataFrame, times: np.ndarray) -> np.ndarray:
    """Return (D − D*)/(D₀ − D*) after each time; NaN before the first and after the last value."""
    seconds = run["seconds"] / run["u"]
    levels = (run["D"] - run["lowest"]) / (run["first"] - run["lowest"])
    return np.exp(np.interp(np.log(times), np.log(seconds), np.log(levels), np.nan, np.nan))


def main() -> None:
    """Write the picture of README.md, and each half of it for narrow pages."""
    figure, axes = plt.subplots(1, 2, figsize=(12, 4), layout="constrained")
    draw_topics(axes[0])
    draw_times(axes[1])
    figure.savefig(HERE / "readme.png", dpi=90)
    for name, draw in (("topics", draw_topics), ("kos", draw_times)):
        figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
        draw(ax)
        figure.savefig(HERE / f"{name}.png", dpi=90)


if __name__ == "__main__":
    main()
