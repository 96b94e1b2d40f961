# SPDX-License-Identifier: BSD-3-Clause
"""Compare the H of a sample of tall data with 20 rounds of `auto` and with MiniBatchNMF.

    python benchmarks/tall.py [--seeds 3] [--no-peer]

200,000 x 5,000 counts of a topic model with 20 million nonzeros, K = 20, float32. "Missing" is the
share of the drop of D in 20 rounds of `auto` from a random start that the H of the sample does not
achieve, with the rows solved for it; a negative share means that the sample reaches a lower D.
"""

from __future__ import annotations

import argparse
import time
import warnings
from unittest import mock

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import MiniBatchNMF

from sipower import Stop, as_matrix, solve
from sipower.nmf import Auto, Factorization
from sipower.nmf.row_sample import fit_sample
from sipower.problems.kl import KLBlock

N, M, K, LENGTH, ROWS = 200_000, 5_000, 20, 104, 10_000


def draw_topics(seed: int = 0) -> sp.csr_array:
    """Draw samples of a topic model, count by count."""
    rng = np.random.default_rng(seed)
    theta, phi = rng.dirichlet(np.full(K, 0.1), N), rng.dirichlet(np.full(M, 0.1), K)
    upto = np.cumsum(phi, axis=1)
    parts = []
    for at in range(0, N, ROWS):
        topic_counts = rng.poisson(LENGTH * theta[at : at + ROWS])
        rows = [np.repeat(np.arange(ROWS), topic_counts[:, k]) for k in range(K)]
        words = [np.searchsorted(upto[k], rng.random(len(rows[k])) * upto[k, -1]) for k in range(K)]
        places = np.concatenate(rows), np.concatenate(words)
        parts.append(sp.csr_array((np.ones(len(places[0]), np.int32), places), shape=(ROWS, M)))
    V = sp.csr_array(sp.vstack(parts))
    V.sum_duplicates()
    return V


def main() -> None:
    """Time both models for every seed, interleaved, then one epoch of the peer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--no-peer", action="store_true")
    options = parser.parse_args()
    V = draw_topics()
    matrix = as_matrix(V, dtype=np.float32)
    matrix.T  # noqa: B018 - computed once, before anything is timed
    print(f"{V.shape[0]:,} x {V.shape[1]:,}, {V.nnz:,} nonzeros, K = {K}, {matrix.threads} threads")
    problem, seconds = Factorization(matrix, K), []
    for seed in range(options.seeds):
        with mock.patch("sipower.nmf.auto.is_tall", return_value=False):
            auto = solve(problem, Auto(), stop=Stop(0, rounds=20), seed=seed)
        started = time.monotonic()
        H = fit_sample(matrix, K, seed)
        seconds.append(time.monotonic() - started)
        rows = KLBlock(matrix, H)
        value = rows.divergence(rows.solution(1e-4)[0])
        solved = time.monotonic() - started - seconds[-1]
        start = auto.trace[0].objective
        missing = (value - auto.value) / (start - auto.value)
        print(f"seed {seed}: missing {missing:+.2%} after {seconds[-1]:.2f} s (rows solved and D "
              f"evaluated: {solved:.2f} s more); 20 rounds of auto: {auto.seconds:.1f} s, "
              f"D {auto.value:.5g}, sample {value:.5g}", flush=True)  # fmt: skip
    if options.no_peer:
        return
    peer = MiniBatchNMF(
        K, beta_loss="kullback-leibler", init="random", batch_size=1024, max_iter=1,
        random_state=0, tol=0, max_no_improvement=None,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.monotonic()
        peer.fit(sp.csr_matrix(V.astype(np.float32)))
    epoch = time.monotonic() - started
    print(
        f"one epoch of MiniBatchNMF: {epoch:.1f} s; a sample takes {max(seconds) / epoch:.1%} of it"
    )


if __name__ == "__main__":
    main()
