# SPDX-License-Identifier: BSD-3-Clause
"""An estimate of the disk space that the conversion of a file to a store needs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sipower.io.coordinates import Coordinates
from sipower.io.sources import Compressed, Dense, OpenCounts
from sipower.store.external_sort import RECORD
from sipower.store.layout import PARTS, VALUE_TYPES

_VALUES_LOOKED_AT = 2**16  # from which the type of all values is estimated
_SIDES = 2  # rows and columns


def conversion_bytes(stream: OpenCounts, *, rows_only: bool) -> int:
    """Return about how many bytes a conversion takes on disk at a time.

    That is the store and, while it is sorted, a record of every entry; entries that are not in the
    order of the rows are sorted twice.
    """
    source = stream.source
    values: Any = np.empty(0)
    if isinstance(source, Compressed):
        entries, values = len(source.data), source.data[:_VALUES_LOOKED_AT]
        in_order = source.by_columns == stream.transposed
    elif isinstance(source, Coordinates):
        entries, in_order = source.entries * (1 + source.symmetric), False
    elif isinstance(source, Dense):
        rows = max(1, _VALUES_LOOKED_AT // max(1, source.shape[1]))
        values = np.asarray(source.array[:rows])
        share = np.count_nonzero(values) / max(1, values.size)
        entries, in_order = math.ceil(math.prod(source.shape) * share), not stream.transposed
    else:  # a small file
        return 0
    per_entry = PARTS["indices"][0].itemsize + _value_bytes(values)
    sides = 1 if rows_only else _SIDES
    sorting = (0 if rows_only else RECORD.itemsize) + sides * per_entry
    return entries * (sorting if in_order else max(sorting, 2 * RECORD.itemsize))


def _value_bytes(values: Any) -> int:
    """Return the bytes per value in a store, estimated from a few values."""
    finite = values[np.isfinite(values)] if values.dtype.kind in "biuf" else np.empty(0)
    for dtype in VALUE_TYPES[:2]:
        if (finite == np.floor(finite)).all() and (finite <= np.iinfo(dtype).max).all():
            return dtype.itemsize
    return 4 if values.dtype == np.float32 else 8
