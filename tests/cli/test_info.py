# SPDX-License-Identifier: BSD-3-Clause
"""`sipower info PATH` describes every format, in every version that was ever written."""

import json
import shutil

import numpy as np
import pytest

from cli.calls import call, events
from files.small_data import FEATURES, SAMPLES
from files.test_files import FOLDERS, folder_of
from files.test_newer import STAMPED, change_stamp
from sipower._files import read_archive
from sipower.cli.describe_file import describe_file
from sipower.io.cache import cache_entries

DAYS = {"count": 12, "first": list(SAMPLES[:3])}
FRUIT = {"count": 8, "first": list(FEATURES[:3])}
NUMBERED = {"count": 2, "first": ["component 1", "component 2"]}
COUNTS = {"shape": [12, 8], "nonzeros": 78, "total": 474.0, "dtype": "float64"}
# The file or folder, what it is called, and some of what it holds.
EXPECTED = {
    "run": (".", "run", {"shape": [12, 8], "dtype": "float64", "status": "converged",
                         "samples": DAYS, "features": FRUIT}),
    "store": ("counts.sipower", "store", COUNTS | {"samples": DAYS, "features": FRUIT}),
    "cache": (None, "cache entry", COUNTS | {"file": "/data/counts.mtx",
                                             "status": "file is gone"}),
    "checkpoint": ("checkpoint.npz", "checkpoint", {
        "components": 2, "arrays": {"W": [12, 2], "H": [8, 2]}, "rounds": 50, "passes": 100.0,
        "state": "NMFState"}),
    "differences": ("csv.csv", "table of differences", {
        "shape": [2, 8], "components": 2, "contrast": "least extreme", "level": 0.95,
        "features": FRUIT, "component_names": {"count": 2, "first": ["fruit", "other"]}}),
    "catalogue": ("rows.parquet", "plain table, such as a catalogue or counts", {
        "shape": [2, 8], "rows": {"count": 2, "first": ["SBS1", "SBS2"]}, "columns": FRUIT}),
    "weights": ("W.npz", "file of weights", {"shape": [12, 2], "components": 2, "samples": DAYS}),
    "refit": ("refit.npz", "refit", {
        "shape": [12, 2], "samples": DAYS, "component_names": NUMBERED}),
    "rank": (".", "rank selection", {
        "components": [1, 2], "replicates": 2, "best": 2, "method": "thinning"}),
    "consensus": (".", "run and consensus", {
        "shape": [12, 8], "components": 2, "status": "converged", "component_names": NUMBERED}),
    "programs": ("programs.json", "consensus over groups", {
        "groups": ["north", "south"], "status": "converged"}),
    "tree": ("tree.json", "merge tree", {"components": 3}),
    "flows": ("flows.json", "component flows", {"components": [1, 2]}),
}  # fmt: skip


def path_of(name, folder):
    if name == "cache":
        (entry,) = cache_entries(folder)
        return entry.folder
    return folder / EXPECTED[name][0]


@pytest.mark.parametrize(("name", "version"), FOLDERS)
def test_every_format_is_described(name, version):
    path, (_, kind, expected) = path_of(name, folder_of(name, version)), EXPECTED[name]
    (facts,) = events(call("info", path, "--json"))
    assert (facts["event"], facts["kind"]) == ("file", kind)
    held = {key: facts[key] for key in expected}
    assert held == expected
    text = " ".join(call("info", path).stdout.split())
    if name == "catalogue":  # a plain table
        assert facts["format"] is None
        assert f": {kind}, without format" in text
        return
    if name != "consensus":  # of the run in the folder
        assert facts["format"] == version
    assert f": {kind}, format {facts['format']}, " in text
    writer = f"written by sipower {facts['sipower']}" if facts["sipower"] else "no version of"
    assert writer in text


def test_the_facts_of_a_run_are_those_of_the_folder():
    folder = folder_of("run", 3)
    recorded, facts = json.loads((folder / "run.json").read_text()), describe_file(folder)
    for name in ("status", "certified_gap", "divergence", "rounds", "passes", "seconds"):
        assert facts[name] == recorded[name]
    assert facts["components"] == len(read_archive(folder / "factors.npz")["H"]) == 2
    assert facts == describe_file(folder / "run.json")
    text = call("info", folder).stdout
    assert f"certified gap    {recorded['certified_gap']:.6g}" in text
    assert "samples          12: day 1, day 2, day 3, ..." in text


def test_parts_of_folders_are_described_too():
    consensus = describe_file(folder_of("consensus", 2) / "consensus.json")
    assert (consensus["replicates"], consensus["status"]) == (3, "converged")
    assert len(consensus["stability"]) == consensus["components"] == 2
    fits = describe_file(folder_of("rank", 2) / "fits")
    assert (fits["kind"], fits["files"], fits["format"]) == ("folder of fits", 3, 2)
    assert describe_file(folder_of("rank", 2) / "rank.json")["best"] == 2
    beside = describe_file(folder_of("differences", 2) / "parquet.json")
    assert beside["components"] == 2


@pytest.mark.parametrize(("name", "part", "whole"), [
    ("run", "factors.npz", "run.json"),
    ("run", "names.json", "run.json"),
    ("run", "trace.csv", "run.json"),
    ("store", "counts.sipower/names.json", "counts.sipower/store.json"),
    ("rank", "rank.csv", "rank.json"),
    ("programs", "programs.csv", "programs.json"),
])  # fmt: skip
def test_a_part_is_described_as_the_whole(name, part, whole):
    folder = folder_of(name, FOLDERS_NEWEST[name])
    assert describe_file(folder / part) == describe_file(folder / whole)


def test_a_table_of_counts_beside_a_run_is_no_part_of_it(tmp_path):
    shutil.copytree(folder_of("run", 3), tmp_path, dirs_exist_ok=True)
    (tmp_path / "counts.csv").write_text("word,a,b\none,1,2\n")
    (tmp_path / "counts.json").write_text('{"note": "mine"}')
    facts = describe_file(tmp_path / "counts.csv")
    assert (facts["kind"], facts["shape"]) == ("plain table, such as a catalogue or counts", [1, 2])


@pytest.mark.parametrize("name", STAMPED)
def test_a_newer_format_is_refused(name, tmp_path):
    shutil.copytree(folder_of(name, FOLDERS_NEWEST[name]), tmp_path, dirs_exist_ok=True)
    change_stamp(tmp_path / STAMPED[name], format=99, sipower="9.8.7")
    path = tmp_path / STAMPED[name] if name == "consensus" else path_of(name, tmp_path)
    message = call("info", path, code=2).stderr
    assert "of format 99, written by sipower 9.8.7, but sipower" in " ".join(message.split())


FOLDERS_NEWEST = dict(FOLDERS)


def test_other_files_are_refused_in_one_sentence(tmp_path):
    (tmp_path / "notes.txt").write_text("no result")
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    (tmp_path / "tree.json").write_text('{"mergers": 3}')
    (tmp_path / "consensus.json").write_text('{"medoid": 3}')
    (tmp_path / "rank.json").write_text("[")
    (tmp_path / "broken.npz").write_bytes(b"PK")
    for name, sentence in {
        "missing": "does not exist",
        "notes.txt": "is not a file or folder that sipower has written",
        "other.npz": "is not a file or folder that sipower has written",
        "tree.json": "is not a MergeTree of sipower",
        "consensus.json": "is damaged (KeyError: 'stability'): write it again",
        "rank.json": "is damaged",
        "broken.npz": "is damaged or not an .npz file",
    }.items():
        message = call("info", tmp_path / name, code=2).stderr
        assert sentence in " ".join(message.split())
        assert name in message
