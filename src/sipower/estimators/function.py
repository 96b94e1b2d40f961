# SPDX-License-Identifier: BSD-3-Clause
"""`non_negative_factorization`: KL-NMF as a function with the signature of scikit-learn's."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np

from sipower.data.names import arrange, data_items
from sipower.estimators.klnmf import KLNMF
from sipower.estimators.observation import ARGUMENTS
from sipower.kernels import Array
from sipower.kernels.seeds import RNG, choose_seed


def non_negative_factorization(  # noqa: PLR0913 - scikit-learn's signature
    X: Any,
    W: Any = None,
    H: Any = None,
    n_components: int | Literal["auto"] | None = "auto",
    *,
    init: str | None = None,
    update_H: bool = True,
    solver: str = "auto",
    beta_loss: str | float = "kullback-leibler",
    tol: float = 1e-3,
    max_iter: int = 500,
    alpha_W: float = 0.0,
    alpha_H: float | Literal["same"] = "same",
    l1_ratio: float = 0.0,
    random_state: Any = None,
    rng: RNG = None,
    verbose: int = 0,
    shuffle: bool = False,
    sample_weight: Any = None,
    feature_weight: Any = None,
    weights: Any = None,
    mask: Any = None,
    offsets: Any = None,
    components_fixed: Any = None,
    components_zero: Any = None,
    prior_W: Any = 0.0,
    prior_H: Any = 0.0,
) -> tuple[Array, Array, int]:
    """Factorise X ≈ W H by minimising the KL divergence, with scikit-learn's signature.

    Parameters
    ----------
    X
        Non-negative data, (n_samples, n_features).
    W, H
        Initial factors, (n_samples, K) and (K, n_features), for ``init="custom"``.
    update_H
        Whether to fit H; if false, the given H is kept, and W is not used, with a warning.
    n_components, init, solver, beta_loss, tol, max_iter, random_state, verbose
        As in `KLNMF`.
    rng
        Seed or NumPy generator, instead of `random_state`.
    alpha_W, alpha_H, l1_ratio
        scikit-learn's penalties, as in `KLNMF`.
    shuffle
        Accepted for compatibility; it has no effect.
    sample_weight, feature_weight, weights, mask, offsets
        As in `KLNMF.fit`. Batches are not among them, because their effects could not be returned:
        use `KLNMF`.
    components_fixed, components_zero
        As in `KLNMF`; only with ``update_H=True``.
    prior_W, prior_H
        Prior counts, as in `KLNMF`. Guides are not among the arguments: use `KLNMF`, which reports
        on them.

    Returns
    -------
    W, H, n_iter
        Factors (n_samples, K) and (K, n_features), and the number of rounds. With
        ``update_H=False``, W is the exact solution for the given H.

    Examples
    --------
    >>> import numpy as np
    >>> from sipower import non_negative_factorization
    >>> V = np.random.default_rng(0).poisson(3.0, (40, 30))
    >>> W, H, n_iter = non_negative_factorization(V, n_components=3, random_state=0)
    >>> W.shape, H.shape
    ((40, 3), (3, 30))
    """
    model = KLNMF(
        n_components,
        init=init,
        solver=solver,
        beta_loss=beta_loss,
        tol=tol,
        max_iter=max_iter,
        alpha_W=alpha_W,
        alpha_H=alpha_H,
        l1_ratio=l1_ratio,
        random_state=choose_seed(rng, "random_state", random_state),
        verbose=verbose,
        shuffle=shuffle,
        components_fixed=components_fixed,
        components_zero=components_zero,
        prior_W=prior_W,
        prior_H=prior_H,
    )
    given = (sample_weight, feature_weight, weights, mask, offsets, None)
    if not update_H:
        if W is not None:
            warnings.warn(
                "`W` is not used with update_H=False: the rows are solved exactly for the given H, "
                "whatever their start.",
                RuntimeWarning,  # as in scikit-learn
                stacklevel=2,
            )
        if components_fixed is not None or components_zero is not None:
            raise ValueError(
                "`components_fixed` and `components_zero` must be None with update_H=False: all of "
                "H is given."
            )
        H = None if H is None else np.asarray(arrange("H", H, None, data_items(X)[1]))
        return model._rows_for(X, H, given), H, 1
    observed: Any = dict(zip(ARGUMENTS, given, strict=True))
    W = model.set_output(transform="default").fit_transform(X, W=W, H=H, **observed)
    return W, model.components_, model.n_iter_
