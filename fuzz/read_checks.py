# SPDX-License-Identifier: BSD-3-Clause
"""Functions that read a file of one kind and assert that its content is valid."""

from __future__ import annotations

import dataclasses
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import anndata.io  # noqa: F401 - by the reader, here once for all children
import numpy as np
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from damage import assert_counts, assert_valid
from sipower import KLNMF, as_matrix
from sipower.datasets import catalogue, originals
from sipower.experiments import table as experiments
from sipower.io import ReadError, convert, open_on_disk, open_store, read
from sipower.io.cache import cache_entries
from sipower.loop.checkpoint import Checkpoint
from sipower.loop.solve import Record
from sipower.nmf.alternating import NMFState
from sipower.results import load_run
from sipower.selection import Consensus, RankSelection, load_outcome
from sipower.selection.saved_fits import SavedFits

# ---- counts --------------------------------------------------------------------------------------


def read_counts(path: Path) -> None:
    """Read a file, or a folder in the 10x format."""
    table = read(path)
    if path.is_dir():
        assert_counts(table)
    else:
        assert_valid(path, table)


def read_zarr(path: Path) -> None:
    """Read an AnnData file in a format of Zarr."""
    assert_counts(read(path))


STATUSES = ("unfinished", "file is gone", "file has changed", "damaged", "of a newer sipower")


def read_cache(path: Path) -> None:
    """List a cache folder: an entry says what is in it, whatever its files hold."""
    for entry in cache_entries(path):
        assert entry.status in STATUSES
        assert isinstance(entry.source, dict)
        assert all(isinstance(remark, str) for remark in entry.remarks)
        assert entry.size > 0
        assert entry.last_used is not None


def read_long(path: Path) -> None:
    """Read a table with the layout given by the user."""
    assert_counts(read(path, layout="long"))


def read_converted(path: Path) -> None:
    """Convert a file to a store with the counts of `read`, unless `as_matrix` rejects them."""
    target = path.with_name("store")
    try:
        convert(path, target, transpose=True, force=True, memory_limit="1MB")
    except ReadError:
        raise
    except ValueError as problem:
        assert str(problem) == _error_message(read(path, transpose=True).counts)  # noqa: PT017
        return
    stored = open_store(target, n_jobs=1)
    counts = stored.rows(0, stored.shape[0])
    whole = csr_array(read(path, transpose=True).counts).astype(stored.dtype)
    assert (counts != whole).nnz == 0


def _error_message(counts: Any) -> str:
    try:
        as_matrix(csr_array(counts))
    except ValueError as problem:
        return str(problem)
    return ""


def read_backed(path: Path) -> None:
    """Open an HDF5 file and read its rows."""
    _assert_stored(open_on_disk(path, cache=False, n_jobs=1))


def read_store(path: Path) -> None:
    """Open a store, read its rows and columns and fit it."""
    stored = open_store(path, n_jobs=1)
    _assert_stored(stored)
    if stored.has_columns:
        _assert_stored(stored.T)
    model = KLNMF(2, solver="mu", max_iter=1, tol=0, random_state=0, n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        _assert_factors(model.fit_transform(stored), model.components_)


def _assert_stored(stored: Any) -> None:
    for window in stored.windows():
        assert window.blocks
    counts = stored.rows(0, stored.shape[0])
    counts.check_format(full_check=True)
    assert counts.shape == stored.shape
    assert np.isfinite(counts.data).all()
    assert (counts.data > 0).all()
    assert counts.has_canonical_format
    np.testing.assert_allclose(counts.astype(np.float64).sum(axis=1), stored.mass, rtol=1e-6)


def read_prepared(path: Path) -> None:
    """Read a prepared sparse data set."""
    counts: Any = catalogue._load_prepared("kos", path)
    counts.check_format(full_check=True)
    assert counts.dtype.kind in "iu"
    assert counts.nnz == 0 or counts.data.min() >= 0


def read_images(path: Path) -> None:
    """Read prepared images."""
    counts = catalogue._load_prepared("mitf", path)
    assert counts.ndim == 2
    assert counts.dtype.kind in "iu"


def read_image(path: Path) -> None:
    """Read a PGM or BMP image."""
    assert originals.read_images([path]).dtype == np.uint8


# ---- files that only the library writes ----------------------------------------------------------

STATE = NMFState(np.ones((3, 2)), np.ones((4, 2)), step=1.0, seed=7)
CHECKPOINT = partial(Checkpoint, run={"solver": "mu"})


def read_checkpoint(path: Path) -> None:
    """Read the state of a checkpoint."""
    checkpoint = CHECKPOINT(path).load(STATE)
    assert checkpoint is not None
    state, _ = checkpoint
    for field in dataclasses.fields(state):
        expected, actual = getattr(STATE, field.name), getattr(state, field.name)
        if isinstance(expected, np.ndarray):
            assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
            assert np.isfinite(actual).all()
            assert (actual >= 0).all()
        else:
            assert type(actual) is type(expected) or (type(expected), type(actual)) == (float, int)


def read_run(path: Path) -> None:
    """Read a run folder."""
    run = load_run(path)
    _assert_factors(run.W, run.H)
    assert (len(run.sample_names()), len(run.feature_names())) == (len(run.W), run.H.shape[1])
    assert all(isinstance(record, Record) for record in run.trace)
    assert isinstance(run.facts, dict)


def _assert_factors(W: Any, H: Any) -> None:
    assert W.ndim == H.ndim == 2
    assert W.shape[1] == H.shape[0]
    for factor in (W, H):
        assert np.isfinite(factor).all()
        assert (factor >= 0).all()


def read_selection(path: Path) -> None:
    """Read the outcome of a rank selection."""
    selection = load_outcome(RankSelection, path)
    assert selection.deviance.ndim == 2
    assert len(selection.ranks) == len(selection.deviance) == len(selection.stability)
    assert selection.best in selection.ranks


def read_consensus(path: Path) -> None:
    """Read a consensus of replicates."""
    consensus = load_outcome(Consensus, path, W=np.ones((3, 2)), H=np.ones((2, 4)))
    assert consensus.stability.shape == (2,)
    assert consensus.similarity.shape == (len(consensus.statuses),) * 2
    assert len(consensus.divergences) == len(consensus.gaps) == len(consensus.statuses)
    assert 0 <= consensus.medoid < len(consensus.statuses)


def read_saved_fit(path: Path) -> None:
    """Read a saved fit; a damaged one counts as missing."""
    store = SavedFits(path, {"model": {"random_state": 0}})
    fit = store.load("fit-0", W=(-1, -1))
    assert fit is None or isinstance(fit["W"], np.ndarray)


def read_results(path: Path) -> None:
    """Read a table of results; incomplete lines are skipped."""
    assert all(experiments.row_key(row) for row in experiments.read(path))
