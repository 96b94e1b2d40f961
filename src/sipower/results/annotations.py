# SPDX-License-Identifier: BSD-3-Clause
"""The results of a run as annotations of an AnnData object or an .h5ad file."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, Any

import numpy as np

from sipower._files import atomic_write
from sipower.inference.spectra import Spectra
from sipower.io import Table
from sipower.kernels import Array
from sipower.loop.solve import Record
from sipower.results.normalisation import to_shares
from sipower.results.run import Run

__all__ = [
    "AnnDataFile",
    "annotate",
    "as_annotations",
    "spectra_arrays",
    "write_anndata",
]

_FACTS = ("divergence", "certified_gap", "status", "rounds", "whole_numbers")
_PLACES = ("obsm", "varm", "uns")
_BYTES_AT_A_TIME = 1 << 24
_RESERVED_BYTES = 1 << 20  # for the structure of the annotations in the file


@dataclass(frozen=True)
class AnnDataFile:
    """An .h5ad file that was fitted, and how it was read.

    Parameters
    ----------
    path
        The file.
    layer
        Layer that was fitted, "raw" for the counts of `raw`, or None for X.
    transpose
        Whether obs and var were exchanged.
    """

    path: Path
    layer: str | None = None
    transpose: bool = False


def as_annotations(
    run: Run, key: str = "nmf", *, normalise: bool = True, **parameters: Any
) -> dict[str, dict[str, Any]]:
    """Return the contents of obsm, varm and uns, where scanpy expects them.

    ``obsm["X_" + key]`` is W, ``obsm["X_" + key + "_shares"]`` has rows that sum to 1 and
    ``varm[key]`` is Hᵀ. If `normalise` is true, W is in counts and the columns of Hᵀ sum to 1.
    ``uns[key]["components"]`` has the names of the components, if some have one, and
    ``varm[key + "_batch_effects"]`` the batch effects, if there are any. If the
    run has spectra, ``varm[key + "_z"]`` and ``varm[key + "_median"]`` hold them.
    `parameters` are stored in ``uns[key]["params"]`` with those of the run.
    """
    shares = to_shares(run.W, run.H)
    run = run.normalised() if normalise else run
    facts: dict[str, Any] = {name: run.facts[name] for name in _FACTS if name in run.facts}
    params = (run.facts.get("parameters") or {}) | parameters | {"normalise": normalise}
    facts["params"] = {name: value for name, value in params.items() if value is not None}
    if run.trace:
        names = [f.name for f in fields(Record)]
        facts["trace"] = {n: np.array([getattr(r, n) for r in run.trace]) for n in names}
    if run.component_names is not None:
        facts["components"] = np.array(run.component_labels(), object)
    varm: dict[str, Any] = {key: np.ascontiguousarray(run.H.T)}
    if run.batch_effects is not None:
        varm[f"{key}_batch_effects"] = _effects_frame(run)
    if run.spectra is not None:
        varm |= spectra_arrays(run.spectra, key)
        facts["median_total"] = run.spectra.median_total
    return {
        "obsm": {f"X_{key}": run.W, f"X_{key}_shares": shares},
        "varm": varm,
        "uns": {key: facts},
    }


def spectra_arrays(spectra: Spectra, key: str) -> dict[str, Array]:
    """Return the contents of varm: ``key + "_z"`` and ``key + "_median"``, (features, K)."""
    arrays = {f"{key}_z": spectra.z_scores, f"{key}_median": spectra.median_units}
    return {name: np.ascontiguousarray(array.T) for name, array in arrays.items()}


def _effects_frame(run: Run) -> Any:
    """Return the batch effects, (features, batches), with the names of both."""
    import pandas as pd  # noqa: PLC0415 - anndata has it

    assert run.batch_effects is not None
    return pd.DataFrame(run.batch_effects.T, list(run.feature_names()), list(run.batches or ()))


def annotate(adata: Any, parts: dict[str, dict[str, Any]]) -> None:
    """Store annotations in an AnnData object."""
    for name, values in parts.items():
        for key, value in values.items():
            is_frame = hasattr(value, "set_axis")  # whose index must be the names in the object
            getattr(adata, name)[key] = value.set_axis(adata.var_names) if is_frame else value


def write_anndata(
    run: Run, file: Path, origin: AnnDataFile | Table | None = None, *, normalise: bool = True
) -> None:
    """Write an .h5ad file with the results of a run.

    Parameters
    ----------
    run
        The run.
    file
        File to write.
    origin
        The data of the run. Of an .h5ad file, everything is copied and the results are added; the
        counts of a table in memory become X; None writes the results and the names alone.
    normalise
        As for `as_annotations`.
    """
    layer = (run.facts.get("input") or {}).get("layer")
    if isinstance(origin, AnnDataFile) and _can_be_annotated(origin):
        with atomic_write(file) as to:
            parts = as_annotations(run, normalise=normalise, layer=layer)
            _copy_and_annotate(origin.path, to, parts)
        return
    adata = _load(origin) if isinstance(origin, AnnDataFile) else _new_anndata(run, origin)
    if origin is not None and layer not in adata.layers:  # X holds what was fitted
        layer = None
    annotate(adata, as_annotations(run, normalise=normalise, layer=layer))
    import anndata as ad  # noqa: PLC0415 - optional
    import h5py  # noqa: PLC0415

    memory = io.BytesIO()  # because HDF5 can crash the process on a full disk
    with h5py.File(memory, "w") as content:
        ad.io.write_elem(content, "/", adata)
    with atomic_write(file) as to:
        to.write(memory.getbuffer())


def _can_be_annotated(origin: AnnDataFile) -> bool:
    """Return whether annotations fit into a copy of the file.

    The genes of `raw` can be more than those of var, and files of anndata before 0.7 have tables
    where later ones have groups.
    """
    import h5py  # noqa: PLC0415 - optional

    with h5py.File(origin.path, "r") as file:
        _check_links(origin.path, file)
        present = [name for name in _PLACES if name in file]
        is_raw = origin.layer == "raw" and "raw" not in file.get("layers", ())
        groups = all(isinstance(file[name], h5py.Group) for name in present)
        return groups and "encoding-type" in file.attrs and not (is_raw or origin.transpose)


def _check_links(path: Path, file: Any) -> None:
    """Reject links, so that a copy neither reads nor changes another file."""
    import h5py  # noqa: PLC0415 - optional

    def link_name(name: str, link: Any) -> str | None:
        is_link = not isinstance(link, h5py.HardLink)
        data = None if is_link else file[name]
        elsewhere = getattr(data, "external", None) or getattr(data, "is_virtual", False)
        return name if is_link or elsewhere else None

    linked = file.visititems_links(link_name)  # the first name that is not None
    if linked is not None:
        raise ValueError(f"{path} has a link in place of {linked}: write it again with anndata.")


def _copy_and_annotate(source: Path, to: IO[bytes], parts: dict[str, dict[str, Any]]) -> None:
    """Copy a file and add the annotations to the copy, without reading the data to memory."""
    import anndata as ad  # noqa: PLC0415 - optional
    import h5py  # noqa: PLC0415

    with source.open("rb") as original:
        while block := original.read(_BYTES_AT_A_TIME):
            to.write(block)
    to.flush()
    arrays = [*parts["obsm"].values(), *parts["varm"].values()]
    needed = 2 * sum(np.asarray(array).nbytes for array in arrays) + _RESERVED_BYTES
    if hasattr(os, "posix_fallocate"):  # because HDF5 can crash the process on a full disk
        os.posix_fallocate(to.fileno(), to.tell(), needed)
    with h5py.File(to.name, "r+") as content:
        for name, values in parts.items():
            group = content.require_group(name)
            if "encoding-type" not in group.attrs:
                ad.io.write_elem(content, name, {})
                group = content[name]
            for key, value in values.items():
                if group.get(key, getlink=True) is not None:
                    del group[key]
                if hasattr(value, "set_axis"):
                    value = value.set_axis(ad.io.read_elem(content["var"]).index)  # noqa: PLW2901
                ad.io.write_elem(group, key, value)


def _load(origin: AnnDataFile) -> Any:
    """Read an AnnData object with the samples and features of the run."""
    import anndata as ad  # noqa: PLC0415 - optional

    adata = ad.read_h5ad(origin.path)
    if origin.layer == "raw" and "raw" not in adata.layers:
        adata = adata.raw.to_adata()
        adata.uns.pop("log1p", None)  # it describes the X that the counts of raw replace
    return adata.T if origin.transpose else adata


def _new_anndata(run: Run, table: Table | None) -> Any:
    import anndata as ad  # noqa: PLC0415 - optional
    import pandas as pd  # noqa: PLC0415

    return ad.AnnData(
        X=None if table is None else table.counts,
        obs=pd.DataFrame(index=list(run.sample_names())),
        var=pd.DataFrame(index=list(run.feature_names())),
    )
