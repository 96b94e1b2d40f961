# SPDX-License-Identifier: BSD-3-Clause
"""A kernel refuses arrays of a wrong shape or type.

All arrays are tried in turn, because a fuzzer seldom damages one so that a single check detects it.
"""

import numpy as np
import pytest

from sipower import _kernels

ITEMS, COLUMNS, RANK, STEPS = 6, 9, 4, 3
PER_ITEM, FACTOR = (ITEMS,), (ITEMS, RANK)
RESULTS = {
    "sums": (COLUMNS, RANK),
    "curvatures": (ITEMS, RANK * (RANK + 1) // 2),
    "divergence": PER_ITEM,
    "gaps": PER_ITEM,
}
WITHOUT_MASS = ("gradient", "sums", "curvatures", "divergence")
KERNELS = [
    *WITHOUT_MASS,
    "gaps",
    "mu",
    "power",
    "power_search",
    "coordinate",
    "newton",
    "shared_newton",
    "projected_gradient",
    "solve_items",
]
KERNELS += ["epoch"]
LAYOUTS = ["csr", "dense"]
TYPES = [np.float32, np.float64]


def values(items=ITEMS, n_columns=COLUMNS):
    return np.arange(items * n_columns, dtype=float).reshape(items, n_columns) % 5


def data(layout, items=ITEMS, n_columns=COLUMNS):
    V = values(items, n_columns)
    if layout == "dense":
        return _kernels.Dense(V)
    rows, columns = np.nonzero(V)
    indptr = np.searchsorted(rows, np.arange(items + 1))
    return _kernels.Csr(indptr, columns.astype(np.int32), V[rows, columns], n_columns)


def basis(layout, dtype, n_rows=COLUMNS, rank=RANK):
    kind = _kernels.BasisFloat32 if dtype is np.float32 else _kernels.BasisFloat64
    return kind(np.ones((n_rows, rank), dtype), layout == "dense")


def plan(layout):
    starts = np.searchsorted(np.nonzero(values())[0], np.arange(ITEMS + 1))
    return _kernels.EpochPlan(
        step=1.0, full_step=1.0, batch=0.5, length=STEPS, threshold=0.01, shortest=1,
        scheme="vectors" if layout == "dense" else "elements", replace=False, key=(0, 0),
        at_round=0, side=0, indptr=starts,
    )  # fmt: skip


def valid_arguments(kernel, layout, dtype):
    """Arguments that a kernel accepts."""
    exact = kernel in (*WITHOUT_MASS, "gaps")
    out = np.zeros(RESULTS.get(kernel, FACTOR), np.float64 if exact else dtype)
    arguments = {"V": data(layout), "basis": basis(layout, dtype), "h": np.ones(FACTOR, dtype)}
    arguments |= {"begin": 0, "end": ITEMS, "out": out}
    if kernel not in WITHOUT_MASS:
        arguments["mass"] = np.full(ITEMS, 7.0)
    more = {
        "power": {"step": 1.0},
        "power_search": {"exponent": 8},
        "coordinate": {"sweeps": 2, "order": "cyclic", "key": (0, 0), "place": (0, 0, 0, 0)},
        "newton": {"steps": 2},
        "shared_newton": {"correlations": np.eye(RANK)},
        "solve_items": {
            "tol": 1e-3,
            "max_rounds": 3,
            "min_sampled_nonzeros": 1,
            "gap": np.zeros(ITEMS),
            "passes": np.zeros(ITEMS),
        },
        "epoch": {"plan": plan(layout)},
    }
    return arguments | more.get(kernel, {})


def resize(array, axis, by):
    """A copy with one row or column less or more."""
    size = array.shape[axis] + by
    return np.ascontiguousarray(np.take(array, np.arange(size) % array.shape[axis], axis))


def wrong_arrays():
    """A kernel, the arguments to change, their axis, and the change of their length."""
    for kernel in KERNELS:
        arrays = {
            name: value.shape
            for name, value in valid_arguments(kernel, "csr", np.float64).items()
            if isinstance(value, np.ndarray)
        }
        changes = [((name,), axis) for name, shape in arrays.items() for axis in range(len(shape))]
        # Several at once: arrays that agree with one another, but not with the data and the basis.
        changes += [(tuple(name for name, shape in arrays.items() if shape[0] == ITEMS), 0)]
        changes += [(tuple(name for name, shape in arrays.items() if shape[1:]), 1)]
        for names, axis in changes:
            for by in (-1, 1):
                yield kernel, names, axis, by


def format_id(value):
    return "+".join(value) if isinstance(value, tuple) else None


def assert_refused(kernel, arguments, error):
    """Assert that a kernel raises and writes nothing."""
    results = [arguments[name] for name in ("out", "gap", "passes") if name in arguments]
    before = [result.copy() for result in results]
    with pytest.raises(error):
        getattr(_kernels, kernel)(**arguments)
    for result, old in zip(results, before, strict=True):
        np.testing.assert_array_equal(result, old)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_arguments_that_fit_are_taken(kernel, layout, dtype):
    """Without this, the refusals below would mean nothing."""
    arguments = valid_arguments(kernel, layout, dtype)
    getattr(_kernels, kernel)(**arguments)
    assert np.isfinite(arguments["out"]).all()


def test_the_table_has_every_kernel():
    """Every function that takes data and a basis is in the table."""
    texts = {name: str(kernel.__doc__) for name, kernel in vars(_kernels).items()}
    names = [name for name, text in texts.items() if "V: " in text and "basis: " in text]
    assert sorted(names) == sorted(KERNELS)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("kernel", "names", "axis", "by"), list(wrong_arrays()), ids=format_id)
def test_an_array_with_a_row_or_column_less_or_more_is_refused(kernel, names, axis, by, layout):
    for dtype in TYPES:
        arguments = valid_arguments(kernel, layout, dtype)
        arguments |= {name: resize(arguments[name], axis, by) for name in names}
        assert_refused(kernel, arguments, ValueError)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_data_and_bases_of_another_size_are_refused(kernel, layout):
    for dtype in TYPES:
        arguments = valid_arguments(kernel, layout, dtype)
        for by in (-1, 1):
            for wrong in (
                {"V": data(layout, items=ITEMS + by)},
                {"V": data(layout, n_columns=COLUMNS + by)},
                {"basis": basis(layout, dtype, n_rows=COLUMNS + by)},
                {"basis": basis(layout, dtype, rank=RANK + by)},
            ):
                assert_refused(kernel, arguments | wrong, ValueError)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_an_array_of_another_type_is_refused(kernel, layout):
    for dtype in TYPES:
        arguments = valid_arguments(kernel, layout, dtype)
        arrays = {name: old for name, old in arguments.items() if isinstance(old, np.ndarray)}
        for name, old in arrays.items():
            other = np.float32 if old.dtype == np.float64 else np.float64
            for wrong in (old.astype(other), old.astype(np.int64), old[..., None], old.tolist()):
                with pytest.raises(TypeError):
                    getattr(_kernels, kernel)(**arguments | {name: wrong})


@pytest.mark.parametrize("by", [-1, 1])
def test_indices_and_values_are_one_to_one_and_end_with_the_last_row(by):
    indptr, indices, values = np.array([0, 2, 4]), np.array([0, 1, 0, 1], np.int32), np.ones(4)
    assert _kernels.Csr(indptr, indices, values, 2).row_sums().tolist() == [2, 2]
    more, longer = resize(indices, 0, by), resize(values, 0, by)
    for wrong in ((more, values), (indices, longer), (more, longer)):
        with pytest.raises(ValueError, match=r"differ in length|does not span"):
            _kernels.Csr(indptr, *wrong, 2)


@pytest.mark.parametrize("dtype", TYPES)
def test_a_basis_has_one_linear_term_per_component(dtype):
    kind = _kernels.BasisFloat32 if dtype is np.float32 else _kernels.BasisFloat64
    rows = np.ones((COLUMNS, RANK), dtype)
    sums = np.arange(1.0, RANK + 1)[None]
    np.testing.assert_array_equal(kind(rows, False, sums).column_sums, sums[0])
    for size in (0, RANK - 1, RANK + 1):
        with pytest.raises(ValueError, match="one column per component"):
            kind(rows, False, np.ones((1, size)))
    with pytest.raises(ValueError, match="one row per item"):
        kind(rows, False, np.ones((3, RANK)), np.ones((2, RANK)))
    for wrong in (sums.astype(np.float32), sums[0]):
        with pytest.raises(TypeError):
            kind(rows, False, wrong)
