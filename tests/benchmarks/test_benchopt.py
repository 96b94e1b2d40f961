# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark for benchopt: its objective, start, stopping rule, configurations and tables."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import yaml
from scipy.special import kl_div

from sipower import KLNMF
from sipower.datasets import poisson_topics

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks" / "benchopt"
sys.path.append(str(FOLDER))

pytest.importorskip("benchopt", reason="benchopt is not installed: pip install --group bench")
import report  # noqa: E402
from benchopt.benchmark import Benchmark  # noqa: E402

V = poisson_topics(50, 40, 4, length=400, beta=1.0, seed=1)  # without empty rows and columns


@pytest.fixture(scope="module")
def benchmark() -> Iterator[Benchmark]:
    before = sys.modules.copy()
    yield Benchmark(FOLDER, no_cache=True)
    for name in set(sys.modules) - set(before):
        if name.startswith("benchmark_utils"):
            del sys.modules[name]


@pytest.fixture
def objective(benchmark: Benchmark) -> Any:
    objective = benchmark.get_benchmark_objective().get_instance(max_time=1.0, threads=1, seed=3)
    objective.set_data(V, 4)
    return objective


def test_the_objective_is_the_divergence_and_the_gap_of_the_library(objective: Any) -> None:
    model = KLNMF(4, tol=1e-2, random_state=0)
    W = model.fit_transform(V)
    result = objective.evaluate_result(W, model.components_)
    assert result["value"] == pytest.approx(model.kl_divergence_, rel=1e-12)
    assert result["gap"] == pytest.approx(model.kkt_residual_, rel=1e-8)
    formula = kl_div(V.toarray(), W @ model.components_).sum()
    assert result["value"] == pytest.approx(formula, rel=1e-10)


def test_all_solvers_start_from_five_rounds_of_multiplicative_updates(objective: Any) -> None:
    dense, rng = V.toarray(), np.random.default_rng(3)
    W, H = rng.random((V.shape[0], 4)), rng.random((4, V.shape[1]))
    for _ in range(5):
        H *= W.T @ (dense / (W @ H)) / W.sum(axis=0)[:, None]
        W *= (dense / (W @ H)) @ H.T / H.sum(axis=1)
    start = objective.get_objective()
    np.testing.assert_allclose(start["W"] @ start["H"], W @ H, rtol=1e-5)
    assert start["W"].dtype == start["H"].dtype == start["V"].dtype == np.float32
    result = objective.get_one_result()
    np.testing.assert_allclose(result["W"] @ result["H"], W @ H, rtol=1e-10)


def multiplicative_updates(W: np.ndarray, H: np.ndarray, rounds: int, first: str) -> float:
    """Return D after updates of both factors in float64, W or H first."""
    dense = V.toarray()
    for _ in range(rounds):
        for factor in "WH" if first == "W" else "HW":
            if factor == "H":
                H = H * (W.T @ (dense / (W @ H)) / W.sum(axis=0)[:, None])
            else:
                W = W * ((dense / (W @ H)) @ H.T / H.sum(axis=1))
    return float(kl_div(dense, W @ H).sum())


@pytest.mark.parametrize(
    ("name", "parameters", "first"),
    [("scikit-learn MU", {}, "W"), ("sipower", {"solver": "mu"}, "H")],
    ids=["scikit-learn", "sipower"],
)
def test_eight_rounds_of_a_solver_are_eight_updates_of_the_start(
    name: str, parameters: dict[str, str], first: str, benchmark: Benchmark, objective: Any
) -> None:
    (kind,) = (c for c in benchmark.get_solvers() if c.name == name)
    solver = kind.get_instance(**parameters)
    assert solver._set_objective(objective) == (False, None)
    values = {}

    def callback() -> bool:
        result = solver.get_result()
        values[result["rounds"]] = objective.evaluate_result(**result)["value"]
        return result["rounds"] < 8

    solver.run(callback)
    W, H = objective.start
    for rounds in (0, 8):
        expected = multiplicative_updates(W, H, rounds, first)
        assert values[rounds] == pytest.approx(expected, rel=1e-5)


def test_absent_data_are_skipped_with_a_reason(
    benchmark: Benchmark, objective: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SIPOWER_DATA", raising=False)
    (paper,) = (c for c in benchmark.get_datasets() if c.name == "paper")
    is_skipped, reason = objective.skip(**paper.get_instance(set="kos").get_data())
    assert is_skipped
    assert "SIPOWER_DATA" in reason


def test_sets_of_the_paper_are_read_from_the_folder(
    benchmark: Benchmark, objective: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    faces = np.random.default_rng(0).poisson(2.0, (361, 2429)).astype(np.uint8)
    faces[0] = 0  # an empty row
    np.savez_compressed(tmp_path / "mitf.npz", V=faces)
    monkeypatch.setenv("SIPOWER_DATA", str(tmp_path))
    (paper,) = (c for c in benchmark.get_datasets() if c.name == "paper")
    data = paper.get_instance(set="mitf").get_data()
    assert objective.skip(**data) == (False, None)
    np.testing.assert_array_equal(data["V"], faces[1:])
    assert data["rank"] == 20
    assert data["lowest"] == 1_190_937.4


def test_a_run_ends_with_its_seconds_or_when_nothing_is_gained(benchmark: Benchmark) -> None:
    from benchmark_utils.curves import EnoughTime  # noqa: PLC0415 - benchopt makes it importable

    class Solver:
        max_time, threads = 10.0, 1
        sampling_strategy = "callback"

    criterion = EnoughTime(strategy="callback").get_runner_instance(solver=Solver())

    def ends(values: list[float], last: float) -> bool:
        times = np.linspace(0, last, len(values))
        curve = [
            {"time": 2 * t, "objective_cpu_seconds": t, "objective_value": D}
            for t, D in zip(times, values, strict=True)
        ]
        return criterion.check_convergence(curve)[0]

    falling = list(np.linspace(100, 1, 40))
    assert not ends(falling, 9.9)
    assert ends(falling, 10.0)
    assert ends(falling + 60 * [1.0], 5.0)
    assert not ends([100.0, 1.0, 1.0, 1.0], 5.0)  # too few points to say so
    assert ends([100.0, np.nan], 0.1)
    criterion.solver.threads = 2  # now wall time counts, which is twice as long
    assert ends(falling, 5.0)


def names_in(config: str) -> set[str]:
    (entry,) = yaml.safe_load((FOLDER / config).read_text("utf-8"))["dataset"]
    return set(entry.removeprefix("zoo[problem=[").removesuffix("]]").split(","))


def test_the_configurations_measure_the_test_half_alone() -> None:
    from zoo.problems import problems  # noqa: PLC0415 - see the path above

    generated = {p.name for p in problems("test") if p.kind != "paper"}
    assert names_in("zoo.yml") == generated
    assert names_in("small.yml") <= generated


@pytest.mark.parametrize("config", ["small.yml", "zoo.yml", "paper.yml"])
def test_the_configurations_name_what_exists(config: str, benchmark: Benchmark) -> None:
    options = yaml.safe_load((FOLDER / config).read_text("utf-8"))
    assert len(benchmark.check_dataset_patterns(options["dataset"])) >= 1
    assert len(benchmark.check_solver_patterns(options["solver"])) == len(options["solver"])
    assert len(benchmark.check_objective_filters(options["objective"])) == 1


def curve(solver: str, *points: tuple[float, float, int], seed: int = 0) -> pd.DataFrame:
    rows = [(0.0, 100.0, 0), *points]
    columns = pd.DataFrame(rows, columns=["seconds", "D", "rounds"])
    return columns.assign(
        data="a", seed=seed, solver=solver, gap=0.5, lowest=np.nan, passes=2.0 * columns["rounds"],
        dense=False,
    )  # fmt: skip


def test_a_table_has_the_times_to_a_level_in_iterations_of_scikit_learn() -> None:
    rows = report.add_levels(
        pd.concat(
            [
                curve("auto", (1.0, 20.0, 1), (2.0, 10.0, 2), (3.0, 0.0, 3)),
                curve("mu", (4.0, 10.0, 4), (6.0, 5.0, 6)),
                curve(report.MU, (4.0, 50.0, 8)),
            ]
        )
    )
    assert rows["u"].unique().tolist() == [0.5]
    times = report.times(rows, 0.1).loc["a"]
    assert times.to_dict() == {"auto": 4.0, "mu": 8.0, report.MU: np.inf}
    assert report.times(rows, 0.1, by="passes").loc["a", "auto"] == 4.0
    assert report.times(rows, 0.1, "own").loc["a", report.MU] == 8.0
    table = report.format_table("a machine", rows)
    assert "| a (500 ms) | 1e-1 | **4** | 8 | – |" in table
    assert "| gap at the end | 5.0e-01 | 5.0e-01 | 5.0e-01 |" in table
    summary = report.format_summary(rows)
    assert "speed relative to our fastest other solver 2.00 on 1 of 1 sets" in summary
    assert "scikit-learn MU never reached it on 1" in summary


def test_a_time_is_the_median_over_the_seeds() -> None:
    runs = [curve("auto", (t, 0.0, 1), seed=s) for s, t in enumerate((1.0, 2.0, 9.0))]
    runs += [curve(report.MU, (4.0, 50.0, 4), seed=s) for s in range(3)]
    rows = report.add_levels(pd.concat(runs))
    assert report.times(rows, 0.1).loc["a", "auto"] == 2.0


@pytest.mark.parametrize("name", ["small", "paper"])
def test_the_published_table_is_that_of_the_committed_curves(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    curves = ROOT / "benchmarks" / "results" / f"{name}.csv"
    if not curves.parent.is_dir():
        pytest.skip("the source distribution has no results of benchmarks")
    report.main([str(curves), "--docs", str(tmp_path)])
    table = (tmp_path / f"{name}.md").read_text("utf-8")
    assert table == (ROOT / "docs" / "benchmark" / f"{name}.md").read_text("utf-8")
    assert (tmp_path / f"{name}.png").stat().st_size > 20_000
    assert "speed relative to scikit-learn MU" in capsys.readouterr().out


@pytest.mark.slow
def test_benchopt_runs_and_the_report_reads_its_file(tmp_path: Path) -> None:
    run = tmp_path / "tiny.parquet"
    words = ["-d", "zoo[problem=tiny]", "-s", "sipower[solver=[auto]]", "-s", report.MU,
             "-o", "KL-NMF[max_time=0.3]", "--no-cache", "--no-plot", "-n", "1000",
             "--output", str(run)]  # fmt: skip
    command = [sys.executable, "-m", "benchopt", "run", str(FOLDER), *words]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    about, rows = report.read_run(run)
    assert about.startswith("1 of ")
    curves = dict(list(rows.groupby("solver")))
    assert set(curves) == {"auto", report.MU}
    start = {part["D"].iloc[0] for part in curves.values()}
    assert len(start) == 1
    for part in curves.values():
        assert part["seconds"].is_monotonic_increasing
        assert part["D"].iloc[-1] < 0.9 * part["D"].iloc[0]
    assert curves["auto"]["gap"].iloc[-1] < 1e-3
    assert curves["auto"]["passes"].iloc[-1] > 0
    report.main([str(run), "--results", str(tmp_path), "--docs", str(tmp_path)])
    assert "sipower auto" in (tmp_path / "tiny.md").read_text("utf-8")


def test_sparse_data_and_start_reach_solvers_unchanged(objective: Any) -> None:
    data = objective.get_objective()["V"]
    assert sp.issparse(data)
    np.testing.assert_array_equal(data.toarray(), V.toarray())
