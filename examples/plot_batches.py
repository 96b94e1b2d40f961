# SPDX-License-Identifier: BSD-3-Clause
"""
The same cells from two laboratories
====================================

Each of 300 simulated cells is measured twice, by laboratories A and B, whose protocols differ in
how well they capture a third of the genes. The cells are the same, so both measurements of a cell
should use the same gene programs. They do if the factorisation knows the laboratory of each row.
"""

import anndata
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sipower import tl
from sipower.selection import match

CELLS, GENES, PROGRAMS = 300, 400, 6
rng = np.random.default_rng(0)
programs = rng.dirichlet(np.full(GENES, 0.3), PROGRAMS)
usage = rng.dirichlet(np.full(PROGRAMS, 0.3), CELLS)
usage = usage[np.lexsort((-usage.max(axis=1), usage.argmax(axis=1)))]  # cells by main program
effect = np.where(rng.random(GENES) < 1 / 3, rng.choice([-1.0, 1.0], GENES), 0.0)
lab = np.repeat(["A", "B"], CELLS)
capture = np.exp(np.where(lab[:, None] == "A", effect, -effect))
depth = rng.lognormal(np.log(600), 0.4, (2 * CELLS, 1))  # molecules counted in each cell
counts = rng.poisson(depth * capture * (np.tile(usage, (2, 1)) @ programs))
obs = pd.DataFrame({"lab": lab}, index=[f"cell{i % CELLS}_{b}" for i, b in enumerate(lab)])
adata = anndata.AnnData(counts.astype(np.float32), obs=obs)

# %%
# The model with `batch_key` has a factor for each laboratory and gene, fitted with the programs.
# Without it, some programs exist only to tell the laboratories apart, and others are merged.

results = {}
for label, batch_key in (("without batch_key", None), ("with batch_key", "lab")):
    tl.nmf(adata, PROGRAMS, batch_key=batch_key)
    partner, cosine = match(programs, adata.varm["nmf"].T)
    shares = adata.obsm["X_nmf_shares"][:, partner]
    results[label] = cosine, shares[:CELLS], shares[CELLS:]
    difference = 0.5 * np.abs(shares[:CELLS] - shares[CELLS:]).sum(axis=1).mean()
    print(f"{label}: mean cosine {cosine.mean():.3f}, shares in A and B differ by {difference:.0%}")

effects = adata.varm["nmf_batch_effects"]
estimate = np.log(effects["A"] / effects["B"]) / 2
print(f"correlation of true and fitted effects: {np.corrcoef(effect, estimate)[0, 1]:.3f}")

# %%
# In each heat map a column is a cell; A and B have the same cells in the same order, sorted by the
# program that they use most. With `batch_key` both laboratories give the same picture. The lower
# panels compare programs and effects with the truth.

figure = plt.figure(figsize=(10, 8), layout="constrained")
axes = figure.subplot_mosaic("aabb;ccdd;eeff", height_ratios=(2, 2, 3))
for (label, (_, *halves)), places in zip(results.items(), ("ac", "bd"), strict=True):
    for shares, place, name in zip(halves, places, "AB", strict=True):
        image = axes[place].imshow(shares.T, aspect="auto", vmin=0, vmax=1, interpolation="none")
        axes[place].set(title=f"{label}, laboratory {name}", xlabel="cell", ylabel="program")
        axes[place].set_yticks(range(PROGRAMS), range(1, PROGRAMS + 1))
figure.colorbar(image, ax=[axes["b"], axes["d"]], label="share of the counts of a cell")
for shift, (label, (cosine, *_)) in zip((-0.2, 0.2), results.items(), strict=True):
    axes["e"].bar(np.arange(1, PROGRAMS + 1) + shift, cosine, 0.4, label=label)
axes["e"].set(xlabel="program", ylabel="cosine with the true program", ylim=(0, 1.3))
axes["e"].set_yticks((0, 0.25, 0.5, 0.75, 1))
axes["e"].legend(ncols=2, loc="upper center")
noise = rng.uniform(-0.1, 0.1, GENES)  # keeps points apart
axes["f"].plot(effect + noise, estimate, ".", color="black", ms=4, alpha=0.5)
axes["f"].axline((0, 0), slope=1, color="#808080", linewidth=1)
axes["f"].set(xlabel="true effect of a gene (log)", ylabel="fitted effect (log)")
plt.show()
