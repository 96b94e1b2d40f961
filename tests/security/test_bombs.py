# SPDX-License-Identifier: BSD-3-Clause
"""Small files that promise or unpack to enormous ones are refused within the memory there is."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from faults.children import run_code
from systems import linux_only


@linux_only
def test_small_files_that_become_enormous_get_a_sentence(tmp_path):
    script = Path(__file__).parent / "bombs.py"
    words = [sys.executable, script, tmp_path]
    result = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    assert result.returncode == 0, result.stderr
    messages = json.loads(result.stdout)
    assert len(messages) == 10
    for name, sentence in messages.items():
        assert sentence != "was read", name
        assert str(tmp_path) in sentence
        assert "\n" not in sentence
    assert all(
        "declares" in messages[f"claims.{ending}"] for ending in ("npy", "npz", "mtx", "txt")
    )
    assert "is longer than" in messages["line.csv.gz"]
    advice = "needs more memory than is available: read it where there is more, or write the counts"
    assert advice in messages["rows.csv.gz"]
    assert "declares 4000000128 bytes for the array data and stores" in messages["directory.npz"]


@linux_only
@pytest.mark.parametrize("kind", ["string", "large_string", "binary"])
def test_a_parquet_file_that_repeats_a_long_text(tmp_path, kind):
    """200 GB of names in 3 kB, as dictionaries of the format allow."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = 200_000
    text = arrow.array([b"x" * 1_000_000]).cast(getattr(arrow, kind)())
    names = arrow.DictionaryArray.from_arrays(np.zeros(rows, np.int32), text)
    table = arrow.table({"sample": names, "feature": names, "count": np.ones(rows, np.int64)})
    file = tmp_path / "bomb.parquet"
    parquet.write_table(table, file, store_schema=False, compression="zstd")
    assert file.stat().st_size < 10_000
    messages = run_code(
        """
        import resource, sys
        from sipower.io import ReadError, read

        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        try:
            read(sys.argv[1])
        except ReadError as problem:
            print(problem)
        """,
        file,
    )
    assert messages.startswith(f"{file}, row 2, has the same sample and feature as row 1: ")
