# SPDX-License-Identifier: BSD-3-Clause
"""`load_rows`: the data for rank selection in memory, all of them or a random sample of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import as_matrix
from sipower.estimators.observation import as_given, as_observation
from sipower.kernels import Draw, Stream

MAX_NONZEROS = 20_000_000  # of the sample, about 160 MB
ROWS_PER_GROUP = 128  # consecutive rows that are drawn, and read, together


def load_rows(
    data: Any, dtype: Any, observed: dict[str, Any], seed: int
) -> tuple[RowBlocks, dict[str, Any], str]:
    """Return rows of the data in memory, what was observed of them, and a remark on the sample.

    Only data on disk with more than MAX_NONZEROS are sampled; the remark is empty for others. Rows
    are drawn in groups of neighbours and keep their order.
    """
    V = as_matrix(data, dtype=dtype, n_jobs=1)
    if not V.total > 0:
        raise ValueError("The data are all zero: to choose a rank, some must be positive.")
    if V.is_in_memory:
        return V, observed, ""
    n = V.shape[0]
    groups = -(-n // ROWS_PER_GROUP)
    share = min(1.0, MAX_NONZEROS / max(V.nnz, 1))
    chosen = np.sort(Draw(seed, Stream.BATCH).batch(groups, max(1, int(share * groups))))
    rows = (ROWS_PER_GROUP * chosen[:, None].astype(np.int64) + np.arange(ROWS_PER_GROUP)).ravel()
    rows = rows[rows < n]
    given = as_observation(V.shape, as_given(observed)).take(rows).arguments() if observed else {}
    part = as_matrix(V.take(rows), dtype=V.dtype, n_jobs=V.threads)
    remark = ""
    if len(rows) < n:
        remark = f" The data are on disk, so {len(rows):,} of their {n:,} rows were used."
    return part.with_names(None, V.column_names), given, remark
