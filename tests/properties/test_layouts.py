# SPDX-License-Identifier: BSD-3-Clause
"""Every layout and type of the same counts gives bitwise identical factors, or the same path."""

from __future__ import annotations

import warnings
from itertools import cycle

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from properties.matrices import (
    DENSE_LAYOUTS,
    DENSE_TYPES,
    SPARSE_LAYOUTS,
    SPARSE_TYPES,
    Recipe,
    convert_layout,
    copy_contents,
    is_unchanged,
)
from sipower import KLNMF
from sipower.datasets import poisson_topics
from sipower.nmf import SOLVERS


def fit(V, solver, dtype=None):
    model = KLNMF(2, solver=solver, dtype=dtype, max_iter=3, tol=0.0, random_state=0, n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit_transform(V), model.components_


@pytest.mark.parametrize("layout", [*DENSE_LAYOUTS, *SPARSE_LAYOUTS])
def test_every_layout_and_type_gives_the_bits_of_the_plain_one(layout, record_property):
    """Plain data are a C-ordered array of float64, or CSR if the layout is sparse."""
    sparse = layout in SPARSE_LAYOUTS
    types = SPARSE_TYPES if sparse else DENSE_TYPES
    solvers = cycle(SOLVERS)
    record_property("fits", 2 * len(types))
    for number, dtype in enumerate(types):
        content = ("poisson", "empty lines")[number % 2]
        recipe, solver = Recipe(11, 7, content, dtype, layout, 3 + number), next(solvers)
        V = recipe.matrix()
        before = copy_contents(V)
        W, H = fit(V, solver)
        assert is_unchanged(before, V)
        plain = convert_layout(recipe.values().astype(np.float64), "csr" if sparse else "C", 0)
        W_plain, H_plain = fit(plain, solver, W.dtype)
        np.testing.assert_array_equal(W, W_plain, err_msg=dtype, strict=True)
        np.testing.assert_array_equal(H, H_plain, err_msg=dtype, strict=True)


@pytest.mark.parametrize("solver", sorted({*SOLVERS} - {"auto", "rows", "s-sci-pi", "vanilla"}))
def test_single_rules_take_the_same_path_on_dense_and_sparse_data(solver):
    """docs/guide/reproducibility.md names the four solvers that do not."""
    V = poisson_topics(120, 90, 4, length=150, seed=0)
    model = KLNMF(4, solver=solver, init="random", random_state=3, tol=0.0, max_iter=20, n_jobs=1)
    traces, factors = [], []
    for data in (V, V.toarray(), V.toarray().astype(np.float64)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            factors.append(model.fit(data).components_)
        traces.append([(record.round, record.objective) for record in model.trace_])
    for trace, H in zip(traces[1:], factors[1:], strict=True):
        np.testing.assert_allclose(trace, traces[0], rtol=1e-10)
        np.testing.assert_allclose(H, factors[0], rtol=1e-6, atol=1e-8 * factors[0].max())
