# SPDX-License-Identifier: BSD-3-Clause
"""The kinds of data that users have, made of the same counts."""

import anndata
import h5py
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import xarray
import zarr
from scipy import sparse

import oracles
from dask import array as da
from dask import dataframe as dd

V = oracles.counts(30, 8, density=0.4)
NAMES = [f"g{j}" for j in range(8)]
FRAME = pd.DataFrame(V, columns=NAMES)
WHOLE = FRAME.astype("int64")
ZERO_FILLED = pd.SparseDtype(float, 0)
SPARSE_FORMATS = ("csr", "csc", "coo", "lil", "dok", "dia", "bsr")


def annotated(**options):
    return anndata.AnnData(sparse.csr_matrix(V), var=pd.DataFrame(index=NAMES), **options)


def memory_map(folder):
    mapped = np.memmap(folder / "counts.bin", V.dtype, "w+", shape=V.shape)
    mapped[:] = V
    return mapped


def saved(folder):
    np.save(folder / "counts.npy", V)
    return np.load(folder / "counts.npy", mmap_mode="r")


def hdf5(folder):
    file = h5py.File(folder / "counts.h5", "w")
    return file.create_dataset("counts", data=V)


def backed(folder):
    annotated().write_h5ad(folder / "counts.h5ad")
    return anndata.read_h5ad(folder / "counts.h5ad", backed="r")


def lazy(folder):
    annotated().write_h5ad(folder / "lazy.h5ad")
    return anndata.experimental.read_lazy(folder / "lazy.h5ad")


def data_array(folder, data=V):
    return xarray.DataArray(data, dims=("cell", "gene"), coords={"gene": NAMES})


def text_frame():
    return {"kind": ["a", "b"], "n": [1, 2]}


def _mapped_csr(folder):
    csr = sparse.csr_array(V)
    parts = []
    for name in ("data", "indices", "indptr"):
        np.save(folder / f"{name}.npy", getattr(csr, name))
        parts.append(np.load(folder / f"{name}.npy", mmap_mode="r"))
    return sparse.csr_array(tuple(parts), shape=csr.shape)


# Accepted: dense and sparse data, and those that name the features.
DENSE = {
    "ndarray": lambda folder: V,
    "lists": lambda folder: V.tolist(),
    "list of arrays": lambda folder: list(V),
    "Fortran order": lambda folder: np.asfortranarray(V),
    "int64": lambda folder: V.astype(np.int64),
    "np.matrix": lambda folder: np.asmatrix(V),
    "memmap": memory_map,
    "mapped .npy": saved,
    "HDF5 dataset": hdf5,
    "Zarr array": lambda folder: zarr.array(V),
    "DataArray without names": lambda folder: xarray.DataArray(V),
}
NAMED = {
    "pandas": lambda folder: FRAME,
    "pandas Int64": lambda folder: WHOLE.astype("Int64"),
    "pandas Float64": lambda folder: FRAME.astype("Float64"),
    "pandas mixed": lambda folder: FRAME.astype({"g0": "Int64", "g1": "uint8", "g2": object}),
    "pandas int64[pyarrow]": lambda folder: WHOLE.astype("int64[pyarrow]"),
    "polars": lambda folder: polars.DataFrame(V, schema=NAMES),
    "polars integers": lambda folder: polars.DataFrame(V.astype(np.int32), schema=NAMES),
    "Arrow table": lambda folder: pa.Table.from_pandas(FRAME),
    "Arrow integers": lambda folder: pa.Table.from_pandas(WHOLE),
    "Arrow record batch": lambda folder: pa.RecordBatch.from_pandas(FRAME),
    "DataArray": data_array,
}
SPARSE = {
    f"{form}_{kind}": lambda folder, form=form, kind=kind: getattr(sparse, f"{form}_{kind}")(V)
    for form in SPARSE_FORMATS
    for kind in ("array", "matrix")
}
SPARSE |= {
    "CSR of memory maps": _mapped_csr,
    "X of an AnnData view": lambda folder: annotated()[:, NAMES].X,
    "X of backed AnnData, loaded": lambda folder: backed(folder).X.to_memory(),
    "X of lazy AnnData, loaded": lambda folder: lazy(folder).X.compute(),
}
SPARSE_NAMED = {
    "pandas sparse": lambda folder: FRAME.astype(ZERO_FILLED),
    "pandas sparse integers": lambda folder: WHOLE.astype(pd.SparseDtype("int64", 0)),
    "pandas sparse of two types": lambda folder: pd.concat(
        [FRAME.iloc[:, :3].astype(pd.SparseDtype("float32", 0)),
         FRAME.iloc[:, 3:].astype(ZERO_FILLED)], axis=1,
    ),
}  # fmt: skip


def _with_na(folder):
    frame = WHOLE.astype("Int64")
    frame.iloc[2, 3] = pd.NA
    return frame


def _with_column(values, name="when"):
    return FRAME.assign(**{name: values})


def _with_arrow(values, name="when"):
    return pa.Table.from_pandas(FRAME).append_column(name, pa.array(values))


STAMPS = pd.date_range("2024-01-01", periods=30, freq="h")
LENGTHS = pd.timedelta_range("1h", periods=30)
DAYS, TIMES = [day.date() for day in STAMPS], [stamp.time() for stamp in STAMPS]
MONTHS, BINS = pd.period_range("2024-01", periods=30, freq="M"), pd.interval_range(0, 30)
# Columns that NumPy makes numbers of, or refuses without their name, and what they hold.
NO_NUMBERS = {
    "pandas datetime64": (_with_column(STAMPS), "dates"),
    "pandas with a time zone": (_with_column(STAMPS.tz_localize("UTC")), "dates"),
    "pandas timedelta64": (_with_column(LENGTHS), "durations"),
    "pandas Period": (_with_column(MONTHS), "periods"),
    "pandas Interval": (_with_column(BINS), "intervals"),
    "pandas category": (_with_column(pd.Categorical([1, 2, 3] * 10)), "categories"),
    "pandas date": (_with_column(pd.Series(DAYS, dtype=object)), "dates"),
    "pandas datetime objects": (_with_column(pd.Series([*STAMPS], dtype=object)), "dates"),
    "pandas time": (_with_column(pd.Series(TIMES, dtype=object)), "times of day"),
    "pandas Period objects": (_with_column(pd.Series([*MONTHS], dtype=object)), "periods"),
    "pandas NaT": (_with_column(pd.Series([pd.NaT, *STAMPS[1:]], dtype=object)), "dates"),
    "pandas lists": (_with_column(pd.Series([[1, 2]] * 30)), "lists"),
    "pandas timestamp[pyarrow]": (
        _with_column(pd.Series(STAMPS).astype("timestamp[ns][pyarrow]").array), "dates",
    ),
    "pandas duration[pyarrow]": (
        _with_column(pd.Series(LENGTHS).astype("duration[ns][pyarrow]").array), "durations",
    ),
    "polars Date": (polars.from_pandas(FRAME).with_columns(when=polars.Series(DAYS)), "dates"),
    "polars Datetime": (polars.from_pandas(_with_column(STAMPS)), "dates"),
    "polars Datetime with a time zone": (
        polars.from_pandas(_with_column(STAMPS.tz_localize("UTC"))), "dates",
    ),
    "polars Duration": (polars.from_pandas(_with_column(LENGTHS)), "durations"),
    "polars Time": (
        polars.from_pandas(FRAME).with_columns(when=polars.Series(TIMES)), "times of day",
    ),
    "polars List": (polars.from_pandas(FRAME).with_columns(when=[1, 2]), "lists"),
    "polars Struct": (
        polars.from_pandas(FRAME).with_columns(when=polars.struct("g0", "g1")), "structures",
    ),
    "Arrow date32": (_with_arrow(DAYS), "dates"),
    "Arrow timestamp": (_with_arrow(STAMPS), "dates"),
    "Arrow timestamp with a time zone": (_with_arrow(STAMPS.tz_localize("UTC")), "dates"),
    "Arrow time64": (_with_arrow(TIMES), "times of day"),
    "Arrow duration": (_with_arrow(LENGTHS), "durations"),
    "Arrow list": (_with_arrow([[1, 2]] * 30), "lists"),
    "Arrow struct": (_with_arrow([{"a": 1}] * 30), "structures"),
    "Arrow record batch": (_with_arrow(DAYS).to_batches()[0], "dates"),
}  # fmt: skip
NO_NUMBERS["DataArray of dates"] = (
    xarray.DataArray(
        np.full((30, 2), "2024-01-01", "M8[ns]"), dims=("row", "x"), coords={"x": ["when", "b"]}
    ),
    "dates",
)

TO_NUMBERS = r"does not convert to numbers: pass an array, a sparse matrix of SciPy or a DataFrame"
SPARSE_FRAME = r"make all of it sparse with V\.astype\(pandas\.SparseDtype\(float, 0\)\), or dense"
ANNDATA = r"an AnnData object: use sipower\.tl\.nmf, or pass its \.X or a layer"
COMPUTE = r"use sipower\.dask\.KLNMF, or load them into memory with V\.compute\(\)"
NAN = r"NaN in data: entry \(2, 3\) is nan; fill it, or use missing='nan'"
REFUSED = {
    "pandas Int64 with NA": (_with_na, NAN),
    "polars with null": (lambda folder: polars.from_pandas(_with_na(folder)), NAN),
    "Arrow with null": (lambda folder: pa.Table.from_pandas(_with_na(folder)), NAN),
    "pandas, some columns sparse": (
        lambda folder: FRAME.astype({"g0": ZERO_FILLED}),
        rf"DataFrame with sparse and dense columns: {SPARSE_FRAME}",
    ),
    "pandas sparse, fill value NaN": (
        lambda folder: FRAME.astype(pd.SparseDtype(float)),
        rf"DataFrame with sparse columns of fill value nan: {SPARSE_FRAME}",
    ),
    "polars LazyFrame": (
        lambda folder: polars.DataFrame(V, schema=NAMES).lazy(),
        r"a LazyFrame of polars: collect it first, with V\.collect\(\)",
    ),
    "polars with text": (
        lambda folder: polars.DataFrame(text_frame()),
        r"a column 'kind' of text, expected numbers: drop it \(V\.drop\('kind'\)\)",
    ),
    "Arrow with text": (
        lambda folder: pa.table(text_frame()),
        r"a column 'kind' of text, expected numbers: drop it \(V\.drop_columns\(\['kind'\]\)\)",
    ),
    "Arrow reader": (
        lambda folder: pa.Table.from_pandas(FRAME).to_reader(),
        r"a reader of record batches: pass V\.read_all\(\)",
    ),
    "Arrow sparse": (
        lambda folder: pa.SparseCSRMatrix.from_scipy(sparse.csr_matrix(V)),
        r"a sparse matrix of Arrow: pass V\.to_scipy\(\)",
    ),
    "AnnData": (lambda folder: annotated(), ANNDATA),
    "AnnData view": (lambda folder: annotated()[5:], ANNDATA),
    "AnnData backed": (backed, ANNDATA),
    "AnnData lazy": (lazy, ANNDATA),
    "X of backed AnnData": (
        lambda folder: backed(folder).X,
        r"a sparse matrix on disk: load it with V\.to_memory\(\), or open its file with",
    ),
    "X of lazy AnnData": (lambda folder: lazy(folder).X, COMPUTE),
    "Dask array": (lambda folder: da.from_array(V), COMPUTE),
    "Dask DataFrame": (lambda folder: dd.from_pandas(FRAME, npartitions=2), COMPUTE),
    "DataArray of Dask": (
        lambda folder: data_array(folder, da.from_array(V)),
        r"a DataArray in Dask chunks: use sipower\.dask\.KLNMF with V\.data, or .* V\.compute\(\)",
    ),
    "xarray Dataset": (
        lambda folder: xarray.Dataset({"counts": data_array(folder)}),
        r"a Dataset of xarray: pass one of its variables, such as V\['counts'\]",
    ),
    "generator": (lambda folder: (row for row in V), rf"of type generator, .*{TO_NUMBERS}"),
    "dict": (lambda folder: {"a": [1, 2]}, rf"of type dict, .*{TO_NUMBERS}"),
    "list of sparse rows": (
        lambda folder: [sparse.csr_array(V[:2])],
        rf"of type list, .*{TO_NUMBERS}",
    ),
    "datetime64 array": (
        lambda folder: np.full((3, 2), "2024-01-01", "M8[D]"),
        r"must be numbers, got dates \(datetime64\[D\]\): leave them out, or count days",
    ),
    "timedelta64 array": (
        lambda folder: np.full((3, 2), 5, "m8[s]"),
        r"must be numbers, got durations \(timedelta64\[s\]\): divide them by a unit",
    ),
    "objects of datetime": (
        lambda folder: np.array([[1, DAYS[0]], [2, DAYS[1]]]),
        r"must be numbers, got dates such as 2024-01-01: leave them out",
    ),
    "datetime64 among objects": (
        lambda folder: np.array([[1, np.datetime64("2024-01-01")]] * 3, object),
        r"must be numbers, got dates such as 2024-01-01: leave them out",
    ),
    "structured array": (
        lambda folder: np.zeros(3, [("a", int), ("b", float)]),
        r"a structured array with the fields 'a', 'b': convert it with numpy\.lib\.recfunctions",
    ),
    "masked array": (lambda folder: np.ma.masked_equal(V, 0), r"fill the masked entries first"),
}  # fmt: skip
