# SPDX-License-Identifier: BSD-3-Clause
"""Values and files as named parts, arrays or texts without clock times and paths; and differences.

Used by tools/net.py. A part is an array of numbers or a text; `compare_parts` says by how much two
parts of the same name differ, and `digest_parts` condenses all of them to one hash.
"""

from __future__ import annotations

import csv
import dataclasses
import difflib
import hashlib
import inspect
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

Part = np.ndarray | str
Parts = dict[str, Part]

# What differs between two runs of the same code: clocks, versions, the machine and its load.
CLOCKS = {
    "seconds", "seconds_per_round", "expected_seconds", "started", "made", "last_used", "created",
    "modified", "date", "time", "versions", "cpu", "commit", "packages", "duration", "client",
}  # fmt: skip
DURATION = re.compile(
    r"\b\d[\d.,e+-]*(?: to \d[\d.,e+-]*)? ?(?:ms|s|seconds?|min|minutes?|h|hours?)\b"
)
DATE = re.compile(r"\b20\d\d-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.+-][\d:.]+)?)?")
JSON_CLOCK = re.compile(
    rf'"({"|".join(sorted(CLOCKS))})": ?("[^"]*"|[-\d.e+]+|\[[-\d.e+, ]*\]|null)'
)
HTML_CLOCK = re.compile(rf"(<td>(?:{'|'.join(sorted(CLOCKS))})</td><td><bdi>)[^<]*")
RECORD = re.compile(r"\brecords\.\d+$")  # of a checkpoint: round, passes, seconds, ...
SECONDS = re.compile(r"(\bseconds(?: +|</\w+>(?:<\w+>)+))[\d.e-]+")  # of a table of facts
CACHED = re.compile(r"-[0-9a-f]{16}\b")  # depends on the path and the time of a file
PROGRESS = re.compile(r"^ +DURATION +round .*$|^.*\bDURATION left\b.*$", re.MULTILINE)
MAX_SHOWN = 4  # differing lines, and 160 characters of each
WIDTH = 160


# ---- values ----------------------------------------------------------------------------------


class Flattener:
    """Turns a value into parts, and collects the classes of all objects in it."""

    def __init__(self, folders: Mapping[str, str]) -> None:
        self.folders = folders  # paths that texts replace by a word
        self.parts: Parts = {}
        self.classes: set[type] = set()

    def clean(self, text: str) -> str:
        """Return a text without clock times and without the paths of this run."""
        for folder, word in self.folders.items():
            text = text.replace(folder, word)
        text = JSON_CLOCK.sub(r'"\1": CLOCK', text)
        text = HTML_CLOCK.sub(r"\1CLOCK", text)
        text = CACHED.sub("-HASH", SECONDS.sub(r"\1CLOCK", text))
        text = DATE.sub("DATE", DURATION.sub("DURATION", text))
        return PROGRESS.sub("", text)

    def add(self, name: str, value: Any) -> None:
        """Add the parts of a value under a name."""
        self.classes.update(type(value).__mro__)
        if name.rpartition(".")[2].rpartition(": ")[2] in CLOCKS:
            return
        simple = as_part(value)
        if simple is not None:
            self.parts[name] = self.clean(simple) if isinstance(simple, str) else simple
            return
        for key, item in list_items(value):
            self.add(f"{name}.{key}" if name else str(key), item)

    def add_file(self, path: Path, name: str) -> None:
        """Add the parts of a file: columns of tables, arrays, keys of JSON, lines of texts."""
        for key, value in read_file(path):
            part = value if isinstance(value, np.ndarray) else self.clean(str(value))
            if key.rpartition(".")[2].removeprefix("column ") not in CLOCKS:
                self.parts[f"{name}, {key}" if key else name] = part


def as_part(value: Any) -> Part | None:
    """Return a number, a text or an array of them as a part, None for a composed value."""
    part: Part | None = None
    if value is None or isinstance(value, bool | str | bytes | Enum | Path | type | range):
        part = str(value)
    elif isinstance(value, int | float | complex | np.generic):
        part = as_part(np.asarray(value))
    elif inspect.isroutine(value):
        part = f"function {getattr(value, '__qualname__', value)}"
    elif isinstance(value, np.ndarray):
        if value.dtype.kind in "biufc":
            part = np.ascontiguousarray(value).reshape(value.shape)
        elif value.dtype.names is None:
            part = "\n".join([f"shape {value.shape}", *map(str, value.ravel())])
    elif isinstance(value, list | tuple | set | frozenset) and not hasattr(value, "_fields"):
        items = sorted(value, key=str) if isinstance(value, set | frozenset) else list(value)
        if items and all(type(item) in (int, float) for item in items):
            part = np.asarray(items)
        elif all(item is None or isinstance(item, bool | str) for item in items):
            part = "\n".join(map(str, items))
    return part


def list_items(value: Any) -> Iterable[tuple[str, Any]]:
    """Return the names and the values of what a composed value consists of."""
    return next(items(value) for applies, items in LISTERS if applies(value))


def list_sparse(matrix: Any) -> Iterator[tuple[str, Any]]:
    """Yield the arrays of a sparse matrix by row, in the order of its columns."""
    csr = sp.csr_array(matrix)
    csr.sort_indices()
    yield from (("shape", csr.shape), ("data", csr.data), ("indices", csr.indices),
                ("indptr", csr.indptr))  # fmt: skip


def list_blocks(blocks: Any) -> Iterator[tuple[str, Any]]:
    """Yield what row blocks say of their data, wherever these are."""
    yield from ((name, getattr(blocks, name)) for name in ("shape", "nonzeros", "total", "mass")
                if hasattr(blocks, name))  # fmt: skip


def list_pandas(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the index and the columns of a frame, series or index."""
    if hasattr(value, "columns"):
        yield "index", value.index.to_numpy()
        yield from ((f"column {name}", value[name].to_numpy()) for name in value.columns)
        return
    if hasattr(value, "index"):
        yield "index", value.index.to_numpy()
    yield "values", value.to_numpy()


def list_anndata(adata: Any) -> Iterator[tuple[str, Any]]:
    """Yield everything that an AnnData object holds."""
    yield from (("X", adata.X), ("obs", adata.obs), ("var", adata.var), ("uns", dict(adata.uns)))
    for name in ("obsm", "varm", "layers"):
        yield name, dict(getattr(adata, name))


def draw_svg(axes: Any) -> str:
    """Return the drawing of a figure as SVG, without its date."""
    import matplotlib.pyplot as plt  # noqa: PLC0415 - optional

    target = io.StringIO()
    with plt.rc_context({"svg.hashsalt": "net", "svg.fonttype": "none"}):
        axes.get_figure().savefig(target, format="svg", metadata={"Date": None, "Creator": None})
    plt.close("all")
    return target.getvalue()


def list_fitted(model: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fitted attributes of an estimator."""
    names = sorted(name for name in vars(model) if name.endswith("_") and not name.startswith("_"))
    yield from ((name, getattr(model, name)) for name in names)


def list_attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the public attributes of any other object."""
    yield "type", type(value).__name__
    attributes = getattr(value, "__dict__", {})
    yield from ((name, attributes[name]) for name in sorted(attributes) if name[0] != "_")


def has(name: str) -> Callable[[Any], bool]:
    """Return the test whether a value has an attribute."""
    return lambda value: hasattr(value, name)


# Tests of a value, and what lists its parts; the first one that applies is used.
LISTERS: tuple[tuple[Callable[[Any], bool], Callable[[Any], Iterable[tuple[str, Any]]]], ...] = (
    (has("_asdict"), lambda value: value._asdict().items()),
    (lambda value: isinstance(value, Mapping),
     lambda value: ((str(key), item) for key, item in value.items())),
    (lambda value: isinstance(value, list | tuple | set | frozenset),
     lambda value: ((str(place), item) for place, item in enumerate(value, 1))),
    (sp.issparse, list_sparse),
    (has("obs_names"), list_anndata),
    (lambda value: type(value).__module__.startswith("pandas."), list_pandas),
    (has("get_figure"), lambda value: [("svg", draw_svg(value))]),
    (has("get_params"), list_fitted),
    (has("row_sums"), lambda value: [("row_sums", value.row_sums())]),
    (has("windows"), list_blocks),
    (dataclasses.is_dataclass,
     lambda value: ((f.name, getattr(value, f.name)) for f in dataclasses.fields(value))),
    (lambda value: isinstance(value, BaseException), lambda value: [("error", str(value))]),
    (lambda value: True, list_attributes),
)  # fmt: skip


# ---- files -----------------------------------------------------------------------------------


def read_file(path: Path) -> Iterator[tuple[str, Part]]:
    """Yield the parts of a file; of one that no reader takes, the bytes."""
    kind = path.suffix.lower()
    readers = {
        ".npz": read_npz, ".npy": read_npy, ".csv": read_csv, ".tsv": read_csv, ".json": read_json,
        ".jsonl": read_json_lines, ".parquet": read_parquet, ".h5ad": read_hdf5, ".h5": read_hdf5,
        ".png": read_image,
    }  # fmt: skip
    if kind in readers:
        yield from readers[kind](path)
        return
    data = path.read_bytes()
    try:
        yield "", data.decode("utf-8")
    except UnicodeDecodeError:
        yield "bytes", np.frombuffer(data, np.uint8)


def read_npz(path: Path) -> Iterator[tuple[str, Part]]:
    """Yield the arrays of an archive."""
    with np.load(path, allow_pickle=False) as archive:
        for name in sorted(archive.files):
            array = archive[name]
            if array.dtype == np.uint8 and array.tobytes()[:1] == b"{":  # the head of a checkpoint
                yield from flatten_json(name, json.loads(array.tobytes()))
                continue
            part = as_part(array)
            yield name, str(array) if part is None else part


def read_npy(path: Path) -> Iterator[tuple[str, Part]]:
    """Yield the array of a file."""
    part = as_part(np.load(path, allow_pickle=False))
    yield "array", path.name if part is None else part


def read_csv(path: Path) -> Iterator[tuple[str, Part]]:
    """Yield the columns of a table by their headings, after the lines of comments."""
    lines = path.read_text(encoding="utf-8").splitlines()
    comments = [line for line in lines if line.startswith("#")]
    if comments:
        yield "comments", "\n".join(comments)
    delimiter = "\t" if path.suffix == ".tsv" else ","
    rows = list(csv.reader(lines[len(comments) :], delimiter=delimiter))
    if not rows:
        return
    yield "header", "\n".join(rows[0])
    for place, name in enumerate(rows[0]):
        cells = [row[place] if place < len(row) else "MISSING" for row in rows[1:]]
        yield f"column {name or place + 1}", as_numbers(cells)


def as_numbers(cells: list[str]) -> Part:
    """Return the cells of a column as numbers if all of them are, else as a text of lines."""
    try:
        numbers = np.array([float(cell) for cell in cells])
    except ValueError:
        return "\n".join(cells)
    return numbers


def read_json(path: Path) -> Iterator[tuple[str, Part]]:
    """Yield the leaves of a JSON file by their keys."""
    yield from flatten_json("", json.loads(path.read_text(encoding="utf-8")))


def read_json_lines(path: Path) -> Iterator[tuple[str, Part]]:
    """Yield the leaves of every line."""
    for place, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        yield from flatten_json(f"line {place}", json.loads(line))


def flatten_json(name: str, value: Any) -> Iterator[tuple[str, Part]]:
    """Yield the leaves of a value read from JSON, without clock times."""
    if name.rpartition(".")[2] in CLOCKS:
        return
    part = as_part(value)
    if part is not None:
        yield name, np.delete(part, 2) if RECORD.search(name) else part
        return
    for key, item in list_items(value):
        yield from flatten_json(f"{name}.{key}" if name else str(key), item)


def read_parquet(path: Path) -> Iterator[tuple[str, Part]]:
    """Yield the columns of a table."""
    from pyarrow import parquet  # noqa: PLC0415 - optional

    table = parquet.read_table(path)
    for name in table.column_names:
        values = table[name].to_pylist()
        part = as_part(np.array(values)) if values else ""
        yield f"column {name}", str(values) if part is None else part


def read_hdf5(path: Path) -> Iterator[tuple[str, Part]]:
    """Yield every data set of a file."""
    import h5py  # noqa: PLC0415 - optional

    found: list[tuple[str, Part]] = []

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            value = item.asstr()[()] if h5py.check_string_dtype(item.dtype) else item[()]
            part = as_part(value)
            found.append((name.replace("/", "."), str(value) if part is None else part))

    with h5py.File(path) as file:
        file.visititems(visit)
    yield from found


def read_image(path: Path) -> Iterator[tuple[str, Part]]:
    """Yield the pixels of an image."""
    from PIL import Image  # noqa: PLC0415 - optional

    with Image.open(path) as image:
        yield "pixels", np.asarray(image.convert("RGB"))


# ---- differences -----------------------------------------------------------------------------


def digest_part(part: Part) -> str:
    """Return the SHA-256 of a part: of its type, shape and bits, or of its text."""
    if isinstance(part, str):
        return hashlib.sha256(part.encode()).hexdigest()
    head = f"{part.dtype.str}{part.shape}".encode()
    return hashlib.sha256(head + np.ascontiguousarray(part).tobytes()).hexdigest()


def digest_parts(parts: Mapping[str, Part]) -> str:
    """Return one short hash of all parts of a case."""
    lines = [f"{name} {digest_part(part)}" for name, part in sorted(parts.items())]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def compare_parts(before: Mapping[str, Part], after: Mapping[str, Part]) -> list[str]:
    """Return a sentence for every part that differs between two digests of a case."""
    sentences = []
    for name in [*before, *(name for name in after if name not in before)]:
        if name not in after:
            sentences.append(f"{name}: gone")
        elif name not in before:
            sentences.append(f"{name}: new")
        elif digest_part(before[name]) != digest_part(after[name]):
            sentences.append(f"{name}: {describe_difference(before[name], after[name])}")
    return sentences


def describe_difference(before: Part, after: Part) -> str:
    """Say by how much two parts differ: the largest relative difference, or the changed lines."""
    if isinstance(before, str) and isinstance(after, str):
        return describe_lines(before, after)
    if isinstance(before, str) or isinstance(after, str):
        kinds = ["a text" if isinstance(part, str) else "numbers" for part in (before, after)]
        return f"was {kinds[0]}, is {kinds[1]}"
    if before.shape != after.shape:
        return f"shape {before.shape}, now {after.shape}"
    changed = [] if before.dtype == after.dtype else [f"type {before.dtype}, now {after.dtype}"]
    wide = np.complex128 if "c" in before.dtype.kind + after.dtype.kind else np.float64
    old, new = before.astype(wide), after.astype(wide)
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(old), np.abs(new))
        relative = np.where(size > 0, np.abs(new - old) / size, 0)
    is_same = (old == new) | (np.isnan(old) & np.isnan(new))
    count = int((~is_same).sum())
    if count:
        relative = relative[~is_same]
        largest = "NaN" if np.isnan(relative).any() else f"{relative.max():.1e}"
        changed.append(f"{count} of {old.size} numbers differ, relatively by at most {largest}")
    return "; ".join(changed) or "only signs of zeros or bits of NaN differ"


def describe_lines(before: str, after: str) -> str:
    """Return the first changed lines of two texts, long ones from shortly before the change."""
    old, new = before.splitlines(), after.splitlines()
    shown: list[str] = []
    count = 0
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for kind, i, i_end, j, j_end in matcher.get_opcodes():
        if kind == "equal":
            continue
        count += max(i_end - i, j_end - j)
        for a, b in zip_longest(old[i:i_end], new[j:j_end]):
            shown += [] if a is None else [f"- {cut_line(a, b or '')}"]
            shown += [] if b is None else [f"+ {cut_line(b, a or '')}"]
    more = [] if len(shown) <= MAX_SHOWN else [f"... {len(shown) - MAX_SHOWN} more"]
    word = "line" if count == 1 else "lines"
    return "\n        ".join([f"{count} {word} changed", *shown[:MAX_SHOWN], *more])


def cut_line(line: str, other: str) -> str:
    """Return the part of a long line in which it differs from the line it is paired with."""
    if len(line) <= WIDTH:
        return line
    same = next((i for i, (a, b) in enumerate(zip(line, other, strict=False)) if a != b), 0)
    begin = max(0, same - WIDTH // 4)
    return f"... {line[begin : begin + WIDTH]} ..."
