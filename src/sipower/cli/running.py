# SPDX-License-Identifier: BSD-3-Clause
"""The steps of a run that commands share: read, fit with progress shown, write the folder."""

from __future__ import annotations

import os
import shlex
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sipower.cli.common import NOT_CONVERGED, Speaker
from sipower.cli.progress import FitProgress
from sipower.data.fingerprint import fingerprint
from sipower.data.from_store import open_store
from sipower.data.memory import Matrix
from sipower.data.on_disk import DEFAULT_LIMIT
from sipower.data.validate import as_matrix
from sipower.estimators import KLNMF
from sipower.files import locked
from sipower.io import FORMATS, Table, open_h5ad, read
from sipower.kernels import level
from sipower.loop.solve import Interrupted
from sipower.provenance import provenance
from sipower.results.export import export, files_of
from sipower.results.report import write_report
from sipower.results.run import FILES, MEASURED, Run, load_run

__all__ = [
    "check_counts",
    "code_of",
    "facts_of",
    "finish",
    "fitted",
    "is_finished",
    "load",
    "make_products",
    "model_of",
    "named_after",
    "owned",
    "run_of",
]

MOST_ROUNDS = 500  # unless told
_LIMITS = ("max_iter", "max_time", "n_jobs")  # decide nothing but when it ends


def model_of(
    solver: str,
    tol: float,
    max_time: float | None,
    max_iter: int | None,
    seed: int,
    threads: int | None,
    dtype: str | None,
) -> KLNMF:
    """The model that the options of a command describe."""
    return KLNMF(
        solver=solver,
        tol=tol,
        max_time=max_time,
        max_iter=max_iter or MOST_ROUNDS,
        random_state=seed,
        n_jobs=threads,
        dtype=dtype,
    )


def load(source: Path, speaker: Speaker, *, memory_limit: str | None = None, **how: Any) -> Table:
    """Read a file, or open what stays on disk, and say what it holds."""
    on_disk = (source / "store.json").exists() or memory_limit is not None
    table = _on_disk(source, memory_limit, **how) if on_disk else read(source, **how)
    rows, columns = table.counts.shape
    speaker.say(f"{source}: {rows:,} samples x {columns:,} features")
    for remark in table.remarks:
        speaker.say(remark)
    speaker.event("read", file=str(source), shape=[rows, columns], remarks=list(table.remarks))
    return table


def _on_disk(
    source: Path, limit: str | None, *, transpose: bool, layout: str | None, layer: str | None
) -> Table:
    if transpose or layout is not None:
        raise ValueError("What stays on disk is not turned: give --transpose to sipower convert.")
    if (source / "store.json").exists():
        if layer is not None:
            raise ValueError(f"{source} is a store and has no layers: leave --layer out.")
        counts = open_store(source, memory_limit=limit or DEFAULT_LIMIT)
    elif source.suffix in (".h5ad", ".h5"):
        counts = open_h5ad(source, layer, memory_limit=limit or DEFAULT_LIMIT)
    else:
        raise ValueError(
            f"--memory-limit is for stores and .h5ad files: make a store of {source} first, with "
            "sipower convert."
        )
    names = (
        None if n is None else tuple(map(str, n)) for n in (counts.row_names, counts.column_names)
    )
    return Table(counts, *names)  # type: ignore[arg-type] # as good as an array to every reader


def fitted(
    model: KLNMF, table: Table, speaker: Speaker, *, asked: bool, file: str | None
) -> tuple[Run, int]:
    """Fit with progress shown; a fit that is interrupted gives what it had, and the code 3.

    `asked`: the limit on rounds is the user's own, so that reaching it is no failure.
    """
    V = as_matrix(table.counts, dtype=model.dtype, n_jobs=model.n_jobs)
    check_counts(V)
    facts = facts_of(model, V, file)
    started, code = time.monotonic(), 0
    with FitProgress(speaker, model.tol, model.max_time) as progress, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # said at the end
        model.set_params(on_round=progress)
        try:
            W = model.fit_transform(V)
        except Interrupted as interrupt:
            W, code = interrupt.result.x.W, 3
    model.set_params(on_round=None)
    code = code or code_of(model.status_, model, asked)
    facts |= {
        "status": model.status_,
        "certified_gap": model.kkt_residual_,
        "divergence": model.kl_divergence_,
        "rounds": model.n_iter_,
        "passes": model.trace_[-1].passes,
        "seconds": round(time.monotonic() - started, 3),
    }
    return Run(W, model.components_, model.trace_, facts, table.samples, table.features), code


def check_counts(V: Matrix) -> None:
    """Refuse data without any."""
    if not V.total > 0:
        raise ValueError("All counts are zero: there is nothing to fit.")


def code_of(status: str, model: KLNMF, asked: bool) -> int:
    """The exit code of a fit: that of a limit, unless it was the user's own."""
    limited = status in ("max_rounds", "not_finite")
    return NOT_CONVERGED if limited and not asked and model.tol > 0 else 0


def facts_of(model: KLNMF, V: Matrix, file: str | None) -> dict[str, Any]:
    """What `run.json` tells of a fit before its end."""
    return {
        "command": shlex.join(["sipower", *sys.argv[1:]]),
        "parameters": parameters_of(model),
        "input": {
            "file": file,
            "sha256": fingerprint(V),
            "shape": list(V.shape),
            "nonzeros": int(np.count_nonzero(V.array)) if V.dense else V.nnz,
            "total": V.total,
        },
        "threads": V.threads,
        "instruction_set": level(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        **provenance(),
    }


def parameters_of(model: KLNMF) -> dict[str, Any]:
    """What decides a fit, as `run.json` tells it."""
    told = ("on_round", "checkpoint", "checkpoint_every")
    return {k: v for k, v in model.get_params().items() if k not in told}


def run_of(folder: Path, model: KLNMF, table: Table) -> Run | None:
    """The run in a folder, of these data and this model but for its limits; another is refused."""
    if not (folder / "run.json").exists():
        return None
    run = load_run(folder)
    V = as_matrix(table.counts, dtype=model.dtype, n_jobs=model.n_jobs)
    told = run.facts.get("input") or {}, run.facts.get("parameters") or {}
    found = {"data": told[0].get("sha256"), "names": (run.samples, run.features), **told[1]}
    wanted = {"data": fingerprint(V), "names": (table.samples, table.features)}
    wanted |= {k: v for k, v in parameters_of(model).items() if k not in _LIMITS}
    other = next((key for key, value in wanted.items() if found.get(key) != value), None)
    if any(key not in run.facts for key in ("status", *MEASURED)):
        other = "kind"  # a consensus
    if other is not None:
        raise ValueError(
            f"{folder} holds a run already, of another {other}: choose another folder with -o, or "
            "--force."
        )
    return run


def is_finished(run: Run, model: KLNMF) -> bool:
    """Whether going on would change nothing."""
    return bool(run.facts["status"] == "converged" or run.facts["rounds"] >= model.max_iter)


def make_products(
    run: Run,
    folder: Path,
    speaker: Speaker,
    more: list[str],
    drawn: Any,
    *,
    missing: bool = False,
    **outcomes: Any,
) -> None:
    """Write what a run folder is asked to have beside the run, or as much of it as is missing.

    `drawn` is whether to write the report, or the shape of its images.
    """
    for ending in more:
        if missing and all(file.exists() for file in files_of(folder, ending)):
            continue
        for file in export(run, folder, ending):
            speaker.say(f"wrote {file}")
    if drawn and not (missing and (folder / "report.html").exists()):
        shape = drawn if isinstance(drawn, tuple) else None
        write_report(run, folder / "report.html", image_shape=shape, **outcomes)


def finish(run: Run, folder: Path, speaker: Speaker) -> None:
    """Say how it ended."""
    facts = run.facts
    keys = ("status", "certified_gap", "divergence", "rounds", "passes", "seconds")
    told = {key: facts[key] for key in keys}
    speaker.event("done", folder=str(folder), **told)
    speaker.say(
        f"{facts['status']} after {facts['rounds']} rounds, {facts['seconds']:.1f} s: KL "
        f"divergence {facts['divergence']:.6g}, certified gap {facts['certified_gap']:.1e} of all "
        "counts"
    )
    speaker.say(f"wrote {folder}/ (factors.npz, run.json, trace.csv" +
                (", report.html)" if (folder / "report.html").exists() else ")"))  # fmt: skip


def named_after(source: Path, what: str) -> Path:
    """A folder beside nothing else: counts.csv.gz becomes counts-k20."""
    name = source.resolve().name
    for ending in sorted(FORMATS, key=len, reverse=True):
        name = name.removesuffix(ending)
    return Path(f"{name.lstrip('.-') or 'counts'}-{what}")


@contextmanager
def owned(folder: Path, force: bool, begun: bool = False) -> Iterator[None]:
    """Keep a folder to this session that can be written to and where nothing is lost.

    `begun`: what lies there is of this command, from before.
    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file, expected a folder: choose another with -o.")
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise ValueError(f"{folder} cannot be written to: choose another with -o.")
    with locked(folder / "run"):
        lost = None if force or begun else next((f for f in FILES if (folder / f).exists()), None)
        if lost is not None:
            held = "a run already" if lost == "run.json" else f"{lost}, which a run may replace"
            raise ValueError(f"{folder} holds {held}: choose another with -o, or --force.")
        yield
