# SPDX-License-Identifier: BSD-3-Clause
"""Topics in the docstrings of numpy, scipy and scikit-learn: `make demo`."""

from __future__ import annotations

import time

import numpy as np

from sipower import KLNMF, datasets

TOPICS = 20
WORDS = 9


def main() -> None:
    print("Reading the docstrings of the installed numpy, scipy and scikit-learn ...")
    corpus = datasets.docstrings()
    documents, words = corpus.counts.shape
    print(f"{documents:,} documents x {words:,} words, {corpus.counts.nnz:,} nonzeros\n")

    model = KLNMF(TOPICS, tol=1e-2, max_time=30, random_state=0, dtype=np.float32)
    start = time.perf_counter()
    W, H = model.fit_transform(corpus.counts), model.components_
    seconds = time.perf_counter() - start

    size = W.sum(axis=0) * H.sum(axis=1)  # words of the corpus that a topic explains
    inside = H / H.sum(axis=1, keepdims=True)
    overall = size @ inside / size.sum()
    # Frequent in the topic and more so than elsewhere.
    telling = inside * np.log(np.maximum(inside, 1e-12) / np.maximum(overall, 1e-12))
    for rank, k in enumerate(np.argsort(-size), start=1):
        top = np.argsort(-telling[k])[:WORDS]
        share = size[k] / size.sum()
        print(f"{rank:3}  {share:5.1%}  {' '.join(corpus.words[j] for j in top)}")

    print(f"\nKL divergence   {model.kl_divergence_:,.0f}")
    print(f"certified gap   {model.kkt_residual_:.2e} of the sum of the counts")
    print(f"{model.status_} after {model.n_iter_} rounds, {seconds:.1f} s")


if __name__ == "__main__":
    main()
