# SPDX-License-Identifier: BSD-3-Clause
"""A cNMF story: the number of programs, a consensus of many fits, usages and z-scored spectra."""

import pandas as pd

from sipower import KLNMF, consensus, rank_selection, spectra
from sipower.datasets import negative_binomial_topics


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

    programs = spectra(counts, result)  # cNMF's usages, gene_spectra_tpm and gene_spectra_score
    for program, top in enumerate(programs.top_features(5)):
        usage = programs.usages[:, program].mean()
        print(f"program {program}: mean usage {usage:.2f}; genes {', '.join(top)}")
    return selection, result, programs.z_scores


if __name__ == "__main__":
    main()
