# SPDX-License-Identifier: BSD-3-Clause
"""Plain float64 NumPy forms of everything the library computes, written from the definitions."""

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import rel_entr


def counts(n, m, rank=4, seed=0, density=1.0):
    """Poisson data of low rank with empty rows and columns and rows of a single nonzero."""
    rng = np.random.default_rng(seed)
    mean = rng.gamma(0.5, 2.0, (n, rank)) @ rng.gamma(0.5, 2.0, (rank, m)) * density
    V = rng.poisson(mean).astype(float)
    V[n // 2] = 0
    V[:, m // 3] = 0
    V[n // 3] = 0
    V[n // 3, m // 2] = 7
    return V


def factors(n, m, rank, seed=0):
    rng = np.random.default_rng(seed + 100)
    return rng.random((n, rank)) + 0.05, rng.random((m, rank)) + 0.05


def divergence(V, W, H):
    """Σ V log(V/Z) − V + Z, Z = W Hᵀ."""
    V = V.toarray() if sp.issparse(V) else np.asarray(V, float)
    Z = np.asarray(W, float) @ np.asarray(H, float).T
    return float((rel_entr(V, Z) - V + Z).sum())


def observed_divergence(V, W, H, given, effects=None, labels=None):
    """D(ρφω∘V ‖ ρφω∘Z), Z_ij = s_i β_bj (W Hᵀ)_ij, for arguments of `fit` and β of `labels`."""
    V, w = np.asarray(V, float), np.ones(np.shape(V))
    Z = np.asarray(W, float) @ np.asarray(H, float).T
    for name in ("mask", "weights"):  # entries that a sparse array does not store have weight 1
        part = given.get(name)
        if sp.issparse(part):
            part = np.where(part.toarray() == 0, 1.0, part.toarray())
        w = w if part is None else w * part
    w = w * given.get("feature_weight", 1.0)
    w = w * np.reshape(given.get("sample_weight", np.ones(len(V))), (-1, 1))
    Z *= np.reshape(given.get("offsets", np.ones(len(V))), (-1, 1))
    if effects is not None:
        at = {str(label): number for number, label in enumerate(labels)}
        Z *= np.asarray(effects)[[at[str(label)] for label in given["batch"]]]
    return float((w * np.where(w > 0, rel_entr(V, Z) - V + Z, 0)).sum())


def multiplier(V, B, X):
    """G(X) = Lᵀ(V ⊘ LX)/c for items as rows of V and X on the simplex."""
    c, d = V.sum(axis=1), B.sum(axis=0)
    L = B / d
    Z = X @ L.T
    Q = np.divide(V, Z, out=np.zeros_like(Z), where=V > 0)
    return (Q @ L) / np.where(c > 0, c, 1)[:, None]


def simplex(V, B, h):
    """Lemma 9, forward, h scaled to its mass."""
    x = h * B.sum(axis=0)
    return x / x.sum(axis=1, keepdims=True)


def factor(V, B, X):
    """Lemma 9, back."""
    return V.sum(axis=1)[:, None] * X / B.sum(axis=0)


def log_likelihood(V, B, X):
    """F_j(X) = Σ_i V_ij log(L X)_ij for every item."""
    Z = X @ (B / B.sum(axis=0)).T
    return np.where(V > 0, V * np.log(np.where(V > 0, Z, 1)), 0).sum(axis=1)


def best_item(v, B):
    """min over h ≥ 0 of Σ b·h − v log(b·h), by L-BFGS-B from several starts."""

    d, positive = B.sum(axis=0), v > 0
    B, v = B[positive], v[positive]

    def objective(h):
        z = B @ h
        return d @ h - v @ np.log(z), d - B.T @ (v / z)

    start = np.full(len(d), v.sum() / d.sum())
    options = {"ftol": 1e-15, "gtol": 1e-11, "maxiter": 5000, "maxfun": 50000}
    result = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(1e-12, None)] * len(d),
        options=options,
    )
    return result.fun, result.x


# ---- Algorithm 1 of the paper, transcribed -----------------------------------------------------


def algorithm_1(term_gradients, p, x0, eta, batches, threshold=None):
    """x_m of one epoch and the cosines to the anchor on the way; nothing is normalised.

    Written from the paper's pseudo-code alone. `term_gradients(x)` has ∇f_l(x) of every term l as
    its rows; a batch is the list of its terms. `threshold` is the one thing that is not in the
    pseudo-code: the text asks for one against negative entries, here x_{t+1} ≥ θ x_t.
    """
    g_tilde = term_gradients(x0).mean(axis=0)
    x, cosines = x0, []
    for S in batches:
        product = x @ x0
        cosines.append(product / np.linalg.norm(x) / np.linalg.norm(x0))
        alpha = abs(product) ** (p - 1) / np.linalg.norm(x0) ** (2 * (p - 1))
        total = (term_gradients(x)[S] - alpha * term_gradients(x0)[S]).sum(axis=0)
        g = alpha * g_tilde + total / max(len(S), 1)
        new = (1 - eta) * x + eta * g / np.linalg.norm(x) ** (p - 2)
        x = new if threshold is None else np.maximum(new, threshold * x)
    return x, np.array(cosines)


def pca_terms(A):
    """f_l = ½(a_l·x)², p = 2."""
    return lambda x: (A @ x)[:, None] * A


def lp_pca_terms(A, p):
    """f_l = (1/p)|a_l·x|^p."""
    return lambda x: (np.sign(A @ x) * np.abs(A @ x) ** (p - 1))[:, None] * A


def ica_terms(X):
    """f_l = ¼(x·x_l)⁴ − ¾‖x‖⁴, p = 4."""
    return lambda x: ((X @ x) ** 3)[:, None] * X - 3 * (x @ x) * x


def kl_terms(v, L, mine=None, n=None):
    """f_l = (n v_l/2c) log(L_l·y²), p = 0: one column of KL-NMF by Lemma 9.

    Where the item is one of several whose n terms are drawn together, `mine` are its own; the
    others have no gradient for it.
    """
    n = len(v) if n is None else n
    mine = np.arange(n) if mine is None else mine

    def gradients(y):
        out = np.zeros((n, len(y)))
        quotients = np.divide(v, L @ y**2, out=np.zeros(len(v)), where=v > 0)
        out[mine] = n / v.sum() * quotients[:, None] * (L * y)
        return out

    return gradients


def direction(x):
    """Return every row at length one."""
    return x / np.linalg.norm(x, axis=-1, keepdims=True)
