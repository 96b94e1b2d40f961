# SPDX-License-Identifier: BSD-3-Clause
"""Texts of any length in an HDF5 file, read in a process of their own: this file is its script.

HDF5 2.0 trusts the lengths that such texts have in a file. Where one is damaged it reads beyond its
memory and crashes, or never ends; in another process that is one sentence.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["own", "texts_of"]

_SECONDS, _MEMORY = 4, 3 << 29
_BYTES_A_SECOND = 10_000_000


def texts_of(path: Path, matrix: str, *places: str) -> dict[str, Any]:
    """Read the names at each place, and at "" how the matrix is encoded.

    A place is a list of texts, or a table of AnnData whose index is meant.

    Raises
    ------
    ValueError
        When they cannot be read.
    """
    command = [sys.executable, "-P", __file__, str(path), matrix, *places]
    run = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    if run.returncode:
        said = run.stderr.strip().splitlines() or [f"HDF5 ended with {run.returncode}"]
        raise ValueError(f"its texts, {said[-1]}")
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def own(path: str, *elements: Any) -> None:
    """Refuse what lies in other files: who made this one may not choose which of them are read."""
    for element in elements:
        elsewhere = getattr(element, "external", None) or getattr(element, "is_virtual", False)
        if elsewhere or element.file.filename != path:
            raise ValueError(f"another file holds {element.name}")  # a long name is cut


def _main(path: str, matrix: str, *places: str) -> None:
    with _library("h5py", path).File(path, "r") as file:
        attributes = file[matrix].attrs
        # Files of anndata before 0.7 have the older attribute.
        encoding = attributes.get("encoding-type", attributes.get("h5sparse_format", ""))
        found = {place: _names(path, file[place]) for place in places}
    sys.stdout.write(json.dumps({"": str(encoding), **found}))


def _names(path: str, element: Any) -> list[str]:
    own(path, element)
    records = getattr(getattr(element, "dtype", None), "names", None)
    if records:  # a table of anndata before 0.7
        return list(map(str, _library("anndata.io", path).read_elem(element).index))
    if not hasattr(element, "shape"):
        element = element[element.attrs["_index"]]
    return _texts(path, element)


def _texts(path: str, element: Any) -> list[str]:
    """Read each part by itself: anndata would follow links that lead out of any of them."""
    own(path, element)
    if hasattr(element, "shape"):
        content = element.asstr()[()] if element.dtype.kind in "OS" else element[()]
        return list(map(str, content.ravel().tolist()))
    own(path, *element.values())
    encoding = str(element.attrs.get("encoding-type"))
    if encoding.startswith("nullable"):
        names, missing = _texts(path, element["values"]), element["mask"][()]
        return ["<NA>" if no else name for name, no in zip(names, missing, strict=True)]
    if encoding != "categorical":
        raise ValueError(f"{element.name} holds no names")  # a link may make it the whole file
    names, codes = _texts(path, element["categories"]), element["codes"][()].tolist()
    if any(code < -1 for code in codes):
        raise ValueError(f"{element.name} has codes below -1")
    return ["nan" if code == -1 else names[code] for code in codes]


def _library(name: str, path: str) -> Any:
    """A library, and bounds on the time and memory that it has for the file."""
    try:
        resource = import_module("resource")
    except ImportError:  # not on Windows
        return import_module(name)
    most = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))  # imports may take their time
    library, size = import_module(name), Path(path).stat().st_size
    seconds = int(time.process_time()) + _SECONDS + size // _BYTES_A_SECOND
    seconds = seconds if most == resource.RLIM_INFINITY else min(seconds, most)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, most))
    memory = _MEMORY + 8 * size
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    return library


if __name__ == "__main__":
    _main(*sys.argv[1:])
