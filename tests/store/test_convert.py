# SPDX-License-Identifier: BSD-3-Clause
"""Files of any size become stores: what `read` would give, in blocks."""

import json
import re
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.io import mmwrite
from typer.testing import CliRunner

from convertible import CELLS, GENES, V, cells, docword, shuffled_market, tenx_folder, tenx_hdf5
from sipower.cli import app
from sipower.io import convert, read
from sipower.store import read_layout
from sipower.store.layout import read_names
from systems import linux_only, unix_only

TINY = 1_000_000

FILES = {
    "docword": lambda at: docword(at / "docword.v.txt", V),
    "docword.gz": lambda at: docword(at / "docword.v.txt.gz", V, shuffled=True),
    "mtx": lambda at: mmwrite(at / "v.mtx", sparse.coo_array(V)) or at / "v.mtx",
    "mtx real": lambda at: mmwrite(at / "v.mtx", sparse.coo_array(V / 8)) or at / "v.mtx",
    "mtx array": lambda at: mmwrite(at / "v.mtx", V) or at / "v.mtx",
    "mtx shuffled": lambda at: shuffled_market(at / "v.mtx"),
    "mtx symmetric": lambda at: mmwrite(at / "v.mtx", sparse.coo_array(V.T @ V)) or at / "v.mtx",
    "10x folder": tenx_folder,
    "10x h5": lambda at: tenx_hdf5(at / "v.h5"),
    "h5ad csr": lambda at: cells(at / "v.h5ad", sparse.csr_array),
    "h5ad csc": lambda at: cells(at / "v.h5ad", sparse.csc_array),
    "h5ad dense": lambda at: cells(at / "v.h5ad", np.asarray),
    "npz": lambda at: sparse.save_npz(at / "v.npz", sparse.csc_array(V)) or at / "v.npz",
    "npy": lambda at: np.save(at / "v.npy", V / 7) or at / "v.npy",
    "csv": lambda at: pd.DataFrame(V, CELLS, GENES).to_csv(at / "v.csv") or at / "v.csv",
}


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("kind", FILES)
def test_every_format_becomes_what_reading_it_gives(tmp_path, assert_store, kind, transpose):
    (tmp_path / "in").mkdir()
    file, target = FILES[kind](tmp_path / "in"), tmp_path / "v.sipower"
    table, calls = read(file, transpose=transpose), []
    remarks = convert(
        file,
        target,
        transpose=transpose,
        memory_limit=TINY,
        on_block=lambda *arguments: calls.append(arguments),
    )
    assert remarks == table.remarks
    assert_store(target, table.counts)
    assert read_names(read_layout(target)) == (table.samples, table.features)
    if kind not in ("mtx symmetric", "mtx real", "npy", "h5ad layer"):
        expected = V.T if transpose else V
        assert (table.counts != expected).sum() == 0
    assert sum(what == "rows" for what, *_ in calls) > 1
    assert sum(what == "columns" for what, *_ in calls) > 1


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_array, np.asarray])
def test_layers_and_rows_alone(tmp_path, assert_store, make) -> None:
    file = cells(tmp_path / "v.h5ad", make, raw=V.astype(np.uint16))
    convert(file, tmp_path / "v", layer="raw", rows_only=True, memory_limit=TINY)
    assert_store(tmp_path / "v", V, np.uint16, rows_only=True)
    convert(file, tmp_path / "x")
    assert_store(tmp_path / "x", (V / 2).astype(np.float32), np.float32)


def test_patterns_and_explicit_zeros(tmp_path, assert_store) -> None:
    file = tmp_path / "v.mtx"
    file.write_text("%%MatrixMarket matrix coordinate pattern general\n3 2 2\n3 1\n1 2\n")
    convert(file, tmp_path / "v")
    assert_store(tmp_path / "v", np.array([[0, 1], [0, 0], [1, 0]]))
    (tmp_path / "docword.txt").write_text("3\n2\n3\n3 1 0\n1 2 5\n2 2 0\n")
    convert(tmp_path / "docword.txt", tmp_path / "w")
    assert_store(tmp_path / "w", np.array([[0, 5], [0, 0], [0, 0]]))


# ---- memory --------------------------------------------------------------------------------------

LIMITED = """
import json, resource, sys
import numpy as np
from sipower.io import convert
np.loadtxt(["1 2 3"])
used = 4096 * int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (used + (700 << 20),) * 2)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
told = []
convert(sys.argv[1], sys.argv[2], memory_limit="2MB", on_block=lambda *now: told.append(now))
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"told": told, "kilobytes": after - before}))
"""


@linux_only
def test_a_text_larger_than_memory(tmp_path, assert_store) -> None:
    rng = np.random.default_rng(2)
    places = rng.choice(20_000 * 1_000, 700_000, replace=False)  # in no order
    rows, columns = np.divmod(places, 1_000)
    values = rng.integers(1, 100, len(places))
    with (tmp_path / "docword.v.txt").open("w") as file:
        file.write(f"20000\n1000\n{len(places)}\n")
        np.savetxt(file, np.column_stack([rows + 1, columns + 1, values]), "%d")
    command = [sys.executable, "-c", LIMITED, tmp_path / "docword.v.txt", tmp_path / "v"]
    result = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert result.returncode == 0, result.stderr
    facts = json.loads(result.stdout)
    for side in ("rows", "columns"):
        sizes = np.diff([0, *(nonzeros for what, _, nonzeros in facts["told"] if what == side)])
        assert len(sizes) > 20
        assert 12 * sizes.max() < 2_000_000
    assert facts["kilobytes"] < 60_000  # lines of a block of text are the most of it
    expected = sparse.csr_array((values, (rows, columns)), shape=(20_000, 1_000))
    assert_store(tmp_path / "v", expected, np.uint8)


# ---- the command ---------------------------------------------------------------------------------


def call(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, (result.output, result.stderr, result.exception)
    return result


def test_the_command(tmp_path, assert_store) -> None:
    file, target = docword(tmp_path / "docword.v.txt", V), tmp_path / "v.sipower"
    result = call("convert", file, "-o", target)
    assert re.search(r"wrote .*: 600 samples x 150 features, [\d,]+ nonzeros", result.stdout)
    assert_store(target, V)
    result = call("convert", file, "-o", target, code=2)
    assert "is a store already: choose another name, or use force" in result.stderr
    result = call("convert", file, "-o", target, "--transpose", "--rows-only", "--force", "--json")
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert events[-1]["event"] == "done"
    assert events[-1]["sha256"] == read_layout(target).sha256
    assert {event["of"] for event in events[:-1]} == {"entries", "rows"}
    assert_store(target, V.T, rows_only=True)
    result = call("convert", file, "-o", tmp_path / "w", "--memory-limit", "lots", code=2)
    expected = "`memory_limit` must be a number of bytes or a size such as 512MB, got 'lots'"
    assert expected in result.stderr
    result = call("convert", tmp_path / "none.mtx", "-o", tmp_path / "w", code=2)
    assert "none.mtx does not exist" in result.stderr


SLOW = """
import time
from sipower import io
whole = io.convert
def slowly(*given, on_block, **options):
    def told(*now):
        print(*now, flush=True)
        time.sleep(60)
    return whole(*given, on_block=told, **options)
io.convert = slowly
from sipower.cli import main
main()
"""


@unix_only
def test_ctrl_c_in_mid_work_leaves_nothing(tmp_path) -> None:
    (tmp_path / "out").mkdir()
    file, target = tmp_path / "docword.v.txt", tmp_path / "out" / "v.sipower"
    docword(file, V)
    command = [sys.executable, "-c", SLOW, "convert", str(file), "-o", str(target)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout.readline().startswith(b"entries")
        assert len(list(target.parent.glob(".v.sipower.*"))) == 2
        run.send_signal(signal.SIGINT)
        output = run.communicate(timeout=30)[1]
    assert (run.returncode, list(target.parent.iterdir())) == (3, [])
    assert b"Interrupted; nothing is saved." in output
