# SPDX-License-Identifier: BSD-3-Clause
"""
Which genes make a program, and how certain that is
===================================================

A gene can be among the most probable ones of a program because it is frequent everywhere, or
because of a few lucky counts. Here the true programs are known: 600 simulated cells mix four
programs of 1,200 genes, and every program raises 60 genes of its own. `differential` finds them,
with an interval for every change, and says whether the changes appear again in independent counts.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sipower import KLNMF, differential, pl
from sipower.results import Run
from sipower.selection import match

CELLS, GENES, PROGRAMS, MARKERS = 600, 1200, 4, 60
rng = np.random.default_rng(0)
changes = np.zeros((PROGRAMS, GENES))  # log2, relative to a common profile
for k in range(PROGRAMS):
    changes[k, k * MARKERS : (k + 1) * MARKERS] = rng.gamma(4, 0.6, MARKERS)
profiles = rng.lognormal(0, 1.5, GENES) * 2**changes
profiles /= profiles.sum(axis=1, keepdims=True)
usage = rng.dirichlet(np.full(PROGRAMS, 0.4), CELLS)
depth = rng.lognormal(np.log(1500), 0.4, (CELLS, 1))  # molecules counted in each cell
genes = [f"{'ABCD'[j // MARKERS]}{j % MARKERS + 1}" if changes[:, j].any() else f"gene{j}"
         for j in range(GENES)]  # fmt: skip
counts = pd.DataFrame(rng.poisson(depth * (usage @ profiles)), columns=genes)

# %%
# A run numbers the components by size, as all plots do. The verdict comes from another fit, to one
# half of the counts: the differences that it finds are compared with those in the other half.

model = KLNMF(PROGRAMS, random_state=0)
run = Run.from_model(model, model.fit_transform(counts))
differences = differential(counts, run.W)
print(differences)

# %%
# The upper panels are the figure of a paper: all genes of the largest program, and its strongest
# markers with 95 % intervals. The lower panels compare with the truth: all changes that are found,
# and how many counts a marker needs to be found.

figure, axes = plt.subplots(2, 2, figsize=(10, 9), layout="constrained", height_ratios=(3, 2))
pl.volcano(differences, 0, axes[0, 0], n_labels=12)
pl.intervals(differences, contrast=0, ax=axes[0, 1], n=20)

partner, _ = match(run.H, profiles)
logs = np.log2(profiles)
true = np.array([logs[p] - np.delete(logs, p, axis=0).max(axis=0) for p in partner])  # to the next
is_marker = changes[partner] > 0
found = (differences.lfsr <= 0.05) & (differences.posterior_mean > 0)
wrong = found & ~is_marker
inside = (differences.lower <= true) & (true <= differences.upper)
axes[1, 0].plot([0, 7], [0, 7], color="#808080", linewidth=1)
mean, ends = differences.posterior_mean[found], (differences.lower[found], differences.upper[found])
axes[1, 0].errorbar(true[found], mean, (mean - ends[0], ends[1] - mean), fmt=".", ms=4, lw=0.5)
axes[1, 0].set(xlabel="true log2 fold change", ylabel="estimate with 95% interval")
axes[1, 0].set_title(
    f"{inside[found].mean():.0%} of the intervals hold the truth", fontsize="medium"
)
expected = (depth * usage).sum(axis=0)[partner, None] * profiles[partner]  # counts of a gene
edges = 2.0 ** np.arange(2, 13)
bins = [found[is_marker & (expected >= a) & (expected < 2 * a)] for a in edges]
share = [part.mean() if len(part) else 0 for part in bins]
axes[1, 1].bar(edges, share, 0.9 * edges, align="edge")
axes[1, 1].set(xlabel="expected counts of the marker in its program", xscale="log")
axes[1, 1].set(ylabel="share of markers found", ylim=(0, 1))
false = f"{wrong.sum()} of {found.sum()} found genes are no markers"
axes[1, 1].set_title(false, fontsize="medium")
plt.show()
