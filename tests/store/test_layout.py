# SPDX-License-Identifier: BSD-3-Clause
"""Sizes as people write them, and stores whose files do not agree with their store.json."""

import json
from pathlib import Path

import numpy as np
import pytest

from sipower.store import byte_size, read_layout, write_store
from sipower.store.layout import read_names


def test_sizes_as_people_write_them() -> None:
    written = {"300MB": 3e8, "1.5GB": 1.5e9, "2GiB": 2**31, " 7 kb ": 7000, ".5g": 5e8, 12: 12,
               "12": 12, "12B": 12, "3TiB": 3 * 2**40}  # fmt: skip
    assert {size: byte_size(size) for size in written} == written
    for nonsense in ("", "MB", "-1MB", "1XB", "1 2MB", "0", 0, -5, True, None, "nan", "1e3"):
        with pytest.raises(ValueError, match=r"`memory_limit` must be .*, got"):
            byte_size(nonsense)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "x"}, "its format 'x' is unknown"),
        ({"format": 0}, "its format 0 is unknown"),
        ({"shape": [3]}, r"shape of store.json is \[3\]"),
        ({"shape": [3, -3]}, "shape of store.json is"),
        ({"nonzeros": None}, "nonzeros of store.json is missing"),
        ({"nonzeros": True}, "nonzeros of store.json is True"),
        ({"nonzeros": 4}, "rows/indices.npy does not hold 4 numbers"),
        ({"shape": [4, 3]}, "rows/indptr.npy does not hold 5 numbers"),
        ({"shape": [3, 4]}, "columns/indptr.npy does not hold 5 numbers"),
        ({"total": float("nan")}, "total of store.json is nan"),
        ({"largest": 10**400}, "largest of store.json is 10000"),
        ({"dtype": "int8"}, "dtype of store.json is 'int8'"),
        ({"sha256": "abc"}, "sha256 of store.json is 'abc'"),
        ({"orientations": ["columns"]}, r"orientations of store.json is \['columns'\]"),
    ],
)
def test_wrong_facts_are_refused(tmp_path, change, message) -> None:
    write_store(np.eye(3), tmp_path / "v")
    file = tmp_path / "v" / "store.json"
    facts = json.loads(file.read_text()) | change
    file.write_text(json.dumps({key: fact for key, fact in facts.items() if fact is not None}))
    with pytest.raises(ValueError, match=message) as caught:
        read_layout(tmp_path / "v")
    assert str(caught.value).endswith("convert the data again.")


def _torn(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def _other_type(file: Path) -> None:
    np.save(file, np.load(file).astype(np.int16))


@pytest.mark.parametrize("damage", [Path.unlink, _torn, _other_type], ids=["gone", "torn", "other"])
@pytest.mark.parametrize("side", ["rows", "columns"])
@pytest.mark.parametrize("name", ["indptr", "indices", "values", "mass"])
def test_damaged_files_are_refused(tmp_path, damage, side, name) -> None:
    write_store(np.eye(3), tmp_path / "v")
    damage(tmp_path / "v" / side / f"{name}.npy")
    with pytest.raises(ValueError, match=rf"is damaged: {side}/{name}\.npy .*; convert the data"):
        read_layout(tmp_path / "v")


def test_what_is_no_store_is_said(tmp_path) -> None:
    with pytest.raises(ValueError, match=r"is not a store of sipower: it has no store\.json"):
        read_layout(tmp_path)
    (tmp_path / "store.json").write_text("[")
    with pytest.raises(ValueError, match=r"store\.json cannot be read"):
        read_layout(tmp_path)
    (tmp_path / "store.json").write_text("[]")
    with pytest.raises(ValueError, match=r"store\.json is not a JSON object"):
        read_layout(tmp_path)
    write_store(np.eye(3), tmp_path / "v")
    (tmp_path / "v" / "names.json").write_text('{"samples": ["a"]}')
    with pytest.raises(ValueError, match=r"names\.json does not name 3 samples"):
        read_names(read_layout(tmp_path / "v"))
