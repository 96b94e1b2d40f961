# SPDX-License-Identifier: BSD-3-Clause
"""A cNMF story: the number of programs, a consensus of many fits, usages and z-scored spectra."""

import numpy as np
import pandas as pd

from sipower import KLNMF, consensus, rank_selection
from sipower.datasets import negative_binomial_topics


def z_scored_spectra(counts, usages):
    """Regress z-scored expression (counts per million) on usages: cNMF's gene_spectra_score."""
    per_million = 1e6 * counts / counts.sum(axis=1, keepdims=True)
    z = (per_million - per_million.mean(axis=0)) / np.maximum(per_million.std(axis=0), 1e-12)
    return np.linalg.lstsq(usages, z, rcond=None)[0]


def main(cells=500, genes=300, replicates=20):
    """Print the recommended number of programs, their stability and their top genes."""
    counts = negative_binomial_topics(
        cells, genes, 5, dispersion=0.3, alpha=0.2, beta=0.1, length=1500, seed=0
    )
    counts = counts[counts.sum(axis=1) > 0]
    selection = rank_selection(counts, range(2, 10), replicates=3)
    print(selection.reason)
    print(pd.DataFrame(selection.table()).round(3).to_string(index=False))

    result = consensus(counts, KLNMF(selection.best, random_state=0), replicates=replicates)
    print(result.summary)
    print("stability of the programs:", result.stability.round(3))

    usages = result.W * result.H.sum(axis=1)  # molecules of each program in each cell
    usages /= usages.sum(axis=1, keepdims=True)
    scores = z_scored_spectra(counts.toarray(), usages)
    for program, score in enumerate(scores):
        top = ", ".join(f"gene{j}" for j in np.argsort(-score)[:5])
        print(f"program {program}: mean usage {usages[:, program].mean():.2f}; {top}")
    return selection, result, scores


if __name__ == "__main__":
    main()
