# SPDX-License-Identifier: BSD-3-Clause
"""Adversarial count matrices: their contents, types and layouts in memory.

Hypothesis draws a `Recipe`, a few small numbers and names that shrink well. The matrix depends on
the recipe alone, so that a failing recipe can be pasted and repeated.
"""

from __future__ import annotations

import tempfile
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import strategies as st

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
DENSE_TYPES = (
    "bool",
    *INTEGERS,
    "float16",
    "float32",
    "float64",
    "longdouble",
    ">f4",
    ">f8",
    ">i4",
)
SPARSE_TYPES = ("bool", *INTEGERS, "float32", "float64", "longdouble")


def _poisson(rng, n, m):
    return rng.poisson(rng.gamma(0.5, 2.0, (n, 3)) @ rng.gamma(0.5, 2.0, (3, m)))


def _sparse(rng, n, m):
    return rng.poisson(0.05, (n, m))


def _single(rng, n, m):
    V = np.zeros((n, m))
    V[rng.integers(n), rng.integers(m)] = rng.integers(1, 100)
    return V


def _equal_rows(rng, n, m):
    return np.tile(rng.poisson(2.0, m), (n, 1))


def _empty_lines(rng, n, m):
    V = _poisson(rng, n, m)
    V[rng.random(n) < 0.4] = 0
    V[:, rng.random(m) < 0.4] = 0
    return V


def _huge(rng, n, m):
    """Counts over fifteen orders of magnitude."""
    return np.floor(10 ** rng.uniform(0, 15, (n, m))) * (rng.random((n, m)) < 0.5)


def _diagonal(rng, n, m):
    return np.eye(n, m) * rng.integers(1, 10**6)


def _fractions(rng, n, m):
    return 10 ** rng.uniform(-12, 3, (n, m)) * (rng.random((n, m)) < 0.7)


def _rank_one(rng, n, m):
    return np.outer(rng.poisson(3.0, n), rng.poisson(3.0, m))


def _ones(rng, n, m):
    return np.ones((n, m))


def _zeros(rng, n, m):
    return np.zeros((n, m))


CONTENTS = {
    "poisson": _poisson,
    "sparse": _sparse,
    "single": _single,
    "equal rows": _equal_rows,
    "empty lines": _empty_lines,
    "huge": _huge,
    "diagonal": _diagonal,
    "fractions": _fractions,
    "rank one": _rank_one,
    "ones": _ones,
    "zeros": _zeros,
}


@dataclass(frozen=True)
class Recipe:
    """The recipe of a matrix."""

    rows: int
    columns: int
    content: str
    dtype: str
    layout: str
    seed: int

    def values(self):
        """Return the values, C-ordered, in the type of the recipe."""
        rng = np.random.default_rng(self.seed)
        empty = self.rows == 0 or self.columns == 0
        V = np.zeros((self.rows, self.columns)) if empty else self.draw(rng)
        dtype = np.dtype(self.dtype)
        if dtype.kind in "iu":  # float64 is exact up to 2^53
            V = np.minimum(V, min(np.iinfo(dtype).max, 2**53))
        elif dtype.kind == "f":
            V = np.minimum(V, float(np.finfo(dtype).max) / max(V.size, 1))
            V[(V > 0) & (float(np.finfo(dtype).tiny) > V)] = 0
        if self.layout == "repeated" and len(V):
            V[:] = V[0]
        return np.ascontiguousarray(V.astype(dtype))

    def draw(self, rng):
        return np.asarray(CONTENTS[self.content](rng, self.rows, self.columns), float)

    def matrix(self):
        """Return the matrix in the layout of the recipe."""
        return convert_layout(self.values(), self.layout, self.seed)


def convert_layout(V, layout, seed):
    """Return V in one of the layouts that users have."""
    if layout in _SPARSE:
        return _SPARSE[layout](sp.csr_array(V), np.random.default_rng(seed))
    return _DENSE[layout](V) if layout in _DENSE else V


def _add_strides(V):
    wide = np.ones((2 * V.shape[0], 3 * V.shape[1]), V.dtype)
    wide[::2, ::3] = V
    return wide[::2, ::3]


def _make_read_only(V):
    V.flags.writeable = False
    return V


def _map_to_file(V):
    if V.size == 0:
        return V
    with tempfile.TemporaryFile() as file:
        file.write(V.tobytes())
        file.flush()
        return np.memmap(file, V.dtype, "r", shape=V.shape)


def _frame(V):
    return pandas().DataFrame(V.astype(V.dtype.newbyteorder("="), copy=False))


def pandas():
    return pytest.importorskip("pandas")


_DENSE = {
    "F": np.asfortranarray,
    "reversed": lambda V: np.ascontiguousarray(V[::-1, ::-1])[::-1, ::-1],
    "strided": _add_strides,
    "repeated": lambda V: np.broadcast_to(V[:1], V.shape),  # one row in memory, a stride of zero
    "read-only": _make_read_only,
    "memmap": _map_to_file,
    "frame": _frame,
    "list": lambda V: V.tolist() if V.size else V,
}


def _in_format(name):
    def convert(csr, rng):
        with warnings.catch_warnings():  # many diagonals are inefficient
            warnings.simplefilter("ignore", sp.SparseEfficiencyWarning)
            return csr.asformat(name)

    return convert


def _convert_parts(convert):
    """Return a function that converts each array of a CSR matrix."""

    def convert_all(csr, rng):
        parts = tuple(convert(part) for part in (csr.data, csr.indices, csr.indptr))
        return sp.csr_array(parts, shape=csr.shape)

    return convert_all


def _row_indices(csr):
    return np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr))


def _widen_indices(csr, rng):
    csr.indices, csr.indptr = csr.indices.astype(np.int64), csr.indptr.astype(np.int64)
    return csr


def _shuffle_indices(csr, rng):
    order = np.lexsort((rng.random(csr.nnz), _row_indices(csr)))
    return sp.csr_array((csr.data[order], csr.indices[order], csr.indptr), shape=csr.shape)


def _duplicate_entries(csr, rng):
    """Split every entry v into v − ⌊v/2⌋ and ⌊v/2⌋, whose sum is exactly v."""
    truth = csr.dtype.kind == "b"
    half = np.zeros_like(csr.data) if truth else csr.data // 2
    rest = csr.data if truth else csr.data - half
    places = np.tile(_row_indices(csr), 2), np.tile(csr.indices, 2)
    return sp.coo_array((np.concatenate([rest, half]), places), shape=csr.shape)


def _store_zeros(csr, rng):
    n, m = csr.shape
    parts = csr.toarray().ravel(), np.tile(np.arange(m), n), m * np.arange(n + 1)
    return sp.csr_array(parts, shape=csr.shape)


def _sparse_frame(csr, rng):
    if not all(csr.shape) or csr.dtype.kind == "b":  # pandas has no sparse truth values
        return csr
    return pandas().DataFrame.sparse.from_spmatrix(csr)


_SPARSE = {
    **{name: _in_format(name) for name in ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")},
    "csr_matrix": lambda csr, rng: sp.csr_matrix(csr),
    "long indices": _widen_indices,
    "unsorted": _shuffle_indices,
    "duplicated": _duplicate_entries,
    "stored zeros": _store_zeros,
    "read-only csr": _convert_parts(_make_read_only),
    "memmap csr": _convert_parts(_map_to_file),
    "sparse frame": _sparse_frame,
}
DENSE_LAYOUTS, SPARSE_LAYOUTS = ("C", *_DENSE), tuple(_SPARSE)


def copy_contents(V):
    """Return copies of all arrays of V that a fit might change."""
    if sp.issparse(V):
        if V.format in ("lil", "dok"):
            return [V.toarray()]
        names = ("data", "indices", "indptr", "row", "col", "offsets")
        return [np.array(getattr(V, name)) for name in names if hasattr(V, name)]
    return [np.array(V)]


def is_unchanged(before, V):
    """Return whether V has the same contents as before."""
    after = copy_contents(V)
    return all(
        a.dtype == b.dtype and np.array_equal(a, b) for a, b in zip(before, after, strict=True)
    )


sizes = st.one_of(st.integers(1, 8), st.integers(1, 30), st.integers(1, 200))
seeds = st.integers(0, 2**32 - 1)


@st.composite
def recipes(draw, sizes=sizes, contents=tuple(CONTENTS), layouts=(*DENSE_LAYOUTS, *SPARSE_LAYOUTS)):
    """Draw any matrix that a factorisation must accept."""
    layout = draw(st.sampled_from(layouts))
    types = SPARSE_TYPES if layout in SPARSE_LAYOUTS else DENSE_TYPES
    shape = draw(sizes), draw(sizes)
    content, dtype = draw(st.sampled_from(contents)), draw(st.sampled_from(types))
    return Recipe(*shape, content, dtype, layout, draw(seeds))
