# SPDX-License-Identifier: BSD-3-Clause
"""`describe_file`: find out which format a file or folder has, and describe it.

A table is described by the JSON file of the same name, and a file that is a part of a folder as the
folder.
"""

from __future__ import annotations

from pathlib import Path

from sipower._files import shorten
from sipower.cli.file_facts import (
    ARCHIVES,
    FOLDERS,
    JSON_FILES,
    Describe,
    Facts,
    differences,
    read_arrays,
    read_json,
    table,
)
from sipower.io import ReadError

__all__ = ["describe_file"]

Found = tuple[Describe, Path]
TABLES = (".csv", ".tsv", ".parquet")


def describe_file(path: Path) -> Facts:
    """Return format, version, writer and content of a file or folder; raise if it is no such file.

    Names are summarised. What a file does not record is None.
    """
    if not path.exists():
        raise ReadError(f"{path} does not exist.")
    found = _find_folder(path) if path.is_dir() else _find_file(path)
    if found is None:
        raise ReadError(
            f"{path} is not a file or folder that sipower has written: read a file of counts with "
            "sipower fit --dry-run, and a cache folder with sipower cache."
        )
    describe, place = found
    try:
        return describe(place)
    except (ValueError, OSError, MemoryError, ImportError):  # these say what is wrong
        raise
    except Exception as error:  # damaged files can raise nearly anything
        reason = f"{type(error).__name__}: {shorten(error)}"
        raise ReadError(f"{place} is damaged ({reason}): write it again.") from None


# Each of the following returns a function and the file or folder that it describes, or None.


def _find_folder(path: Path) -> Found | None:
    return next(((FOLDERS[name][0], path) for name in FOLDERS if (path / name).is_file()), None)


def _find_file(path: Path) -> Found | None:
    is_table = path.suffix.lower() in TABLES
    if path.suffix.lower() == ".npz":
        found = _find_by_arrays(path)
    else:
        found = _find_by_keys(path, path.with_suffix(".json") if is_table else path)
    return found or _find_whole(path) or ((table, path) if is_table else None)


def _find_by_arrays(path: Path) -> Found | None:
    arrays = read_arrays(path, ())
    return next(((ARCHIVES[name], path) for name in ARCHIVES if name in arrays), None)


def _find_by_keys(path: Path, json_file: Path) -> Found | None:
    if json_file.suffix.lower() != ".json" or not json_file.is_file():
        return None
    keys = read_json(json_file)
    describe = next((JSON_FILES[key] for key in JSON_FILES if key in keys), None)
    if describe is None:
        return None
    return describe, path if describe is differences else json_file


def _find_whole(path: Path) -> Found | None:
    """Find the folder that a file is a part of."""
    for name, (describe, files) in FOLDERS.items():
        if path.name in files and (path.parent / name).is_file():
            return describe, path.parent
    return None
