# SPDX-License-Identifier: BSD-3-Clause
"""A pytest plugin that replaces scikit-learn's NMF by KLNMF in scikit-learn's own tests.

`cd`, scikit-learn's default solver, becomes `auto`, and every loss becomes the KL divergence.
`MiniBatchNMF` and the internal functions stay scikit-learn's.
"""

from typing import Any

import sklearn.decomposition

import sipower


class NMF(sipower.KLNMF):
    """KLNMF with the arguments and the defaults of scikit-learn's NMF."""

    def __init__(
        self,
        n_components: Any = "auto",
        *,
        init: Any = None,
        solver: Any = "cd",
        beta_loss: Any = "frobenius",
        tol: Any = 1e-4,
        max_iter: Any = 200,
        random_state: Any = None,
        alpha_W: Any = 0.0,
        alpha_H: Any = "same",
        l1_ratio: Any = 0.0,
        verbose: Any = 0,
        shuffle: Any = False,
    ) -> None:
        settings = supported(solver=solver, beta_loss=beta_loss)
        super().__init__(
            n_components, init=init, tol=tol, max_iter=max_iter, random_state=random_state,
            alpha_W=alpha_W, alpha_H=alpha_H, l1_ratio=l1_ratio, verbose=verbose, shuffle=shuffle,
            **settings,
        )  # fmt: skip


def supported(**settings: Any) -> dict[str, Any]:
    """Replace the settings of scikit-learn that KLNMF does not have."""
    settings["solver"] = "auto" if settings.get("solver", "cd") == "cd" else settings["solver"]
    return settings | {"beta_loss": "kullback-leibler"}


def non_negative_factorization(X: Any, W: Any = None, H: Any = None, *args: Any, **settings: Any):
    """Call sipower's function with supported settings."""
    return sipower.non_negative_factorization(X, W, H, *args, **supported(**settings))


sklearn.decomposition.NMF = NMF
sklearn.decomposition.non_negative_factorization = non_negative_factorization
