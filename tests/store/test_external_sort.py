# SPDX-License-Identifier: BSD-3-Clause
"""Entries that come in any order are sorted by row within the memory limit."""

import numpy as np
import pytest
from scipy import sparse

from sipower.store.external_sort import DuplicateError, Entries, ranges, sort_by_rows
from sipower.store.workspace import Workspace

TINY = 1_000_000


def counts(rows, columns, density=0.1, largest=200, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(1, largest + 1, (rows, columns)) * (rng.random((rows, columns)) < density)


def cut_into_pieces(V, order, size=1000):
    rows, columns = np.unravel_index(np.flatnonzero(V)[order], V.shape)
    whole = Entries(rows.astype(np.int32), columns.astype(np.int32), V[rows, columns])
    for at in range(0, len(rows), size):
        yield Entries(*(part[at : at + size] for part in whole))


@pytest.mark.parametrize("order", ["sorted", "shuffled", "reversed"])
@pytest.mark.parametrize("kind", [np.int64, np.float32, np.float64])
def test_entries_in_any_order_become_rows_in_order(tmp_path, order, kind) -> None:
    V = counts(3000, 100, 0.3, 70000).astype(kind)
    numbers = np.arange(np.count_nonzero(V))
    if order == "shuffled":
        np.random.default_rng(1).shuffle(numbers)
    workspace = Workspace(tmp_path / "v", TINY)
    given_order = numbers[::-1] if order == "reversed" else numbers
    blocks = list(sort_by_rows(cut_into_pieces(V, given_order), V.shape, workspace))
    assert len(blocks) > 5
    assert all(block.nnz + block.shape[0] <= workspace.max_entries for block in blocks)
    assert all(block.has_canonical_format for block in blocks)
    merged = sparse.csr_array(sparse.vstack(blocks))
    assert merged.dtype == (np.float32 if kind == np.float32 else np.float64)
    np.testing.assert_array_equal(merged.toarray(), V)
    assert list(tmp_path.iterdir()) == []


def test_two_entries_of_one_place_are_refused_wherever_they_stand(tmp_path) -> None:
    V = counts(3000, 100, 0.3)
    first, last = next(cut_into_pieces(V, [0])), next(cut_into_pieces(V, [-5]))
    pieces = [last, *cut_into_pieces(V, np.arange(np.count_nonzero(V))), first]
    with pytest.raises(DuplicateError, match="two entries for row 0, column"):
        list(sort_by_rows(pieces, V.shape, Workspace(tmp_path / "v", TINY)))
    assert list(tmp_path.iterdir()) == []


def test_ranges_cover_all_rows_within_the_bound() -> None:
    sizes = np.random.default_rng(0).integers(0, 40, 500)
    sizes[100] = 1000
    starts = np.append(0, np.cumsum(sizes))
    cuts = list(ranges(starts, 64))
    assert [begin for begin, _ in cuts] == [0, *(end for _, end in cuts[:-1])]
    assert cuts[-1][1] == 500
    heavy = [cut for cut in cuts if starts[cut[1]] - starts[cut[0]] + cut[1] - cut[0] > 64]
    assert heavy == [(100, 101)]
