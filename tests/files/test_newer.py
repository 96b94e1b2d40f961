# SPDX-License-Identifier: BSD-3-Clause
"""A file of a newer format is refused in one sentence: who wrote it, and what to do."""

import json
import re
import shutil

import numpy as np
import pytest

from files.examples import EXAMPLES
from files.small_data import counts, small_model
from files.test_files import NEWEST, folder_of
from sipower.data.formats import FORMATS
from sipower.io import open_on_disk
from sipower.io.cache import cache_entries
from sipower.selection import rank_selection

STAMPED = {
    "run": "run.json",
    "store": "counts.sipower/store.json",
    "checkpoint": "checkpoint.npz",
    "differences": "csv.json",
    "rank": "rank.json",
    "consensus": "consensus.json",
    "tree": "tree.json",
    "flows": "flows.json",
}


def change_stamp(file, **stamp):
    """Change the version of a file; None removes an entry."""
    if file.suffix == ".json":
        facts = json.loads(file.read_text()) | stamp
        file.write_text(json.dumps({k: v for k, v in facts.items() if v is not None}))
        return
    with np.load(file) as arrays:
        content = dict(arrays)
    if "header" in content:
        header = json.loads(content["header"].tobytes()) | stamp
        header = {k: v for k, v in header.items() if v is not None}
        content["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    else:
        content |= {name: np.array(value) for name, value in stamp.items()}
    np.savez(file, **content)


def test_the_versions_of_the_files_are_those_of_the_code():
    assert dict(NEWEST) == {name: format_.version for name, format_ in FORMATS.items()}


@pytest.mark.parametrize("name", STAMPED)
@pytest.mark.parametrize("writer", ["9.8.7", None])
def test_a_newer_format_is_refused_in_one_sentence(name, writer, tmp_path):
    newest = FORMATS[name].version
    shutil.copytree(folder_of(name, newest), tmp_path, dirs_exist_ok=True)
    change_stamp(tmp_path / STAMPED[name], format=newest + 1, sipower=writer)
    with pytest.raises(ValueError, match=rf"of format {newest + 1}, written by") as refusal:
        EXAMPLES[name].read(tmp_path)
    message = str(refusal.value)
    by = "sipower 9.8.7" if writer else "a newer sipower"
    assert f"written by {by}, but sipower" in message
    assert message.endswith(f"up to {newest}: update it with pip install --upgrade sipower.")
    assert re.search(rf"{tmp_path.name}.* is a {FORMATS[name].name} of", message)
    assert "\n" not in message


@pytest.mark.parametrize("version", ["2", 0, -1, True, 1.5, [1]])
def test_a_version_that_is_no_number_is_damage(version, tmp_path):
    for name in ("run", "differences", "tree"):
        folder = shutil.copytree(folder_of(name, FORMATS[name].version), tmp_path / name)
        change_stamp(folder / STAMPED[name], format=version)
        with pytest.raises(ValueError, match=r"its format .* is unknown"):
            EXAMPLES[name].read(folder)


def test_newer_saved_fits_are_refused(tmp_path):
    fits = shutil.copytree(folder_of("rank", 2) / "fits", tmp_path / "fits")
    change_stamp(fits / "task.json", format=99, sipower="9.8.7")
    with pytest.raises(ValueError, match=r"fits is a folder of fits of format 99, .* 9\.8\.7, "):
        rank_selection(counts(), [1, 2], small_model(), replicates=2, folder=fits)


def test_a_newer_entry_of_the_cache_is_made_again(tmp_path):
    file = tmp_path / "counts.mtx"
    from scipy.io import mmwrite  # noqa: PLC0415

    data = np.arange(12).reshape(3, 4)
    mmwrite(file, data)
    open_on_disk(file, cache=tmp_path / "cache")
    (entry,) = cache_entries(tmp_path / "cache")
    assert entry.status == "current"
    change_stamp(entry.folder / "source.json", format=99)
    (entry,) = cache_entries(tmp_path / "cache")
    assert entry.status == "of a newer sipower"
    again = open_on_disk(file, cache=tmp_path / "cache")
    np.testing.assert_array_equal(
        np.asarray(again.rows(0, 3).todense()), np.arange(12).reshape(3, 4)
    )
    (entry,) = cache_entries(tmp_path / "cache")
    assert entry.status == "current"
    assert entry.label["format"] == FORMATS["cache"].version


def test_a_checkpoint_of_the_first_format_is_refused(tmp_path):
    shutil.copytree(folder_of("checkpoint", 3), tmp_path, dirs_exist_ok=True)
    change_stamp(tmp_path / "checkpoint.npz", format=1)
    with pytest.raises(ValueError, match="is a checkpoint of another version: choose"):
        EXAMPLES["checkpoint"].read(tmp_path)
