# SPDX-License-Identifier: BSD-3-Clause
"""Every format comes back as its own library wrote it."""

import gzip
import sys
from pathlib import Path

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.io import mmwrite

from sipower import as_matrix
from sipower.data.fingerprint import fingerprint
from sipower.io import FORMATS, ReadError, Table, read

V = np.array([[0, 2, 0, 1], [5, 0, 0, 0], [0, 0, 70_000, 3]], dtype=np.int32)
CELLS = ("AAACCTGA-1", "AAACGGGT-1", "AAAGATGC-1")
GENES = ("Xkr4", "Gm1992", "Sox17", "Rp1")


def held(table: Table) -> NDArray:
    counts = table.counts
    if isinstance(counts, np.ndarray):
        return counts
    assert isinstance(counts, sparse.csr_array)
    assert counts.has_canonical_format
    assert counts.nnz == 0 or counts.data.min() > 0
    return counts.toarray()


def assert_read(table: Table, expected: NDArray = V, names: bool = True) -> None:
    np.testing.assert_array_equal(held(table), expected)
    if names:
        assert (table.samples, table.features) == (CELLS, GENES)


def compress(file: Path) -> Path:
    packed = file.with_name(f"{file.name}.gz")
    packed.write_bytes(gzip.compress(file.read_bytes()))
    file.unlink()
    return packed


# ---- Matrix Market and 10x -----------------------------------------------------------------------


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("value", [np.int32, np.float64])
@pytest.mark.parametrize("shape", [sparse.coo_array, np.asarray])
def test_matrix_market_is_read_as_written(tmp_path, shape, value, packed) -> None:
    file = tmp_path / "counts.mtx"
    mmwrite(file, shape(V.astype(value)), comment="a comment\nof two lines")
    table = read(compress(file) if packed else file)
    assert_read(table, names=False)
    assert (table.samples, table.features, table.remarks) == (None, None, ())
    assert held(table).dtype == value


def test_matrix_market_symmetric_and_pattern(tmp_path) -> None:
    square = V[:, :3] + V[:, :3].T
    mmwrite(tmp_path / "symmetric.mtx", sparse.coo_array(square), symmetry="symmetric")
    assert_read(read(tmp_path / "symmetric.mtx"), square, names=False)
    mmwrite(tmp_path / "pattern.mtx", sparse.coo_array(V), field="pattern")
    assert_read(read(tmp_path / "pattern.mtx"), (V > 0).astype(int), names=False)


def write_10x(folder: Path, matrix: NDArray, features: str, prefix: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / f"{prefix}matrix.mtx"
    mmwrite(file, sparse.coo_array(matrix), field="integer")
    lines = [f"ENSMUSG{i:011}\t{gene}\tGene Expression" for i, gene in enumerate(GENES)]
    if features == "genes.tsv":
        lines = [line.rpartition("\t")[0] for line in lines]
    (folder / f"{prefix}{features}").write_text("\n".join(lines) + "\n")
    (folder / f"{prefix}barcodes.tsv").write_text("\n".join(CELLS) + "\n")
    return file


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("features", ["genes.tsv", "features.tsv"])
def test_folders_of_10x_become_cells_by_genes(tmp_path, features, packed) -> None:
    folder = tmp_path / "filtered_feature_bc_matrix"
    write_10x(folder, V.T, features)
    if packed:
        for file in list(folder.iterdir()):
            compress(file)
    assert_read(read(folder))
    assert read(folder).remarks == ()
    assert_read(read(next(folder.glob("matrix.mtx*"))))
    turned = read(folder, transpose=True)
    np.testing.assert_array_equal(held(turned), V.T)
    assert (turned.samples, turned.features) == (GENES, CELLS)
    assert "features look like barcodes" in turned.remarks[0]


def test_files_with_a_prefix_find_their_own_names(tmp_path) -> None:
    assert_read(read(write_10x(tmp_path, V.T, "features.tsv", "GSM1_")))


def test_names_show_a_matrix_that_is_already_cells_by_genes(tmp_path) -> None:
    table = read(write_10x(tmp_path, V, "features.tsv"))
    assert_read(table)
    assert table.remarks == (
        "matrix.mtx is written as cells x genes, as the names beside it show.",
    )


def write_10x_hdf5(file: Path, version: int) -> Path:
    # As the documentation of Cell Ranger describes its feature-barcode matrices in HDF5.
    by_columns = sparse.csc_array(V.T)
    with h5py.File(file, "w") as opened:
        group = opened.create_group("matrix" if version == 3 else "mm10")
        for name, part in (("data", "i4"), ("indices", "i8"), ("indptr", "i8")):
            values = getattr(by_columns, name).astype(part)
            group.create_dataset(name, data=values, compression="gzip")
        group["shape"] = np.array(by_columns.shape, "i4")
        group["barcodes"] = np.array(CELLS, "S18")
        ids = np.array([f"ENSMUSG{i:011}" for i in range(4)], "S18")
        if version == 3:
            features = group.create_group("features")
            features["id"], features["name"] = ids, np.array(GENES, "S")
            features["feature_type"] = np.array(["Gene Expression"] * 4, "S")
            features["genome"] = np.array(["mm10"] * 4, "S")
        else:
            group["genes"], group["gene_names"] = ids, np.array(GENES, "S")
    return file


def test_genes_that_share_a_name_have_their_ids(tmp_path, monkeypatch) -> None:
    """Or new cells could not be matched with a run by the names of its genes."""
    monkeypatch.setitem(globals(), "GENES", ["Sox2", "Tbce", "Actb", "Tbce"])
    expected = ("Sox2", "Tbce (ENSMUSG00000000001)", "Actb", "Tbce (ENSMUSG00000000003)")
    for version in (2, 3):
        assert read(write_10x_hdf5(tmp_path / f"v{version}.h5", version)).features == expected
    mmwrite(tmp_path / "matrix.mtx", sparse.coo_array(V.T))
    (tmp_path / "barcodes.tsv").write_text("\n".join(CELLS) + "\n")
    lines = (f"ENSMUSG{i:011}\t{name}\tGene Expression\n" for i, name in enumerate(GENES))
    (tmp_path / "features.tsv").write_text("".join(lines))
    assert read(tmp_path).features == expected


@pytest.mark.parametrize("version", [2, 3])
def test_hdf5_of_10x(tmp_path, version) -> None:
    table = read(write_10x_hdf5(tmp_path / "molecules.h5", version))
    assert_read(table)
    assert table.remarks == ()
    assert held(table).dtype == np.int32


def test_mixed_kinds_of_features_are_remarked(tmp_path) -> None:
    file = write_10x_hdf5(tmp_path / "multi.h5", 3)
    with h5py.File(file, "a") as opened:
        opened["matrix/features/feature_type"][3] = b"Antibody Captur"
    assert "several kinds" in read(file).remarks[0]


# ---- AnnData -------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Variable names are not unique")
@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array, np.array])
@pytest.mark.parametrize("layer", [None, "counts"])
@pytest.mark.parametrize("compression", [None, "gzip"])
def test_anndata(tmp_path, make, layer, compression) -> None:
    obs, var = pd.DataFrame(index=list(CELLS)), pd.DataFrame(index=list(GENES))
    adata = anndata.AnnData(make(V.astype(np.float32)), obs=obs, var=var)
    if layer:
        adata.layers[layer], adata.X = adata.X, adata.X * 0.5
    adata.write_h5ad(tmp_path / "cells.h5ad", compression=compression)
    table = read(tmp_path / "cells.h5ad", layer=layer)
    assert_read(table)
    assert held(table).dtype == np.float32


def test_anndata_without_the_layer_names_those_it_has(tmp_path) -> None:
    adata = anndata.AnnData(sparse.csr_array(V.astype(float)), layers={"raw": V, "spliced": V})
    adata.write_h5ad(tmp_path / "cells.h5ad")
    with pytest.raises(ReadError, match=r"cells\.h5ad has no layers/counts.*raw, spliced\.$"):
        read(tmp_path / "cells.h5ad", layer="counts")


# ---- NumPy and SciPy -----------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
@pytest.mark.parametrize("kind", [np.uint8, np.int64, np.float32, bool])
@pytest.mark.parametrize("compressed", [True, False])
def test_sparse_npz(tmp_path, layout, kind, compressed) -> None:
    wanted = np.minimum(V, 200).astype(kind)
    matrix = sparse.coo_array(wanted).asformat(layout)
    sparse.save_npz(tmp_path / "v.npz", matrix, compressed=compressed)
    table = read(tmp_path / "v.npz")
    assert_read(table, wanted, names=False)
    assert held(table).dtype == (np.uint8 if kind is bool else kind)


@pytest.mark.parametrize("kind", [np.uint8, np.int64, np.float32, np.float16, ">f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy(tmp_path, kind, order) -> None:
    wanted = np.asarray(np.minimum(V, 200).astype(kind), order=order)
    np.save(tmp_path / "v.npy", wanted)
    table = read(tmp_path / "v.npy")
    assert_read(table, wanted, names=False)
    if kind != np.float16:
        assert held(table).dtype == np.dtype(kind).newbyteorder("=")


# ---- tables --------------------------------------------------------------------------------------


def wide(**more: object) -> pd.DataFrame:
    return pd.DataFrame(V, index=pd.Index(CELLS, **more), columns=GENES)


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "tsv.gz", "txt"])
@pytest.mark.parametrize("heading", [None, "cell"])
def test_wide_texts(tmp_path, ending, heading) -> None:
    file = tmp_path / f"v.{ending}"
    wide(name=heading).to_csv(file, sep="," if "csv" in ending else "\t")
    table = read(file)
    assert_read(table)
    assert isinstance(table.counts, np.ndarray)
    assert table.counts.dtype == np.int64
    assert table.remarks == ()


def test_wide_texts_of_other_programs(tmp_path) -> None:
    by_r = wide().to_csv(sep="\t").removeprefix("\t")  # R writes no heading over the names
    (tmp_path / "r.tsv").write_text(by_r)
    assert_read(read(tmp_path / "r.tsv"))
    by_excel = "\ufeff" + wide().to_csv(sep=";", lineterminator="\r\n")
    (tmp_path / "excel.csv").write_text(by_excel, encoding="utf-8", newline="")
    assert_read(read(tmp_path / "excel.csv"))


def test_names_stay_as_they_are_written(tmp_path) -> None:
    file = tmp_path / "v.csv"
    file.write_text(',a,a,"b,c"\n007,1,2,3\n1e3,4,5,6\n')
    table = read(file)
    assert (table.samples, table.features) == (("007", "1e3"), ("a", "a", "b,c"))
    assert held(table).tolist() == [[1, 2, 3], [4, 5, 6]]


def test_wide_without_names(tmp_path) -> None:
    wide().to_csv(tmp_path / "v.csv", index=False)
    table = read(tmp_path / "v.csv")
    assert_read(table, names=False)
    assert (table.samples, table.features) == (None, GENES)
    np.savetxt(tmp_path / "bare.csv", V, delimiter=",", fmt="%g")
    table = read(tmp_path / "bare.csv")
    assert_read(table, names=False)
    assert (table.samples, table.features) == (None, None)
    assert "numbers only and was read as counts" in table.remarks[0]


def test_columns_that_may_be_names_are_remarked(tmp_path) -> None:
    (tmp_path / "v.csv").write_text("id,a,b,c\n" + "".join(f"{i},0,1,2\n" for i in range(5)))
    table = read(tmp_path / "v.csv")
    assert table.counts.shape == (5, 4)
    assert "counts up by one" in table.remarks[0]


@pytest.mark.parametrize("heading", ["id", "cell_id", "Unnamed: 0", "Barcode", "index"])
def test_a_heading_of_names_over_numbers_is_remarked(tmp_path, heading) -> None:
    text = f"{heading},a,b,c\n" + "".join(f"{7 * i % 5},0,1,2\n" for i in range(5))
    (tmp_path / "v.csv").write_text(text)
    assert f"is headed {heading} and was read as counts" in read(tmp_path / "v.csv").remarks[0]
    (tmp_path / "v.csv").write_text(text.replace(heading, "acid"))
    assert read(tmp_path / "v.csv").remarks == ()
    (tmp_path / "w.csv").write_text("s1,0,1,2\ns2,3,4,5\n")
    assert "was read as headings" in read(tmp_path / "w.csv").remarks[0]


def long() -> pd.DataFrame:
    i, j = np.nonzero(V)
    unique = ("Xkr4", "Gm1992", "Sox17", "Mrpl15")
    cells, genes = [CELLS[at] for at in i], [unique[at] for at in j]
    return pd.DataFrame({"cell": cells, "gene": genes, "count": V[i, j]})


@pytest.mark.parametrize("ending", ["csv", "tsv.gz", "parquet"])
def test_long_tables(tmp_path, ending) -> None:
    file = tmp_path / f"v.{ending}"
    if ending == "parquet":
        long().to_parquet(file)
    else:
        long().to_csv(file, index=False, sep="," if ending == "csv" else "\t")
    table = read(file)
    found = pd.DataFrame(held(table), index=table.samples, columns=table.features)
    expected = long().pivot_table(index="cell", columns="gene", values="count", fill_value=0)
    assert (found.loc[expected.index, expected.columns] == expected).all(axis=None)
    assert table.remarks == ()


def test_three_columns_of_numbers_are_wide_unless_told(tmp_path) -> None:
    file = tmp_path / "ratings.csv"
    file.write_text("user,item,count\n007,10,3\n007,11,1\n9,10,2\n")
    table = read(file)
    assert table.counts.shape == (3, 3)
    assert "ask for the layout long" in table.remarks[0]
    table = read(file, layout="long")
    assert held(table).tolist() == [[3, 1], [2, 0]]
    assert (table.samples, table.features) == (("007", "9"), ("10", "11"))


@pytest.mark.parametrize("kind", [np.int32, np.float32, "Int64", "uint8[pyarrow]"])
def test_wide_parquet(tmp_path, kind) -> None:
    counts = np.minimum(V, 200)
    frame = pd.DataFrame(counts, index=CELLS, columns=["a", "b", "c", "d"]).astype(kind)
    frame.to_parquet(tmp_path / "v.parquet")
    table = read(tmp_path / "v.parquet")
    assert_read(table, counts, names=False)
    assert (table.samples, table.features) == (CELLS, ("a", "b", "c", "d"))
    frame.to_parquet(tmp_path / "bare.parquet", index=False)
    assert read(tmp_path / "bare.parquet").samples is None


# ---- bags of words -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["docword.tiny.txt", "docword.tiny.txt.gz", "bag.txt"])
def test_bags_of_words(tmp_path, name) -> None:
    i, j = np.nonzero(V)
    triples = "".join(f"{a + 1} {b + 1} {V[a, b]}\n" for a, b in zip(i, j, strict=True))
    text = f"3\n4\n{len(i)}\n{triples}".encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    (tmp_path / "vocab.tiny.txt").write_text("a\nb\nc\nd\n")
    table = read(tmp_path / name)
    assert_read(table, names=False)
    assert table.features == (None if name == "bag.txt" else ("a", "b", "c", "d"))
    assert held(table).dtype == np.int32


# ---- all -----------------------------------------------------------------------------------------


def test_the_same_counts_have_the_same_fingerprint_in_every_format(tmp_path) -> None:
    mmwrite(tmp_path / "a.mtx", sparse.coo_array(V))
    mmwrite(tmp_path / "b.mtx", V)
    sparse.save_npz(tmp_path / "c.npz", sparse.csc_array(V.astype(float)))
    np.save(tmp_path / "d.npy", V.astype(np.uint32))
    wide().to_csv(tmp_path / "e.csv")
    write_10x_hdf5(tmp_path / "f.h5", 3)
    tables = [read(file) for file in sorted(tmp_path.iterdir())]
    assert len({fingerprint(as_matrix(table.counts)) for table in tables}) == 1


def test_swapped_names_are_remarked(tmp_path) -> None:
    contexts = [f"{a}[{b}]{c}" for a in "AC" for b in ("C>A", "T>G") for c in "GT"]
    frame = pd.DataFrame(np.eye(8, 3, dtype=int), index=contexts, columns=["P1", "P2", "P3"])
    frame.to_csv(tmp_path / "sbs.txt", sep="\t")
    assert "samples look like kinds of mutation" in read(tmp_path / "sbs.txt").remarks[0]
    assert read(tmp_path / "sbs.txt", transpose=True).remarks == ()
    frame.index = [f"ENSG{i:011}" for i in range(8)]
    frame.to_csv(tmp_path / "genes.csv")
    assert "samples look like genes" in read(tmp_path / "genes.csv").remarks[0]


def test_every_known_ending_finds_a_reader_and_others_are_told(tmp_path) -> None:
    for ending in FORMATS:
        (tmp_path / f"v{ending}").write_text("nothing\n")
        with pytest.raises(ReadError, match=rf"v{ending}[ ,]"):
            read(tmp_path / f"v{ending}")
    (tmp_path / "v.xlsx").write_text("nothing")
    with pytest.raises(ReadError, match=r"v\.xlsx has an unknown ending: sipower reads \.mtx, "):
        read(tmp_path / "v.xlsx")


@pytest.mark.parametrize(
    ("name", "package"), [("v.csv", "pandas"), ("v.parquet", "pyarrow"), ("v.h5", "h5py")]
)
def test_a_missing_package_is_named(tmp_path, monkeypatch, name, package) -> None:
    (tmp_path / name).write_text("a,b\n1,2\n")
    for module in [m for m in sys.modules if m.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ReadError, match=f"{name} needs the package {package}: install it"):
        read(tmp_path / name)


def test_names_that_repeat_are_kept_where_there_are_no_ids(tmp_path) -> None:
    (tmp_path / "v.csv").write_text("cell,a,a\nx,1,2\nx,3,4\n")
    table = read(tmp_path / "v.csv", layout="wide")
    assert (table.samples, table.features) == (("x", "x"), ("a", "a"))


def test_fractions_are_the_same_numbers_from_any_file(tmp_path) -> None:
    numbers = np.random.default_rng(0).gamma(0.5, 3.0, (50, 20))
    np.save(tmp_path / "v.npy", numbers)
    frame = pd.DataFrame(numbers)
    frame.columns = frame.columns.map("g{}".format)
    frame.index = frame.index.map("s{}".format)
    frame.to_csv(tmp_path / "v.csv")
    frame.to_parquet(tmp_path / "v.parquet")
    long = frame.reset_index().melt("index")
    long.to_csv(tmp_path / "long.csv", index=False)
    mmwrite(tmp_path / "v.mtx", sparse.coo_array(numbers), precision=17)
    for name in ("v.npy", "v.csv", "v.parquet", "long.csv", "v.mtx"):
        found = as_matrix(read(tmp_path / name).counts)
        assert fingerprint(found) == fingerprint(as_matrix(numbers)), name
