# SPDX-License-Identifier: BSD-3-Clause
"""A single-cell story: gene programs of an AnnData object, and which cell types use them.

X holds logarithms, as after scanpy's usual steps; the raw counts are in a layer.
"""

import anndata
import numpy as np
import pandas as pd
from scipy import sparse

import sipower

TYPES = ("T cell", "B cell", "monocyte")


def simulated_cells(cells, genes, seed=0):
    """Draw cells of three types; each type has a program, and all share an activity program."""
    rng = np.random.default_rng(seed)
    programs = rng.dirichlet(np.full(genes, 0.1), 4)
    kind = rng.integers(0, 3, cells)
    activity = rng.beta(0.5, 1.5, cells)
    usage = np.eye(4)[kind] * (1 - activity[:, None])
    usage[:, 3] = activity
    counts = rng.poisson(rng.lognormal(np.log(1500), 0.4, (cells, 1)) * (usage @ programs))
    return anndata.AnnData(
        X=sparse.csr_matrix(np.log1p(counts)),
        obs=pd.DataFrame({"type": np.array(TYPES)[kind]}, index=[f"cell{i}" for i in range(cells)]),
        var=pd.DataFrame(index=[f"gene{j}" for j in range(genes)]),
        layers={"counts": sparse.csr_matrix(counts)},
    )


def main(cells=600, genes=400):
    """Fit four programs, and print their genes and their share in each cell type."""
    adata = simulated_cells(cells, genes)
    sipower.tl.nmf(adata, 4, layer="counts", random_state=0)
    print(adata.uns["nmf"]["status"], "with a certified gap of", adata.uns["nmf"]["certified_gap"])

    spectra = adata.varm["nmf"] / adata.varm["nmf"].sum(axis=0)  # genes by programs, sums of 1
    background = spectra.mean(axis=1, keepdims=True)
    lift = np.log((spectra + 1e-6) / (background + 1e-6))
    for program in range(4):
        top = np.argsort(-lift[:, program] * spectra[:, program])[:5]
        print(f"program {program}:", ", ".join(adata.var_names[top]))

    weights = adata.obsm["X_nmf"] * adata.varm["nmf"].sum(axis=0)  # molecules of each program
    shares = pd.DataFrame(weights / weights.sum(axis=1, keepdims=True), index=adata.obs_names)
    table = shares.groupby(adata.obs["type"], observed=True).mean().round(2)
    print(table)
    return table


if __name__ == "__main__":
    main()
