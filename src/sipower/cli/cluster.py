# SPDX-License-Identifier: BSD-3-Clause
"""Fits on the workers of a Dask cluster, which --scheduler or --workers name."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np

from sipower.cli.application import require
from sipower.cli.console import Console
from sipower.cli.options import FitSolverOptions, OutputOptions, ReadOptions, SolverOptions
from sipower.data.row_blocks import RowBlocks
from sipower.estimators import KLNMF
from sipower.kernels import Array, count_threads
from sipower.loop.solve import Interrupted

CONNECT_TIMEOUT = 15  # seconds
_TEXTS = ("text_column", "stop_words", "min_df")


def check_cluster(solver: SolverOptions) -> None:
    """Raise an error for options that cannot be used with a cluster, or without one."""
    if not solver.on_cluster:
        return
    require("distributed")
    if solver.scheduler is not None and solver.workers is not None:
        raise ValueError("--scheduler and --workers exclude each other: omit one of them.")
    if solver.scheduler is not None and solver.threads is not None:
        raise ValueError("--threads does not change the workers of --scheduler: omit it.")
    if solver.dry_run:
        raise ValueError(
            "--dry-run estimates a fit without a cluster: omit --scheduler and --workers."
        )


def check_fit(solver: FitSolverOptions, data: ReadOptions, output: OutputOptions) -> None:
    """Raise an error for options of a fit that cannot be used with a cluster, or without one."""
    check_cluster(solver)
    if not solver.on_cluster:
        if solver.init == "sample":
            raise ValueError("--init sample is a start on Dask: use --init auto, or --workers.")
        return
    if any(getattr(data, name) for name in _TEXTS):
        raise ValueError(
            "--text-column, --stop-words and --min-df need all texts at once: pass them to "
            "sipower convert, and fit its store with --workers or --scheduler."
        )
    if output.spectra:
        raise ValueError("--spectra needs the data on this machine: omit --workers, --scheduler.")
    for name in ("solver", "init"):
        value, choices = getattr(solver, name), _choices(name)
        if value is not None and value not in choices:
            raise ValueError(f"--{name} on Dask must be {' or '.join(choices)}, got {value}.")


def _choices(parameter: str) -> list[str]:
    from sipower import dask  # noqa: PLC0415 - optional

    return sorted(dask.KLNMF._parameter_constraints[parameter][0].options)


@contextmanager
def connect(solver: SolverOptions, console: Console) -> Iterator[Any]:
    """Yield a client of the cluster that the options name, or None without such an option.

    Workers that were started here are stopped when the block ends.
    """
    if not solver.on_cluster:
        yield None
        return
    with ExitStack() as stack:
        if solver.workers is not None:
            address: Any = stack.enter_context(_start_workers(solver.workers, solver.threads))
        else:
            address = solver.scheduler
        client = stack.enter_context(_connect(address, solver.scheduler))
        if solver.workers is not None:
            from sipower.dask.interrupts import IgnoreInterrupts  # noqa: PLC0415 - optional

            client.register_plugin(IgnoreInterrupts())
        threads = sum(client.nthreads().values())
        count = len(client.nthreads())
        workers = f"{count} worker{'' if count == 1 else 's'}, {threads} threads in all"
        page = client.dashboard_link if find_spec("bokeh") is not None else None
        console.say(workers if page is None else f"{workers}; dashboard: {page}")
        console.event("cluster", workers=count, threads=threads, dashboard=page)
        yield client


@contextmanager
def _start_workers(workers: int, threads: int | None) -> Iterator[Any]:
    """Start worker processes that share the threads."""
    from distributed import LocalCluster  # noqa: PLC0415 - optional

    each = max(1, count_threads(threads) // workers)
    with LocalCluster(
        n_workers=workers, threads_per_worker=each, processes=True, dashboard_address=":0",
        silence_logs=logging.CRITICAL,
    ) as cluster:  # fmt: skip
        yield cluster


def _connect(address: Any, scheduler: str | None) -> Any:
    from distributed import Client  # noqa: PLC0415 - optional

    try:
        return Client(address, timeout=CONNECT_TIMEOUT)
    except (OSError, ValueError, TypeError) as problem:  # TimeoutError is an OSError
        raise ValueError(
            f"--scheduler {scheduler}: no Dask scheduler answers ({problem}); start one with dask "
            "scheduler, and give its address, such as tcp://host:8786."
        ) from None


def count_jobs(client: Any, threads: int) -> int:
    """Return the number of fits that run at a time: on the workers, or in the threads here."""
    return threads if client is None else max(sum(client.nthreads().values()), 1)


def check_memory(V: RowBlocks, rank: int) -> None:
    """Raise an error if W, which a run folder holds, is larger than the free memory."""
    import psutil  # noqa: PLC0415 - distributed installs it

    size, free = V.shape[0] * rank * V.dtype.itemsize, psutil.virtual_memory().available
    if size > free:
        raise ValueError(
            f"--components {rank}: W of {V.shape[0]:,} samples takes {size / 1e9:.1f} GB, and this "
            f"machine has {free / 1e9:.1f} GB free: fit with sipower.dask.KLNMF in Python, which "
            "leaves W on the workers."
        )


def cluster_facts(V: RowBlocks) -> dict[str, Any]:
    """Return the numbers of workers and of their threads for `run.json`; {} for data here."""
    if not hasattr(V, "client"):
        return {}
    threads = V.client.nthreads()
    return {"workers": len(threads), "threads": sum(threads.values())}


def fit_model(model: KLNMF, V: RowBlocks, observed: Mapping[str, Any]) -> Array:
    """Fit a model here or, if workers hold the rows, there; return W.

    An interruption leaves the model and the W of the last round.
    """
    if hasattr(V, "client"):
        return _fit_on_workers(model, V, observed)
    try:
        return np.asarray(model.fit_transform(V, **observed))
    except Interrupted as interrupt:
        return np.asarray(interrupt.result.W)


def _fit_on_workers(model: KLNMF, V: Any, observed: Mapping[str, Any]) -> Array:
    """Fit with `sipower.dask.KLNMF`, and give its fitted attributes to the model."""
    from sipower import dask  # noqa: PLC0415 - optional

    parameters, shared = model.get_params(deep=False), dask.KLNMF._get_param_names()
    on_workers = dask.KLNMF(**{name: parameters[name] for name in shared if name in parameters})
    on_workers.set_params(client=V.client)
    W: Any
    try:
        W = on_workers.fit_transform(V, gather=True, **observed)
    except Interrupted as interrupt:
        W = interrupt.result.W
    for name in vars(on_workers).keys() - on_workers.get_params().keys():
        setattr(model, name, getattr(on_workers, name))
    return np.asarray(W)
