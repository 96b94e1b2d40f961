# SPDX-License-Identifier: BSD-3-Clause
"""Files of any size become stores: what `read` would give, in blocks."""

import gzip
import json
import re
import signal
import subprocess
import sys

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.io import mmwrite
from typer.testing import CliRunner

from sipower.cli import app
from sipower.io import ReadError, convert, read
from sipower.store import read_layout
from sipower.store.layout import read_names

TINY = 1_000_000
RNG = np.random.default_rng(0)
V = RNG.integers(1, 400, (600, 150)) * (RNG.random((600, 150)) < 0.4)
V[:, 7] = V[11] = 0
CELLS = tuple(f"cell {i}" for i in range(600))
GENES = tuple(f"gene {j}" for j in range(150))


def docword(file, matrix, shuffled=False):
    rows, columns = np.nonzero(matrix)
    order = np.random.default_rng(1).permutation(len(rows)) if shuffled else np.arange(len(rows))
    lines = (f"{rows[k] + 1} {columns[k] + 1} {matrix[rows[k], columns[k]]}\n" for k in order)
    head = f"{matrix.shape[0]}\n{matrix.shape[1]}\n{len(rows)}\n"
    text = (head + "".join(lines)).encode()
    file.write_bytes(gzip.compress(text) if file.suffix == ".gz" else text)
    return file


def tenx_folder(folder):
    mmwrite(folder / "matrix.mtx", sparse.coo_array(V.T))
    (folder / "matrix.mtx.gz").write_bytes(gzip.compress((folder / "matrix.mtx").read_bytes()))
    (folder / "matrix.mtx").unlink()
    (folder / "barcodes.tsv").write_text("".join(f"{name}\n" for name in CELLS))
    lines = (f"id{j}\t{name}\tGene Expression\n" for j, name in enumerate(GENES))
    (folder / "features.tsv").write_text("".join(lines))
    return folder


def tenx_hdf5(file):
    by_columns = sparse.csc_array(V.T)
    with h5py.File(file, "w") as opened:
        group = opened.create_group("matrix")
        for name in ("data", "indices", "indptr"):
            content = getattr(by_columns, name).astype("i8")
            group.create_dataset(name, data=content, compression="gzip", chunks=(500,))
        group["shape"], group["barcodes"] = by_columns.shape, np.array(CELLS, "S")
        group["features/name"] = np.array(GENES, "S")
        group["features/id"] = np.array(GENES, "S")
    return file


def cells(file, make, **layers):
    obs, var = pd.DataFrame(index=list(CELLS)), pd.DataFrame(index=list(GENES))
    X = make((V / 2 if layers else V).astype(np.float32))
    layers = {name: make(layer) for name, layer in layers.items()}
    anndata.AnnData(X, obs=obs, var=var, layers=layers).write_h5ad(file, compression="gzip")
    return file


def shuffled_market(file):
    docword(file, V, shuffled=True)
    size, body = " ".join(file.read_text().split("\n", 3)[:3]), file.read_text().split("\n", 3)[3]
    file.write_text(f"%%MatrixMarket matrix coordinate real general\n{size}\n{body}")
    return file


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
    table, seen = read(file, transpose=transpose), []
    remarks = convert(
        file,
        target,
        transpose=transpose,
        memory_limit=TINY,
        on_block=lambda *told: seen.append(told),
    )
    assert remarks == table.remarks
    assert_store(target, table.counts)
    assert read_names(read_layout(target)) == (table.samples, table.features)
    if kind not in ("mtx symmetric", "mtx real", "npy", "h5ad layer"):
        expected = V.T if transpose else V
        assert (table.counts != expected).sum() == 0
    assert sum(what == "rows" for what, *_ in seen) > 1
    assert sum(what == "columns" for what, *_ in seen) > 1


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


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory as Linux has them")
def test_a_text_larger_than_memory(tmp_path, assert_store) -> None:
    rng = np.random.default_rng(2)
    places = rng.choice(20_000 * 1_000, 700_000, replace=False)  # in no order
    rows, columns = np.divmod(places, 1_000)
    values = rng.integers(1, 100, len(places))
    with (tmp_path / "docword.v.txt").open("w") as file:
        file.write(f"20000\n1000\n{len(places)}\n")
        np.savetxt(file, np.column_stack([rows + 1, columns + 1, values]), "%d")
    command = [sys.executable, "-c", LIMITED, tmp_path / "docword.v.txt", tmp_path / "v"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for side in ("rows", "columns"):
        sizes = np.diff([0, *(nonzeros for what, _, nonzeros in found["told"] if what == side)])
        assert len(sizes) > 20
        assert 12 * sizes.max() < 2_000_000
    assert found["kilobytes"] < 60_000  # lines of a block of text are the most of it
    expected = sparse.csr_array((values, (rows, columns)), shape=(20_000, 1_000))
    assert_store(tmp_path / "v", expected, np.uint8)


# ---- bad files -----------------------------------------------------------------------------------

BANNER = "%%MatrixMarket matrix coordinate integer general\n"
MARKET = f"{BANNER}% a comment\n3 4 3\n1 2 5\n2 1 7\n3 4 1\n"
SYMMETRIC = BANNER.replace("general", "symmetric") + "3 3 3\n1 1 5\n3 2 7\n2 3 1\n"
TEXTS = {
    "number": ("v.mtx", MARKET.replace("2 1 7", "2 1 x7")),
    "negative": ("v.mtx", MARKET.replace("2 1 7", "2 1 -7")),
    "outside": ("v.mtx", MARKET.replace("2 1 7", "4 1 7")),
    "fields": ("v.mtx", MARKET.replace("2 1 7", "2 1")),
    "twice": ("v.mtx", MARKET.replace("2 1 7", "1 2 7")),
    "mirrored": ("v.mtx", SYMMETRIC),
    "more": ("v.mtx", MARKET + "1 1 1\n"),
    "torn": ("v.mtx", MARKET.removesuffix("3 4 1\n")),
    "size": ("v.mtx", MARKET.replace("3 4 3", "4000000000 4 3")),
    "promise": ("v.mtx", MARKET.replace("3 4 3", "2000000000 4 2000000000")),
    "head": ("v.mtx", MARKET.replace("3 4 3", "3 4")),
    "banner": ("v.mtx", MARKET.replace("%%Matrix", "%%")),
    "empty": ("v.mtx", f"{BANNER}0 4 0\n"),
    "words": ("docword.v.txt", "3\n4\n3\n1 2 5\n\n2 1 7\n1 2 1\n"),
    "words torn": ("docword.v.txt", "3\n4\n3\n1 2 5\n2 1 7\n"),
    "nothing": ("docword.v.txt", ""),
    "ending": ("v.xlsx", "x"),
    "table": ("v.csv", "name,a,b\ns1,1,2\ns2,3,-4\n"),
}
PARTS = {
    "index": ("indices", np.array([0, 9, 1]), "an index lies outside 2 x 3"),
    "starts": ("indptr", np.array([0, 9, 3]), "the starts of its rows are out of order"),
    "value": ("data", np.array([1, -1, 2]), "row 1, column 3, holds -1"),
    "later": ("data", np.array([1, 1, np.nan]), "row 2, column 1, holds nan"),
    "twice": ("indices", np.array([1, 1, 0]), "two counts for row 1, column 2"),
    "type": ("data", np.array([b"a", b"b", b"c"]), "has values of type"),
    "shape": ("shape", np.array([2**40, 2]), "promises 2 x 1099511627776"),
    "names": ("barcodes", np.array([b"a"]), "1 barcodes and 3 features"),
}


def same_sentence(file, tmp_path, **options):
    """Reading and converting say the same, and converting leaves nothing."""
    before, said = sorted(tmp_path.iterdir()), []
    for attempt in (
        lambda: read(file, **options),
        lambda: convert(file, tmp_path / "s", **options),
    ):
        with pytest.raises(ReadError) as caught:
            attempt()
        said.append(str(caught.value))
        assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert said[0] == said[1]
    assert sorted(tmp_path.iterdir()) == before
    return said[0]


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("kind", TEXTS)
def test_bad_texts_give_the_sentence_of_read(tmp_path, kind, transpose) -> None:
    name, text = TEXTS[kind]
    (tmp_path / name).write_text(text)
    said = same_sentence(tmp_path / name, tmp_path, transpose=transpose)
    assert said.startswith(str(tmp_path / name))


def test_broken_compression(tmp_path) -> None:
    file = docword(tmp_path / "docword.v.txt.gz", V)
    file.write_bytes(file.read_bytes()[:-500])
    assert "the compressed data break off" in same_sentence(file, tmp_path)


@pytest.mark.parametrize("kind", PARTS)
def test_bad_matrices_of_10x_give_the_sentence_of_read(tmp_path, kind) -> None:
    file, good = tmp_path / "v.h5", sparse.csr_array(np.array([[0, 2, 1], [3, 0, 0]]))
    with h5py.File(file, "w") as opened:
        group = opened.create_group("matrix")
        for part in ("data", "indices", "indptr"):
            group[part] = getattr(good, part)
        group["shape"], group["barcodes"] = [3, 2], np.array([b"x", b"y"])
        group["features/name"] = np.array([b"a", b"b", b"c"])
        name, content, said = PARTS[kind]
        del group[name]
        group[name] = content
    assert said in same_sentence(file, tmp_path)


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_array, np.asarray])
def test_bad_anndata_gives_the_sentence_of_read(tmp_path, make, monkeypatch) -> None:
    bad = V.astype(float)
    bad[500, 100] = -3
    file = cells(tmp_path / "v.h5ad", make, raw=bad)
    monkeypatch.setattr("sipower.store.buckets._BYTES_PER_ENTRY", 10**6)  # blocks of 512 entries
    said = same_sentence(file, tmp_path, layer="raw")
    assert re.search(r"row 501, column 101, holds -3\.0", said)
    assert "no layers/other" in same_sentence(file, tmp_path, layer="other")
    file.write_bytes(file.read_bytes()[:3000])
    assert "is damaged or no HDF5 file" in same_sentence(file, tmp_path)


def test_damage_inside_a_dataset_is_one_sentence(tmp_path) -> None:
    file = tenx_hdf5(tmp_path / "v.h5")
    with h5py.File(file) as opened:
        chunk = opened["matrix/data"].id.get_chunk_info(20)
    raw = bytearray(file.read_bytes())
    raw[chunk.byte_offset : chunk.byte_offset + chunk.size] = bytes(chunk.size)
    file.write_bytes(raw)
    assert "is damaged or no HDF5 file" in same_sentence(file, tmp_path)


def test_the_lines_of_a_repetition_are_found_far_apart(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("sipower.io.text._READ", 64)
    lines = [f"{i} 1 1" for i in range(1, 501)]
    lines[399] = "7 1 1"
    (tmp_path / "docword.txt").write_text("\n".join(["500", "1", "500", *lines]) + "\n")
    said = same_sentence(tmp_path / "docword.txt", tmp_path)
    assert "line 403, has the same row and column as line 10" in said


# ---- the command ---------------------------------------------------------------------------------


def call(*words, code=0):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, (done.output, done.stderr, done.exception)
    return done


def test_the_command(tmp_path, assert_store) -> None:
    file, target = docword(tmp_path / "docword.v.txt", V), tmp_path / "v.sipower"
    done = call("convert", file, "-o", target)
    assert re.search(r"wrote .*: 600 samples x 150 features, [\d,]+ nonzeros", done.stdout)
    assert_store(target, V)
    done = call("convert", file, "-o", target, code=2)
    assert "is a store already: choose another name, or force" in done.stderr
    done = call("convert", file, "-o", target, "--transpose", "--rows-only", "--force", "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[-1]["event"] == "done"
    assert events[-1]["sha256"] == read_layout(target).sha256
    assert {event["of"] for event in events[:-1]} == {"entries", "rows"}
    assert_store(target, V.T, rows_only=True)
    done = call("convert", file, "-o", tmp_path / "w", "--memory-limit", "lots", code=2)
    assert "The size 'lots' is unknown" in done.stderr
    done = call("convert", tmp_path / "none.mtx", "-o", tmp_path / "w", code=2)
    assert "none.mtx does not exist" in done.stderr


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


@pytest.mark.skipif(sys.platform == "win32", reason="signals as Unix has them")
def test_ctrl_c_in_mid_work_leaves_nothing(tmp_path) -> None:
    (tmp_path / "out").mkdir()
    file, target = tmp_path / "docword.v.txt", tmp_path / "out" / "v.sipower"
    docword(file, V)
    command = [sys.executable, "-c", SLOW, "convert", str(file), "-o", str(target)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout.readline().startswith(b"entries")
        assert len(list(target.parent.glob(".v.sipower.*"))) == 2
        run.send_signal(signal.SIGINT)
        said = run.communicate(timeout=30)[1]
    assert (run.returncode, list(target.parent.iterdir())) == (3, [])
    assert b"Interrupted; nothing is saved." in said
