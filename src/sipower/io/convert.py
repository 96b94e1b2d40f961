# SPDX-License-Identifier: BSD-3-Clause
"""`convert`: writes the counts of a file as a store, in blocks that fit into memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from os import PathLike
from pathlib import Path
from typing import Any

from sipower.data.plausibility import orientation_remark
from sipower.data.validate import EntryError
from sipower.io.base import Counts
from sipower.io.dispatch import open_counts
from sipower.io.sources import Blocks, OpenCounts, entry_error
from sipower.io.space import conversion_bytes
from sipower.io.words import TextSettings
from sipower.store import byte_size, write_store
from sipower.store.workspace import Progress, Workspace

__all__ = ["convert"]


def convert(  # noqa: PLR0913 - all options are keyword-only
    source: str | PathLike[str],
    target: str | PathLike[str],
    *,
    transpose: bool = False,
    layout: str | None = None,
    layer: str | None = None,
    text_column: str | None = None,
    text_options: Mapping[str, Any] | None = None,
    rows_only: bool = False,
    memory_limit: str | int = "512MB",
    force: bool = False,
    on_block: Progress | None = None,
) -> tuple[str, ...]:
    r"""Write the counts of a file as a store.

    Matrix Market files, bags of words, AnnData files (.h5ad and .zarr), and 10x folders and HDF5
    files are read in blocks, whatever their size. Files of other formats are read whole.

    Parameters
    ----------
    source, transpose, layout, layer, text_column, text_options
        As in `read`.
    target, rows_only, memory_limit, force
        As in `sipower.store.write_store`; the limit does not include names.
    on_block
        Called with "entries" while entries are sorted, then with "rows" and with "columns";
        the other arguments are how many of them are done, and how many nonzeros they have.

    Returns
    -------
    tuple of str
        Sentences for the user about assumptions that were made and content that looks unusual.

    Raises
    ------
    ReadError
        As in `read`.
    ValueError
        If the disk has too little space for the store, among others.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sipower.io import convert
    >>> from sipower.store import read_layout
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "docword.tiny.txt").write_text("2\n3\n2\n2 1 4\n1 3 7\n")
    >>> convert(folder / "docword.tiny.txt", folder / "tiny.sipower")
    ()
    >>> read_layout(folder / "tiny.sipower").total
    11.0
    """
    workspace = Workspace(Path(target), byte_size(memory_limit), on_block)
    texts = TextSettings(text_column, text_options)
    with open_counts(Path(source), layout, layer, texts) as counts:
        stream = counts.transpose() if transpose else counts
        workspace.check_space(conversion_bytes(stream, rows_only=rows_only))
        remarks: list[str] = []
        with closing(stream.blocks(workspace)) as blocks:
            try:
                write_store(
                    _inspect_first(blocks, stream, remarks),
                    target,
                    rows_only=rows_only,
                    memory_limit=memory_limit,
                    samples=stream.samples,
                    features=stream.features,
                    feature_ids=stream.feature_ids,
                    force=force,
                    on_block=on_block,
                )
            except EntryError as problem:
                raise stream.add_advice(entry_error(Path(source), problem)) from None
        if not transpose:
            remarks += orientation_remark(stream.samples, stream.features)
        return (*stream.remarks(), *remarks)


def _inspect_first(blocks: Blocks, stream: OpenCounts, remarks: list[str]) -> Iterator[Counts]:
    """Yield the blocks, and add a remark if the values of the first do not look like counts."""
    for number, block in enumerate(blocks):
        if number == 0:
            remarks += stream.value_remark(block)
        yield block
