# SPDX-License-Identifier: BSD-3-Clause
"""Files of every version of every format are read, and hold what they were written with.

The folders FORMAT/VERSION beside this file are never changed or removed. When a format changes, its
version is raised and ``python tests/files/record.py FORMAT VERSION`` adds a folder.
"""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from files.examples import EXAMPLES, made_of
from files.facts import as_facts, file_facts
from files.several_fits import read_rank
from files.small_data import counts, small_model
from sipower import KLNMF
from sipower.io.cache import CacheEntry, cache_entries
from sipower.selection import consensus, rank_selection

HERE = Path(__file__).parent
# Every version that was ever written; a line gets longer, never shorter.
VERSIONS = {
    "run": (1, 2, 3),
    "store": (1, 2),
    "cache": (1, 2),
    "checkpoint": (2, 3),  # version 1 is refused
    "differences": (1, 2),
    "catalogue": (1,),
    "weights": (1, 2),
    "refit": (1, 2),
    "rank": (1, 2, 3),
    "consensus": (1, 2),
    "programs": (1, 2),
    "tree": (1, 2),
    "flows": (1, 2),
}
FOLDERS = [(name, version) for name, versions in VERSIONS.items() for version in versions]
NEWEST = [(name, versions[-1]) for name, versions in VERSIONS.items()]
ignore_convergence = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def folder_of(name, version):
    return HERE / name / str(version)


def assert_holds(content, expected):
    """Compare facts; a newer version may have further fields."""
    if isinstance(expected, dict) and isinstance(content, dict):
        for key, value in expected.items():
            assert key in content
            assert_holds(content[key], value)
    else:
        assert content == expected


def test_no_file_of_a_version_has_been_removed():
    present = {
        name: tuple(sorted(int(p.name) for p in (HERE / name).iterdir())) for name in EXAMPLES
    }
    assert present == VERSIONS
    assert all(len(file_facts(folder_of(*each))) >= 1 for each in FOLDERS)


@ignore_convergence
@pytest.mark.parametrize(("name", "version"), FOLDERS)
def test_every_version_is_read_exactly(name, version, tmp_path):
    folder = shutil.copytree(folder_of(name, version), tmp_path / "copy")
    expected = json.loads((folder / "expected.json").read_text())
    assert_holds(as_facts(EXAMPLES[name].read(folder)), expected)


def test_recorded_facts_notice_a_single_bit():
    array = np.arange(6.0).reshape(2, 3)
    changed = array.copy()
    changed[1, 2] = np.nextafter(5, 6)
    assert as_facts(array) == as_facts(np.asfortranarray(array))
    assert as_facts(array) != as_facts(changed)
    assert as_facts(array) != as_facts(array.T)
    with pytest.raises(AssertionError):
        assert_holds(as_facts({"a": changed}), as_facts({"a": array}))


def shape_of(facts):
    """Return facts without their values: names, types and shapes; options may come and go."""
    if isinstance(facts, dict):
        free = {"parameters", "model", "run"}
        return {key: None if key in free else shape_of(v) for key, v in facts.items()
                if key != "sha256"}  # fmt: skip
    if isinstance(facts, list):
        return [shape_of(facts[0])] if facts else []
    return type(facts).__name__ if not isinstance(facts, str) or "<" not in facts else facts


@ignore_convergence
@pytest.mark.parametrize(("name", "version"), NEWEST)
def test_the_newest_version_is_what_is_written_today(name, version, tmp_path):
    """If this fails, a format has changed: raise its version and record its files."""
    recorded, example = folder_of(name, version), EXAMPLES[name]
    if example.rewrite is not None:
        example.rewrite(recorded, tmp_path)
        assert file_facts(tmp_path) == file_facts(recorded)
        return
    example.write(tmp_path)
    assert shape_of(file_facts(tmp_path)) == shape_of(file_facts(recorded))


@ignore_convergence
@pytest.mark.parametrize("name", ["rank", "consensus"])
def test_saved_fits_of_every_version_are_reused(name, tmp_path):
    for version in VERSIONS[name]:
        fits = shutil.copytree(folder_of(name, version) / "fits", tmp_path / str(version))
        before = {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in fits.iterdir()}
        if name == "rank":
            again = rank_selection(counts(), [1, 2], small_model(), replicates=2, folder=fits)
            old = read_rank(folder_of(name, version))
            np.testing.assert_array_equal(again.deviance, old.deviance)
            np.testing.assert_array_equal(again.stability, old.stability)
        else:
            again = consensus(counts(), small_model(), replicates=3, folder=fits)
            old = EXAMPLES[name].read(folder_of(name, version))
            np.testing.assert_array_equal(np.sort(again.H, axis=0), np.sort(old.H, axis=0))
        after = {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in fits.iterdir()}
        assert after == before


@pytest.mark.parametrize("version", VERSIONS["cache"])
def test_an_entry_of_the_cache_of_every_version_is_current(version, tmp_path):
    shutil.copytree(folder_of("cache", version), tmp_path / "cache")
    (entry,) = cache_entries(tmp_path / "cache")
    assert entry.status == "file is gone"
    file = tmp_path / "counts.mtx"
    file.write_bytes(b" " * entry.source["bytes"])
    os.utime(file, ns=(entry.source["modified"],) * 2)
    moved = CacheEntry(entry.folder)
    label = entry.label | {"source": made_of(entry, file.resolve())}
    (entry.folder / "source.json").write_text(json.dumps(label))
    assert moved.status == "current"


@pytest.mark.parametrize("version", VERSIONS["checkpoint"])
def test_a_fit_continues_from_a_checkpoint_of_every_version(version, tmp_path):
    path = tmp_path / "checkpoint.npz"
    shutil.copy(folder_of("checkpoint", version) / path.name, path)
    options = {"random_state": 0, "n_jobs": 1, "tol": 1e-6, "solver": "mu", "max_iter": 5000}
    rounds = []
    resumed = KLNMF(2, checkpoint=path, on_round=rounds.append, **options).fit(counts())
    whole = KLNMF(2, **options).fit(counts())
    assert resumed.status_ == whole.status_ == "converged"
    assert min(record.round for record in rounds) >= 50
    assert resumed.n_iter_ == whole.n_iter_ > 50
    np.testing.assert_allclose(resumed.components_, whole.components_, rtol=1e-6)
