# SPDX-License-Identifier: BSD-3-Clause
"""Table and picture of a run of the benchmark.

    python benchmarks/benchopt/report.py benchmarks/benchopt/outputs/small.parquet
    python benchmarks/benchopt/report.py benchmarks/results/small.csv      # again

The first form writes the curves to benchmarks/results/small.csv, which has the name of the run.
Both write docs/benchmark/small.md, a table, and docs/benchmark/small.png, and print the table and a
summary. With --passes, counted passes replace the time, and nothing is written.

A level is (D − D*)/(D₀ − D*), the share of the possible decrease that is still missing. D* is the
lowest D that any solver reached from the same start, or the one that the data set states. Seconds
are those of the processor for one thread, else wall time. u is one iteration of scikit-learn's
multiplicative updates in the same run.
"""

from __future__ import annotations

import argparse
import re
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[2]
RESULTS, DOCS = ROOT / "benchmarks" / "results", ROOT / "docs" / "benchmark"
MU = "scikit-learn MU"
LEVELS = {"1e-1": 1e-1, "3e-2": 3e-2, "1e-2": 1e-2}
OWN = ("1e-2 above its own lowest D", 1e-2, "own")
OURS = ("mu", "sci-pi", "s-sci-pi", "ccd", "ccd-extrapolated")
COLOURS = {"auto": "#D55E00", "ccd-extrapolated": "#0072B2", "s-sci-pi": "#009E73",
           "sci-pi": "#E69F00", "mu": "#56B4E9", MU: "#000000",
           "scikit-learn MiniBatchNMF": "#999999", "torchnmf": "#CC79A7"}  # fmt: skip
RUN = ["data", "seed", "solver"]


def short_name(name: str) -> str:
    """Return "news" for "zoo[problem=news]", and the name itself without parameters."""
    match = re.search(r"=([^,\]]+)\]$", name)
    return match[1] if match and not name.startswith("fastTopics") else name


def read_run(path: Path) -> tuple[str, pd.DataFrame]:
    """Return what ran where, and the curves of a run, from the file that benchopt has written."""
    raw = pd.read_parquet(path)
    threads = raw["p_obj_threads"].iloc[0]
    measured = {"D": "value", "gap": "gap", "lowest": "lowest", "rounds": "rounds",
                "passes": "passes", "dense": "dense"}  # fmt: skip
    rows = pd.DataFrame(
        {
            "data": raw["dataset_name"].map(short_name),
            "seed": raw["p_obj_seed"],
            "solver": raw["solver_name"].map(short_name),
            "seconds": raw["objective_cpu_seconds"] if threads == 1 else raw["time"],
            **{name: raw[f"objective_{key}"] for name, key in measured.items()},
        }
    )
    processor, cores = raw["system-processor"].iloc[0], raw["system-cpus"].iloc[0]
    packages = ", ".join(f"{name} {version(name)}" for name in ("sipower", "scikit-learn"))
    about = f"{threads} of {cores} cores of {processor}, float32, {packages}"
    return about, pd.concat([thin(run) for _, run in rows.groupby(RUN, sort=False)])


def full_name(solver: str) -> str:
    """Return the name of a solver with that of its package."""
    return f"sipower {solver}" if solver in ("auto", *OURS) else solver


def thin(curve: pd.DataFrame) -> pd.DataFrame:
    """Return a curve without points less than 5 % of the time after the one before."""
    selection, last = [], -1.0
    for at, seconds in enumerate(curve["seconds"]):
        if seconds >= 1.05 * last or at == len(curve) - 1:
            selection.append(at)
            last = seconds
    return curve.iloc[selection]


def add_levels(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with the level, the level above the own lowest D of a run, and the unit u."""
    start = rows.groupby(["data", "seed"])["D"]
    lowest = rows["lowest"].fillna(start.transform("min"))
    own = rows.groupby(RUN)["D"].transform("min")
    first = start.transform("first")
    rows = rows.assign(
        level=(rows["D"] - lowest) / (first - lowest), own=(rows["D"] - own) / (first - own)
    )
    if "u" in rows:
        return rows
    ends = rows[rows["solver"] == MU].groupby(["data", "seed"]).last()
    u = (ends["seconds"] / ends["rounds"]).rename("u")
    return rows.merge(u, left_on=["data", "seed"], right_index=True, how="left")


def times(rows: pd.DataFrame, level: float, column: str = "level", by: str = "u") -> pd.DataFrame:
    """Return the median time over the seeds to a level, inf if not reached: data by solvers.

    The unit is u, or a pass if `by` is "passes".
    """
    cost = rows["passes"] if by == "passes" else rows["seconds"] / rows["u"]
    reached = rows.assign(cost=cost.where(rows[column] <= level, np.inf))
    first = reached.groupby(RUN, sort=False)["cost"].min().groupby(["data", "solver"], sort=False)
    return first.median().unstack("solver", sort=False)


def format_table(about: str, rows: pd.DataFrame, by: str = "u") -> str:
    """Return a Markdown table: times to three levels and the gap at the end, for each data set."""
    solvers = list(dict.fromkeys(rows["solver"]))
    lines = [
        f"| data (u) | level | {' | '.join(map(full_name, solvers))} |",
        "|---" * (2 + len(solvers)) + "|",
    ]
    tables = {label: times(rows, level, by=by) for label, level in LEVELS.items()}
    gaps = rows.groupby(RUN, sort=False)["gap"].last().groupby(["data", "solver"]).median()
    for data in dict.fromkeys(rows["data"]):
        u = 1e3 * rows.loc[rows["data"] == data, "u"].median()
        head = f"{data} ({u:.3g} ms)"
        for label, table in tables.items():
            cells = table.loc[data, solvers]
            texts = [
                "–" if not np.isfinite(c) else f"**{c:.3g}**" if c == cells.min() else f"{c:.3g}"
                for c in cells
            ]
            lines.append(f"| {head} | {label} | {' | '.join(texts)} |")
            head = ""
        if np.isfinite(gaps[data]).all():
            texts = [f"{gaps[data, solver]:.1e}" for solver in solvers]
            lines.append(f"| | gap at the end | {' | '.join(texts)} |")
    return "\n".join([*lines, "", f"Measured on {about}.", ""])


def format_summary(rows: pd.DataFrame, by: str = "u") -> str:
    """Return the speed of `auto` relative to scikit-learn and to the fastest of our others."""
    dense = rows.groupby("data", sort=False)["dense"].first().astype(bool)
    ours = [name for name in OURS if name in set(rows["solver"])]
    lines = []
    for label, level, column in (*((n, x, "level") for n, x in LEVELS.items()), OWN):
        table = times(rows, level, column, by).reindex(dense.index)
        table["our fastest other solver"] = table[ours].min(axis=1)
        for kind, part in (("sparse", table[~dense]), ("dense", table[dense])):
            for other in (MU, "our fastest other solver"):
                if other in part and "auto" in part and len(part):
                    lines.append(f"{kind}, {label}: {compare(part, other)}")
    return "\n".join(lines)


def compare(table: pd.DataFrame, other: str) -> str:
    """Return the geometric mean of the speed of `auto` relative to a solver, and failures."""
    both = np.isfinite(table["auto"]) & np.isfinite(table[other])
    speed = table.loc[both, other] / table.loc[both, "auto"]
    text = f"speed relative to {other}"
    if both.any():
        text += f" {np.exp(np.log(speed).mean()):.2f} on {both.sum()} of {len(table)} sets"
    missed = {name: int(np.isinf(table[name]).sum()) for name in ("auto", other)}
    return text + "".join(f"; {name} never reached it on {n}" for name, n in missed.items() if n)


def draw(rows: pd.DataFrame, path: Path) -> None:
    """Draw the level against time, one panel for each data set, for the first seed."""
    import matplotlib as mpl  # noqa: PLC0415 - after its backend is chosen

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    names = list(dict.fromkeys(rows["data"]))
    lines = (len(names) + 1) // 2
    figure, axes = plt.subplots(lines, 2, figsize=(10, 3.6 * lines), layout="constrained",
                                squeeze=False)  # fmt: skip
    rows = rows[
        (rows["seed"] == rows["seed"].min()) & (rows["seconds"] > 0) & (rows["rounds"] != 0)
    ]
    for ax, name in zip(axes.flat, names, strict=False):
        part = rows[rows["data"] == name]
        for solver, curve in part.groupby("solver", sort=False):
            style = {"color": COLOURS.get(solver), "lw": 2.5 if solver == "auto" else 1.3}
            ax.loglog(curve["seconds"], curve["level"], label=full_name(solver), **style)
        kind = "dense" if part["dense"].iloc[0] else "sparse"
        ax.set(title=f"{name} ({kind})", ylim=(8e-4, 1.2), xlabel="seconds",
               ylabel="share of the decrease still missing")  # fmt: skip
        ax.grid(visible=True, color="#dddddd", linewidth=0.6)
    for ax in axes.flat[len(names) :]:
        ax.set_axis_off()
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.savefig(path, dpi=100)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("run", type=Path, help="file of benchopt (.parquet), or of this script")
    parser.add_argument("--passes", action="store_true", help="count passes instead of seconds")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the curves")
    parser.add_argument("--docs", type=Path, default=DOCS, help="folder of the table and picture")
    options = parser.parse_args(arguments)
    curves = options.run
    if options.run.suffix == ".parquet":
        about, rows = read_run(options.run)
        curves = options.results / f"{options.run.stem}.csv"
        text = rows.to_csv(index=False, float_format="%.8g", lineterminator="\n")
        curves.write_text(f"# {about}\n{text}", "utf-8")
    about = curves.read_text("utf-8").partition("\n")[0].removeprefix("# ")
    rows = add_levels(pd.read_csv(curves, comment="#"))
    by = "passes" if options.passes else "u"
    table = format_table(about, rows, by)
    print(table, format_summary(rows, by), sep="\n")
    if not options.passes:
        options.docs.mkdir(exist_ok=True)
        (options.docs / f"{curves.stem}.md").write_text(table, "utf-8")
        draw(rows, options.docs / f"{curves.stem}.png")


if __name__ == "__main__":
    main()
