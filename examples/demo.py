# SPDX-License-Identifier: BSD-3-Clause
"""Topics in the docstrings of numpy, scipy and scikit-learn: `make demo`."""

from __future__ import annotations

import numpy as np

from sipower import Guarded, Stop, as_matrix, datasets, solve
from sipower.nmf import Alternating, Factorization, SSciPiRule

TOPICS = 20
WORDS = 9


def main() -> None:
    print("Reading the docstrings of the installed numpy, scipy and scikit-learn ...")
    corpus = datasets.docstrings()
    documents, words = corpus.counts.shape
    print(f"{documents:,} documents x {words:,} words, {corpus.counts.nnz:,} nonzeros\n")

    V = as_matrix(corpus.counts, dtype=np.float32)
    solver = Guarded(Alternating(SSciPiRule()))
    result = solve(Factorization(V, TOPICS), solver, stop=Stop(tol=1e-2, seconds=20), seed=0)

    W, H = result.x
    size = W.sum(axis=0) * H.sum(axis=0)  # words of the corpus that a topic explains
    for rank, k in enumerate(np.argsort(-size), start=1):
        top = np.argsort(-H[:, k])[:WORDS]
        share = size[k] / size.sum()
        print(f"{rank:3}  {share:5.1%}  {' '.join(corpus.words[j] for j in top)}")

    print(f"\nKL divergence   {result.value:,.0f}")
    print(f"certified gap   {result.residual:.2e} of the sum of the counts")
    print(f"{result.status} after {result.state.round} rounds, {result.seconds:.1f} s")


if __name__ == "__main__":
    main()
