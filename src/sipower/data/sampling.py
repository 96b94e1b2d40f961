# SPDX-License-Identifier: BSD-3-Clause
"""Random batches of a matrix: which entries are drawn, and the factors that they are scaled by.

A batch is a sparser matrix V_S with E[V_S] = V. Each row of the matrix is an item. In the table,
V_ij is entry i of item j, and c_j is the sum of item j.

==========  =====================================================  ===================
scheme      draws                                                  factor
==========  =====================================================  ===================
vectors     s of the n columns, the same for all items             n / s
elements    s of all nonzeros                                      nnz / s
stratified  s_j of the n_j nonzeros of every item                  n_j / s_j
weighted    s_j of every item, with probability p_i = V_ij / c_j   1 / (s_j p_i)
==========  =====================================================  ===================

Weighted draws without replacement use systematic sampling: the factor is one over the inclusion
probability min(1, τ V_ij), whose sum over the item is s_j.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sipower.kernels import Array, Draw, batch_size

Scheme = Literal["vectors", "elements", "stratified", "weighted"]
SCHEMES: tuple[Scheme, ...] = ("vectors", "elements", "stratified", "weighted")


def scale_sample(part: Any, factor: float, dtype: np.dtype[Any]) -> Any:
    """Return `part`, the sampled rows or columns, times `factor`, with the dtype `dtype`."""
    product = part * factor
    return product.astype(dtype) if sp.issparse(part) else np.ascontiguousarray(product, dtype)


def sample_elements(csr: Any, positions: NDArray[np.int64], dtype: np.dtype[Any]) -> sp.csr_array:
    """Return some nonzeros of `csr`, each times nnz / s, as a CSR array of the same shape.

    `positions` holds their s indices in `csr.data`, in ascending order.
    """
    values = csr.data[positions] * (csr.nnz / max(len(positions), 1))
    indptr = np.searchsorted(positions, csr.indptr)
    parts = values.astype(dtype), csr.indices[positions], indptr
    return sp.csr_array(parts, shape=csr.shape)


def draw_positions(nnz: int, share: float, draw: Draw, replace: bool) -> NDArray[np.int64]:
    """Draw the share `share` of the positions 0, ..., nnz − 1 and return them sorted."""
    if nnz == 0:
        return np.zeros(0, np.int64)
    if nnz >= 2**31:
        raise ValueError(
            f"scheme='elements' takes at most 2^31 - 1 nonzeros, got {nnz}: use 'stratified'."
        )
    drawn = draw.batch(nnz, batch_size(share, nnz), replace=replace)
    return np.sort(drawn).astype(np.int64)


def sample_items(V: Any, share: float, draw: Draw, *, weighted: bool, replace: bool) -> Any:
    """Draw s_j nonzeros from every item j of the sparse row blocks V, and return them as CSR.

    They are drawn uniformly or, if `weighted` is true, with probabilities proportional to their
    values. Each value is multiplied by the factor of its scheme.
    """
    drawn: list[tuple[Array, Array, Array]] = [
        draw.items(data, V.dtype, share, weighted=weighted, replace=replace)
        for data, _ in V.windows()
    ]
    values, indices, counts = (np.concatenate(part) for part in zip(*drawn, strict=True))
    return sp.csr_array((values, indices, np.append(0, np.cumsum(counts))), shape=V.shape)
