# SPDX-License-Identifier: BSD-3-Clause
"""`sipower consensus`: a run of its own kind, resumed from its fits."""

import json

import numpy as np

from cli.calls import V, call, events
from sipower import KLNMF, consensus
from sipower.results import load_run
from sipower.results.folder import load_consensus


def test_consensus_is_a_run(counts):
    words = ("consensus", "counts.csv", "-k", 3, "-o", "run", "--replicates", 3, "--threads", 2)
    output = call(*words).stdout
    assert "All 3 replicates are kept." in output
    assert "3 fits, 2 at a time: " in output
    run = load_run("run")
    assert run.facts["replicates"] == 3
    assert run.facts["status"] == "converged"
    model = KLNMF(3, random_state=run.facts["parameters"]["random_state"])
    np.testing.assert_array_equal(model.fit_transform(V)[:, run.order], run.W)
    call("transform", "run", "counts.csv", "-o", "W.npz")


def test_stability_is_in_the_order_of_the_run(counts):
    """In folders of the first format it is in the order of the model, as the factors are."""
    call("consensus", "counts.csv", "-k", 3, "-o", "run", "--replicates", 3, "--seed", 2)
    run, file = load_run("run"), counts / "run" / "consensus.json"
    assert (run.order != np.arange(3)).any()
    ordered = load_consensus(run, "run").stability
    np.testing.assert_array_equal(json.loads(file.read_text())["stability"], ordered)
    model = KLNMF(3, random_state=2)
    result = consensus(V, model, replicates=3)
    np.testing.assert_allclose(result.stability[run.order], ordered, rtol=1e-12)

    back = np.argsort(run.order)
    np.savez(counts / "run" / "factors.npz", W=run.W[:, back], H=run.H[back])
    facts = json.loads((counts / "run" / "run.json").read_text())
    (counts / "run" / "run.json").write_text(json.dumps(facts | {"format": 1}))
    old = json.loads(file.read_text()) | {"stability": result.stability.tolist()}
    file.write_text(json.dumps(old))
    np.testing.assert_array_equal(load_consensus(load_run("run"), "run").stability, ordered)


def test_consensus_does_not_overwrite_a_fit(counts):
    call("fit", "counts.csv", "-k", 3, "-o", "run", "--no-report")
    result = call("consensus", "counts.csv", "-k", 2, "--replicates", 1, "-o", "run", code=2)
    assert "holds a run already" in result.stderr
    assert load_run("run").W.shape == (60, 3)


def test_json_is_json_even_where_something_is_unknown(counts):
    result = call("consensus", "counts.csv", "-k", 2, "--replicates", 1, "-o", "run", "--json")
    assert events(result)[-1]["stability"] == [None, None]
    strict = json.loads((counts / "run/consensus.json").read_text(), parse_constant=lambda c: 1 / 0)
    assert strict["stability"] == [None, None]


def test_consensus_that_did_not_converge_has_its_code(counts, monkeypatch):
    monkeypatch.setattr("sipower.cli.options.DEFAULT_MAX_ITER", 2)
    words = ("consensus", "counts.csv", "-k", 3, "--replicates", 2, "--tol", 1e-12)
    result = call(*words, "-o", "run", code=4)
    assert "Warning" not in result.stderr
    call(*words, "-o", "other", "--max-iter", 2)
