# SPDX-License-Identifier: BSD-3-Clause
"""Run folders, exports, fingerprints and files that are there whole or not at all."""

import errno
import json
import math
import os

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sipower import as_matrix
from sipower._files import atomic_write, file_lock
from sipower.data.fingerprint import ROWS_AT_A_TIME, fingerprint
from sipower.loop.solve import Record
from sipower.results import Run, load_run, save_run
from sipower.results.describe import describe
from sipower.results.export import export, write_rows

NAMES = ("a", 'quote " and , comma', "line\nbreak", "<script>", "ä€𝄞")


@pytest.fixture
def run():
    rng = np.random.default_rng(0)
    trace = [Record(0, 0.0, 0.0, 12.5, 0.3, 1.0), Record(3, 7.5, 0.1, math.nan, math.nan, 0.5)]
    facts = {"status": "converged", "divergence": 1.5, "certified_gap": 1e-4, "rounds": 3}
    return Run(rng.gamma(1.0, size=(5, 2)), rng.gamma(1.0, size=(2, 4)), trace, facts, NAMES)


def test_a_run_survives_its_folder(run, tmp_path):
    found = load_run(save_run(run, tmp_path / "new" / "run"))
    np.testing.assert_array_equal(found.W, run.W)
    np.testing.assert_array_equal(found.H, run.H)
    assert found.samples == NAMES
    assert found.features is None
    assert found.feature_names() == ("1", "2", "3", "4")
    assert found.facts["status"] == "converged"
    assert found.trace[0] == run.trace[0]
    assert math.isnan(found.trace[1].gap)


@pytest.mark.parametrize("file", ["factors.npz", "names.json", "trace.csv", "run.json"])
@pytest.mark.parametrize("kind", ["cut", "flipped", "gone"])
def test_a_damaged_run_is_refused_in_one_sentence(run, tmp_path, file, kind):
    place = save_run(run, tmp_path) / file
    content = place.read_bytes()
    if kind == "gone":
        place.unlink()
    else:
        half = len(content) // 2
        place.write_bytes(
            content[:half] if kind == "cut" else content[:half] + b"\xff" + content[half:]
        )
    with pytest.raises(ValueError, match=f"{tmp_path.name} is (damaged|no run)"):
        load_run(tmp_path)


def test_factors_that_do_not_fit_are_refused(run, tmp_path):
    save_run(run, tmp_path)
    np.savez(tmp_path / "factors.npz", W=np.ones((5, 2)), H=np.ones((3, 4)))
    with pytest.raises(ValueError, match="do not fit"):
        load_run(tmp_path)
    (tmp_path / "run.json").write_text(json.dumps({"format": 99}))
    with pytest.raises(ValueError, match="is of format 99"):
        load_run(tmp_path)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("trace.csv", "round\n\n"),
        ("trace.csv", f"round\n{'1' * 200_000}\n"),
        ("run.json", "[" * 100_000),
        ("names.json", "9" * 5000),
    ],
)
def test_a_text_that_its_reader_stumbles_over_is_damage(run, tmp_path, file, content):
    (save_run(run, tmp_path) / file).write_text(content)
    with pytest.raises(ValueError, match=rf"{tmp_path.name} is damaged: .{{1,60}}; run the fit"):
        load_run(tmp_path)


def test_factors_below_zero_are_damage(run, tmp_path):
    save_run(run, tmp_path)
    np.savez(tmp_path / "factors.npz", W=-run.W, H=run.H)
    with pytest.raises(ValueError, match="is damaged"):
        load_run(tmp_path)


def test_a_run_holds_no_pickle(run, tmp_path):
    save_run(run, tmp_path)
    np.savez(tmp_path / "factors.npz", W=np.array([{}]), H=run.H)
    with pytest.raises(ValueError, match="is damaged"):
        load_run(tmp_path)


def by_size(run):
    """The factors with the components as the report counts them."""
    order = describe(run.W, run.H).order
    assert order.tolist() == [1, 0]
    return run.W[:, order], run.H[order]


def test_tables_hold_the_factors(run, tmp_path):
    factors = by_size(run)
    for ending, read in (("csv", pd.read_csv), ("parquet", pd.read_parquet)):
        weights, components = export(run, tmp_path, ending)
        W, H = read(weights), read(components)
        if ending == "csv":
            W, H = W.set_index("name"), H.set_index("name")
            np.testing.assert_allclose(W, factors[0], rtol=1e-12)
        else:
            np.testing.assert_array_equal(W, factors[0])
        assert tuple(W.index) == NAMES
        np.testing.assert_allclose(H, factors[1].T, rtol=1e-12)


def test_anndata_holds_the_factors(run, tmp_path):
    anndata = pytest.importorskip("anndata")
    (file,) = export(run, tmp_path, "h5ad")
    found = anndata.read_h5ad(file)
    W, H = by_size(run)
    np.testing.assert_array_equal(found.obsm["X_nmf"], W)
    np.testing.assert_array_equal(found.varm["nmf"], H.T)
    assert tuple(found.obs_names) == NAMES
    assert found.uns["nmf"]["status"] == "converged"


def test_weights_in_an_unknown_format_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"use \.npz, \.csv, \.tsv or \.parquet"):
        write_rows(tmp_path / "W.xlsx", np.ones((2, 2)), None)
    assert not list(tmp_path.iterdir())


def test_fingerprint_is_of_the_counts_alone():
    V = np.random.default_rng(0).poisson(0.5, (ROWS_AT_A_TIME + 5, 3))
    same = [as_matrix(V), as_matrix(V.astype(np.uint8)), as_matrix(sparse.coo_array(V)),
            as_matrix(sparse.csc_array(V).astype(np.float32))]  # fmt: skip
    assert len({fingerprint(one) for one in same}) == 1
    changed = V.copy()
    changed[-1, 0] += 1
    others = [as_matrix(changed), as_matrix(V[:-1]), as_matrix(V.T.copy())]
    assert len({fingerprint(one) for one in (same[0], *others)}) == 4


def test_a_file_is_replaced_as_a_whole(tmp_path):
    target = tmp_path / "file"
    target.write_text("old")
    with pytest.raises(TypeError), atomic_write(target) as file:
        file.writelines([b"half", "no bytes"])
    assert target.read_text() == "old"
    with atomic_write(target) as file:
        file.write(b"new")
    assert target.read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_files_are_for_others_too(tmp_path):
    mask = os.umask(0o022)
    try:
        with atomic_write(tmp_path / "file") as file:
            file.write(b"x")
    finally:
        os.umask(mask)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o644


def test_parts_that_do_not_fit_are_no_run():
    W, H = np.ones((5, 2)), np.ones((2, 4))
    with pytest.raises(ValueError, match=r"expected \(n, K\) and \(K, m\)"):
        Run(W[:, :1], H)
    with pytest.raises(ValueError, match="3 names for 5 samples"):
        Run(W, H, samples=("a", "b", "c"))


def test_frames_arrays_of_names_and_numbers_of_numpy_are_taken(tmp_path):
    W, H = np.ones((2, 1)), np.ones((1, 3))
    facts = {"status": "converged", "rounds": np.int64(3), "divergence": np.float32(0.5)}
    run = Run(pd.DataFrame(W), pd.DataFrame(H), (), facts, features=np.array(["a", "b", "c"]))
    found = load_run(save_run(run, tmp_path))
    np.testing.assert_array_equal(found.W, W)
    assert found.features == ("a", "b", "c")
    assert (found.facts["rounds"], found.facts["divergence"]) == (3, 0.5)
    with pytest.raises(TypeError, match=r"run\.json cannot hold"):
        save_run(Run(W, H, (), {"command": object()}), tmp_path / "other")


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_worked_on(tmp_path, monkeypatch, number):
    def flock(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("sipower._files.lock.fcntl.flock", flock)
    with file_lock(tmp_path / "run"):
        pass
    assert not list(tmp_path.iterdir())
