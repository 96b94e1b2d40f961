# SPDX-License-Identifier: BSD-3-Clause
"""`cut_by_work`: the bounds of the blocks, which depend on the data alone."""

from __future__ import annotations

import numpy as np

from sipower.kernels import Array

MAX_BLOCKS = 64
MIN_BLOCK = 32768  # smallest block, in entries; starting it costs far less than its work
MAX_BLOCK = 2**21  # about the largest block, in entries; limits what is read at once


def cut_by_work(work: Array, max_blocks: int | None = None) -> list[int]:
    """Return the bounds of at most `max_blocks` blocks of about equal work.

    `work` holds the work of every item. The first bound is 0, the last one the number of items.
    """
    upto = np.append(0, np.cumsum(work))
    if max_blocks is None:
        max_blocks = max(MAX_BLOCKS, upto[-1] // MAX_BLOCK)
    blocks = int(min(max(upto[-1] // MIN_BLOCK, 1), max_blocks, len(work)))
    cuts = np.searchsorted(upto, upto[-1] * np.arange(1, blocks) / blocks)
    return [int(b) for b in np.unique(np.concatenate([[0], cuts, [len(work)]]))]
