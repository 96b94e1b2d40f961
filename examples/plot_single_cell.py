# SPDX-License-Identifier: BSD-3-Clause
"""
Gene programs of single cells
=============================

An AnnData object holds simulated cells of three types. Each type has its own gene program, and all
types share an activity program to a varying degree. A clustering would find the types; the
factorisation also finds the program that they share.
"""

import anndata
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy import sparse

from sipower import pl, tl
from sipower.selection import match

CELLS, GENES, TYPES = 400, 300, ("T cell", "B cell", "monocyte")
rng = np.random.default_rng(0)
programs = rng.dirichlet(np.full(GENES, 0.1), 4)
kind = np.repeat(np.arange(3), [180, 130, 90])
activity = rng.beta(0.5, 1.5, CELLS)
usage = np.eye(4)[kind] * (1 - activity[:, None])
usage[:, 3] = activity
depth = rng.lognormal(np.log(1500), 0.4, CELLS)  # molecules counted in each cell
counts = rng.poisson(depth[:, None] * (usage @ programs))

adata = anndata.AnnData(
    X=np.log1p(counts),
    obs=pd.DataFrame({"type": np.array(TYPES)[kind]}, index=[f"cell{i}" for i in range(CELLS)]),
    var=pd.DataFrame(index=[f"gene{j}" for j in range(GENES)]),
    layers={"counts": sparse.csr_matrix(counts)},
)

# %%
# The model describes counts: use the layer of raw counts, not normalised or logarithmic values.
# Sequencing depth goes into the weights of a cell, so it need not be corrected first. A start from
# singular vectors depends less on chance than a random one.

tl.nmf(adata, 4, layer="counts", init="nndsvda")
print(adata)
print("status:", adata.uns["nmf"]["status"], " gap:", adata.uns["nmf"]["certified_gap"])

# %%
# The upper panel has one bar per cell: the share of its molecules that each program explains. The
# lower panel compares the share of the common program with the truth.

figure, axes = plt.subplots(2, 1, figsize=(9, 7), layout="constrained")
pl.structure(adata, axes[0], groups=list(adata.obs["type"]))
partner, cosine = match(programs, adata.varm["nmf"].T)
share = adata.obsm["X_nmf_shares"][:, partner[3]]
for number, (name, marker) in enumerate(zip(TYPES, "o^s", strict=True)):
    selected = kind == number
    axes[1].plot(activity[selected], share[selected], marker, color="black", ms=3, label=name)
axes[1].plot([0, 1], [0, 1], color="#808080", linewidth=1)
axes[1].set(xlabel="true activity of the shared program", ylabel="recovered share")
axes[1].legend()
plt.show()
