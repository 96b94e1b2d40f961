# SPDX-License-Identifier: BSD-3-Clause
"""Every solver on three small sets: what the golden curves are curves of.

The sets are whole numbers made of the library's own Philox draws, and starts are drawn or chosen
alike: no curve depends on the random streams of other libraries or on the signs of eigenvectors.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from sipower import KLNMF, GaussianEM, Guarded, SciPi, SSciPi, Stop, as_matrix, solve
from sipower.data.sampling import SCHEMES
from sipower.experiments.methods import METHODS
from sipower.kernels import Draw
from sipower.nmf import (
    MU,
    RULES,
    SOLVERS,
    Alternating,
    Auto,
    Factorization,
    Half,
    OnBlock,
    RowRounds,
    SSciPiRule,
    Vanilla,
    make_solver,
    row_sample,
)
from sipower.problems import (
    ICA,
    PCA,
    BurerMonteiro,
    GaussianMixture,
    Gaussians,
    KLBlock,
    LpKernelPCA,
    MixtureProportions,
)
from sipower.solvers.gaussian_em import PlainEM

Curve = list[float]  # objective of the start and after every round
Case = Callable[[Any], Curve]  # its argument is a set

ROUNDS, RANK, SEED = 20, 5, 7
ROWS, COLUMNS, FEATURES = 120, 30, 6
CURVES = Path(__file__).parent / "curves"


# ---- the sets --------------------------------------------------------------------------------


def draw(stream: int, *shape: int) -> np.ndarray:
    """Uniform(0, 1)."""
    return Draw(SEED, 100 + stream).uniform(*shape)


def whole_numbers(below: int, stream: int, *shape: int) -> np.ndarray:
    """Uniform on 0, …, below − 1."""
    return np.floor(below * draw(stream, *shape))


def _sparse() -> sp.csr_array:
    """Counts of low rank, four of five of them zero."""
    mean = whole_numbers(4, 0, ROWS, 3) @ whole_numbers(3, 1, 3, COLUMNS)
    return sp.csr_array(np.floor(mean * whole_numbers(8, 2, ROWS, COLUMNS) / 32))


def _dense() -> np.ndarray:
    """Few zeros but for two empty rows, two empty columns and a row of a single count."""
    mean = 4 + whole_numbers(5, 3, ROWS, 4) @ whole_numbers(6, 4, 4, COLUMNS)
    V = np.floor(mean * (1 + whole_numbers(16, 5, ROWS, COLUMNS)) / 8)
    V[[0, ROWS // 2, ROWS // 3]] = 0
    V[:, [3, COLUMNS - 1]] = 0
    V[ROWS // 3, 5] = 7
    return V


def _degenerate() -> np.ndarray:
    """Rank one up to a little noise, over six orders of magnitude, with rows and columns alike."""
    rows, columns = 4 ** whole_numbers(6, 6, ROWS, 1), 4 ** whole_numbers(5, 7, 1, COLUMNS)
    V = rows * columns + whole_numbers(8, 8, ROWS, COLUMNS)
    V[1], V[:, 2] = V[0], V[:, 1]
    return V


SETS = {"sparse": cache(_sparse), "dense": cache(_dense), "degenerate": cache(_degenerate)}


def samples(V: Any) -> np.ndarray:
    """V as points of a few features, none of them constant: sums of neighbouring columns."""
    V = V.toarray() if sp.issparse(V) else V
    summed = V.reshape(ROWS, FEATURES, -1).sum(axis=2)
    return summed / summed.max(axis=0) + draw(9, ROWS, FEATURES)


# ---- the problems ----------------------------------------------------------------------------


def _factorization(V: Any) -> Factorization:
    return Factorization(as_matrix(V, n_jobs=1), RANK)


def _block(V: Any) -> KLBlock:
    return KLBlock(as_matrix(V, n_jobs=1), draw(10, COLUMNS, RANK))


def _ica(V: Any) -> ICA:
    """Whitened by Cholesky's factor, which unlike eigenvectors is unique."""
    centred = samples(V) - samples(V).mean(axis=0)
    factor = np.linalg.cholesky(centred.T @ centred / ROWS)
    sign = 1 if sp.issparse(V) else -1  # sums of rare counts are peaked, the others flat
    return ICA(np.linalg.solve(factor, centred.T).T, sign, whitened=True)


def _cut(V: Any) -> BurerMonteiro:
    """The graph whose weights are how often two columns occur together."""
    weights = V.T @ V
    weights = weights.toarray() if sp.issparse(weights) else weights
    np.fill_diagonal(weights, 0)
    return BurerMonteiro(-weights / weights.max(), rank=8)


PROBLEMS: dict[str, Callable[[Any], Any]] = {
    "pca": lambda V: PCA(samples(V)),
    "lp-kernel-pca": lambda V: LpKernelPCA(samples(V), p=3.0, kernel="rbf", gamma=0.5),
    "ica": _ica,
    "mixture": lambda V: MixtureProportions(samples(V), 1 + whole_numbers(9, 11, ROWS)),
    "burer-monteiro": _cut,
    "kl": _block,
}


# ---- the curves ------------------------------------------------------------------------------


def solve_curve(
    problem: Callable[[Any], Any], solver: Any, start: Callable[[Any], Any] | None = None
):
    """The curve of a solver on the problem that is made of a set."""

    def curve(V: Any) -> Curve:
        x0, stop = None if start is None else start(V), Stop(0, rounds=ROUNDS)
        result = solve(problem(V), solver, x0, stop=stop, seed=SEED, trace="every")
        values = [record.objective for record in result.trace]
        # A residual of exact zero ends a run, and rounding decides it: such a run would stay there.
        return values + values[-1:] * (ROUNDS + 1 - len(values))

    return curve


def _factorizations() -> dict[str, Case]:
    """What users can name, the baselines of the experiments, and what small data do not reach."""
    solvers = {name: make_solver(name) for name in SOLVERS}
    for name, method in METHODS.items():
        if method.rule or method.solver:
            for params in map(dict, method.forms):
                solvers[f"experiments: {params.get('form', name)}"] = method.make_solver(params)
    for scheme in SCHEMES:
        sampled = SSciPiRule(0.3, batch=0.3, epoch=4, scheme=scheme, shortest=0)
        solvers[f"s-sci-pi, {scheme}"] = Alternating(sampled)
        solvers[f"vanilla, {scheme}"] = Alternating(Vanilla(scheme=scheme))
    solvers["auto, near a solution"] = Auto(near=True)
    solvers["mu, halves solved"] = Alternating(MU(), tol=1e-4)
    return {f"nmf: {name}": solve_curve(_factorization, solver) for name, solver in solvers.items()}


def _sampled_rows(solver: Any) -> Case:
    """A solver that takes 120 rows for tall data, with a sample first."""

    def curve(V: Any) -> Curve:
        with patch.multiple(row_sample, ROWS_PER_GROUP=4, MAX_BATCH_ROWS=12, MIN_BATCHES=8):
            return solve_curve(_factorization, solver)(V)

    return curve


def _halves() -> dict[str, Case]:
    """Every rule on the rows, given the columns."""
    return {
        f"half: {name}": solve_curve(
            lambda V: Half(_block(V)), OnBlock(rule()), lambda V: draw(12, ROWS, RANK)
        )
        for name, rule in RULES.items()
    }


def _points() -> dict[str, Case]:
    """Algorithm 1 and its full-batch case on every problem, plain and guarded."""
    sampled = {"batch": 0.2, "epoch": 10}
    solvers = {
        "sci-pi": SciPi(),
        "sci-pi, damped": SciPi(0.7),
        "s-sci-pi": SSciPi(**sampled),
        "s-sci-pi, fixed step": SSciPi(0.3, **sampled),
        "sci-pi guarded": Guarded(SciPi()),
        "s-sci-pi guarded": Guarded(SSciPi(**sampled)),
    }
    return {
        f"{problem}: {name}": solve_curve(PROBLEMS[problem], solver)
        for problem in PROBLEMS
        for name, solver in solvers.items()
        if problem != "burer-monteiro" or not name.startswith("s-")  # its rows interact
    }


def _mixtures() -> dict[str, Case]:
    """EM from means that are samples: the problem's own start draws from scikit-learn."""

    def start(V: Any) -> Gaussians:
        X = samples(V)
        return Gaussians(np.full(3, 1 / 3), X[[10, 50, 90]], np.stack([np.diag(X.var(axis=0))] * 3))

    solvers = {"em": PlainEM(), "sci-pi": GaussianEM(), "sci-pi guarded": Guarded(GaussianEM())}
    return {
        f"gaussian mixture: {name}": solve_curve(
            lambda V: GaussianMixture(samples(V), 3), solver, start
        )
        for name, solver in solvers.items()
    }


def _estimator(solver: str) -> Case:
    """What a fit notes by its own schedule, and the divergence of what it returns."""

    def curve(V: Any) -> Curve:
        model = KLNMF(RANK, solver=solver, tol=0, max_iter=ROUNDS, random_state=SEED, n_jobs=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(V)
        return [*(record.objective for record in model.trace_), model.kl_divergence_]

    return curve


def _partial_fit(V: Any) -> Curve:
    """The score of all rows after every batch of six."""
    model, values = KLNMF(RANK, random_state=SEED, n_jobs=1), []
    for at in range(0, ROWS, ROWS // ROUNDS):
        model.partial_fit(V[at : at + ROWS // ROUNDS])
        values.append(model.score(V))
    return values


CASES: dict[str, Case] = {
    **_factorizations(),
    "nmf: auto, sampled rows": _sampled_rows(Auto()),
    "nmf: rows, sampled rows": _sampled_rows(RowRounds()),
    **_halves(),
    **_points(),
    **_mixtures(),
    **{f"KLNMF: {name}": _estimator(name) for name in SOLVERS},
    "KLNMF: partial_fit": _partial_fit,
}


# ---- the files -------------------------------------------------------------------------------


def load_curves(name: str) -> dict[str, Curve]:
    """The golden curves of a set."""
    file = CURVES / f"{name}.json"
    return json.loads(file.read_text()) if file.exists() else {}


def record(name: str, curves: dict[str, Curve]) -> None:
    """Make these the golden curves of a set: a line a curve, every number to the last bit."""
    lines = ",\n".join(f"{json.dumps(case)}: {json.dumps(curves[case])}" for case in curves)
    CURVES.mkdir(exist_ok=True)
    (CURVES / f"{name}.json").write_text(f"{{\n{lines}\n}}\n")
