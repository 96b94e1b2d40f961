# SPDX-License-Identifier: BSD-3-Clause
"""A rank is selected beside known and guided components, which every fit keeps."""

import numpy as np
import pandas as pd
import pytest

from sipower import KLNMF, rank_selection
from sipower.datasets import poisson_topics
from sipower.selection.guided import merge_free

V = poisson_topics(150, 60, 4, length=300, seed=0).toarray()
NAMES = [f"word{j}" for j in range(60)]
TRUTH = KLNMF(4, tol=1e-5, random_state=0).fit(V).components_
GUIDES = {"plants": [NAMES[j] for j in np.argsort(-TRUTH[2])[:5]]}


def test_mergers_leave_the_first_components_alone():
    W, H = np.random.default_rng(0).random((9, 5)), np.random.default_rng(1).random((5, 7))
    for rank in (4, 3, 2):
        start = merge_free(W, H, rank, 2)
        assert start["W"].shape == (9, rank)
        np.testing.assert_allclose(start["W"][:, :2], W[:, :2], rtol=1e-3)
        np.testing.assert_allclose(start["H"][:2], H[:2], rtol=1e-3)
    merged = merge_free(W, H, 4, 2)
    others = W[:, 2:].sum(axis=0) * H[2:].sum(axis=1)
    mass = merged["W"][:, 2:].sum() * merged["H"][2:].sum(axis=1).mean()
    np.testing.assert_allclose(mass, others.sum(), rtol=1e-3)  # no mass of the others is lost


@pytest.mark.filterwarnings("ignore:`guides`")
def test_known_and_guided_components_count_as_components(tmp_path):
    model = KLNMF(
        components_fixed=TRUTH[:2], guides=GUIDES, init="random", tol=1e-2, random_state=0
    )
    frame = pd.DataFrame(V, columns=NAMES)
    found = rank_selection(frame, [3, 4, 6], model, replicates=2, folder=tmp_path)
    assert found.best == 4
    with np.load(tmp_path / "replicate-000.npz") as fits:
        for rank in (3, 4, 6):
            np.testing.assert_array_equal(fits[f"H{rank}"][:2], TRUTH[:2])
            top = {NAMES[j] for j in np.argsort(-fits[f"H{rank}"][2])[:10]}
            assert set(GUIDES["plants"]) <= top
    with pytest.raises(ValueError, match="`ranks` must be at least 3, the number of known and"):
        rank_selection(frame, [2, 4], model, replicates=2)
    with pytest.raises(ValueError, match="not counts, so `guides` cannot be used to choose"):
        rank_selection(frame + 0.5, [3, 4], model, replicates=2)
