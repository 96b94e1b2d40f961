# SPDX-License-Identifier: BSD-3-Clause
"""
From all genes to a panel of genes
==================================

Gene programs are learnt from cells in which all genes were measured. Other cells, for example in a
spatial assay, are measured on a panel of genes. The weights of the programs in these cells are
computed from the panel alone. Here the new cells are simulated with all genes, for comparison.
"""

import matplotlib.pyplot as plt
import numpy as np

from sipower import KLNMF, describe

GENES, PROGRAMS = 1500, 5
rng = np.random.default_rng(0)
names = np.array([f"gene{j}" for j in range(GENES)])
common = rng.dirichlet(np.full(GENES, 2.0))  # what every cell expresses
programs = 0.6 * rng.dirichlet(np.full(GENES, 0.1), PROGRAMS) + 0.4 * common


def draw_cells(count):
    """Return counts of cells with a mixture of programs and about 3,000 molecules each."""
    depth = rng.lognormal(np.log(3000), 0.3, (count, 1))
    return rng.poisson(depth * (rng.dirichlet(np.full(PROGRAMS, 0.3), count) @ programs))


model = KLNMF(PROGRAMS, random_state=0)
about = describe(model, W=model.fit_transform(draw_cells(400)), features=names)
new = draw_cells(300)

# %%
# Panels are made of genes that distinguish programs, and have more genes for some programs than
# for others. A mask with one value for each gene says which were measured. The others do not count;
# zeros would mean that they were measured and not found.


def shares(X, mask=None):
    """Return the share of each program in the molecules of each cell."""
    weights = model.transform(X, mask=mask) * model.components_.sum(axis=1)
    return (weights / weights.sum(axis=1, keepdims=True))[:, about.order]


markers = about.top_features(250)  # of each program, the most distinctive genes first
sizes = (50, 25, 15, 5, 5)
panel = np.isin(names, [g for genes, n in zip(markers, sizes, strict=True) for g in genes[:n]])
all_genes, on_panel, with_zeros = shares(new), shares(new, panel), shares(np.where(panel, new, 0))
for label, estimate in (("with the mask", on_panel), ("with zeros", with_zeros)):
    print(f"{label}: mean error of a share {np.abs(estimate - all_genes).mean():.3f}")

# %%
# How many genes are needed? Panels of distinctive genes, equally many for each program, are
# compared with panels of random genes.

sizes, errors = np.array([10, 25, 50, 100, 250, 500]), {"distinctive": [], "random": []}
for size in sizes:
    chosen = np.isin(names, [gene for genes in markers for gene in genes[: size // PROGRAMS]])
    for label, mask in (("distinctive", chosen), ("random", rng.permutation(chosen))):
        errors[label].append(np.abs(shares(new, mask) - all_genes).mean())
print({label: np.round(values, 3).tolist() for label, values in errors.items()})

figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
titles = (f"panel of {panel.sum()} genes, with the mask", "other genes set to zero")
for ax, estimate, title in zip(axes, (on_panel, with_zeros), titles, strict=False):
    for program in range(PROGRAMS):
        ax.plot(all_genes[:, program], estimate[:, program], ".", ms=4, label=program + 1)
    ax.axline((0, 0), slope=1, color="#808080", linewidth=1)
    ax.set(title=title, xlabel="share from all genes", ylabel="share from the panel")
axes[0].legend(title="program", fontsize="small")
for label, style in zip(errors, ("o-", "^--"), strict=True):
    axes[2].loglog(sizes, errors[label], style, label=f"{label} genes")
axes[2].minorticks_off()
axes[2].set_xticks(sizes, sizes)
axes[2].set_yticks((0.003, 0.01, 0.03, 0.1), ("0.003", "0.01", "0.03", "0.1"))
axes[2].set(title="other panels", xlabel="genes on the panel", ylabel="mean error of a share")
axes[2].legend()
plt.show()
