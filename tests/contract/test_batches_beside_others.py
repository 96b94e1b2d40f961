# SPDX-License-Identifier: BSD-3-Clause
"""Batches beside known components, unknown labels and penalties."""

import numpy as np
import pytest

from sipower import KLNMF


def test_known_components_leave_nothing_common_to_the_effects():
    V = np.random.default_rng(5).poisson(3.0, (40, 12)) * 1.0
    known = KLNMF(2, random_state=0).fit(V).components_[:1]
    options = {"components_fixed": known, "random_state": 0}
    alone = KLNMF(2, **options).fit(V, batch=np.zeros(40))
    np.testing.assert_allclose(alone.batch_effects_, 1, rtol=1e-12)
    two = KLNMF(2, **options).fit(V, batch=np.arange(40) % 2)
    np.testing.assert_allclose(two.batch_effects_.mean(axis=0), 1, rtol=1e-9)
    assert two.status_ == "converged"


def test_labels_that_were_never_seen_are_reported():
    V = np.random.default_rng(6).poisson(3.0, (40, 12)) * 1.0
    batch = np.arange(40) % 2
    model = KLNMF(2, random_state=0).fit(V, batch=batch)
    with pytest.warns(UserWarning, match="No label of `batch` was in fit"):
        model.transform(V, batch=batch.astype(str))


def test_batches_and_penalties_are_not_combined():
    V = np.random.default_rng(7).poisson(3.0, (40, 12)) * 1.0
    with pytest.raises(ValueError, match="cannot be combined with `alpha_W`"):
        KLNMF(2, alpha_W=0.1).fit(V, batch=np.arange(40) % 2)


def test_batches_need_the_solver_auto():
    V = np.random.default_rng(7).poisson(3.0, (40, 12)) * 1.0
    with pytest.raises(ValueError, match="`batch` needs solver='auto', got 'ccd'"):
        KLNMF(2, solver="ccd").fit(V, batch=np.arange(40) % 2)
