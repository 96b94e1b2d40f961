# SPDX-License-Identifier: BSD-3-Clause
"""No file that the library reads can run code: not a run, a checkpoint, a store, nor data."""

import io
import json
from contextlib import suppress

import numpy as np
import pytest
from scipy import sparse

from oracles import counts
from security.hostile import CODE, object_archive, pickle_bytes
from sipower import KLNMF
from sipower.datasets import load
from sipower.experiments.table import read as read_table
from sipower.io import FORMATS, ReadError, convert, open_store, read
from sipower.report import write_report
from sipower.results import Run, load_run, save_run
from sipower.selection import Consensus, RankSelection, load_outcome
from sipower.selection.saved_fits import SavedFits
from sipower.store import write_store

V = counts(9, 7)


@pytest.fixture
def marker(tmp_path):
    """The file that the payload would make."""
    return tmp_path / "pwned"


def assert_refused(act, marker):
    """One sentence, and nothing was run."""
    with pytest.raises(ValueError, match=r"\S") as caught:
        act()
    assert "\n" not in str(caught.value)
    assert not marker.exists()


def a_run(folder):
    return save_run(Run(np.ones((3, 2)), np.ones((2, 4)), (), {"status": "converged"}), folder)


@pytest.mark.parametrize("make", CODE[:4])
def test_the_payload_would_run_elsewhere(make, marker):
    """The control: without it the other tests would pass for any file."""
    loaded = np.load(io.BytesIO(make(marker)), allow_pickle=True)
    if make is object_archive:
        loaded["W"]
    assert marker.exists()


def test_the_source_in_a_head_would_run_elsewhere(marker):
    head = CODE[4](marker)[10:].decode()
    eval(head)
    assert marker.exists()


@pytest.mark.parametrize("make", CODE)
@pytest.mark.parametrize("ending", FORMATS)
def test_data(ending, make, tmp_path, marker):
    file = tmp_path / f"counts{ending}"
    file.write_bytes(make(marker))
    assert_refused(lambda: read(file), marker)
    assert_refused(lambda: convert(file, tmp_path / "counts.sipower"), marker)


@pytest.mark.parametrize("make", CODE)
@pytest.mark.parametrize("name", ["factors.npz", "run.json", "names.json", "trace.csv"])
def test_runs(name, make, tmp_path, marker):
    (a_run(tmp_path / "run") / name).write_bytes(make(marker))
    assert_refused(lambda: load_run(tmp_path / "run"), marker)


@pytest.mark.parametrize("make", CODE)
def test_checkpoints(make, tmp_path, marker):
    (tmp_path / "fit.npz").write_bytes(make(marker))
    model = KLNMF(2, random_state=0, checkpoint=tmp_path / "fit.npz")
    assert_refused(lambda: model.fit(V), marker)


def resave(file, change):
    """A checkpoint with one thing changed in its arrays or its head."""
    with np.load(file) as archive:
        arrays = dict(archive)
    header = json.loads(arrays.pop("header").tobytes())
    change(arrays, header)
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(file, allow_pickle=True, header=text, **arrays)


def with_objects(arrays, header):
    name = next(iter(arrays))
    arrays[name] = np.full(arrays[name].shape, None, object)


def with_other_scalars(arrays, header):
    header["scalars"]["round"] = {"__reduce__": ["os.system", "true"]}


def with_other_notes(arrays, header):
    header["notes"] = {"records": "x"}


def with_other_memory(arrays, header):
    header["memory"] = ["loops"]


@pytest.mark.parametrize(
    "change", [with_objects, with_other_scalars, with_other_notes, with_other_memory]
)
def test_checkpoints_with_one_thing_changed(change, tmp_path, marker):
    model = KLNMF(2, random_state=0, max_iter=2, tol=0, checkpoint=tmp_path / "fit.npz")
    model.fit(V)
    resave(tmp_path / "fit.npz", change)
    assert_refused(lambda: model.set_params(max_iter=4).fit(V), marker)


@pytest.mark.parametrize("make", CODE)
@pytest.mark.parametrize(
    "name", ["store.json", "names.json", "rows/indptr.npy", "rows/indices.npy", "columns/mass.npy"]
)
def test_stores(name, make, tmp_path, marker):
    write_store([V], tmp_path / "counts.sipower")
    (tmp_path / "counts.sipower" / name).write_bytes(make(marker))
    assert_refused(lambda: open_store(tmp_path / "counts.sipower"), marker)


@pytest.mark.parametrize("make", CODE)
def test_outcomes_and_their_pieces(make, tmp_path, marker):
    (tmp_path / "rank.json").write_bytes(make(marker))
    assert_refused(lambda: load_outcome(RankSelection, tmp_path / "rank.json"), marker)
    assert_refused(lambda: load_outcome(Consensus, tmp_path / "rank.json"), marker)
    (tmp_path / "piece.npz").write_bytes(make(marker))
    assert SavedFits(tmp_path, {"model": {"random_state": 0}}).load("piece", W=(-1, -1)) is None
    (tmp_path / "runs.jsonl").write_bytes(make(marker))
    assert read_table(tmp_path / "runs.jsonl") == []
    assert not marker.exists()


@pytest.mark.parametrize("make", CODE)
@pytest.mark.parametrize("name", ["kos", "mitf"])
def test_prepared_data_sets(name, make, tmp_path, marker, monkeypatch):
    monkeypatch.setenv("SIPOWER_DATA", str(tmp_path))
    (tmp_path / f"{name}.npz").write_bytes(make(marker))
    assert_refused(lambda: load(name), marker)


def test_types_of_parquet_that_are_pickled(tmp_path, marker):
    """Arrow once unpickled the types that a file brings along (CVE-2023-47248)."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    about = {
        b"ARROW:extension:name": b"arrow.py_extension_type",
        b"ARROW:extension:metadata": pickle_bytes(marker),
    }
    fields = [arrow.field("a", arrow.int64(), metadata=about), arrow.field("b", arrow.int64())]
    table = arrow.table([[1, 2], [3, 4]], schema=arrow.schema(fields))
    parquet.write_table(table, tmp_path / "counts.parquet")
    with suppress(ReadError):  # by the versions that know such types still
        assert read(tmp_path / "counts.parquet").counts.tolist() == [[1, 3], [2, 4]]
    assert not marker.exists()


def test_pickles_in_hdf5_are_bytes(tmp_path, marker):
    anndata, h5py = pytest.importorskip("anndata"), pytest.importorskip("h5py")
    anndata.AnnData(sparse.csr_matrix(V)).write_h5ad(tmp_path / "counts.h5ad")
    with h5py.File(tmp_path / "counts.h5ad", "r+") as file:
        code = np.void(pickle_bytes(marker))
        file["uns"].attrs["encoding-type"] = code
        file.create_dataset("uns/pickle", data=code)
        file["X"].attrs["encoding-type"] = code
    assert_refused(lambda: read(tmp_path / "counts.h5ad"), marker)


# ---- facts that are not what they should be ------------------------------------------------------

DEEP = "[" * 100_000
FACTS = [
    '"certified_gap": "<b>"', '"certified_gap": [1]', '"divergence": {}', '"rounds": "3"',
    '"seconds": "\\u001b[31m"', '"passes": []', '"status": ["x"]', '"command": {"a": ["<b>"]}',
    '"input": [1]', '"input": {"file": 5}', '"input": {"total": "x"}', '"parameters": [1]',
    '"input": {"nonzeros": "<i>"}', f'"certified_gap": {"9" * 400}', f'"seed": {"9" * 5000}',
    f'"deep": {DEEP}',
]  # fmt: skip


@pytest.mark.parametrize("fact", FACTS, ids=range(len(FACTS)))
def test_facts_of_another_kind_are_refused(fact, tmp_path, marker):
    (a_run(tmp_path / "run") / "run.json").write_text(f'{{"format": 1, {fact}}}')
    assert_refused(lambda: load_run(tmp_path / "run"), marker)


@pytest.mark.parametrize(
    "names", [DEEP, "[]", '{"samples": 5}', '{"samples": "abc", "features": null}']
)
def test_names_of_another_kind_are_refused(names, tmp_path, marker):
    (a_run(tmp_path / "run") / "names.json").write_text(names)
    assert_refused(lambda: load_run(tmp_path / "run"), marker)


SOUND = {"ranks": [3], "deviance": [[1]], "stability": [1], "best": 3, "reason": "", "method": ""}


@pytest.mark.parametrize(
    "change",
    [{"best": "<b>"}, {"ranks": ["<b>"]}, {"deviance": 1}, {"deviance": [["<b>"]]},
     {"reason": []}, {"method": {}}, {"stability": []}, {"self": 1}],
    ids=str,
)  # fmt: skip
def test_outcomes_of_another_kind_are_refused(change, tmp_path, marker):
    file = tmp_path / "rank.json"
    file.write_text(json.dumps(SOUND))
    assert load_outcome(RankSelection, file).best == 3
    file.write_text(json.dumps(SOUND | change))
    assert_refused(lambda: load_outcome(RankSelection, file), marker)


@pytest.mark.parametrize("text", [DEEP, "5", "[]"], ids=["deep", "number", "list"])
def test_outcomes_that_are_no_tables_are_refused(text, tmp_path, marker):
    (tmp_path / "rank.json").write_text(text)
    assert_refused(lambda: load_outcome(RankSelection, tmp_path / "rank.json"), marker)


def test_anything_a_run_may_tell_has_a_report(tmp_path):
    """What is not among the known facts is shown as it is, at any depth and of any kind."""
    pytest.importorskip("plotly")
    facts = {"format": 1, "certified_gap": 1e308, "input": {"total": 1e308, "file": "a\0b"},
             "status": "<i>", "__proto__": {"x": [None, True, "\ud800"]}, "$title": DEEP[:800],
             "parameters": {"tol": {"__import__('os')": 1}}}  # fmt: skip
    (a_run(tmp_path) / "run.json").write_text(json.dumps(facts))
    page = write_report(load_run(tmp_path), tmp_path / "report.html").read_text()
    assert "<i>" not in page.partition("<script>")[0]
