# SPDX-License-Identifier: BSD-3-Clause
"""`open_on_disk`: every file through one cache, which is made again whenever it should be."""

import os
import pickle
import time

import numpy as np
import pytest
import scipy.sparse as sp

from cached_files import FILES, V, stamp, write_anndata
from sipower import KLNMF
from sipower.data.on_disk import StoredMatrix
from sipower.io import ReadError, open_on_disk, read, write_store
from sipower.io.cache import cache_entries

# Of anndata, about what Zarr files will be like in its next versions.
pytestmark = pytest.mark.filterwarnings("ignore:.*[zZ]arr:UserWarning")


def fit(data):
    model = KLNMF(3, random_state=0, max_iter=20, tol=1e-2, dtype=np.float64)
    return model.fit_transform(data).tobytes(), model.components_.tobytes()


# ---- every file ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_every_file_gives_the_bits_of_its_counts_in_memory(tmp_path, cache, name):
    path = tmp_path / name
    FILES[name](path)
    told = []
    V_on_disk = open_on_disk(path, cache=cache, on_block=lambda *now: told.append(now[0]))
    assert isinstance(V_on_disk, StoredMatrix)
    assert V_on_disk.has_columns
    assert {"rows", "columns"} <= set(told)
    table = read(path)
    assert fit(V_on_disk) == fit(sp.csr_array(table.counts))
    assert fit(V_on_disk.T) == fit(sp.csr_array(sp.csr_array(table.counts).T))
    if table.features is not None:
        assert tuple(V_on_disk.column_names) == table.features
        assert V_on_disk.source.feature_ids == table.feature_ids
    made, told = stamp(cache), []
    again = open_on_disk(path, cache=cache, on_block=lambda *now: told.append(now))
    assert (told, stamp(cache)) == ([], made)
    np.testing.assert_array_equal(again.rows(0, 60).toarray(), V)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(again)).rows(0, 60).toarray(), V)


def test_a_store_is_opened_where_it_is(tmp_path, cache):
    write_store(V, tmp_path / "v.sipower")
    assert fit(open_on_disk(tmp_path / "v.sipower", cache=cache)) == fit(sp.csr_array(V))
    assert not cache.exists()
    with pytest.raises(ValueError, match="is a store and has no layers: omit `layer`"):
        open_on_disk(tmp_path / "v.sipower", layer="x")


@pytest.mark.parametrize("suffix", [".h5ad", ".zarr"])
def test_layers_have_stores_of_their_own(tmp_path, cache, suffix):
    path = tmp_path / f"cells{suffix}"
    write_anndata(path, sp.csr_matrix(V), spliced=sp.csc_matrix(2 * V))
    for layer, factor in ((None, 1), ("spliced", 2), (None, 1)):
        assert open_on_disk(path, layer=layer, cache=cache).total == factor * V.sum()
    assert len(list(cache_entries(cache))) == 2
    with pytest.raises(ReadError, match="has no layers/raw"):
        open_on_disk(path, layer="raw", cache=cache)
    assert len(list(cache.iterdir())) == 3  # no empty folder; the third is CACHEDIR.TAG


@pytest.mark.parametrize("name", ["csr.h5ad", "v2.zarr", "tenx.h5"])
def test_rows_are_read_without_a_cache(tmp_path, monkeypatch, name):
    monkeypatch.setenv("SIPOWER_CACHE", str(tmp_path / "cache"))
    FILES[name](tmp_path / name)
    V_on_disk = open_on_disk(tmp_path / name, cache=False, memory_limit="1MB")
    assert not V_on_disk.has_columns
    np.testing.assert_array_equal(V_on_disk.rows(0, 60).toarray(), V)
    assert not (tmp_path / "cache").exists()
    for other in ("csc.h5ad", "v3.zarr", "dense.h5ad", "tenx"):
        FILES[other](tmp_path / other)
        with pytest.raises(ReadError, match="does not hold its counts row by row"):
            open_on_disk(tmp_path / other, cache=False)


def test_files_that_are_not_read_in_parts(tmp_path, cache):
    np.save(tmp_path / "v.npy", V)
    with pytest.raises(ValueError, match=r"v\.npy can only be read whole: convert .* first"):
        open_on_disk(tmp_path / "v.npy", cache=cache)
    with pytest.raises(ReadError, match="does not exist"):
        open_on_disk(tmp_path / "v.h5ad", cache=cache)
    (tmp_path / "v.xyz").write_text("1")
    with pytest.raises(ReadError, match="unknown ending"):
        open_on_disk(tmp_path / "v.xyz", cache=cache)


# ---- when it is made again -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["csr.h5ad", "v2.zarr", "v3.zarr", "tenx"])
def test_a_changed_file_is_converted_again(tmp_path, cache, name):
    path = tmp_path / name
    FILES[name](path)
    open_on_disk(path, cache=cache)
    made = stamp(cache)
    part = path if path.is_file() else max(p for p in path.rglob("*") if p.is_file())
    os.utime(part, ns=(0, part.stat().st_mtime_ns + 10**12))
    (entry,) = cache_entries(cache)
    assert entry.status == "file has changed"
    open_on_disk(path, cache=cache)
    assert stamp(cache) != made


def test_new_content_of_a_file_is_used(file, cache):
    assert open_on_disk(file, cache=cache).total == V.sum()
    write_anndata(file, sp.csr_matrix(2 * V.astype(np.float32)))
    assert open_on_disk(file, cache=cache).total == 2 * V.sum()
    file.unlink()
    (entry,) = cache_entries(cache)
    assert entry.status == "file is gone"


def _cut(path):
    path.write_bytes(path.read_bytes()[:-3])


DAMAGE = {
    "no label": lambda e: (e.folder / "source.json").unlink(),
    "half a label": lambda e: (e.folder / "source.json").write_text("{"),
    "a label of another kind": lambda e: (e.folder / "source.json").write_text("[1]"),
    "no store": lambda e: (e.store / "store.json").unlink(),
    "half a store": lambda e: (e.store / "store.json").write_text('{"format": 1}'),
    "another format": lambda e: (e.store / "store.json").write_text('{"format": 99}'),
    "a short array": lambda e: _cut(e.store / "columns/values.npy"),
    "a lost array": lambda e: (e.store / "rows/indices.npy").unlink(),
    "wrong sums": lambda e: np.save(e.store / "rows/mass.npy", np.zeros(60)),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_cache_is_made_again(file, cache, damage):
    open_on_disk(file, cache=cache)
    (entry,) = cache_entries(cache)
    damage(entry)
    (entry.folder / ".counts.sipower.abc").mkdir()  # of a process that was killed
    np.testing.assert_array_equal(open_on_disk(file, cache=cache).rows(0, 60).toarray(), V)
    stamp(cache)
    assert {path.name for path in entry.folder.iterdir()} == {"counts.sipower", "source.json"}


def test_damage_that_is_found_later_names_the_remedy(file, cache):
    V_on_disk = open_on_disk(file, cache=cache)
    (entry,) = cache_entries(cache)
    values = entry.store / "rows/values.npy"
    content = bytearray(values.read_bytes())
    content[-1] ^= 1
    values.write_bytes(bytes(content))
    for data in (V_on_disk, open_on_disk(file, cache=cache)):
        with pytest.raises(ValueError, match=rf"is damaged: .*sipower cache clear {file}"):
            fit(data)


def test_wrong_settings_are_errors_and_no_damage(file, cache):
    open_on_disk(file, cache=cache)
    made = stamp(cache)
    with pytest.raises(ValueError, match="`memory_limit` must be at least"):
        open_on_disk(file, cache=cache, memory_limit=100)
    with pytest.raises(ValueError, match="float16"):
        open_on_disk(file, cache=cache, dtype=np.float16)
    assert stamp(cache) == made


def test_a_file_that_changes_during_its_conversion(file, cache):
    def change(*_):
        os.utime(file, ns=(0, time.time_ns() + 10**12))

    with pytest.raises(ReadError, match="has changed while it was converted"):
        open_on_disk(file, cache=cache, on_block=change)
    assert list(cache_entries(cache)) == []
