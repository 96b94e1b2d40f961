# SPDX-License-Identifier: BSD-3-Clause
"""One small example of every format: how it is written, and how its content is read.

`write` makes the files and returns the objects they were made of; `read` returns the same objects
from the files; `rewrite` writes what was read again.
"""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

from files.facts import STAMP
from files.several_fits import SEVERAL_FITS
from files.small_data import BATCHES, FEATURES, SAMPLES, Example, counts, frame, small_model
from sipower import as_matrix, differential, refit
from sipower._files import read_archive
from sipower.inference import Refit, spectra
from sipower.io import open_on_disk, read_components, write_components
from sipower.io.cache import CacheEntry, cache_entries
from sipower.results import Run, load_run, save_run
from sipower.results.differences_table import read_differences, write_differences
from sipower.results.export import write_refit, write_weights
from sipower.results.provenance import initial_facts
from sipower.store import read_layout, write_store
from sipower.store.layout import read_feature_ids, read_names

# ---- runs ----------------------------------------------------------------------------------------


def write_run(folder):
    model, data = small_model(), frame()
    W = model.fit_transform(data, batch=np.array(BATCHES))
    facts = initial_facts(model, as_matrix(data), "counts.csv", {"batch": np.array(BATCHES)})
    facts |= {"command": "sipower fit counts.csv -k 2", "started": "2026-11-18T00:00:00+00:00"}
    facts |= {"cpu": "a processor", "commit": "932ed0d2a4f8", "seconds": 0.25, "passes": 9.0}
    run = Run.from_model(model, W, samples=SAMPLES)
    ids = tuple(f"id{j}" for j in range(8))
    run = replace(
        run, facts=facts | run.facts, feature_ids=ids, component_names=("fruit", None),
        trace=[replace(record, seconds=round(record.seconds, 3)) for record in run.trace],
    )  # fmt: skip
    run = replace(run, spectra=spectra(counts(), run))
    save_run(run, folder)
    return run


def rewrite_run(source, target):
    save_run(load_run(source), target)


# ---- stores and the cache ------------------------------------------------------------------------


def write_counts(folder):
    ids = [f"id{j}" for j in range(8)]
    path = folder / "counts.sipower"
    write_store(
        sparse.csr_array(counts()), path, samples=SAMPLES, features=FEATURES, feature_ids=ids
    )
    return sparse.csr_array(counts()), SAMPLES, FEATURES, tuple(ids)


def read_counts(folder):
    layout = read_layout(folder / "counts.sipower")
    data = open_on_disk(layout.path)
    rows = sparse.csr_array(data.rows(0, 12))
    np.testing.assert_array_equal(data.columns.rows(0, 8).toarray(), rows.toarray().T)
    return rows, *read_names(layout), read_feature_ids(layout)


def rewrite_counts(source, target):
    rows, samples, features, ids = read_counts(source)
    names = {"samples": samples, "features": features, "feature_ids": ids}
    write_store(rows, target / "counts.sipower", **names)


def write_cache(folder):
    from scipy.io import mmwrite  # noqa: PLC0415

    file = folder / "counts.mtx"
    mmwrite(file, sparse.coo_array(counts().astype(int)))
    open_on_disk(file, cache=folder)
    file.unlink()
    (made,) = cache_entries(folder)
    entry = CacheEntry.of_file(Path("/data/counts.mtx"), None, folder)
    made.folder.rename(entry.folder)
    entry.write_label(made_of(entry, "/data/counts.mtx"), ())
    return sparse.csr_array(counts())


def made_of(entry, file):
    """Return what an entry was made of, as if the file had another name."""
    return entry.source | {"file": str(file)}


def read_cache(folder):
    (entry,) = cache_entries(folder)
    return sparse.csr_array(open_on_disk(entry.store).rows(0, 12))


# ---- checkpoints ---------------------------------------------------------------------------------


def write_checkpoint(folder):
    model = small_model(checkpoint=folder / "checkpoint.npz", solver="mu").fit(counts())
    assert model.n_iter_ == 50
    return read_checkpoint(folder)


def read_checkpoint(folder):
    """Return the arrays of the state and, of the fit that continues, what needs no rounding."""
    shutil.copy(folder / "checkpoint.npz", folder / "copy.npz")
    try:
        model = small_model(checkpoint=folder / "copy.npz", solver="mu").fit(counts())
    finally:
        (folder / "copy.npz").unlink()
    arrays = read_archive(folder / "checkpoint.npz")
    del arrays["header"]
    return arrays, model.n_iter_, model.status_


# ---- tables --------------------------------------------------------------------------------------


def write_changes(folder):
    W = small_model().fit_transform(counts())
    result = differential(frame(), W, component_names=["fruit", "other"])
    for ending in ("csv", "parquet"):
        write_differences(result, folder / f"{ending}.{ending}")
    return [result] * 2


def read_changes(folder):
    return [read_differences(folder / f"{ending}.{ending}") for ending in ("csv", "parquet")]


def rewrite_changes(source, target):
    for ending, result in zip(("csv", "parquet"), read_changes(source), strict=True):
        write_differences(result, target / f"{ending}.{ending}")


CATALOGUES = {"rows.csv": False, "columns.tsv": True, "rows.parquet": False}


def write_catalogue(folder):
    H = np.arange(1.0, 17).reshape(2, 8)
    table = pd.DataFrame(H / H.sum(axis=1, keepdims=True), ["SBS1", "SBS2"], list(FEATURES))
    for name, transpose in CATALOGUES.items():
        write_components(folder / name, table, transpose=transpose)
    return [(table.to_numpy(), list(table.index), list(table.columns))] * 3


def read_catalogue(folder):
    tables = [read_components(folder / name, transpose=t) for name, t in CATALOGUES.items()]
    return [(table.to_numpy(), list(table.index), list(table.columns)) for table in tables]


def rewrite_catalogue(source, target):
    for name, transpose in CATALOGUES.items():
        table = read_components(source / name, transpose=transpose)
        write_components(target / name, table, transpose=transpose)


def write_weight_archive(folder):
    W = np.arange(24.0).reshape(12, 2)
    write_weights(folder / "W.npz", W, W / 23, SAMPLES)
    return {"W": W, "shares": W / 23, "samples": np.array(SAMPLES)}


def read_arrays(name):
    def read(folder):
        return read_archive(folder / name)

    return read


def rewrite_weights(source, target):
    arrays = read_archive(source / "W.npz")
    write_weights(target / "W.npz", arrays["W"], arrays["shares"], arrays["samples"].tolist())


def write_refit_archive(folder):
    result = refit(frame(), np.arange(1.0, 17).reshape(2, 8))
    write_refit(folder / "refit.npz", result)
    return {
        name: getattr(result, name)
        for name in read_archive(folder / "refit.npz")
        if name not in STAMP
    }


def rewrite_refit(source, target):
    arrays = {k: v for k, v in read_archive(source / "refit.npz").items() if k not in STAMP}
    names = {k: tuple(arrays.pop(k).tolist()) for k in ("components", "samples")}
    names |= {"sparse": True, "level": 0.005, "confidence": 0.95}
    shares = arrays.pop("shares")
    np.testing.assert_array_equal(shares, Refit(**arrays, **names).shares)
    write_refit(target / "refit.npz", Refit(**arrays, **names))


EXAMPLES = {
    "run": Example(write_run, load_run, rewrite_run),
    "store": Example(write_counts, read_counts, rewrite_counts),
    "cache": Example(write_cache, read_cache),
    "checkpoint": Example(write_checkpoint, read_checkpoint),
    "differences": Example(write_changes, read_changes, rewrite_changes),
    "catalogue": Example(write_catalogue, read_catalogue, rewrite_catalogue),
    "weights": Example(write_weight_archive, read_arrays("W.npz"), rewrite_weights),
    "refit": Example(write_refit_archive, read_arrays("refit.npz"), rewrite_refit),
} | SEVERAL_FITS
