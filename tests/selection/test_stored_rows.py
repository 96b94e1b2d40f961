# SPDX-License-Identifier: BSD-3-Clause
"""`rank_selection` of data on disk: all rows if they are few, else a random sample."""

import numpy as np
import pytest
from scipy import sparse

from sipower import as_matrix, rank_selection
from sipower.datasets import poisson_topics
from sipower.io import open_on_disk
from sipower.selection import stored_rows
from sipower.store import write_store

V = poisson_topics(1000, 120, 4, length=100, seed=2)


@pytest.fixture
def stored(tmp_path):
    write_store(V, tmp_path / "counts.sipower")
    return open_on_disk(tmp_path / "counts.sipower", memory_limit="1MB")


def test_a_small_store_gives_the_result_of_memory(stored):
    here, disk = (rank_selection(X, (3, 4, 5), replicates=2) for X in (V, stored))
    np.testing.assert_array_equal(disk.deviance, here.deviance)
    assert (disk.best, disk.reason) == (here.best, here.reason) == (4, here.reason)


def test_a_large_store_gives_the_result_of_the_rows_that_it_names(stored, monkeypatch):
    monkeypatch.setattr(stored_rows, "MAX_NONZEROS", V.nnz // 2)
    offsets = np.linspace(0.5, 2, 1000)
    part, given, sentence = stored_rows.load_rows(stored, None, {"offsets": offsets}, 0)
    rows = np.flatnonzero(np.isin(offsets, given["offsets"]))
    np.testing.assert_array_equal(part.array.toarray(), sparse.csr_array(V)[rows].toarray())
    assert 0.3 < len(rows) / 1000 < 0.7
    assert f"{len(rows):,} of their 1,000 rows" in sentence
    result = rank_selection(stored, (3, 4, 5), replicates=2, offsets=offsets)
    expected = rank_selection(V[rows], (3, 4, 5), replicates=2, offsets=offsets[rows])
    np.testing.assert_array_equal(result.deviance, expected.deviance)
    assert result.reason == expected.reason + sentence


def test_data_in_memory_are_not_sampled(monkeypatch):
    monkeypatch.setattr(stored_rows, "MAX_NONZEROS", 1)
    data = as_matrix(V)
    assert stored_rows.load_rows(data, None, {}, 0)[0].shape == V.shape
