# SPDX-License-Identifier: BSD-3-Clause
"""The cases of tools/net.py: one for every public function, command and group of options.

A case takes the `Library`, by which it names public functions wherever a version keeps them, works
in an empty folder, and returns what is to stay the same. Its inputs lie in ../inputs; they are
drawn by NumPy, so that no change of the library changes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from net_library import Library

INPUTS = Path("..") / "inputs"
SAMPLES, FEATURES, RANK = 60, 40, 3
WORDS = ("gene", "cell", "count", "matrix", "topic", "sample", "feature", "model", "noise")


Case = Callable[[Library], Any]
CASES: dict[str, Case] = {}


def case(function: Case) -> Case:
    """Register a case under the name of the function."""
    CASES[function.__name__.replace("_", " ")] = function
    return function


# ---- the inputs ------------------------------------------------------------------------------


@cache
def counts() -> np.ndarray:
    """Return counts of three topics, four batches and no empty rows, (samples, features)."""
    rng = np.random.default_rng(1)
    W = rng.gamma(0.3, 1.0, (SAMPLES, RANK)) + 0.01
    H = rng.dirichlet(np.full(FEATURES, 0.2), RANK)
    W *= rng.uniform(60, 200, (SAMPLES, 1)) / W.sum(axis=1, keepdims=True)
    V = rng.poisson(W @ H).astype(np.float64)
    V[:, V.sum(axis=0) == 0] = 1
    return V


def sparse() -> sp.csr_array:
    """Return the counts as a sparse array."""
    return sp.csr_array(counts())


def catalogue() -> np.ndarray:
    """Return four profiles that sum to 1, (components, features)."""
    return np.random.default_rng(2).dirichlet(np.full(FEATURES, 0.3), 4)


def labels(kind: str, n: int) -> list[str]:
    """Return names of samples or features."""
    return [f"{kind}{place}" for place in range(1, n + 1)]


def frame() -> Any:
    """Return the counts as a data frame with names."""
    import pandas as pd  # noqa: PLC0415 - optional

    return pd.DataFrame(counts(), labels("s", SAMPLES), labels("f", FEATURES))


def batches() -> list[str]:
    """Return a label for every sample."""
    return ["ab"[place % 2] for place in range(SAMPLES)]


def cells() -> Any:
    """Return the counts as AnnData with columns that say how they were observed."""
    import anndata  # noqa: PLC0415 - optional

    adata = anndata.AnnData(sp.csr_matrix(counts()))
    adata.obs_names, adata.var_names = labels("s", SAMPLES), labels("f", FEATURES)
    adata.layers["counts"] = adata.X.copy()
    adata.obs["batch"] = batches()
    adata.obs["weight"] = np.linspace(0.5, 2, SAMPLES)
    adata.var["panel"] = np.arange(FEATURES) % 5 > 0
    return adata


def write_inputs(folder: Path) -> None:
    """Write the files that cases read."""
    import pandas as pd  # noqa: PLC0415 - optional
    from scipy.io import mmwrite  # noqa: PLC0415

    folder.mkdir()
    table = frame()
    table.to_csv(folder / "counts.csv")
    table.iloc[:20].to_csv(folder / "first.csv")
    table.iloc[20:].to_csv(folder / "second.csv")
    table.T.to_csv(folder / "transposed.csv")
    mmwrite(folder / "counts.mtx", sp.coo_array(counts()))
    cells().write_h5ad(folder / "cells.h5ad")
    pd.DataFrame(catalogue(), labels("known", 4), table.columns).to_csv(folder / "catalogue.csv")
    pd.DataFrame(catalogue()[:1], ["known1"], table.columns).to_csv(folder / "fixed.csv")
    columns = {
        "weights": np.linspace(0.5, 2, SAMPLES), "sizes": np.linspace(0.2, 3, SAMPLES),
        "batches": batches(), "groups": ["xyz"[place // 20] for place in range(SAMPLES)],
    }  # fmt: skip
    for name, values in columns.items():
        pd.Series(values, table.index, name="value").to_csv(folder / f"{name}.csv")
    panel = pd.Series((np.arange(FEATURES) % 5 > 0).astype(int), table.columns, name="value")
    panel.to_csv(folder / "panel.csv")
    guides = {"first": ["f1", "f2", "f3"], "second": ["f10", "f11"]}
    (folder / "guides.json").write_text(json.dumps(guides), encoding="utf-8")
    rng = np.random.default_rng(3)
    texts = [" ".join(rng.choice(WORDS, 12)) + " the of" for _ in range(30)]
    (folder / "texts").mkdir()
    for place, text in enumerate(texts):
        (folder / "texts" / f"{place:02}.txt").write_text(text, encoding="utf-8")
    pd.DataFrame({"text": texts}, labels("t", 30)).to_csv(folder / "texts.csv")


# ---- commands --------------------------------------------------------------------------------

# Every case runs its lines one after another in one folder, whose files are digested too.
FIT = "fit ../inputs/counts.csv -k 3 --out run --no-report"
READ = "--layer counts"
OBSERVED = (
    "--sample-weight ../inputs/weights.csv --feature-weight ../inputs/panel.csv "
    "--offsets ../inputs/sizes.csv --mask ../inputs/panel.csv"
)
RANKS = "rank ../inputs/counts.csv -k 2,3 --replicates 2 --out ranks"
CONSENSUS = "consensus ../inputs/counts.csv -k 3 --replicates 3 --out runs"
DIFFERENTIAL = "differential run ../inputs/counts.csv --no-check"
COMMANDS: dict[str, tuple[str, ...]] = {
    "fit": ("fit ../inputs/counts.csv -k 3 --out run --json --image-shape 8x5 --exclude ^f1",),
    "fit, tables": (f"{FIT} --also csv,parquet,h5ad,topics --spectra",),
    "fit, raw units": (f"{FIT} --also csv --no-normalise",),
    "fit, several files": ("fit ../inputs/first.csv ../inputs/second.csv -k 3 --out run",),
    "fit, reading": (
        "fit ../inputs/transposed.csv --transpose -k 3 --out a --no-report",
        "fit ../inputs/cells.h5ad --layer counts -k 3 --out b --no-report --also h5ad",
        "fit ../inputs/texts --stop-words english --min-df 2 -k 2 --out c --no-report",
        "fit ../inputs/texts.csv --text-column text -k 2 --out d --no-report",
    ),
    "fit, memory limit": (
        "fit ../inputs/counts.mtx -k 3 --out a --memory-limit 100MB --cache cache --no-report",
        "fit ../inputs/cells.h5ad -k 3 --out b --memory-limit 100MB --no-cache --no-report",
    ),
    "fit, observed": (
        f"{FIT} {OBSERVED}",
        "fit ../inputs/counts.csv -k 3 --out b --no-report --batch ../inputs/batches.csv",
    ),
    "fit, model": (
        f"{FIT} --guides ../inputs/guides.json --guide-strength 50",
        "fit ../inputs/counts.csv -k 4 --out b --no-report --fixed ../inputs/fixed.csv",
        "fit ../inputs/counts.csv -k 3 --out c --no-report --alpha-w 0.1 --alpha-h 0.2 "
        "--l1-ratio 0.5",
        "fit ../inputs/counts.csv -k 3 --out d --no-report --prior-w 0.1 --prior-h 0.2",
    ),
    "fit, solver": (
        f"{FIT} --solver s-sci-pi --init nndsvda --seed 3 --tol 1e-4 --dtype float32",
        "fit ../inputs/counts.csv -k 3 --out b --no-report --max-iter 2 --no-verify --tol 0",
        "fit ../inputs/counts.csv -k 3 --out c --no-report --init random --n-init 2 --threads 1",
        "fit ../inputs/counts.csv -k 3 --out d --dry-run",
    ),
    "fit, checkpoint": (
        f"{FIT} --checkpoint state.npz --checkpoint-every 0 --max-iter 3 --tol 0 --solver mu",
        f"{FIT} --checkpoint state.npz --resume --max-iter 5 --tol 0 --solver mu",
    ),
    "fit, Dask": ("fit ../inputs/counts.csv -k 3 --out run --no-report --workers 1",),
    "transform": (
        FIT,
        "transform run ../inputs/first.csv --out W.csv --json",
        "transform run ../inputs/transposed.csv --transpose --out V.npz --threads 1",
        f"transform run ../inputs/counts.csv --out U.parquet --no-normalise "
        f"{OBSERVED.partition('--feature')[1]}{OBSERVED.partition('--feature')[2]}",
    ),
    "report": (FIT, "report run --exclude ^f1 --out page.html"),
    "differential": (
        FIT,
        "differential run ../inputs/counts.csv --json --threads 1",
        f"{DIFFERENTIAL} --contrast pairwise --level 0.9 --out pairs.csv --no-report",
        "fit ../inputs/counts.csv -k 3 --out b --no-report --sample-weight ../inputs/weights.csv",
        "differential b ../inputs/counts.csv --sample-weight ../inputs/weights.csv --no-report",
        "differential run ../inputs/transposed.csv --transpose --out read.parquet --no-report",
    ),
    "rank": (f"{RANKS} --json --threads 1",),
    "rank, reading and solver": (
        "rank ../inputs/cells.h5ad --layer counts -k 2,3 --replicates 2 --out ranks --seed 2",
    ),
    "rank, observed": (f"{RANKS} {OBSERVED.partition(' --feature')[0]}",),
    "rank, model": (f"{RANKS} --prior-h 0.1",),
    "rank, Dask": (f"{RANKS} --workers 1",),
    "consensus": (f"{CONSENSUS} --json --spectra --also csv",),
    "consensus, groups": (f"{CONSENSUS} --groups ../inputs/groups.csv --min-groups 2",),
    "consensus, reading and solver": (
        "consensus ../inputs/cells.h5ad --layer counts -k 3 --replicates 2 --out runs "
        "--seed 2 --threads 1",
    ),
    "consensus, observed and model": (
        f"{CONSENSUS} --batch ../inputs/batches.csv",
        f"{CONSENSUS} --guides ../inputs/guides.json --force",
    ),
    "consensus, Dask": (f"{CONSENSUS} --workers 1",),
    "verify": (
        FIT,
        "verify run ../inputs/counts.csv --json",
        "!verify run ../inputs/first.csv",
        "fit ../inputs/transposed.csv --transpose -k 3 --out b --no-report --sample-weight "
        "../inputs/weights.csv",
        "verify b ../inputs/transposed.csv --transpose --sample-weight ../inputs/weights.csv "
        "--threads 1",
    ),
    "refit": (
        "refit ../inputs/catalogue.csv ../inputs/counts.csv --out exposures.csv --json",
        "refit ../inputs/catalogue.csv ../inputs/transposed.csv --transpose --all --no-intervals "
        "--out all.npz --threads 1",
    ),
    "compare": (FIT, "compare run ../inputs/catalogue.csv --out names.csv --threshold 0.5"),
    "convert": (
        "convert ../inputs/counts.mtx --out counts.sipower",
        "convert ../inputs/counts.mtx --transpose --rows-only --out rows.sipower --json",
        "fit counts.sipower -k 3 --out run --no-report",
    ),
    "cache": (
        "fit ../inputs/counts.mtx -k 2 --out run --no-report --memory-limit 100MB --cache cache",
        "cache clear ../inputs/counts.mtx --cache cache --yes",
        "cache list --cache cache",
    ),
    "demo": ("demo -k 2 --out run",),
    "bench": ("bench ../inputs/transposed.csv --transpose -k 2 --max-time 0 --seed 1 --threads 1",),
    "info": (FIT, "info run", "info run/factors.npz --json"),
    "datasets": ("datasets",),
    "reproduce": ("reproduce table1 --quick --out paper",),
}


def run_lines(lines: tuple[str, ...]) -> Case:
    """Return the case that runs commands one after another."""
    return lambda lib: {line.partition(" ../")[0]: lib.call(line) for line in lines}


CASES |= {f"command {name}": run_lines(lines) for name, lines in COMMANDS.items()}


# ---- fits ------------------------------------------------------------------------------------


@contextmanager
def open_client() -> Iterator[Any]:
    """Start one Dask worker in this process."""
    from distributed import Client, LocalCluster  # noqa: PLC0415 - optional

    settings = {"n_workers": 1, "threads_per_worker": 1, "processes": False}
    with LocalCluster(**settings, dashboard_address=":0") as cluster, Client(cluster) as client:
        yield client


def fit(lib: Library, **parameters: Any) -> tuple[Any, np.ndarray]:
    """Return a fitted model and W."""
    model = lib.KLNMF(RANK, random_state=0, **parameters)
    return model, model.fit_transform(counts())


@case
def KLNMF(lib: Library) -> Any:  # noqa: N802 - the name of the case
    model, W = fit(lib)
    new = counts()[:9] + 1
    return {
        "W": W, "model": model, "new": model.transform(new), "score": model.score(new),
        "back": model.inverse_transform(W[:3]), "names": model.get_feature_names_out(),
    }  # fmt: skip


@case
def KLNMF_inputs(lib: Library) -> Any:  # noqa: N802
    V = counts()
    inputs = {"sparse": sparse(), "float32": V.astype(np.float32), "uint16": V.astype(np.uint16),
              "frame": frame()}  # fmt: skip
    results = {}
    for name, X in inputs.items():
        model = lib.KLNMF(RANK, random_state=1)
        results[name] = {"W": model.fit_transform(X), "model": model}
    return results


@case
def KLNMF_model(lib: Library) -> Any:  # noqa: N802
    weights = np.linspace(0.5, 2, SAMPLES)
    rng = np.random.default_rng(4)
    arguments = {
        "sample_weight": weights, "feature_weight": np.linspace(1, 2, FEATURES),
        "weights": rng.uniform(0.5, 1, (SAMPLES, FEATURES)), "offsets": weights,
        "mask": rng.random((SAMPLES, FEATURES)) < 0.9, "batch": np.array(batches()),
    }  # fmt: skip
    results = {}
    for name, value in arguments.items():
        model = lib.KLNMF(RANK, random_state=0)
        results[name] = {"W": model.fit_transform(counts(), **{name: value}), "model": model}
    parameters: list[dict[str, Any]] = [
        {"alpha_W": 0.1, "alpha_H": 0.05, "l1_ratio": 0.5},
        {"prior_W": 0.1, "prior_H": 0.2},
        {"components_fixed": catalogue()[:1]},
        {"guides": {"a": [0, 1, 2], "b": [10, 11]}, "guide_strength": 20.0},
        {"init": "nndsvda", "n_init": 1},
        {"n_init": 3, "init": "random"},
    ]
    for given in parameters:
        model, W = fit(lib, **given)
        results[", ".join(given)] = {"W": W, "model": model}
    return results


@case
def partial_fit(lib: Library) -> Any:
    model = lib.KLNMF(RANK, random_state=0)
    for begin in range(0, SAMPLES, 20):
        model.partial_fit(counts()[begin : begin + 20])
    return model


@case
def LpPCA(lib: Library) -> Any:  # noqa: N802
    model = lib.LpPCA(2, p=1.5, random_state=0)
    return {"scores": model.fit_transform(counts()), "model": model}


@case
def non_negative_factorization(lib: Library) -> Any:
    free = lib.non_negative_factorization(counts(), n_components=RANK, random_state=0)
    known = lib.non_negative_factorization(counts(), H=catalogue(), update_H=False, n_components=4)
    return {"free": free, "known": known}


@case
def estimate(lib: Library) -> Any:
    result = lib.estimate(sparse(), lib.KLNMF(RANK))
    return {"memory": result.memory, "threads": result.threads, "kind": type(result)} | {
        "seconds are positive": result.seconds_per_round > 0, "Estimate": lib.Estimate
    }  # fmt: skip


@case
def verify(lib: Library) -> Any:
    model, W = fit(lib)
    return {"of model": lib.verify(counts(), W, model=model),
            "of pair": lib.verify(sparse(), W, model.components_)}  # fmt: skip


@case
def verification(lib: Library) -> Any:
    model, W = fit(lib)
    V, H = lib.as_matrix(counts()), model.components_.T
    statement = lib.ProblemStatement(sample_weight=np.linspace(0.5, 2, SAMPLES))
    rows = lib.check_rows(V, W, H, statement)
    return {"rows": rows, "all": lib.conclude(rows, H, statement),
            "factors": lib.verify_factors(V, W, H, statement),
            "total": lib.weighted_total(V, statement)}  # fmt: skip


@case
def dask_KLNMF(lib: Library) -> Any:  # noqa: N802
    import dask.array as da  # noqa: PLC0415 - optional

    with open_client() as client:
        model = lib.dask.KLNMF(RANK, client=client, random_state=0)
        W = model.fit_transform(da.from_array(counts(), chunks=(20, FEATURES)), gather=True)
        files = lib.dask.Files([str(INPUTS / "first.csv"), str(INPUTS / "second.csv")])
        other = lib.dask.KLNMF(RANK, client=client, random_state=0, max_iter=3).fit(files)
        new = model.transform(da.from_array(counts()[:9], chunks=(9, FEATURES))).compute()
        # Sums over chunks are added in the order in which they arrive.
        return {"W": round_numbers(W), "H": round_numbers(model.components_),
                "new": round_numbers(new), "files": round_numbers(other.components_),
                "local": type(model.to_local()).__name__, "rounds": model.n_iter_}  # fmt: skip


def round_numbers(array: Any) -> np.ndarray:
    """Round to six digits of the largest number."""
    array = np.asarray(array)
    scale = 10.0 ** (6 - np.ceil(np.log10(np.abs(array).max())))
    return np.round(array * scale) / scale


# ---- problems and solvers --------------------------------------------------------------------


@case
def solve(lib: Library) -> Any:
    A = counts() - counts().mean(axis=0)
    problem, stop = lib.PCA(A), lib.Stop(1e-8, rounds=60)
    solvers = {"sci-pi": lib.SciPi(), "s-sci-pi": lib.SSciPi(batch=0.2, epoch=10),
               "guarded": lib.Guarded(lib.SSciPi(batch=0.2, epoch=10))}  # fmt: skip
    results = {name: lib.solve(problem, solver, stop=stop, seed=1)
               for name, solver in solvers.items()}  # fmt: skip
    x = results["sci-pi"].x
    return results | {"diagnosis": lib.diagnose(problem, x), "check": lib.check_problem(problem)}


@case
def states(lib: Library) -> Any:
    problem, solver = lib.PCA(counts()), lib.SciPi()
    first = lib.solve(problem, solver, stop=lib.Stop(0, rounds=3), checkpoint="solve.npz")
    lib.save_state("state.npz", first.state)
    return {"first": first, "loaded": lib.load_state("state.npz", first.state)}


@case
def interrupted(lib: Library) -> Any:
    def interrupt(record: Any) -> None:
        if record.round == 2:
            raise KeyboardInterrupt

    try:
        lib.solve(lib.PCA(counts()), lib.SciPi(), stop=lib.Stop(0), on_round=interrupt)
    except lib.Interrupted as end:
        return end.result
    raise AssertionError("the fit was not interrupted")


@case
def problems(lib: Library) -> Any:
    V = counts()
    X = V[:, np.argsort(V.sum(axis=0))[-6:]] / 100
    stop = lib.Stop(1e-6, rounds=30)
    points = {
        "ica": lib.ICA(np.random.default_rng(5).laplace(size=(80, 4))),
        "lp": lib.LpKernelPCA(X, p=1.5, kernel="rbf", gamma=0.5),
        "mixture": lib.MixtureProportions(X + 0.1),
        "kl": lib.KLBlock(V, np.random.default_rng(6).random((FEATURES, RANK))),
        "cut": lib.BurerMonteiro(-(X.T @ X), rank=4),
    }
    results = {name: lib.solve(problem, lib.SciPi(), stop=stop, seed=2)
               for name, problem in points.items()}  # fmt: skip
    gaussian = lib.GaussianMixture(X, 2)
    return results | {
        "gaussian": lib.solve(gaussian, lib.Guarded(lib.GaussianEM()), stop=stop, seed=0),
        "proportions": lib.mixture_proportions(X + 0.1), "cut value": lib.max_cut(V.T @ V),
        "batch": points["lp"].gradient(
            results["lp"].x, points["lp"].batch(lib.Sampling(0.5), lib.Draw(1))
        ),
        "base": lib.Problem,
    }  # fmt: skip


@case
def factorizations(lib: Library) -> Any:
    problem, stop = lib.Factorization(lib.as_matrix(counts()), RANK), lib.Stop(1e-6, rounds=8)
    rules = [lib.CCD(), lib.MU(), lib.Newton(), lib.PGD(), lib.PowerSearch(), lib.SCD(),
             lib.SSciPiRule(), lib.SciPiRule(), lib.SharedNewton(), lib.Vanilla()]  # fmt: skip
    solvers = {type(rule).__name__: lib.Alternating(rule) for rule in rules}
    solvers |= {"auto": lib.Auto(), "rows": lib.RowRounds(),
                "extrapolated": lib.Extrapolated(lib.CCD())}  # fmt: skip
    solvers |= {f"named {name}": lib.make_solver(name) for name in lib.SOLVERS}
    results: dict[str, Any] = {
        name: lib.solve(problem, solver, stop=stop, seed=3) for name, solver in solvers.items()
    }
    half = lib.Half(lib.KLBlock(counts(), np.random.default_rng(6).random((FEATURES, RANK))))
    start = lib.Factors(np.full((SAMPLES, RANK), 1.0), np.full((FEATURES, RANK), 1.0))
    results["half"] = lib.solve(half, lib.OnBlock(lib.MU()), start.W, stop=stop)
    results["start"] = problem.start(0)
    return results | {"rule": lib.Rule}


# ---- data and kernels ------------------------------------------------------------------------


@case
def matrices(lib: Library) -> Any:
    V = lib.as_matrix(sparse())
    return {"sparse": V.array, "dense": lib.as_matrix(counts(), dtype=np.float32).array,
            "mass": V.column_mass, "sha256": V.sha256, "kind": isinstance(V, lib.Matrix),
            "frame": lib.as_matrix(frame()).array}  # fmt: skip


@case
def kernels(lib: Library) -> Any:
    V, rng = sparse(), np.random.default_rng(7)
    data = lib.Csr(V.indptr.astype(np.int64), V.indices.astype(np.int32), V.data, FEATURES)
    H, W = rng.random((FEATURES, RANK)), rng.random((SAMPLES, RANK))
    mass, pairs = counts().sum(axis=1), RANK * (RANK + 1) // 2
    plan = lib.EpochPlan(
        step=1.0, full_step=1.0, batch=0.3, length=3, threshold=0.01, shortest=0, scheme="vectors",
        replace=False, key=(1, 2), at_round=0, side=0,
    )  # fmt: skip
    shapes = {"sums": (FEATURES, RANK), "divergence": (SAMPLES,), "gaps": (SAMPLES,),
              "curvatures": (SAMPLES, pairs)}  # fmt: skip
    more: dict[str, dict[str, Any]] = {
        "gradient": {}, "sums": {}, "divergence": {}, "curvatures": {},
        "gaps": {"mass": mass}, "mu": {"mass": mass}, "projected_gradient": {"mass": mass},
        "power": {"mass": mass, "step": 1.0}, "power_search": {"mass": mass, "exponent": 2},
        "newton": {"mass": mass, "steps": 2}, "epoch": {"mass": mass, "plan": plan},
        "shared_newton": {"mass": mass, "correlations": np.eye(RANK)},
        "coordinate": {"mass": mass, "sweeps": 2, "order": "random", "key": (1, 2),
                       "place": (0, 0, 0, 0)},
    }  # fmt: skip
    basis, results = lib.basis(H, dense=False), {}
    for name, extra in more.items():
        out = np.zeros(shapes.get(name, (SAMPLES, RANK)))
        getattr(lib, name)(V=data, basis=basis, h=W, begin=0, end=SAMPLES, out=out, **extra)
        results[name] = out
    gap, passes, out = np.zeros(SAMPLES), np.zeros(SAMPLES), np.zeros((SAMPLES, RANK))
    lib.solve_items(V=data, basis=basis, h=W, begin=0, end=SAMPLES, out=out, mass=mass, tol=1e-6,
                    max_rounds=50, min_sampled_nonzeros=2**40, gap=gap, passes=passes)  # fmt: skip
    certified = np.zeros(SAMPLES)
    lib.certify(basis=basis, g=results["gradient"], h=W, mass=mass, out=certified)
    return results | {"solution": out, "gap": gap, "passes": passes, "certified": certified}


@case
def kernel_helpers(lib: Library) -> Any:
    p, kappa = np.zeros((4, RANK)), np.zeros(4)
    Q = np.tile(np.eye(RANK)[np.triu_indices(RANK)], (4, 1))
    done, total = [], np.zeros(3)
    lib.run_blocks(3, done.append, 1)
    lib.sum_blocks(3, lambda block, out: np.add(out, block, out=out), total, 1)
    try:
        lib.model_steps(Q, np.ones((4, RANK)), np.ones((4, RANK)), 0, 4, 3, p, kappa)
        steps: Any = (p, kappa)
    except TypeError:
        steps = "refused"
    draw = lib.Draw(3, lib.Stream.POINT)
    return {
        "model_steps": steps, "run_blocks": sorted(done), "sum_blocks": total,
        "contiguous": lib.as_contiguous(counts().T), "batch_size": lib.batch_size(0.1, 33),
        "uniform": draw.uniform(5), "batch": draw.batch(20, 5), "poisson": draw.poisson(np.ones(5)),
        "threads": lib.count_threads(1), "set": lib.instruction_set(),
        "dense": lib.Dense(counts()).row_sums(),
    }  # fmt: skip


@case
def data_sets(lib: Library) -> Any:
    corpus = lib.docstrings()
    V, rows, columns = lib.without_rare(sparse(), 30)
    return {
        "poisson": lib.poisson(30, 20, 0.3, seed=1), "topics": lib.poisson_topics(30, 20, 3),
        "dispersed": lib.negative_binomial_topics(30, 20, 3), "frequent": (V, rows, columns),
        "corpus": (corpus.counts.shape, corpus.words[:50]), "Corpus": lib.Corpus,
        "present": lib.is_present("pois1"), "pois1": lib.load("pois1").sum(),
        "entries": {name: entry.facts() for name, entry in lib.CATALOGUE.items()},
        "Entry": lib.Entry, "vocabulary": describe_absence(lib),
    }  # fmt: skip


def describe_absence(lib: Library) -> str:
    """Return what the error says where the files of a data set are absent."""
    try:
        return str(lib.vocabulary("kos"))
    except OSError as error:
        return str(error)


# ---- files -----------------------------------------------------------------------------------


@case
def readers(lib: Library) -> Any:
    results: dict[str, Any] = {
        name: lib.read(INPUTS / name) for name in ("counts.csv", "counts.mtx", "cells.h5ad")
    }
    results["folder"] = lib.read(INPUTS / "texts", text_options={"min_df": 2})
    results["transposed"] = lib.read(INPUTS / "transposed.csv", transpose=True)
    results["is a table"] = isinstance(results["transposed"], lib.Table)
    results["texts"] = lib.read_texts(["sun moon", "moon star"], names=["x", "y"], min_df=1)
    results["guides"] = lib.read_guides(INPUTS / "guides.json")
    results["components"] = lib.read_components(INPUTS / "catalogue.csv")
    lib.write_components("components.csv", frame().iloc[:2])
    Path("bad.csv").write_text("name,a,b\nx,1,-2\n", encoding="utf-8")
    for name in ("bad.csv", "missing.csv"):
        try:
            lib.read(name)
        except (lib.ReadError, OSError) as error:
            results[name] = error
    return results


@case
def stores(lib: Library) -> Any:
    remarks = lib.convert(INPUTS / "counts.mtx", "converted")
    lib.write_store([sparse()[:30], sparse()[30:]], "written", samples=labels("s", SAMPLES))
    V = lib.open_on_disk("written")
    H = lib.KLNMF(RANK, random_state=0, max_iter=3).fit(V).components_
    direct = lib.open_on_disk(INPUTS / "cells.h5ad", cache=False)
    return {"remarks": remarks, "stored": V, "H": H, "direct": direct}


@case
def runs(lib: Library) -> Any:
    model, W = fit(lib)
    run = lib.Run.from_model(model, W, samples=labels("s", SAMPLES))
    lib.save_run(run, "run")
    return {"run": run, "loaded": lib.load_run("run"), "normalised": run.normalised(),
            "from AnnData": run_of_cells(lib)}  # fmt: skip


def run_of_cells(lib: Library) -> Any:
    """Return the run that AnnData stores."""
    adata = cells()
    lib.tl.nmf(adata, RANK)
    return lib.Run.from_anndata(adata)


@case
def report(lib: Library) -> Any:
    model, W = fit(lib)
    run = lib.Run.from_model(model, W)
    lib.write_report(run, "report.html", differences=lib.differential(sparse(), run.W))
    return {}


# ---- analysis --------------------------------------------------------------------------------


@case
def describe_fit(lib: Library) -> Any:
    model, W = fit(lib)
    description = lib.describe(model, W=W)
    return {"description": description, "features": description.top_features(5)}


@case
def differential(lib: Library) -> Any:
    model, _ = fit(lib)
    differences = lib.differential(sparse(), model)
    assert isinstance(differences, lib.Differences)
    assert isinstance(differences.replication, lib.Replication)
    return {
        "differences": differences,
        "frame": differences.to_frame(),
        "pairwise": lib.differential(counts(), model, contrast="pairwise", check=False),
    }


@case
def bootstrap(lib: Library) -> Any:
    model, _ = fit(lib)
    result = lib.bootstrap(sparse(), model, 6)
    return {"result": result, "frames": result.to_frames(), "summary": result.summary()}


@case
def standard_errors(lib: Library) -> Any:
    model, W = fit(lib)
    return lib.standard_errors(counts(), model, W)


@case
def spectra(lib: Library) -> Any:
    model, W = fit(lib)
    result = lib.spectra(counts(), model, W=W)
    return {"result": result, "frames": result.to_frames(), "Spectra": lib.Spectra}


@case
def topic_quality(lib: Library) -> Any:
    model, W = fit(lib)
    result = lib.topic_quality(sparse(), model, W)
    return {"result": result, "frame": result.to_frame(), "TopicQuality": lib.TopicQuality}


@case
def refit(lib: Library) -> Any:
    some = lib.refit(counts(), catalogue())
    return {"sparse": some, "frames": some.to_frames(),
            "all": lib.refit(counts(), catalogue(), sparse=False)}  # fmt: skip


@case
def compare(lib: Library) -> Any:
    model, _ = fit(lib)
    result = lib.compare(model.components_, catalogue(), threshold=0.5)
    return {"result": result, "frame": result.to_frame()}


@case
def rank_selection(lib: Library) -> Any:
    result = lib.rank_selection(sparse(), [2, 3, 4], replicates=2)
    seconds = lib.estimated_seconds(sparse(), [2, 3])
    lib.pl.rank_selection(result)
    lib.save_outcome(result, "rank.json")
    return {"result": result, "table": result.table(), "is positive": seconds > 0,
            "loaded": lib.load_outcome(lib.RankSelection, "rank.json")}  # fmt: skip


@case
def consensus(lib: Library) -> Any:
    model = lib.KLNMF(RANK, random_state=0)
    result = lib.consensus(sparse(), model, replicates=4)
    groups = np.repeat(["x", "y", "z"], 20)
    programs = lib.consensus(sparse(), model, groups=groups, replicates=2, min_groups=2)
    return {"result": result, "summary": result.summary, "programs": programs,
            "table": programs.table(), "drawn": lib.pl.consensus(result),
            "programs drawn": lib.pl.programs(programs)}  # fmt: skip


@case
def families(lib: Library) -> Any:
    fits = [lib.KLNMF(k, random_state=0).fit(sparse()) for k in (2, 3, 4)]
    model, W = fit(lib)
    tree, flows = lib.merge_tree(W, model.components_), lib.component_flows(sparse(), fits)
    A, B = model.components_, catalogue()
    return {"tree": tree, "flows": flows, "match": lib.match(A, B[:3]),
            "cosines": lib.cosines(A, B), "merged": lib.merge(W, A, 2), "drawn": lib.pl.tree(tree),
            "flows drawn": lib.pl.flows(flows)}  # fmt: skip


@case
def edit_components(lib: Library) -> Any:
    model, _ = fit(lib)
    return {"split": lib.edit_components(counts(), model, split=[0]),
            "merged": lib.edit_components(counts(), model, merge=[(0, 1)])}  # fmt: skip


# ---- faces -----------------------------------------------------------------------------------


@case
def AnnData(lib: Library) -> Any:  # noqa: N802
    adata = cells()
    lib.tl.nmf(adata, RANK)
    lib.tl.spectra(adata)
    lib.tl.differential(adata)
    new = cells()[:20].copy()
    lib.tl.project(new, adata)
    return {"fitted": adata, "new": new}


@case
def AnnData_observed(lib: Library) -> Any:  # noqa: N802
    adata = cells()
    lib.tl.nmf(adata, RANK, layer="counts", batch_key="batch", weight_key="weight",
               mask_key="panel", key_added="other", normalise=False)  # fmt: skip
    return adata


@case
def plots(lib: Library) -> Any:
    model, W = fit(lib)
    differences = lib.differential(sparse(), model, check=False)
    drawn = {
        "structure": lambda: lib.pl.structure(model, W=W, groups=batches()),
        "top_features": lambda: lib.pl.top_features(model, 1, W=W),
        "volcano": lambda: lib.pl.volcano(differences),
        "intervals": lambda: lib.pl.intervals(differences),
        "signatures": lambda: lib.pl.signatures(model.components_)[0],
    }
    from net_parts import draw_svg  # noqa: PLC0415 - one figure at a time

    lines = lib.pl.convergence(model, W=W).lines  # over seconds, which differ
    return {name: draw_svg(draw()) for name, draw in drawn.items()} | {
        "palette": lib.pl.palette(9), "convergence": [line.get_ydata() for line in lines],
    }  # fmt: skip
