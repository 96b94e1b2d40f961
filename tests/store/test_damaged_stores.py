# SPDX-License-Identifier: BSD-3-Clause
"""Damaged and replaced files on disk: one sentence, and never a wrong result."""

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from sipower import KLNMF
from sipower.io import ReadError, open_on_disk, open_store
from sipower.store import write_store
from sipower.store.layout import check_entries

V = sp.csr_array(oracles.counts(900, 400, density=0.5))


def fit_model(data, solver):
    return KLNMF(4, solver=solver, random_state=3, tol=0, max_iter=6).fit(data)


def test_damage_on_disk_is_an_error_and_no_crash(tmp_path):
    path = tmp_path / "damaged.sipower"
    write_store(V, path)
    file = path / "rows" / "indices.npy"
    content = bytearray(file.read_bytes())
    content[-4:] = b"\xff\xff\xff\x7f"
    file.write_bytes(content)
    stored = open_store(path)
    with pytest.raises(ValueError, match="column index is out of range"):
        fit_model(stored, "mu")
    file.write_bytes(content[:-400])
    with pytest.raises(ValueError, match="has become shorter"):
        fit_model(stored, "mu")


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0, 0.0])
def test_a_value_on_disk_that_is_no_count_is_an_error(tmp_path, value):
    path = tmp_path / "damaged.sipower"
    write_store(V.astype(np.float64) / 3, path)
    file = path / "rows" / "values.npy"
    values = np.load(file)
    values[5] = value
    np.save(file, values)
    with pytest.raises(ValueError, match=f"{path} is damaged: a value is not positive and finite"):
        fit_model(open_store(path), "mu")
    with pytest.raises(ValueError, match="a value is not positive and finite"):
        open_store(path).rows(0, 20)


def test_an_h5ad_file_that_is_not_canonical_is_sent_to_convert(tmp_path):
    anndata = pytest.importorskip("anndata")
    with_zero = sp.csr_matrix(V.astype(np.float32))
    with_zero.data[7] = 0
    for name, counts in (("zero", with_zero), ("columns", sp.csc_matrix(V.astype(np.float32)))):
        path = tmp_path / f"{name}.h5ad"
        anndata.AnnData(counts).write_h5ad(path)
        with pytest.raises(ReadError, match="sipower convert"):
            open_on_disk(path, cache=False)


def test_a_store_that_is_replaced_while_it_is_open_is_not_mixed_with_the_new_one(tmp_path):
    path = tmp_path / "counts.sipower"
    write_store(V, path)
    stored = open_store(path, memory_limit=500_000)
    write_store(V[::-1], path, force=True)
    assert fit_model(stored, "mu").components_.tobytes() == fit_model(V, "mu").components_.tobytes()


def _another_value(indices, values, mass):
    values[values == 1] = 2


def _masses_of_others(indices, values, mass):
    mass[:] = np.roll(mass, 1)


def _a_column_twice(indices, values, mass):
    indices[1] = indices[0]


@pytest.mark.parametrize("side", ["rows", "columns"])
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_another_value, "do not have the recorded sum"),
        (_masses_of_others, "do not have the recorded sum"),
        (_a_column_twice, "not in order"),
    ],
)
def test_counts_on_disk_that_contradict_each_other_are_damage(tmp_path, side, damage, message):
    path = tmp_path / "counts.sipower"
    write_store(V, path)
    names = ("indices", "values", "mass")
    parts = [np.load(path / side / f"{name}.npy") for name in names]
    damage(*parts)
    for name, part in zip(names, parts, strict=True):
        np.save(path / side / f"{name}.npy", part)
    with pytest.raises(ValueError, match=f"is damaged: .* {message}; convert the data again"):
        fit_model(open_store(path), "mu")


def test_order_is_asked_for_across_parts(monkeypatch):
    """Of a part that begins in the middle of a row too."""
    monkeypatch.setattr("sipower.store.layout._CHECKED_AT_ONCE", 2)
    values, starts = np.ones(6), np.array([0, 0, 3, 6, 6])
    check_entries(starts, np.array([0, 4, 7, 1, 2, 9]), values)
    for indices in ([4, 4, 7, 1, 2, 9], [0, 4, 3, 1, 2, 9], [0, 4, 7, 1, 9, 9]):
        with pytest.raises(ValueError, match="not in order"):
            check_entries(starts, np.array(indices), values)


@pytest.mark.parametrize("side", ["rows", "columns"])
@pytest.mark.parametrize("value", [np.nan, -3.0, 1e9])
def test_sums_that_cannot_be_are_damage(tmp_path, side, value):
    path = tmp_path / "counts.sipower"
    write_store(V, path)
    mass = np.load(path / side / "mass.npy")
    mass[3] = value
    np.save(path / side / "mass.npy", mass)
    with pytest.raises(ValueError, match=f"damaged: {side}/mass.npy"):
        open_store(path)
