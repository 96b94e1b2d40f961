# SPDX-License-Identifier: BSD-3-Clause
"""Runs, their folders and exports, and runs of fitted models."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sipower import as_matrix
from sipower.data.fingerprint import ROWS_HASHED_AT_ONCE
from sipower.loop.solve import Record
from sipower.results import Run, load_run, save_run
from sipower.results.describe import describe
from sipower.results.export import export, write_weights

NAMES = ("a", 'quote " and , comma', "line\nbreak", "<script>", "ä€𝄞")


@pytest.fixture
def run():
    rng = np.random.default_rng(0)
    trace = [Record(0, 0.0, 0.0, 12.5, 0.3, 1.0), Record(3, 7.5, 0.1, math.nan, math.nan, 0.5)]
    facts = {"status": "converged", "divergence": 1.5, "certified_gap": 1e-4, "rounds": 3}
    return Run(rng.gamma(1.0, size=(5, 2)), rng.gamma(1.0, size=(2, 4)), trace, facts, NAMES)


def test_a_run_survives_its_folder(run, tmp_path):
    loaded = load_run(save_run(run, tmp_path / "new" / "run"))
    np.testing.assert_array_equal(loaded.W, run.W)
    np.testing.assert_array_equal(loaded.H, run.H)
    assert loaded.samples == NAMES
    assert loaded.features is None
    assert loaded.feature_names() == ("1", "2", "3", "4")
    assert loaded.facts["status"] == "converged"
    assert loaded.trace[0] == run.trace[0]
    assert math.isnan(loaded.trace[1].gap)


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
    with pytest.raises(ValueError, match=f"{tmp_path.name} is (damaged|not a run)"):
        load_run(tmp_path)


def test_factors_that_do_not_fit_are_refused(run, tmp_path):
    save_run(run, tmp_path)
    np.savez(tmp_path / "factors.npz", W=np.ones((5, 2)), H=np.ones((3, 4)))
    with pytest.raises(ValueError, match="differ in size"):
        load_run(tmp_path)
    (tmp_path / "run.json").write_text(json.dumps({"format": 99}))
    with pytest.raises(ValueError, match="is a run of format 99"):
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


FACTORS = np.random.default_rng(0)
W0, H0 = FACTORS.gamma(1.0, size=(5, 2)), FACTORS.gamma(1.0, size=(2, 4))  # of the fixture `run`


def test_components_are_in_order_of_size_and_remember_the_model(run):
    assert describe(W0, H0).order.tolist() == [1, 0]
    np.testing.assert_array_equal(run.order, [1, 0])
    np.testing.assert_array_equal(run.W, W0[:, ::-1])
    np.testing.assert_array_equal(run.H, H0[::-1])
    again = replace(run, facts={})
    np.testing.assert_array_equal(again.order, [1, 0])
    np.testing.assert_array_equal(again.W, run.W)
    part = Run(W0[:1], H0, order=[0, 1])  # the numbers of a larger run, whatever the sizes here
    np.testing.assert_array_equal(part.H, H0)
    with pytest.raises(ValueError, match="`order` must hold each of 0 to 1 once"):
        Run(W0, H0, order=[0, 0])


def test_a_folder_of_the_first_format_is_read_and_sorted(run, tmp_path):
    save_run(run, tmp_path)
    np.savez(tmp_path / "factors.npz", W=W0, H=H0)
    facts = json.loads((tmp_path / "run.json").read_text())
    assert facts["format"] == 3
    (tmp_path / "run.json").write_text(json.dumps(facts | {"format": 1}))
    loaded = load_run(tmp_path)
    np.testing.assert_array_equal(loaded.W, run.W)
    np.testing.assert_array_equal(loaded.order, run.order)
    assert json.loads((save_run(loaded, tmp_path) / "run.json").read_text())["format"] == 3


def test_a_run_is_shown_on_five_lines(run):
    facts = run.facts | {"seconds": 0.25, "input": {"file": "counts.mtx"}}
    assert repr(replace(run, facts=facts)) == (
        "Run of 5 samples x 4 features, 2 components (float64)\n"
        "  status: converged, rounds: 3, seconds: 0.25\n"
        "  divergence: 1.5, certified gap: 0.0001\n"
        "  file: counts.mtx"
    )
    assert repr(Run(W0, H0)) == "Run of 5 samples x 4 features, 2 components (float64)"


def expected_tables(normalise):
    """W, H transposed and shares, the largest component first."""
    W, H = W0[:, ::-1], H0[::-1]
    mass = H.sum(axis=1)
    counts = W * mass
    shares = counts / counts.sum(axis=1, keepdims=True)
    return (counts, (H / mass[:, None]).T, shares) if normalise else (W, H.T, shares)


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_tables_hold_counts_profiles_and_shares(run, tmp_path, ending, normalise):
    files = export(run, tmp_path, ending, normalise=normalise)
    assert [file.name for file in files] == [f"{name}.{ending}" for name in ("W", "H", "shares")]
    for file, expected in zip(files, expected_tables(normalise), strict=True):
        table = pd.read_parquet(file) if ending == "parquet" else pd.read_csv(file, index_col=0)
        np.testing.assert_allclose(table, expected, rtol=1e-12)
        assert list(table) == ["component 1", "component 2"]
        assert list(table.index) == ([1, 2, 3, 4] if file.stem == "H" else list(NAMES))
    if normalise:
        totals = (W0 @ H0).sum(axis=1)
        np.testing.assert_allclose(pd.DataFrame(expected_tables(True)[0]).sum(axis=1), totals)


@pytest.mark.parametrize("normalise", [True, False])
def test_anndata_holds_the_factors(run, tmp_path, normalise):
    anndata = pytest.importorskip("anndata")
    (file,) = export(run, tmp_path, "h5ad", normalise=normalise)
    adata = anndata.read_h5ad(file)
    W, profiles, shares = expected_tables(normalise)
    np.testing.assert_allclose(adata.obsm["X_nmf"], W, rtol=1e-12)
    np.testing.assert_allclose(adata.obsm["X_nmf_shares"], shares, rtol=1e-12)
    np.testing.assert_allclose(adata.varm["nmf"], profiles, rtol=1e-12)
    assert tuple(adata.obs_names) == NAMES
    assert adata.uns["nmf"]["status"] == "converged"
    assert adata.uns["nmf"]["params"]["normalise"] == normalise
    np.testing.assert_array_equal(adata.uns["nmf"]["trace"]["objective"], [12.5, np.nan])


def test_weights_in_an_unknown_format_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must end in \.npz, \.csv, \.tsv or \.parquet"):
        write_weights(tmp_path / "W.xlsx", np.ones((2, 2)), np.ones((2, 2)), None)
    assert not list(tmp_path.iterdir())


def test_fingerprint_is_of_the_counts_alone():
    V = np.random.default_rng(0).poisson(0.5, (ROWS_HASHED_AT_ONCE + 5, 3))
    same = [as_matrix(V), as_matrix(V.astype(np.uint8)), as_matrix(sparse.coo_array(V)),
            as_matrix(sparse.csc_array(V).astype(np.float32))]  # fmt: skip
    assert len({one.sha256 for one in same}) == 1
    changed = V.copy()
    changed[-1, 0] += 1
    other_data = [as_matrix(changed), as_matrix(V[:-1]), as_matrix(V.T.copy())]
    assert len({one.sha256 for one in (same[0], *other_data)}) == 4


def test_parts_that_do_not_fit_are_no_run():
    W, H = np.ones((5, 2)), np.ones((2, 4))
    with pytest.raises(ValueError, match=r"must have shapes \(n, K\) and \(K, m\)"):
        Run(W[:, :1], H)
    with pytest.raises(ValueError, match="`samples` must have 5 names, got 3"):
        Run(W, H, samples=("a", "b", "c"))


def test_frames_arrays_of_names_and_numbers_of_numpy_are_taken(tmp_path):
    W, H = np.ones((2, 1)), np.ones((1, 3))
    facts = {"status": "converged", "rounds": np.int64(3), "divergence": np.float32(0.5)}
    run = Run(pd.DataFrame(W), pd.DataFrame(H), (), facts, features=np.array(["a", "b", "c"]))
    loaded = load_run(save_run(run, tmp_path))
    np.testing.assert_array_equal(loaded.W, W)
    assert loaded.features == ("a", "b", "c")
    assert (loaded.facts["rounds"], loaded.facts["divergence"]) == (3, 0.5)
    with pytest.raises(TypeError, match=r"run\.json cannot hold"):
        save_run(Run(W, H, (), {"command": object()}), tmp_path / "other")
