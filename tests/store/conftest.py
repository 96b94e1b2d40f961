# SPDX-License-Identifier: BSD-3-Clause
"""What a store must hold, as scipy and `as_matrix` make it of the same data, and what is read."""

import numpy as np
import pytest
from scipy import sparse

from sipower import as_matrix
from sipower.data.from_store import StoreSource
from sipower.store import read_layout

PARTS = ("indptr", "indices", "values", "mass")


def _part(store, side, name):
    return np.load(store.path / side / f"{name}.npy", allow_pickle=False)


@pytest.fixture
def assert_store():
    """Compare a store with the data it was made of, number by number and bit by bit."""

    def check(path, data, kind=None, rows_only=False):
        store = read_layout(path)
        matrix = as_matrix(data).sparse()
        csr = sparse.csr_array(matrix.array)
        assert store.shape == matrix.shape
        assert (store.nonzeros, store.total) == (csr.nnz, matrix.total)
        assert store.dtype == str(matrix.dtype)
        assert store.sha256 == as_matrix(data).sha256
        extremes = (csr.data.min(), csr.data.max()) if csr.nnz else (0, 0)
        assert (store.smallest, store.largest) == extremes
        assert store.orientations == (("rows",) if rows_only else ("rows", "columns"))
        sides = {"rows": matrix} if rows_only else {"rows": matrix, "columns": matrix.T}
        for side, part in sides.items():
            expected = part.array.indptr, part.array.indices, part.array.data, part.mass
            for name, numbers in zip(PARTS, expected, strict=True):
                np.testing.assert_array_equal(_part(store, side, name), numbers, err_msg=side)
            if kind is not None:
                assert _part(store, side, "values").dtype == kind
        if rows_only:
            assert [file.name for file in (path / "columns").iterdir()] == ["mass.npy"]
            np.testing.assert_allclose(_part(store, "columns", "mass"), matrix.T.mass, rtol=1e-14)
        assert [file.name for file in path.parent.glob(".*")] == []

    return check


@pytest.fixture
def read_bytes(monkeypatch):
    """Count the bytes that are read of stores."""
    counted, read = [], StoreSource.read

    def counting_read(source, first, indices, values):
        counted.append(indices.nbytes + values.nbytes)
        read(source, first, indices, values)

    monkeypatch.setattr(StoreSource, "read", counting_read)
    return counted
