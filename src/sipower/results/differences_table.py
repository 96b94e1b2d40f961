# SPDX-License-Identifier: BSD-3-Clause
"""Differences between components as a file: a table and its facts, written and read exactly.

The table is .csv or .parquet, with one row for each contrast and feature:

================  ================================================================================
feature           name of the feature or, if the data have no names, its position from 0
contrast          component, or "component vs component" for pairs
against           component that the estimate compares with; "all": all data together
counts            sum of the counts of the feature
share             share of the feature in the profile of the component
log2_fold_change  estimate, log2
standard_error    its standard error
z                 estimate divided by its standard error
posterior_mean    estimate shrunk towards zero
lower, upper      interval that has the posterior probability `level`
lfsr              local false sign rate
================  ================================================================================

A .json file beside it, of the same name, holds the rest: components, kind of contrast, level and
the check on independent counts.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from sipower._files import atomic_write, quote, shorten
from sipower.data.formats import DIFFERENCES, NewerFormatError
from sipower.inference import Differences, Replication
from sipower.inference.differences import MEASURES
from sipower.inference.fold_changes import CONTRASTS
from sipower.io.base import exact_floats
from sipower.selection.outcome import as_plain

__all__ = ["COLUMNS", "load_differences", "read_differences", "table_path", "write_differences"]

ENDINGS = (".csv", ".parquet")
COLUMNS = ("feature", "contrast", "against", "counts", "share", *MEASURES)
STORED = tuple(name for name in MEASURES if name != "z")  # z follows from two others
_TEXTS = ("feature", "contrast", "against")


def write_differences(
    differences: Differences, file: str | PathLike[str], **facts: Any
) -> list[Path]:
    """Write differences as a table, and a .json file of the same name with the other facts.

    Parameters
    ----------
    differences
        The result of `sipower.differential`.
    file
        The table, which ends in .csv or .parquet; older files are replaced.
    **facts
        Further entries of the .json file, such as the command.

    Returns
    -------
    list of Path
        The table and the .json file.

    Examples
    --------
    >>> import tempfile
    >>> from sipower import KLNMF, differential
    >>> from sipower.datasets import poisson_topics
    >>> from sipower.results.differences_table import write_differences
    >>> V = poisson_topics(300, 100, 3, seed=0)
    >>> differences = differential(V, KLNMF(3, random_state=0).fit(V))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [file.name for file in write_differences(differences, f"{folder}/topics.csv")]
    ['topics.csv', 'topics.json']
    """
    target = Path(file)
    check_table_name(target)
    frame, ending = differences.to_frame(), target.suffix.lower()
    if ending == ".csv":
        _check_names(differences, target)
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_suffix(".json")
    text = json.dumps(as_plain(_facts(differences) | facts), indent=2, allow_nan=False) + "\n"
    with atomic_write(beside) as facts_out, atomic_write(target) as out:
        facts_out.write(text.encode())
        if ending == ".parquet":
            frame.to_parquet(out, index=False)
        else:
            options = {"quoting": csv.QUOTE_NONNUMERIC, "lineterminator": "\n"}
            frame.to_csv(out, index=False, **options)
        out.flush()
    return [target, beside]


def check_table_name(file: Path) -> None:
    """Raise an error if the name of a table does not end as its format does."""
    if file.suffix.lower() not in ENDINGS:
        raise ValueError(f"{file} must end in .csv or .parquet.")


def _check_names(differences: Differences, file: Path) -> None:
    names = [*map(str, differences.feature_names), *differences.components]
    unreadable = next((name for name in names if "\0" in name), None)
    if unreadable is not None:
        raise ValueError(
            f"{file} cannot hold the name {quote(unreadable)}, which contains NUL: use .parquet."
        )


def _facts(differences: Differences) -> dict[str, Any]:
    return {
        **DIFFERENCES.stamp(),
        "contrast": differences.contrast,
        "level": differences.level,
        "components": list(differences.components),
        "pairs": differences.pairs.tolist(),
        "features": len(differences.counts),
        "has_names": differences.features is not None,
        "shrinkage_gaps": differences.shrinkage_gaps.tolist(),
        "verdict": str(differences.replication),
        "replication": replication_facts(differences.replication),
    }


def replication_facts(replication: Replication) -> dict[str, Any]:
    """Return the check on independent counts as plain data."""
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in asdict(replication).items()
    }


def read_differences(file: str | PathLike[str]) -> Differences:
    """Read differences that `write_differences` has written.

    All numbers are those that were written. For pairs of components, the profile of the last one
    is computed from the fold changes.

    Examples
    --------
    >>> import tempfile
    >>> from sipower import KLNMF, differential
    >>> from sipower.datasets import poisson_topics
    >>> from sipower.results.differences_table import read_differences, write_differences
    >>> V = poisson_topics(300, 100, 3, seed=0)
    >>> differences = differential(V, KLNMF(3, random_state=0).fit(V))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table, _ = write_differences(differences, f"{folder}/topics.csv")
    ...     bool((read_differences(table).lfsr == differences.lfsr).all())
    True
    """
    source = Path(file)
    check_table_name(source)
    beside = source.with_suffix(".json")
    for path in (source, beside):
        if not path.is_file():
            raise ValueError(f"{path} does not exist: `sipower differential` writes it.")
    try:
        facts = json.loads(beside.read_text(encoding="utf-8"))
        DIFFERENCES.check(facts, source)
        return _from_frame(_read_frame(source), facts)
    except (MemoryError, ImportError, NewerFormatError):
        raise
    except Exception as error:  # damaged files can raise nearly anything
        reason = f"{type(error).__name__}: {shorten(error)}"
        raise ValueError(
            f"{source} or {beside.name} is damaged ({reason}): run `sipower differential` again."
        ) from None


def _read_frame(file: Path) -> Any:
    import pandas as pd  # noqa: PLC0415 - optional

    if file.suffix.lower() == ".parquet":
        return pd.read_parquet(file, columns=list(COLUMNS))
    return pd.read_csv(
        file, usecols=list(COLUMNS), dtype=dict.fromkeys(_TEXTS, str), keep_default_na=False,
        **exact_floats(pd),
    )  # fmt: skip


def _from_frame(frame: Any, facts: dict[str, Any]) -> Differences:
    components = tuple(map(str, facts["components"]))
    pairs = np.array(facts["pairs"], np.int64).reshape(-1, 2)
    shape = len(pairs), int(facts["features"])
    if facts["contrast"] not in CONTRASTS or not 0 < facts["level"] < 1:
        raise ValueError("its kind of contrast or its level is unknown")
    if not (pairs.min() >= -1 and pairs.max() < len(components) and pairs[:, 0].min() >= 0):
        raise ValueError("its pairs name components that do not exist")
    values = {name: frame[name].to_numpy(np.float64).reshape(shape) for name in STORED}
    share, counts = (
        frame[name].to_numpy(np.float64).reshape(shape) for name in ("share", "counts")
    )
    if not all(np.isfinite(array).all() for array in (*values.values(), share, counts)):
        raise ValueError("it holds values that are not finite")
    features = [str(name) for name in frame["feature"][: shape[1]]]
    return Differences(
        **values,
        against=_against(frame, facts["contrast"], pairs, components),
        pairs=pairs,
        profiles=_profiles(share, values["log2_fold_change"], pairs, len(components)),
        counts=counts[0],
        features=np.array(features) if facts["has_names"] else None,
        components=components,
        contrast=facts["contrast"],
        level=float(facts["level"]),
        shrinkage_gaps=np.array(facts["shrinkage_gaps"], np.float64),
        replication=to_replication(facts["replication"]),
    )


def _against(frame: Any, contrast: str, pairs: Any, components: tuple[str, ...]) -> Any:
    """Return the component that every estimate compares with, -1 for all data."""
    shape = len(pairs), len(frame) // len(pairs)
    if contrast != "least extreme":  # -1, or the other component of the pair
        return np.repeat(pairs[:, 1:], shape[1], axis=1)
    place = {name: at for at, name in enumerate(components)}
    return np.array([place[name] for name in frame["against"]], np.int64).reshape(shape)


def _profiles(share: Any, changes: Any, pairs: Any, rank: int) -> Any:
    """Return the profiles of all components; one that is only compared with has no share."""
    profiles = np.zeros((rank, share.shape[1]))
    profiles[pairs[:, 0]] = share
    for k in set(range(rank)) - set(pairs[:, 0].tolist()):
        row = int(np.argmax(pairs[:, 1] == k))
        profiles[k] = share[row] / 2 ** changes[row]
    return profiles


def to_replication(facts: Mapping[str, Any]) -> Replication:
    """Return the check on independent counts from plain data."""
    arrays = {
        name: None if facts.get(name) is None else np.array(facts[name], np.float64)  # NaN for None
        for name in ("components", "similarity")
    }
    agreement = np.nan if facts.get("agreement") is None else float(facts["agreement"])
    return Replication(int(facts["differences"]), agreement, **arrays, reason=str(facts["reason"]))


def table_path(folder: str | PathLike[str]) -> Path | None:
    """Return the table of differences in a run folder, or None if it has none."""
    files = [Path(folder) / f"differential{ending}" for ending in ENDINGS]
    return next((file for file in files if file.is_file()), None)


def load_differences(
    folder: str | PathLike[str], components: tuple[str, ...]
) -> Differences | None:
    """Return the differences in a run folder, or None; `components` are those of the run."""
    file = table_path(folder)
    if file is None:
        return None
    differences = read_differences(file)
    if differences.components != components:
        raise ValueError(f"{file} is not of this run, whose components differ: remove it.")
    return differences
