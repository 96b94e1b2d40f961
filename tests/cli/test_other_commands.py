# SPDX-License-Identifier: BSD-3-Clause
"""`sipower bench`, `info`, `demo` and `reproduce`."""

import numpy as np
import pytest

from cli.calls import call, events


def test_info_tells_what_a_bug_report_needs():
    lines = events(call("info", "--json"))[0]
    assert lines["versions"]["numpy"] == np.__version__
    assert lines["threads"] >= 1
    assert "plotly" in call("info").stdout


def test_bench_of_data_that_are_fitted_exactly_and_of_none(counts):
    np.save("exact.npy", np.outer(np.arange(1.0, 6), np.arange(1.0, 8)))
    call("bench", "exact.npy", "-k", 1, "--max-time", 0.05, "--dtype", "float64")
    np.save("none.npy", np.zeros((3, 4)))
    assert "The data are all zero" in call("bench", "none.npy", "-k", 1, code=2).stderr


def test_table_1_is_a_table(counts):
    output = call("reproduce", "table1", "--quick", "--out", "repro", "--jobs", 1).stdout
    assert "\\n" not in output
    assert sum(line.startswith("| ") for line in output.splitlines()) > 3


def test_bench_races_the_solvers(counts):
    lines = events(call("bench", "counts.csv", "-k", 3, "--max-time", 0.2, "--json"))
    ends = {event["solver"]: event for event in lines if event["event"] == "end"}
    assert {"auto", "mu", "scikit-learn mu"} <= set(ends)
    assert ends["auto"]["divergence"] <= 1.01 * min(e["divergence"] for e in ends.values())
    call("bench", "counts.csv", "-k", 3, "--max-time", 0.1)


@pytest.mark.slow
def test_demo_ends_with_a_report_of_recognisable_topics(tmp_path):
    result = call("demo", "-o", tmp_path / "demo")
    text = (tmp_path / "demo" / "report.html").read_text()
    assert len(text) > 1_000_000
    lines = [set(line.split()[2:]) for line in result.stdout.splitlines() if "%  " in line]
    assert len(lines) == 20
    for topic in ({"csc", "coo"}, {"pdf", "pmf"}, {"kernel"}, {"hypothesis"}, {"fft"}):
        assert any(topic & line for line in lines), topic
