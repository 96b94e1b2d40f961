# SPDX-License-Identifier: BSD-3-Clause
"""The library reads and writes where it was told to, and nowhere else."""

import os
import stat
import warnings
import zipfile
from contextlib import suppress
from functools import partial

import numpy as np
import pytest
from scipy import sparse

from cached_files import zarr_format
from oracles import counts
from sipower import KLNMF
from sipower._files import DamagedError, atomic_write, file_lock, read_archive
from sipower.io import FORMATS, ReadError, convert, open_on_disk, open_store, read, read_guides
from sipower.io.anndata_columns import has_columns
from sipower.io.item_values import read_item_values
from sipower.report import write_report
from sipower.results import Run, load_run, save_run
from sipower.results.export import export, write_weights
from sipower.store import write_store

V = counts(9, 7)


# ---- what a file can make the library read -------------------------------------------------------


@pytest.fixture
def h5ad(tmp_path):
    """A function that makes an AnnData file, and lets it be changed."""
    anndata, h5py = pytest.importorskip("anndata"), pytest.importorskip("h5py")
    matrix = sparse.csr_matrix(V)
    layers = {"x": matrix}
    anndata.AnnData(matrix, layers=layers).write_h5ad(tmp_path / "private.h5ad")
    with h5py.File(tmp_path / "private.h5ad", "r+") as content:
        categorical(content, "obs/_index")
        nullable(content, "var/_index")
    (tmp_path / "private").write_bytes(bytes(range(1, 200)))

    def make(change):
        file = tmp_path / "counts.h5ad"
        anndata.AnnData(matrix, layers=layers).write_h5ad(file)
        with h5py.File(file, "r+") as content:
            change(h5py, content, tmp_path)
        return file

    return make


def create_group_for(content, place, encoding, version):
    """A group in the place of names, whose own names become its texts."""
    written = content[place]  # a group with newer pandas
    names = (written["values"] if hasattr(written, "keys") else written).asstr()[()]
    del content[place]
    group = content.create_group(place)
    group.attrs.update({"encoding-type": encoding, "encoding-version": version})
    return group, names


def categorical(content, place):
    group, names = create_group_for(content, place, "categorical", "0.2.0")
    group.attrs["ordered"] = False
    texts(group, "categories", names)
    group["codes"] = np.arange(len(names), dtype=np.int8)
    group["codes"].attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
    return group


def nullable(content, place):
    group, names = create_group_for(content, place, "nullable-string-array", "0.1.0")
    texts(group, "values", names)
    group["mask"] = np.zeros(len(names), bool)
    return group


def texts(group, name, names):
    group[name] = names.astype(object)
    group[name].attrs.update({"encoding-type": "string-array", "encoding-version": "0.2.0"})


def link(place, prepare=lambda content: None):
    def change(h5py, content, folder):
        prepare(content)
        del content[place]
        content[place] = h5py.ExternalLink("private.h5ad", f"/{place}")

    return change


def raw(place, dtype, size):
    def change(h5py, content, folder):
        del content[place]
        where = [(str(folder / "private"), 0, 190)]
        content.create_dataset(place, (size,), dtype, external=where)

    return change


def virtual(h5py, content, folder):
    shape = content["X/data"].shape
    del content["X/data"]
    layout = h5py.VirtualLayout(shape, float)
    layout[:] = h5py.VirtualSource(folder / "private.h5ad", "X/data", shape)
    content.create_virtual_dataset("X/data", layout)


def categories_within(h5py, content, folder):
    """Categories that are in this file, but not the texts of which they consist."""
    group = categorical(content, "obs/_index")
    nullable(content, "obs/_index/categories")
    del group["categories/values"]
    group["categories/values"] = h5py.ExternalLink("private.h5ad", "/obs/_index/categories")


def in_categories(part):
    return link(f"obs/_index/{part}", lambda content: categorical(content, "obs/_index"))


def in_nullable(part):
    return link(f"var/_index/{part}", lambda content: nullable(content, "var/_index"))


ELSEWHERE = {
    **{place: link(place) for place in ("X", "X/data", "X/indices", "X/indptr")},
    **{place: link(place) for place in ("obs", "obs/_index", "var", "var/_index")},
    **{part: in_categories(part) for part in ("categories", "codes")},
    **{part: in_nullable(part) for part in ("values", "mask")},
    "within categories": categories_within,
    "virtual": virtual,
    "raw numbers": raw("X/data", "u1", int((V > 0).sum())),
    "raw names": raw("obs/_index", "S4", 9),
}


@pytest.mark.parametrize("change", ELSEWHERE.values(), ids=ELSEWHERE)
def test_an_hdf5_file_cannot_have_another_one_read(h5ad, change):
    """Links, views and raw files would put what its maker may not see into the results."""
    file = h5ad(change)
    for act in (read, open_on_disk, partial(open_on_disk, cache=False)):
        with pytest.raises(ReadError, match="another file holds"):
            act(file)


@pytest.mark.parametrize("part", ["", "/data", "/indices", "/indptr"])
def test_a_layer_cannot_have_another_file_read(h5ad, part):
    file = h5ad(link(f"layers/x{part}"))
    for act in (read, open_on_disk, partial(open_on_disk, cache=False)):
        with pytest.raises(ReadError, match="another file holds"):
            act(file, layer="x")


TENX = ["data", "indices", "indptr", "shape", "barcodes"]
TENX += ["features/id", "features/name", "features/feature_type"]


@pytest.mark.parametrize("place", ["matrix", "matrix/features", *(f"matrix/{p}" for p in TENX)])
def test_a_file_of_10x_cannot_have_another_one_read(tmp_path, place):
    h5py = pytest.importorskip("h5py")
    private, file = tmp_path / "private.h5", tmp_path / "counts.h5"
    names, by_cells = np.array(list("abcdefg"), "S"), sparse.csr_array(V)
    parts = [by_cells.data, by_cells.indices, by_cells.indptr, np.array(V.T.shape)]
    parts += [np.array(list("123456789"), "S"), names, names, np.array(["Gene"] * 7, "S")]
    for path in (private, file):
        with h5py.File(path, "w") as content:
            for name, part in zip(TENX, parts, strict=True):
                content[f"matrix/{name}"] = part
    np.testing.assert_array_equal(read(file).counts.toarray(), V)
    with h5py.File(file, "r+") as content:
        del content[place]
        content[place] = h5py.ExternalLink(str(private), f"/{place}")
    with pytest.raises(ReadError, match="another file holds"):
        read(file)


def test_categories_and_missing_names_of_the_file_itself_are_read(h5ad):
    """Without which their refusal elsewhere would say nothing."""

    def change(h5py, content, folder):
        group = categorical(content, "obs/_index")
        group["codes"][:3] = 8, -1, 8
        nullable(content, "var/_index")["mask"][1] = True

    table = read(h5ad(change))
    assert table.samples == ("8", "nan", "8", *map(str, range(3, 9)))
    assert table.features == ("0", "<NA>", *map(str, range(2, 7)))


def test_links_within_an_hdf5_file_are_followed(h5ad):
    def change(h5py, content, folder):
        content.move("X", "elsewhere")
        content["X"] = h5py.SoftLink("/elsewhere")

    np.testing.assert_array_equal(read(h5ad(change)).counts.toarray(), V)


# ---- what it may not even open -------------------------------------------------------------------

# Opening a named pipe waits until somebody writes to it, so what opened it would never return.


@pytest.fixture
def pipe(tmp_path):
    if not hasattr(os, "mkfifo"):
        pytest.skip("needs the named pipes of Unix")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


@pytest.mark.parametrize("ending", [e for e in FORMATS if e != ".zarr"])
def test_a_named_pipe_is_not_waited_for(pipe, ending):
    file = pipe.rename(pipe.with_name(f"docword.counts{ending}"))
    link = file.with_name(f"docword.link{ending}")
    link.symlink_to(file)
    for path in (file, link):
        message = rf"link{ending}|counts{ending} cannot be read: it is a named pipe, expected"
        for act in (read, partial(convert, target=pipe.with_name("v.sipower"))):
            with pytest.raises(ReadError, match=message):
                act(path)


def test_devices_and_pipes_elsewhere_are_not_waited_for(pipe):
    (pipe.parent / "zero.csv").symlink_to("/dev/zero")
    with pytest.raises(ReadError, match=r"zero\.csv cannot be read: it is a device, expected"):
        read(pipe.parent / "zero.csv")
    (pipe.parent / "values.npy").symlink_to(pipe)
    with pytest.raises(OSError, match="it is a named pipe"):
        read_item_values(pipe.parent / "values.npy")
    (pipe.parent / "guides.gmt").symlink_to(pipe)
    with pytest.raises(ReadError, match="does not exist"):
        read_guides(pipe.parent / "guides.gmt")
    write_store([V], pipe.parent / "v.sipower")
    (pipe.parent / "v.sipower/rows/values.npy").unlink()
    (pipe.parent / "v.sipower/rows/values.npy").symlink_to(pipe)
    with pytest.raises(ValueError, match=r"rows/values\.npy does not hold"):
        open_store(pipe.parent / "v.sipower")
    save_run(a_run(), pipe.parent / "run")
    (pipe.parent / "run/factors.npz").unlink()
    (pipe.parent / "run/factors.npz").symlink_to(pipe)
    with pytest.raises((OSError, ValueError), match="it is a named pipe"):
        load_run(pipe.parent / "run")


def test_a_file_that_is_a_link_is_read(tmp_path):
    """Workflow managers stage their inputs as links, and links to these."""
    np.save(tmp_path / "counts.npy", V)
    (tmp_path / "staged.npy").symlink_to(tmp_path / "counts.npy")
    (tmp_path / "again.npy").symlink_to(tmp_path / "staged.npy")
    np.testing.assert_array_equal(read(tmp_path / "again.npy").counts, V)


def to_pipe(place):
    """A link to the pipe in the place of an element."""

    def change(h5py, content, folder):
        del content[place]
        content[place] = h5py.ExternalLink("pipe", "/x")

    return change


def through_links(h5py, content, folder):
    content["away"] = h5py.ExternalLink("pipe", "/x")
    content["first"] = h5py.SoftLink("/away/more")
    del content["X/data"]
    content["X/data"] = h5py.SoftLink("/first")


def endless_links(h5py, content, folder):
    del content["X/data"]
    content["X/data"] = h5py.SoftLink("/again")
    content["again"] = h5py.SoftLink("/X/data")
    content["X/more"] = h5py.SoftLink("/" + "X/more/" * 50)


def virtual_without_end(h5py, content, folder):
    """HDF5 opens the sources of a virtual dataset when its shape is asked for."""
    del content["X/data"]
    layout, end = h5py.VirtualLayout((3,), float, maxshape=(None,)), h5py.h5s.UNLIMITED
    layout[0:end] = h5py.VirtualSource(folder / "pipe", "x", (3,), maxshape=(None,))[0:end]
    content.create_virtual_dataset("X/data", layout)


PIPES = {
    **{place: to_pipe(place) for place in ("X", "X/data", "X/indptr", "obs", "var/_index")},
    "through links": through_links,
    "virtual": virtual_without_end,
}


@pytest.mark.parametrize("change", PIPES.values(), ids=PIPES)
def test_a_link_of_an_hdf5_file_is_not_opened(pipe, h5ad, change):
    file = h5ad(change)
    for act in (read, open_on_disk, has_columns):
        with suppress(ReadError):
            act(file)
            assert act is has_columns
    with pytest.raises(ReadError, match="another file holds"):
        read(file)


def test_links_without_end_get_a_sentence(h5ad):
    with pytest.raises(ReadError, match=r"/X/data is a link to more than 16 links; write its"):
        read(h5ad(endless_links))


def test_what_nobody_asked_for_is_not_opened(pipe, h5ad):
    """The other layers are looked at, since one of them may hold the counts."""

    def change(h5py, content, folder):
        for place in ("layers/x", "layers/y", "uns", "raw", "strange"):
            if place in content:
                del content[place]
            content[place] = h5py.ExternalLink("pipe", "/x")

    file = h5ad(change)
    np.testing.assert_array_equal(read(file).counts.toarray(), V)
    with pytest.raises(ReadError, match="has no layers/z: its layers are x, y"):
        read(file, layer="z")
    with pytest.raises(ReadError, match="another file holds /layers/x"):
        read(file, layer="x")


def test_a_file_of_10x_is_read_beside_a_link(pipe):
    h5py, by_cells = pytest.importorskip("h5py"), sparse.csr_array(V)
    with h5py.File(pipe.parent / "counts.h5", "w") as content:
        for part in ("data", "indices", "indptr"):
            content[f"matrix/{part}"] = getattr(by_cells, part)
        content["matrix/shape"] = V.T.shape
        content["matrix/barcodes"] = np.array(list("123456789"), "S")
        content["matrix/features/name"] = np.array(list("abcdefg"), "S")
        content["away"] = h5py.ExternalLink("pipe", "/x")
    np.testing.assert_array_equal(read(pipe.parent / "counts.h5").counts.toarray(), V)


def write_zarr(file, version):
    anndata = pytest.importorskip("anndata")
    pytest.importorskip("zarr")
    matrix = sparse.csr_matrix(V)
    with warnings.catch_warnings(), zarr_format(version):
        warnings.simplefilter("ignore")
        anndata.AnnData(matrix, layers={"x": matrix}).write_zarr(file)
    return file


PLACES = [".zattrs", "X/.zattrs", "X/data/.zarray", "X/data/0", "X/indptr/9.9", "obs/.zgroup"]
PLACES += ["X/zarr.json", "obs/zarr.json", "X/data/zarr.json", "X/data/c/0", "obs/_index/c/0"]


@pytest.mark.parametrize("linked", [True, False], ids=["link", "pipe"])
@pytest.mark.parametrize("place", PLACES)
def test_a_pipe_in_a_zarr_folder_is_not_opened(pipe, place, linked):
    version = 3 if place.endswith(("zarr.json", "c/0")) else 2
    file = write_zarr(pipe.with_name("cells.zarr"), version)
    (file / place).unlink(missing_ok=True)
    if linked:
        (file / place).symlink_to(pipe)
    else:
        os.mkfifo(file / place)
    message = "another file holds" if linked else f"{place} cannot be read: it is a named pipe"
    with pytest.raises(ReadError, match=message):
        read(file)


@pytest.mark.parametrize("place", ["layers/x", "layers/x/zarr.json", "layers", "uns", "raw"])
def test_what_nobody_asked_for_in_a_zarr_folder_is_not_opened(pipe, place):
    file = write_zarr(pipe.with_name("cells.zarr"), 3)
    if (file / place).exists():
        (file / place).rename(pipe.with_name("gone"))
    (file / place).symlink_to(pipe)
    np.testing.assert_array_equal(read(file).counts.toarray(), V)


@pytest.mark.parametrize("index", [-1, 7, 2**31 - 1])
def test_indices_of_a_store_lead_nowhere_else(tmp_path, index):
    """A damaged index handed on to SciPy was a write outside of its arrays."""
    write_store([V], tmp_path / "counts.sipower")
    file = tmp_path / "counts.sipower/rows/indices.npy"
    indices = np.load(file)
    indices[3] = index
    np.save(file, indices)
    for act in (lambda d: d.take(np.array([0, 1])), lambda d: d.rows(0, 9), KLNMF(2).fit):
        with pytest.raises(ValueError, match=r"is damaged: .*index is out of range"):
            act(open_store(tmp_path / "counts.sipower"))


@pytest.mark.parametrize("name", ["../W.npy", "/tmp/W.npy", "a/../../W.npy", "W.npy"])
def test_members_of_an_archive_are_never_written(tmp_path, name):
    (tmp_path / "inner").mkdir()
    with zipfile.ZipFile(tmp_path / "inner/a.npz", "w") as archive:
        archive.writestr(name, b"no array")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(DamagedError):
        read_archive(tmp_path / "inner/a.npz")
    with pytest.raises(ReadError):
        read(tmp_path / "inner/a.npz")
    assert sorted(tmp_path.rglob("*")) == before


# ---- where the library writes --------------------------------------------------------------------


def test_a_lock_does_not_follow_a_link(tmp_path):
    """In a folder of many, a link of the lock's name would have it make files for its maker."""
    victim = tmp_path / "victim"
    (tmp_path / ".fit.npz.sipower-lock").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic link"), file_lock(tmp_path / "fit.npz"):
        pass
    assert not victim.exists()


def test_temporary_files_have_names_that_nobody_can_guess(tmp_path):
    names = set()
    for _ in range(3):
        with atomic_write(tmp_path / "run.json") as file:
            (name,) = (path.name for path in tmp_path.iterdir() if path.name != "run.json")
            names.add(name)
            if hasattr(os, "getuid"):
                assert os.fstat(file.fileno()).st_uid == os.getuid()
    assert len(names) == 3


def a_run():
    return Run(np.ones((3, 2)), np.ones((2, 4)), (), {"status": "converged"})


@pytest.mark.parametrize("mask", [0o077, 0o027])
def test_files_are_as_private_as_the_user_wants(tmp_path, mask):
    before = os.umask(mask)
    try:
        folder = save_run(a_run(), tmp_path / "run")
        write_weights(folder / "W.csv", np.ones((3, 2)), np.ones((3, 2)), None)
        pytest.importorskip("anndata")
        export(a_run(), folder, "h5ad")
        write_report(a_run(), folder / "report.html")
        write_store([V], tmp_path / "counts.sipower")
        KLNMF(2, random_state=0, checkpoint=tmp_path / "fit.npz").fit(V)
    finally:
        os.umask(before)
    paths = list(tmp_path.rglob("*"))
    assert len(paths) > 10
    assert not [path for path in paths if stat.S_IMODE(path.stat().st_mode) & mask]


def test_the_mask_of_other_threads_is_left_alone(tmp_path, monkeypatch):
    """It can only be read by setting it, and other threads make files at that moment."""
    masks = []
    monkeypatch.setattr(os, "umask", masks.append)
    with atomic_write(tmp_path / "file"):
        pass
    assert masks == []


def test_an_older_file_is_not_written_through(tmp_path):
    """A hard link to it keeps the older content: a file is replaced, never changed in place."""
    (tmp_path / "run.json").write_text("old")
    os.link(tmp_path / "run.json", tmp_path / "other")
    with atomic_write(tmp_path / "run.json") as file:
        file.write(b"new")
    assert (tmp_path / "other").read_text() == "old"
