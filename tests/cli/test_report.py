# SPDX-License-Identifier: BSD-3-Clause
"""`sipower report`: everything that a run folder and a rank folder hold."""

import json

from cli.calls import call


def test_report_shows_rank_and_consensus(counts):
    call("rank", "counts.csv", "-k", "2:4", "-o", "ranks", "--replicates", 2)
    call("consensus", "counts.csv", "-k", 3, "-o", "run", "--replicates", 3)
    call("report", "run", "--rank", "ranks", "-o", "both.html")
    text = (counts / "both.html").read_text()
    best = json.loads((counts / "ranks" / "rank.json").read_text())["best"]
    assert f"K = {best}" in text
    assert "stability" in text.lower()


def test_damaged_facts_get_a_sentence(counts):
    call("fit", "counts.csv", "-k", 2, "-o", "run", "--no-report")
    for text in ("[]", '{"format": 1, "input": 3}'):
        (counts / "run" / "run.json").write_text(text)
        assert "is damaged" in call("report", "run", code=2).stderr
