# SPDX-License-Identifier: BSD-3-Clause
"""Replicates on a client: the same bits as in threads, and folders that either can go on from."""

import numpy as np
import pytest

from sipower import KLNMF, bootstrap, consensus, rank_selection
from sipower.datasets import poisson_topics

V = poisson_topics(120, 60, 3, length=100, seed=0)


def test_consensus_has_the_local_bits(client, tmp_path):
    model, counted = KLNMF(3, random_state=0), []
    expected = consensus(V, model, replicates=3)
    result = consensus(
        V, model, replicates=3, client=client, folder=tmp_path, on_fit=lambda *n: counted.append(n)
    )
    np.testing.assert_array_equal(result.W, expected.W)
    np.testing.assert_array_equal(result.divergences, expected.divergences)
    assert counted == [(1, 3), (2, 3), (3, 3)]
    again = consensus(V, model, replicates=3, folder=tmp_path)  # reads what the client has found
    np.testing.assert_array_equal(again.W, expected.W)


@pytest.mark.parametrize("scale", [1, 0.37], ids=["thinning", "bi-cross-validation"])
def test_rank_selection_has_the_local_bits_and_goes_on(client, tmp_path, scale):
    task = V * scale, range(2, 5), KLNMF(tol=1e-2, random_state=0)
    expected = rank_selection(*task, replicates=2)

    def interrupt(completed, _):
        if completed == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rank_selection(*task, replicates=2, folder=tmp_path, client=client, on_fit=interrupt)
    result = rank_selection(*task, replicates=2, folder=tmp_path, client=client)
    np.testing.assert_array_equal(result.deviance, expected.deviance)
    np.testing.assert_array_equal(result.stability, expected.stability)
    assert result.best == expected.best


def test_bootstrap_has_the_local_bits_and_goes_on(client, tmp_path):
    model = KLNMF(3, random_state=0, tol=1e-4).fit(V)
    offsets = np.linspace(0.5, 2, 120)
    expected = bootstrap(V, model, 4, offsets=offsets)

    def interrupt(completed, _):
        if completed == 2:
            raise KeyboardInterrupt

    task = {"folder": tmp_path, "client": client, "offsets": offsets}
    with pytest.raises(KeyboardInterrupt):
        bootstrap(V, model, 4, **task, on_replicate=interrupt)
    result = bootstrap(V, model, 4, **task)
    for a, b in zip((*result.W, *result.H), (*expected.W, *expected.H), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(result.cosines, expected.cosines)


def test_callbacks_of_rounds_stay_at_home(client):
    with pytest.raises(ValueError, match="`on_round` must be None with a client"):
        consensus(V, KLNMF(3, on_round=print), client=client)
