# SPDX-License-Identifier: BSD-3-Clause
"""Provenance of a result: data, parameters, versions, processor, commit."""

from __future__ import annotations

import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from sipower.data.plausibility import measure_values
from sipower.data.row_blocks import RowBlocks
from sipower.estimators import KLNMF
from sipower.estimators.fingerprints import fingerprints
from sipower.estimators.observation import ARGUMENTS
from sipower.kernels import instruction_set
from sipower.results.recorded import recorded_parameters

PACKAGES = ("scikit-learn", "typer", "rich", "plotly", "matplotlib", "jinja2", "pandas", "pyarrow",
            "h5py", "zarr", "anndata", "dask")  # fmt: skip
_COMPARED, _LIMITS = ("input", "parameters", "observed"), ("max_iter", "max_time", "n_jobs")


@cache
def provenance() -> dict[str, Any]:
    """Return the versions, the processor and the commit that produced a result."""
    names = ("sipower", "numpy", "scipy")
    return {
        "versions": {"python": platform.python_version(), **{n: version(n) for n in names}},
        "cpu": _processor(),
        "commit": _commit(),
    }


def optional_packages() -> dict[str, str | None]:
    """Return the versions of the optional packages; None for those that are not installed."""
    versions: dict[str, str | None] = {}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return {name: versions.get(name) for name in PACKAGES}


def first_difference(facts: dict[str, Any], new: dict[str, Any]) -> str | None:
    """Return "data" or the first parameter or argument in which two fits differ, or None.

    Limits such as `max_iter` are not compared, because they only decide when a fit ends.
    """
    data, parameters, observed = (
        [fact.get(key) or {} for fact in (facts, new)] for key in _COMPARED
    )
    if data[0].get("sha256") != data[1].get("sha256"):
        return "data"
    names = [name for name in parameters[1] if name not in _LIMITS]
    pairs = [(name, parameters[0].get(name), parameters[1][name]) for name in names]
    pairs += [(name, observed[0].get(name), observed[1].get(name)) for name in ARGUMENTS]
    return next((name for name, old, current in pairs if old != current), None)


def initial_facts(
    model: KLNMF, V: RowBlocks, file: str | None, observed: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the facts for `run.json` that are known before the data in `file` are fitted.

    `observed` are the arguments of the fit that say how the data were observed.
    """
    arguments, values = fingerprints(observed or {}), measure_values(V)
    return ({"observed": arguments} if arguments else {}) | {
        "command": shlex.join(["sipower", *sys.argv[1:]]),
        "parameters": recorded_parameters(model),
        "input": {
            "file": file,
            "sha256": V.sha256,
            "shape": list(V.shape),
            "nonzeros": int(V.reduce(_count_nonzeros)) if V.dense else V.nnz,
            "total": V.total,
            "values": str(values),
        },
        "whole_numbers": values.share,
        "threads": V.threads,
        "instruction_set": instruction_set(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        **provenance(),
    }


def _count_nonzeros(V: RowBlocks) -> int:
    return int(np.count_nonzero(V.array if V.is_in_memory else V.rows(0, V.shape[0])))


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _commit() -> str:
    """Return the commit of the Git checkout that contains this package, or "unknown"."""
    package = Path(__file__).parents[1]
    try:
        top = _git(package, "rev-parse", "--show-toplevel")
        if Path(top, "src", "sipower").resolve() == package.resolve():
            return _git(package, "describe", "--always", "--dirty", "--abbrev=12")
    except (OSError, subprocess.CalledProcessError):
        pass
    return "unknown"


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout.strip()
