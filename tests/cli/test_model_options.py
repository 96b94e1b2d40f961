# SPDX-License-Identifier: BSD-3-Clause
"""Options of the model: the command gives the bits of `KLNMF` with the same arrays."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from cli.calls import V, call, events
from sipower import KLNMF, consensus, rank_selection
from sipower.results import load_run

RNG = np.random.default_rng(0)
SAMPLES = [f"document {i}" for i in range(60)]
FEATURES = [f"word{j}" for j in range(40)]
SAMPLE_WEIGHT, FEATURE_WEIGHT = RNG.uniform(0.5, 2, 60), RNG.uniform(0.5, 2, 40)
OFFSETS, BATCH = RNG.uniform(0.5, 2, 60), np.array(["a", "b"])[RNG.integers(0, 2, 60)]
WEIGHTS, MASK = RNG.uniform(0, 2, V.shape), RNG.random(V.shape) > 0.1
FIT = ("fit", "counts.csv", "-k", 3, "-o", "run", "--no-report")


def write(name, values):
    """Write values by name, in another order than the data have."""
    if values.ndim == 2:
        frame = pd.DataFrame(values, SAMPLES, FEATURES).iloc[::-1, ::-1]
    else:
        frame = pd.Series(values, SAMPLES if len(values) == 60 else FEATURES, name="value")
        frame = frame.sample(frac=1, random_state=0)
    frame.to_csv(name)


CASES = {
    "sample-weight": ({"sample_weight": SAMPLE_WEIGHT}, {}),
    "feature-weight": ({"feature_weight": FEATURE_WEIGHT}, {}),
    "weights": ({"weights": WEIGHTS}, {}),
    "mask": ({"mask": MASK}, {}),
    "offsets": ({"offsets": OFFSETS}, {}),
    "batch": ({"batch": BATCH}, {"batch_prior": 5.0}),
}
NUMBERS = [
    {"alpha_W": 0.02, "alpha_H": 0.01, "l1_ratio": 0.5},
    {"prior_W": 0.1, "prior_H": 0.02},
]


def assert_same_fit(run, model):
    assert run.H.tobytes() == model.components_[run.order].tobytes()
    assert run.facts["divergence"] == model.kl_divergence_


@pytest.mark.parametrize("option", CASES)
def test_permuted_files_give_the_bits_of_the_estimator(counts, option):
    observed, parameters = CASES[option]
    ((name, values),) = observed.items()
    write("values.csv", values)
    words = [w for k, v in parameters.items() for w in (f"--{k.replace('_', '-')}", v)]
    call(*FIT, f"--{option}", "values.csv", *words)
    model = KLNMF(3, random_state=0, **parameters)
    W = model.fit_transform(V, **observed)
    run = load_run("run")
    assert_same_fit(run, model)
    assert run.W.tobytes() == np.ascontiguousarray(W[:, run.order]).tobytes()
    assert list(run.facts["observed"]) == [name]


@pytest.mark.parametrize("parameters", NUMBERS)
def test_penalties_and_prior_counts(counts, parameters):
    words = [w for k, v in parameters.items() for w in (f"--{k.replace('_', '-').lower()}", v)]
    call(*FIT, *words)
    model = KLNMF(3, random_state=0, **parameters).fit(V)
    run = load_run("run")
    assert_same_fit(run, model)
    assert parameters.items() <= run.facts["parameters"].items()
    call("transform", "run", "counts.csv", "-o", "W.npz", "--no-normalise")
    with np.load("W.npz") as arrays:
        assert arrays["W"].tobytes() == run.W.tobytes()


def test_batch_effects_are_kept_and_written(counts):
    write("batch.csv", BATCH)
    call(*FIT, "--batch", "batch.csv", "--also", "csv,h5ad")
    model = KLNMF(3, random_state=0).fit(V, batch=BATCH)
    run = load_run("run")
    assert run.batches == ("a", "b")
    assert run.batch_effects.tobytes() == model.batch_effects_.tobytes()
    table = pd.read_csv("run/batch_effects.csv", index_col="name")
    np.testing.assert_allclose(table[["a", "b"]].T, model.batch_effects_)
    anndata = pytest.importorskip("anndata")
    stored = anndata.read_h5ad("run/run.h5ad").varm["nmf_batch_effects"]
    np.testing.assert_array_equal(stored.to_numpy().T, model.batch_effects_)
    call("transform", "run", "counts.csv", "-o", "W.npz", "--no-normalise", "--batch", "batch.csv")
    expected = model.transform(V, batch=BATCH)[:, run.order]
    with np.load("W.npz") as arrays:
        np.testing.assert_allclose(arrays["W"], expected, rtol=1e-6, atol=1e-9)
    call(*FIT, "--force")
    assert load_run("run").batch_effects is None
    assert not (counts / "run" / "batch_effects.csv").exists()
    refused = call("transform", "run", "counts.csv", "-o", "W.npz", "--batch", "batch.csv", code=2)
    assert "--batch needs a run that was fitted with --batch" in refused.stderr


def test_confounded_batches_are_said_with_names(counts):
    rng = np.random.default_rng(0)
    kinds = np.eye(4)[rng.integers(0, 3, 60)]
    kinds[:15] = [0, 0, 0, 1]  # only the first batch has the fourth type
    values = rng.poisson(1000 * kinds @ rng.dirichlet(np.full(40, 0.3), 4))
    pd.DataFrame(values, SAMPLES, FEATURES).to_csv("cells.csv")
    write("batch.csv", np.repeat(["sorted", "rest"], 30))
    words = ("fit", "cells.csv", "-k", 4, "-o", "run", "--no-report", "--batch", "batch.csv")
    said = " ".join(call(*words).stdout.split())
    assert "--batch: the effects of batch 'sorted', for example on features 'word" in said
    assert "fit without --batch" in said
    assert "or increase --batch-prior" in said


def test_transform_takes_masks_and_weights_of_the_file(counts):
    """In the order of the file, whose features are not those of the run."""
    call(*FIT)
    columns = RNG.permutation(40)[:30]
    frame = pd.DataFrame(V, SAMPLES, FEATURES).iloc[:20, columns].assign(new=3)
    frame.to_csv("new.csv")
    weights = pd.DataFrame(RNG.uniform(0, 2, frame.shape), frame.index, frame.columns)
    mask = pd.DataFrame(RNG.random(frame.shape) > 0.2, frame.index, frame.columns)
    weights.iloc[::-1].to_csv("w.csv")
    mask.iloc[:, ::-1].to_csv("m.csv")
    pd.Series(OFFSETS, SAMPLES, name="size").to_csv("s.csv")
    options = ("--weights", "w.csv", "--mask", "m.csv", "--offsets", "s.csv")
    said = call("transform", "run", "new.csv", "-o", "W.npz", "--no-normalise", *options).stdout
    assert "40 names are not among the samples of the data, such as 'document 20'" in said
    full, seen = np.ones((20, 40)), np.zeros((20, 40), bool)
    full[:, columns], seen[:, columns] = weights.iloc[:, :-1], mask.iloc[:, :-1]
    model = KLNMF(3, random_state=0).fit(V)
    own = model.transform(V[:20], weights=full, mask=seen, offsets=OFFSETS[:20])
    with np.load("W.npz") as arrays:
        np.testing.assert_allclose(arrays["W"], own[:, load_run("run").order], rtol=1e-6)


@pytest.mark.parametrize("option", ["mask", "weights", "batch"])
def test_a_run_resumes_to_the_same_bits_and_refuses_other_values(counts, option):
    ((_, values),) = CASES[option][0].items()
    write("values.csv", values)
    words = (*FIT, "--tol", 1e-8, f"--{option}", "values.csv", "--resume")
    call(*words, "--max-iter", 3, "--dry-run")
    assert not (counts / "run").exists()
    call(*words, "--max-iter", 3)
    other = values.copy()
    other[0] = np.roll(other[0], 3) if values.ndim == 2 else np.setdiff1d(values, other[0])[0]
    write("other.csv", other)
    changed = tuple("other.csv" if w == "values.csv" else w for w in words)
    refused = call(*changed, code=2).stderr
    assert f"holds a run already, which differs in --{option}: " in refused
    (counts / "run" / "run.json").unlink()  # killed: only the checkpoint is there
    assert f"is a checkpoint of another --{option} " in call(*changed, code=2).stderr
    assert f"is a checkpoint of another --{option} " in call(*FIT, "--tol", 1e-8, "--resume",
                                                            code=2).stderr  # fmt: skip
    call(*words)
    model = KLNMF(3, tol=1e-8, random_state=0).fit(V, **{option: values})
    assert_same_fit(load_run("run"), model)


def test_columns_of_an_h5ad_file(tmp_path, monkeypatch):
    anndata = pytest.importorskip("anndata")
    monkeypatch.chdir(tmp_path)
    cells = anndata.AnnData(V.astype(np.float32))
    cells.obs["donor"] = pd.Categorical(BATCH)
    cells.obs["size_factor"] = OFFSETS
    cells.var["panel"] = np.arange(40) % 5 > 0
    cells.write_h5ad("cells.h5ad")
    fit = ("fit", "cells.h5ad", "-k", 3, "-o", "run", "--no-report")
    call(*fit, "--batch", "donor", "--offsets", "size_factor", "--mask", "panel")
    model = KLNMF(3, random_state=0)
    model.fit(
        V.astype(np.float32), batch=BATCH, offsets=OFFSETS, mask=cells.var["panel"].to_numpy()
    )
    assert_same_fit(load_run("run"), model)
    refused = call(*fit, "--force", "--batch", "doner", code=2).stderr
    assert "--batch: cells.h5ad has no column 'doner' in obs, which has: donor, size_factor" in (
        refused
    )


def test_stores_take_masks(counts):
    write("mask.csv", MASK)
    call("convert", "counts.csv", "-o", "counts.sipower")
    call("fit", "counts.sipower", *FIT[2:], "--mask", "mask.csv")
    model = KLNMF(3, random_state=0).fit(csr_array(V), mask=MASK)
    assert_same_fit(load_run("run"), model)


def test_rank_and_consensus_take_them_too(counts):
    pytest.importorskip("matplotlib")
    write("mask.csv", MASK)
    write("batch.csv", BATCH)
    call("rank", "counts.csv", "-k", "2,3", "-o", "ranks", "--replicates", 2, "--mask", "mask.csv")
    model = KLNMF(init="random", tol=1e-2, random_state=0, dtype="float32", max_iter=500)
    expected = rank_selection(V, [2, 3], model, replicates=2, mask=MASK)
    found = json.loads((counts / "ranks" / "rank.json").read_text())
    np.testing.assert_array_equal(found["deviance"], expected.deviance)
    words = ("consensus", "counts.csv", "-k", 3, "-o", "many", "--replicates", 2)
    call(*words, "--batch", "batch.csv")
    result = consensus(V, KLNMF(3, random_state=0), replicates=2, batch=BATCH)
    run = load_run("many")
    assert run.H.tobytes() == result.H[run.order].tobytes()
    assert run.batch_effects.tobytes() == result.batch_effects.tobytes()
    assert "holds fits of another task" in call(*words, code=2).stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--mask", "none.csv"), "--mask: none.csv does not exist"),
        (("--batch", "donor"), "--batch: donor is not a file; only AnnData files have columns"),
        (("--offsets", "zero.csv"), "--offsets must be positive, got 0 for sample 0"),
        (("--weights", "narrow.csv"), "--weights: narrow.csv lacks the feature 'word39'"),
        (("--sample-weight", "few.csv"), "--sample-weight: few.csv lacks the sample 'document 0'"),
        (("--batch", "labels.csv", "--solver", "mu"), "--batch needs --solver auto, got 'mu'"),
        (("--batch", "gap.csv"), "--batch: gap.csv has no label for sample 'document 3'"),
        (("--fixed", "counts.csv"), "--fixed must have at most --components 3 rows, got 60"),
        (("--fixed", "."), "--fixed: . is not a run of sipower: it has no run.json"),
        (("--guides", "g.json"), "--guides: no feature of 'G' is in the data (word99)"),
        (("--guides", "bad.gmt"), "--guides: bad.gmt, line 1, must have a name"),
        (("--guide-strength", 0), "--guide-strength must be a float in the range (0.0, inf)"),
        (("--prior-w", 1, "--alpha-w", 1), "cannot be combined with --alpha-w and --alpha-h"),
    ],
)
def test_what_cannot_be_used_is_one_sentence_with_the_option(counts, words, message):
    write("zero.csv", np.r_[0.0, OFFSETS[1:]])
    pd.DataFrame(WEIGHTS[:, :39], SAMPLES, FEATURES[:39]).to_csv("narrow.csv")
    pd.Series(OFFSETS[1:], SAMPLES[1:], name="w").to_csv("few.csv")
    write("labels.csv", BATCH)
    pd.Series(np.where(np.arange(60) == 3, "", BATCH), SAMPLES, name="b").to_csv("gap.csv")
    (counts / "g.json").write_text('{"G": ["word99"]}')
    (counts / "bad.gmt").write_text("G\n")
    assert message in call(*FIT, *words, code=2).stderr
    assert not (counts / "run").exists()


def test_values_by_order_where_the_data_have_no_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("counts.npy", V)
    np.save("size.npy", OFFSETS)
    np.save("mask.npy", MASK)
    result = call("fit", "counts.npy", "-k", 3, "-o", "run", "--no-report", "--json",
                  "--offsets", "size.npy", "--mask", "mask.npy")  # fmt: skip
    assert events(result)[-1]["event"] == "done"
    model = KLNMF(3, random_state=0).fit(V, offsets=OFFSETS, mask=MASK)
    assert_same_fit(load_run("run"), model)


@pytest.mark.parametrize("option", ["offsets", "mask", "weights", "feature-weight", "fixed"])
def test_names_beside_data_without_names_are_refused(tmp_path, monkeypatch, option):
    monkeypatch.chdir(tmp_path)
    np.save("counts.npy", V)
    values = {
        "offsets": OFFSETS,
        "mask": MASK,
        "weights": WEIGHTS,
        "feature-weight": FEATURE_WEIGHT,
    }
    if option in values:
        write("values.csv", values[option])
    else:
        pd.DataFrame(V[:1] + 1.0, ["growth"], FEATURES).to_csv("values.csv")
    words = ("fit", "counts.npy", "-k", 3, "-o", "run", "--no-report", f"--{option}", "values.csv")
    error = call(*words, code=2).stderr
    assert f"--{option}: values.csv has names of " in error
    assert "but the data have none: pass data with names, or " in error
