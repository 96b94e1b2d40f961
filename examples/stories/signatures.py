# SPDX-License-Identifier: BSD-3-Clause
"""A story of mutational signatures: from a table of tumours to exposures in mutations."""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from sipower import KLNMF, rank_selection
from sipower.selection import match

BASES = "ACGT"
CHANNELS = [
    f"{before}[{change}]{after}"
    for change in ("C>A", "C>G", "C>T", "T>A", "T>C", "T>G")
    for before in BASES
    for after in BASES
]


def write_tumours(file, tumours, seed=0):
    """Write a table of 96 mutation types by tumours, and return the three true signatures."""
    rng = np.random.default_rng(seed)
    signatures = rng.dirichlet(np.full(96, 0.15), 3)
    exposures = rng.gamma(0.7, 1000, (tumours, 3))
    mutations = rng.poisson(exposures @ signatures)
    names = [f"tumour{i}" for i in range(tumours)]
    pd.DataFrame(mutations.T, index=CHANNELS, columns=names).to_csv(file, sep="\t")
    return pd.DataFrame(signatures, index=["S1", "S2", "S3"], columns=CHANNELS)


def main(tumours=100):
    """Print which known signature each component is, and the mutations of each tumour."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "sbs96.tsv"
        known = write_tumours(file, tumours)
        V = pd.read_csv(file, sep="\t", index_col=0).T  # tumours by mutation types

    selection = rank_selection(V.to_numpy(), range(1, 7), replicates=3)
    print(selection.reason)
    model = KLNMF(selection.best, random_state=0, tol=1e-4).fit(V)
    W, H = model.transform(V), model.components_

    partner, cosine = match(H, known.to_numpy())
    names = [known.index[p] if p >= 0 else "new" for p in partner]
    for name, similarity in zip(names, cosine, strict=True):
        print(f"a component is {name} (cosine {similarity:.3f})")
    burden = pd.DataFrame(W * H.sum(axis=1), index=V.index, columns=names)  # mutations
    print(burden.head().round(0).astype(int))
    return V, burden, cosine


if __name__ == "__main__":
    main()
