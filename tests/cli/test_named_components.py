# SPDX-License-Identifier: BSD-3-Clause
"""Known and guided components: their names stay with them in every file and picture."""

import json

import numpy as np
import pandas as pd
import pytest

from cli.calls import V, call, events
from sipower import KLNMF, pl
from sipower.results import Run, load_run, save_run
from sipower.results.describe import describe

FEATURES = [f"word{j}" for j in range(40)]
FIT = ("fit", "counts.csv", "-k", 3, "-o", "run", "--no-report")
TRUTH = KLNMF(3, tol=1e-6, random_state=0).fit(V).components_
TOP = [[FEATURES[j] for j in np.argsort(-row)[:4]] for row in TRUTH]
GUIDES = {"plants": TOP[2], "animals": TOP[0]}
FRAME = pd.DataFrame(V, [f"document {i}" for i in range(60)], FEATURES)


def test_a_catalogue_in_another_order_gives_the_bits_of_the_estimator(counts):
    known = pd.DataFrame(TRUTH[[1, 2]], ["SBS5", "SBS1"], FEATURES)
    known.iloc[:, ::-1].T.to_csv("catalogue.tsv", sep="\t", index_label="Type")
    call(*FIT, "--fixed", "catalogue.tsv", "--also", "csv")
    model = KLNMF(3, components_fixed=known, random_state=0).fit(FRAME)
    run = load_run("run")
    assert run.H.tobytes() == model.components_[run.order].tobytes()
    expected = [("SBS5", "SBS1", None)[k] for k in run.order]
    assert list(run.component_names) == expected
    header = list(pd.read_csv("run/H.csv", index_col="name"))
    assert header == [n or f"component {k}" for k, n in enumerate(expected, 1)]
    assert list(pd.read_csv("run/W.csv", index_col="name")) == header
    profiles = pd.read_csv("run/H.csv", index_col="name")
    np.testing.assert_allclose(profiles["SBS1"], TRUTH[2] / TRUTH[2].sum())
    call("transform", "run", "counts.csv", "-o", "W.csv")
    assert list(pd.read_csv("W.csv", index_col="name")) == header


def test_the_components_of_a_run_can_be_fixed_and_keep_their_origin(counts):
    call(*FIT)
    call("fit", "counts.csv", "-k", 4, "-o", "more", "--no-report", "--fixed", "run")
    old, new = load_run("run"), load_run("more")
    at = {name: k for k, name in enumerate(new.component_names)}
    for k in range(3):
        assert new.H[at[f"run component {k + 1}"]].tobytes() == old.H[k].tobytes()
    assert None in at
    refused = call("fit", "counts.csv", "-k", 4, "-o", "more", "--no-report", "--resume", code=2)
    assert "which differs in --fixed: " in refused.stderr


def test_guides_name_their_components(counts):
    (counts / "g.json").write_text(json.dumps(GUIDES | {"plants": [*TOP[2], "word99"]}))
    result = call(*FIT, "--guides", "g.json", "--guide-strength", 50, "--also", "csv", "--json")
    sentences = [e["text"] for e in events(result) if e["event"] == "guide"]
    assert [s.split(":")[0] for s in sentences] == ["Guide 'plants'", "Guide 'animals'"]
    warned = [e["text"] for e in events(result) if e["event"] == "warning"]
    assert warned == [
        "--guides: 1 of 5 features of 'plants' are not in the data: word99."
    ]  # the sentences about all guides are events of their own
    model = KLNMF(3, guides=GUIDES, guide_strength=50.0, random_state=0).fit(FRAME)
    run = load_run("run")
    assert run.H.tobytes() == model.components_[run.order].tobytes()
    names = [("plants", "animals", None)[k] for k in run.order]
    assert list(run.component_names) == names
    assert run.facts["guides"] == sentences
    profiles = pd.read_csv("run/H.csv", index_col="name")
    for name, features in GUIDES.items():
        assert (
            profiles.loc[features, name].sum()
            > profiles.drop(columns=name).loc[features].sum(axis=0).max()
        )
    (counts / "g.json").write_text(json.dumps(GUIDES))
    words = (*FIT, "--guides", "g.json", "--guide-strength", 50, "--resume")
    assert "which differs in --guides: " in call(*words, code=2).stderr


@pytest.mark.parametrize("kind", ["guides", "fixed"])
def test_a_killed_guided_fit_resumes_to_the_same_bits(counts, kind):
    if kind == "guides":
        (counts / "known.json").write_text(json.dumps(GUIDES))
        (counts / "other.json").write_text(json.dumps({"plants": TOP[0], "animals": TOP[2]}))
        known, other, parameters = "known.json", "other.json", {"guides": GUIDES}
    else:
        table = pd.DataFrame(TRUTH[:2], ["a", "b"], FEATURES)
        table.to_csv("known.csv")
        table.iloc[::-1].to_csv("other.csv")
        known, other, parameters = "known.csv", "other.csv", {"components_fixed": table}
    words = (*FIT, "--tol", 1e-7, "--resume", f"--{kind}")
    call(*words, known, "--max-iter", 2)
    (counts / "run" / "run.json").unlink()
    assert f"is a checkpoint of another --{kind} " in call(*words, other, code=2).stderr
    call(*words, known)
    model = KLNMF(3, tol=1e-7, random_state=0, **parameters).fit(FRAME)
    run = load_run("run")
    assert run.H.tobytes() == model.components_[run.order].tobytes()
    call("transform", "run", "counts.csv", "-o", "W.npz", "--no-normalise")
    with np.load("W.npz") as arrays:
        assert arrays["W"].tobytes() == run.W.tobytes()


def test_rank_and_consensus_keep_the_guided_components(counts):
    pytest.importorskip("matplotlib")
    pytest.importorskip("plotly")
    (counts / "g.json").write_text(json.dumps(GUIDES))
    words = ("--guides", "g.json", "--replicates", 2)
    call("rank", "counts.csv", "-k", "2:4", "-o", "ranks", *words)
    assert (counts / "ranks" / "rank.json").exists()
    refused = call("rank", "counts.csv", "-k", "1:3", "-o", "few", *words, code=2).stderr
    assert "-k must be at least 2, the number of known and guided components, got 1" in refused
    said = call("consensus", "counts.csv", "-k", 3, "-o", "many", *words).stdout
    assert "Guide 'plants': " in said
    names = load_run("many").component_names
    assert sorted(map(str, names)) == ["None", "animals", "plants"]
    assert "plants" in (counts / "many" / "report.html").read_text()


def make_run(**parts):
    W, H = np.diag([1.0, 3.0, 2.0]), np.eye(3, 5) + 0.1
    return Run(W, H, component_names=["small", "large", None], **parts)


def test_names_are_sorted_with_their_components(tmp_path):
    run = make_run()
    assert run.component_names == ("large", None, "small")
    assert run.component_labels() == ("large", "component 2", "small")
    loaded = load_run(save_run(run, tmp_path / "run"))
    assert loaded.component_names == run.component_names
    assert run.normalised().component_names == run.component_names
    assert describe(run).components == ("large", "2", "small")
    for kind in ("components", "batches"):  # as runs of older versions
        names = json.loads((tmp_path / "run" / "names.json").read_text())
        names.pop(kind, None)
        (tmp_path / "run" / "names.json").write_text(json.dumps(names))
    assert load_run(tmp_path / "run").component_names is None


def test_equal_names_are_told_apart():
    twice = Run(np.eye(3), np.eye(3), component_names=["component 2", None, "component 2"])
    assert len(set(twice.component_labels())) == 3


def test_plots_and_reports_name_components(tmp_path):
    figure = pytest.importorskip("matplotlib.figure")
    run = make_run()
    ax = pl.structure(run, figure.Figure().add_subplot())
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert sorted(legend) == ["2", "large", "small"]
    axes = figure.Figure().add_subplot()
    assert pl.top_features(run, "small", axes).get_title().startswith("small: ")
    assert pl.top_features(run, 2, axes).get_title().startswith("component 2: ")
    with pytest.raises(ValueError, match=r"`component` must be .* or one of 'large', 'small'"):
        pl.top_features(run, "medium", axes)
    pytest.importorskip("plotly")
    pytest.importorskip("jinja2")
    from sipower.report import write_report  # noqa: PLC0415 - optional

    page = write_report(run, tmp_path / "report.html").read_text()
    assert '"labels":["large","2","small"]' in page
    assert "<bdi>large</bdi>" in page


def test_an_anndata_copy_has_the_names(counts):
    anndata = pytest.importorskip("anndata")
    pd.DataFrame(TRUTH[[1]], ["SBS5"], FEATURES).to_csv("one.csv")
    call(*FIT, "--fixed", "one.csv", "--also", "h5ad")
    cells, run = anndata.read_h5ad("run/run.h5ad"), load_run("run")
    assert list(cells.uns["nmf"]["components"]) == list(run.component_labels())
    assert Run.from_anndata(cells).component_names == run.component_names
