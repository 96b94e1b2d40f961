# SPDX-License-Identifier: BSD-3-Clause
"""Coherence in the run folder and the report, tables of topics, and the table of `sipower rank`."""

import json

import numpy as np
import pandas as pd

from cli.calls import V, call
from sipower import topic_quality
from sipower.results import load_run
from sipower.results.describe import describe


def test_fit_records_coherence_and_writes_topics(counts):
    call("fit", "counts.csv", "-k", 3, "-o", "run", "--also", "topics")
    run = load_run("run")
    expected = topic_quality(V, run.H, run.W, held_out=False)
    np.testing.assert_allclose(describe(run).quality.npmi, expected.npmi)
    assert "Quality of topics" in (counts / "run" / "report.html").read_text()
    topics = pd.read_csv("run/topic_word.csv", index_col="topic")
    assert topics.shape == (3, 40)
    np.testing.assert_allclose(pd.read_csv("run/doc_topic.csv", index_col=0).sum(axis=1), 1)
    call("fit", "counts.csv", "-k", 2, "-o", "run", "--force", "--no-report")
    assert not (counts / "run" / "doc_topic.csv").exists()


def test_consensus_records_coherence(counts):
    call("consensus", "counts.csv", "-k", 2, "-o", "run", "--replicates", 2)
    assert describe(load_run("run")).quality.pairs.tolist() == [45, 45]


def test_rank_prints_coherence_and_diversity(counts):
    result = call("rank", "counts.csv", "-k", "1:3", "-o", "ranks", "--replicates", 2)
    assert "coherence" in result.stdout
    assert "diversity" in result.stdout
    table = pd.read_csv("ranks/rank.csv")
    assert table[["coherence", "diversity", "perplexity"]].notna().all(axis=None)
    assert len(json.loads((counts / "ranks" / "rank.json").read_text())["coherence"]) == 3
