# SPDX-License-Identifier: BSD-3-Clause
"""Every array that a kernel is given has the shape and type it needs, or the call is refused.

A table of all of them, since a fuzzer seldom damages one array so that one check alone sees it.
"""

import numpy as np
import pytest

from sipower import _kernels

ITEMS, OTHERS, RANK, STEPS = 6, 9, 4, 3
PER_ITEM, FACTOR = (ITEMS,), (ITEMS, RANK)
RESULTS = {"sums": (OTHERS, RANK), "divergence": PER_ITEM, "gaps": PER_ITEM}
WITHOUT_MASS = ("gradient", "sums", "divergence")
DOORS = [
    *WITHOUT_MASS,
    "gaps",
    "mu",
    "power",
    "coordinate",
    "newton",
    "projected_gradient",
    "solve_items",
]
DOORS += ["epoch"]
LAYOUTS = ["csr", "dense"]
TYPES = [np.float32, np.float64]


def values(items=ITEMS, others=OTHERS):
    return np.arange(items * others, dtype=float).reshape(items, others) % 5


def data(layout, items=ITEMS, others=OTHERS):
    V = values(items, others)
    if layout == "dense":
        return _kernels.Dense(V)
    rows, columns = np.nonzero(V)
    indptr = np.searchsorted(rows, np.arange(items + 1))
    return _kernels.Csr(indptr, columns.astype(np.int32), V[rows, columns], others)


def basis(layout, dtype, others=OTHERS, rank=RANK):
    kind = _kernels.BasisFloat32 if dtype is np.float32 else _kernels.BasisFloat64
    return kind(np.ones((others, rank), dtype), layout == "dense")


def plan(layout):
    starts = np.searchsorted(np.nonzero(values())[0], np.arange(ITEMS + 1))
    return _kernels.EpochPlan(
        step=1.0, full_step=1.0, batch=0.5, length=STEPS, threshold=0.01, shortest=1,
        scheme="vectors" if layout == "dense" else "elements", replace=False, key=(0, 0),
        at_round=0, side=0, indptr=starts,
    )  # fmt: skip


def sound(door, layout, dtype):
    """Arguments that a door takes."""
    exact = door in (*WITHOUT_MASS, "gaps")
    out = np.zeros(RESULTS.get(door, FACTOR), np.float64 if exact else dtype)
    arguments = {"V": data(layout), "basis": basis(layout, dtype), "h": np.ones(FACTOR, dtype)}
    arguments |= {"begin": 0, "end": ITEMS, "out": out}
    if door not in WITHOUT_MASS:
        arguments["mass"] = np.full(ITEMS, 7.0)
    more = {
        "power": {"step": 1.0},
        "coordinate": {"sweeps": 2, "order": "cyclic", "key": (0, 0), "place": (0, 0, 0, 0)},
        "newton": {"steps": 2},
        "solve_items": {
            "tol": 1e-3,
            "max_rounds": 3,
            "min_sampled_nonzeros": 1,
            "gap": np.zeros(ITEMS),
            "passes": np.zeros(ITEMS),
        },
        "epoch": {"plan": plan(layout)},
    }
    return arguments | more.get(door, {})


def resized(array, axis, by):
    """A copy with one row or column less or more."""
    size = array.shape[axis] + by
    return np.ascontiguousarray(np.take(array, np.arange(size) % array.shape[axis], axis))


def wrong_arrays():
    """A door, the arguments to change, along which side, by how much."""
    for door in DOORS:
        arrays = {
            name: value.shape
            for name, value in sound(door, "csr", np.float64).items()
            if isinstance(value, np.ndarray)
        }
        changes = [((name,), axis) for name, shape in arrays.items() for axis in range(len(shape))]
        # Together too: arrays that agree with one another, but not with the data and the basis.
        changes += [(tuple(name for name, shape in arrays.items() if shape[0] == ITEMS), 0)]
        changes += [(tuple(name for name, shape in arrays.items() if shape[1:]), 1)]
        for names, axis in changes:
            for by in (-1, 1):
                yield door, names, axis, by


def described(value):
    return "+".join(value) if isinstance(value, tuple) else None


def refused(door, arguments, error):
    """The door raises and has written nothing."""
    results = [arguments[name] for name in ("out", "gap", "passes") if name in arguments]
    before = [result.copy() for result in results]
    with pytest.raises(error):
        getattr(_kernels, door)(**arguments)
    for result, old in zip(results, before, strict=True):
        np.testing.assert_array_equal(result, old)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("door", DOORS)
def test_arguments_that_fit_are_taken(door, layout, dtype):
    """Without which the refusals below would say nothing."""
    arguments = sound(door, layout, dtype)
    getattr(_kernels, door)(**arguments)
    assert np.isfinite(arguments["out"]).all()


def test_the_table_has_every_door_to_the_kernels():
    """One that takes data and a basis is in it."""
    found = [name for name, door in vars(_kernels).items() if "basis: " in str(door.__doc__)]
    assert sorted(found) == sorted(DOORS)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("door", "names", "axis", "by"), list(wrong_arrays()), ids=described)
def test_an_array_with_a_row_or_column_less_or_more_is_refused(door, names, axis, by, layout):
    for dtype in TYPES:
        arguments = sound(door, layout, dtype)
        arguments |= {name: resized(arguments[name], axis, by) for name in names}
        refused(door, arguments, ValueError)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("door", DOORS)
def test_data_and_bases_of_another_size_are_refused(door, layout):
    for dtype in TYPES:
        arguments = sound(door, layout, dtype)
        for by in (-1, 1):
            for wrong in (
                {"V": data(layout, items=ITEMS + by)},
                {"V": data(layout, others=OTHERS + by)},
                {"basis": basis(layout, dtype, others=OTHERS + by)},
                {"basis": basis(layout, dtype, rank=RANK + by)},
            ):
                refused(door, arguments | wrong, ValueError)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("door", DOORS)
def test_an_array_of_another_type_is_refused(door, layout):
    for dtype in TYPES:
        arguments = sound(door, layout, dtype)
        arrays = {name: old for name, old in arguments.items() if isinstance(old, np.ndarray)}
        for name, old in arrays.items():
            other = np.float32 if old.dtype == np.float64 else np.float64
            for wrong in (old.astype(other), old.astype(np.int64), old[..., None], old.tolist()):
                with pytest.raises(TypeError):
                    getattr(_kernels, door)(**arguments | {name: wrong})


@pytest.mark.parametrize("by", [-1, 1])
def test_indices_and_values_are_one_to_one_and_end_with_the_last_row(by):
    indptr, indices, values = np.array([0, 2, 4]), np.array([0, 1, 0, 1], np.int32), np.ones(4)
    assert _kernels.Csr(indptr, indices, values, 2).row_sums().tolist() == [2, 2]
    more, longer = resized(indices, 0, by), resized(values, 0, by)
    for wrong in ((more, values), (indices, longer), (more, longer)):
        with pytest.raises(ValueError, match=r"differ in length|does not span"):
            _kernels.Csr(indptr, *wrong, 2)


@pytest.mark.parametrize("dtype", TYPES)
def test_a_basis_has_one_column_sum_per_component(dtype):
    kind = _kernels.BasisFloat32 if dtype is np.float32 else _kernels.BasisFloat64
    rows = np.ones((OTHERS, RANK), dtype)
    given = np.arange(1.0, RANK + 1)
    np.testing.assert_array_equal(kind(rows, False, given).column_sums, given)
    for size in (0, RANK - 1, RANK + 1):
        with pytest.raises(ValueError, match="one column sum per component"):
            kind(rows, False, np.ones(size))
    for wrong in (given.astype(np.float32), given[None]):
        with pytest.raises(TypeError):
            kind(rows, False, wrong)
