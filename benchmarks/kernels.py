# SPDX-License-Identifier: BSD-3-Clause
"""Measure the kernels: ns per nonzero, share of the peak, speed relative to other libraries.

Run: SIPOWER_DATA=... python benchmarks/kernels.py [K]     (one thread, best of many, interleaved)
"""

from __future__ import annotations

import sys

import numpy as np
import scipy.sparse as sp
from common import best_seconds, paper_data
from sklearn.decomposition._nmf import _multiplicative_update_w

from sipower import as_matrix, kernels
from sipower.problems import KLBlock

RANK = int(sys.argv[1]) if len(sys.argv) > 1 else 20
SIZE = 1500
FIRST = (0, 0, 0, 0)


def peak_gflops(dtype: type) -> float:
    """Return the Gflop/s of a square matrix product with one thread."""
    A = np.ones((SIZE, SIZE), dtype)
    return 2 * SIZE**3 / best_seconds({"": lambda: A @ A}, 8)[""] / 1e9


def kernel_calls(block: KLBlock, h: np.ndarray) -> dict[str, object]:
    """Return functions that call each kernel on one block."""
    V, basis, c = block.V, block.basis, block.c
    g, out, per_item = np.empty(h.shape), np.zeros_like(h), np.empty(len(h))
    return {
        "gradient": lambda: V.for_items(kernels.gradient, basis, h, g),
        "mu": lambda: V.for_items(kernels.mu, basis, h, out, c),
        "sci-pi": lambda: V.for_items(kernels.power, basis, h, out, c, 1.0),
        "divergence": lambda: V.for_items(kernels.divergence, basis, h, per_item),
        "ccd": lambda: V.for_items(
            kernels.coordinate, basis, h, out, c, 1, "cyclic", (0, 0), FIRST
        ),
        "newton": lambda: V.for_items(kernels.newton, basis, h, out, c, 1),
    }


def print_times(name: str, dtype: type, nnz: int, times: dict[str, float], gflops: float) -> None:
    for action, seconds in times.items():
        ns = seconds / nnz * 1e9
        share = 4 * RANK * nnz / seconds / 1e9 / gflops
        print(f"{name:12} {dtype.__name__:8} {action:22} {ns:8.2f} ns/nonzero {share:6.1%} of peak")


def time_sparse(name: str, V: sp.csr_array, dtype: type, gflops: float) -> None:
    rng = np.random.default_rng(0)
    W, H = (rng.random((n, RANK)).astype(dtype) + dtype(0.1) for n in V.shape)
    block = KLBlock(as_matrix(V, dtype=dtype, n_jobs=1), H)
    X, Ht = sp.csr_matrix(V.astype(dtype)), np.ascontiguousarray(H.T)

    def sklearn_pass() -> None:
        _multiplicative_update_w(X, W.copy(), Ht, 1.0, 0, 0, 1.0)

    actions = kernel_calls(block, W)
    times = best_seconds(actions, 100)
    times |= best_seconds({"scikit-learn's pass": sklearn_pass}, 5)
    print_times(name, dtype, V.nnz, times, gflops)
    ratio = times["scikit-learn's pass"] / times["gradient"]
    print(f"{name:12} {dtype.__name__:8} scikit-learn / gradient = {ratio:.1f}")


def time_dense(name: str, V: np.ndarray, dtype: type, gflops: float) -> None:
    rng = np.random.default_rng(0)
    W, H = (rng.random((n, RANK)).astype(dtype) + dtype(0.1) for n in V.shape)
    block, F = KLBlock(as_matrix(V, dtype=dtype, n_jobs=1), H), V.astype(dtype)
    actions = {
        **kernel_calls(block, W),
        "three NumPy expressions": lambda: (F / (W @ H.T)) @ H,
    }
    times = best_seconds(actions, 10)
    print_times(name, dtype, V.size, times, gflops)
    ratio = times["three NumPy expressions"] / times["gradient"]
    print(f"{name:12} {dtype.__name__:8} NumPy / gradient = {ratio:.2f}")


def main() -> None:
    print(f"instruction set {kernels.instruction_set()}, K = {RANK}, one thread")
    kos, wt = sp.csr_array(paper_data("kos")), paper_data("wt")
    for dtype in (np.float32, np.float64):
        gflops = peak_gflops(dtype)
        print(f"peak {dtype.__name__}: {gflops:.1f} Gflop/s")
        time_sparse("KOS docs", kos, dtype, gflops)
        time_sparse("KOS words", sp.csr_array(kos.T), dtype, gflops)
        time_dense("WT pixels", wt, dtype, gflops)
        time_dense("WT frames", np.ascontiguousarray(wt.T), dtype, gflops)


if __name__ == "__main__":
    main()
