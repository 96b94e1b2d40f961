# SPDX-License-Identifier: BSD-3-Clause
"""`sipower consensus --groups`: programs over groups of samples."""

import json

import numpy as np
import pandas as pd

from cli.calls import V, call, events
from sipower import KLNMF, consensus
from sipower.cli.describe_file import describe_file
from sipower.results import load_run

GROUPS = np.array(["x", "y", "z"])[np.arange(60) % 3]
WORDS = ("consensus", "counts.csv", "-k", 3, "-o", "run", "--replicates", 2)


def write_groups(name="groups.csv", labels=GROUPS):
    table = pd.Series(labels, [f"document {i}" for i in range(60)], name="group")
    table.iloc[::-1].to_csv(name)


def test_groups_give_the_bits_of_the_library(counts):
    write_groups()
    output = call(*WORDS, "--groups", "groups.csv", "--min-cosine", 0.6).stdout
    result = consensus(V, KLNMF(3, random_state=0), groups=GROUPS, replicates=2, min_cosine=0.6)
    assert result.summary in output
    assert "2 fits of each of 3 groups" in output
    run = load_run("run")
    np.testing.assert_array_equal(run.W, result.W[:, run.order])
    assert run.component_names == tuple(result.names[k] for k in run.order)
    assert run.facts["groups"] == ["x", "y", "z"]
    page = (counts / "run" / "report.html").read_text(encoding="utf-8")
    assert "Programs of groups" in page
    assert all(f"{100 * share:.1f} %" in page for share in result.usage.ravel())
    assert run.facts["divergence"] == result.divergence
    table = pd.read_csv("run/programs.csv")
    assert table["program"].tolist() == list(result.names)
    np.testing.assert_allclose(table["share of y"], result.usage[1])
    saved = json.loads((counts / "run" / "programs.json").read_text())
    assert saved["shared"] == result.shared.tolist()
    assert (counts / "run" / "report.html").exists()
    call("report", "run")


def test_groups_that_began_are_continued_and_others_refused(counts):
    write_groups()
    options = ("--groups", "groups.csv", "--min-cosine", 0.6)
    call(*WORDS, *options)
    fits = sorted((counts / "run" / "fits").glob("*.npz"))
    assert len(fits) == 3 * 2 + 1
    before = [file.stat().st_mtime_ns for file in fits]
    call(*WORDS, *options)
    assert [file.stat().st_mtime_ns for file in fits] == before
    assert "fits of another task" in call(*WORDS, code=2).stderr
    call(*WORDS, "--force")
    assert (counts / "run" / "consensus.json").exists()
    assert not (counts / "run" / "programs.json").exists()
    call(*WORDS, *options, "--force")
    assert not (counts / "run" / "consensus.json").exists()


def test_bad_groups_name_the_option(counts):
    write_groups(labels=np.where(GROUPS == "z", "", GROUPS))
    message = call(*WORDS, "--groups", "groups.csv", code=2).stderr
    assert "--groups: groups.csv has no label for sample" in message
    assert "--groups: nothing is not a file" in call(*WORDS, "--groups", "nothing", code=2).stderr


def test_json_has_the_programs(counts):
    write_groups()
    result = call(*WORDS, "--groups", "groups.csv", "--min-cosine", 0.6, "--json")
    done = events(result)[-1]
    assert done["event"] == "done"
    assert len(done["programs"]) == len(done["shared"]) == len(done["usage"][0])


def test_a_later_run_in_the_folder_leaves_no_programs_of_the_older_one(counts):
    write_groups()
    call(*WORDS, "--groups", "groups.csv", "--min-cosine", 0.6)
    assert {"programs.json", "programs.csv"} <= set(describe_file(counts / "run")["files"])
    call("fit", "counts.csv", "-k", 3, "-o", "run", "--force", "--no-report")
    assert not any((counts / "run").glob("programs.*"))
    assert describe_file(counts / "run")["kind"] == "run"
