# SPDX-License-Identifier: BSD-3-Clause
"""Compare sipower with scikit-learn in the workflow of cNMF: python benchmarks/cnmf.py.

The workflow is that of cNMF (Kotliar et al., 2019) with its KL loss: genes are scaled to unit
variance, each number of programs is fitted from several random starts, spectra of unit length are
clustered by k-means, the medians of the clusters are the consensus spectra, and usages are fitted
to them. Only `non_negative_factorization` differs: scikit-learn's with cNMF's arguments, or
sipower's. Cells are simulated with `negative_binomial_topics`. One thread is used.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import sklearn.decomposition
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import silhouette_score
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import sipower
from sipower.datasets import negative_binomial_topics

CNMF_SETTINGS = {"init": "random", "beta_loss": "kullback-leibler", "max_iter": 1000}
FUNCTIONS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "scikit-learn": (
        sklearn.decomposition.non_negative_factorization,
        {"solver": "mu", "tol": 1e-4},
    ),
    "sipower": (sipower.non_negative_factorization, {"solver": "auto", "tol": 1e-3}),
}


@dataclass(frozen=True)
class Row:
    """Results of one function for one number of programs."""

    name: str
    K: int
    seconds: float  # of all replicates
    divergence: float  # KL divergence per replicate, mean
    silhouette: float  # of the clusters of spectra: cNMF's stability
    consensus_divergence: float  # of the consensus spectra with their usages


def normalised(counts: Any) -> Any:
    """Scale genes to unit variance without centring, as cNMF does, and drop empty genes and cells.

    The result is sparse, as cNMF's is unless it is asked to be dense.
    """
    scale = np.sqrt(StandardScaler(with_mean=False).fit(counts.astype(np.float64)).var_)
    X = sparse.csr_array(counts[:, scale > 0] / scale[scale > 0])
    return X[X.sum(axis=1) > 0]


def kl_divergence(X: Any, W: Any, H: Any) -> float:
    """Return the generalised KL divergence of X from W H, with scikit-learn's floor of W H.

    The medians of all clusters can be zero for a gene, where the divergence is infinite.
    """
    entries = X.tocoo()
    Z = np.einsum("ik,ki->i", W[entries.row], H[:, entries.col])
    logarithms = np.log(entries.data / np.maximum(Z, np.finfo(np.float32).eps))
    return float((entries.data * logarithms).sum() + W.sum(axis=0) @ H.sum(axis=1) - X.sum())


def run_workflow(X: Any, K: int, replicates: int, name: str) -> Row:
    """Fit all replicates of one number of programs and form the consensus."""
    factorize, own = FUNCTIONS[name]
    settings = CNMF_SETTINGS | own | {"n_components": K}
    started = perf_counter()
    fits = [factorize(X, random_state=seed, **settings)[:2] for seed in range(replicates)]
    seconds = perf_counter() - started
    spectra = np.concatenate([H for _, H in fits])
    spectra /= np.linalg.norm(spectra, axis=1, keepdims=True)
    labels = KMeans(K, n_init=10, random_state=1).fit_predict(spectra)
    median = np.stack([np.median(spectra[labels == k], axis=0) for k in range(K)])
    median /= median.sum(axis=1, keepdims=True)
    usages = factorize(X, H=median, update_H=False, random_state=0, **settings)[0]
    return Row(
        name,
        K,
        seconds,
        float(np.mean([kl_divergence(X, W, H) for W, H in fits])),
        float(silhouette_score(spectra, labels)),
        kl_divergence(X, usages, median),
    )


def compare(X: Any, ranks: Iterable[int], replicates: int) -> list[Row]:
    """Run the workflow with both functions for each number of programs."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "No component has feature")
        return [run_workflow(X, K, replicates, name) for K in ranks for name in FUNCTIONS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=1000)
    parser.add_argument("--genes", type=int, default=600)
    parser.add_argument("--replicates", type=int, default=6)
    arguments = parser.parse_args()
    counts = negative_binomial_topics(
        arguments.cells, arguments.genes, 5, dispersion=0.3, alpha=0.2, beta=0.1, length=2000
    )
    X = normalised(counts)
    rows = compare(X, range(3, 8), arguments.replicates)
    print("| K | | seconds | KL, mean of the replicates | silhouette | KL of the consensus |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        print(
            f"| {row.K} | {row.name} | {row.seconds:.1f} | {row.divergence:,.0f} | "
            f"{row.silhouette:.2f} | {row.consensus_divergence:,.0f} |"
        )
    for name in FUNCTIONS:
        print(name, f"{sum(row.seconds for row in rows if row.name == name):.1f} s in total")


if __name__ == "__main__":
    main()
