# SPDX-License-Identifier: BSD-3-Clause
"""Counts that can be read whole or in blocks of rows: what every reader opens a file as."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy import sparse

from sipower.io.table import Counts, Table
from sipower.store.external_sort import Entries, Workspace

__all__ = ["Blocks", "Held", "Source", "Stream", "entries_of"]

Blocks = Generator[Counts, None, None]


class Source(Protocol):
    """Counts in a file, checked as they are read."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    def counts(self) -> Counts:
        """Read all of them."""

    def blocks(self, workspace: Workspace, *, turned: bool) -> Blocks:
        """Read blocks of rows in order, of the transpose if `turned`, within a workspace's memory."""

    def remarks(self) -> tuple[str, ...]:
        """Sentences for the user, known after reading."""


@dataclass(frozen=True, eq=False)
class Held:
    """Counts of a format that is read whole."""

    table: Table

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.table.counts.shape

    def counts(self) -> Counts:
        """All counts."""
        return self.table.counts

    def blocks(self, workspace: Workspace, *, turned: bool) -> Blocks:
        """All counts as one block."""
        yield (self.table.turned() if turned else self.table).counts

    def remarks(self) -> tuple[str, ...]:
        """Sentences of the reader."""
        return self.table.remarks


@dataclass(frozen=True, eq=False)
class Stream:
    """Counts of samples by features that are still in their file.

    Parameters
    ----------
    source
        The counts as the file holds them.
    samples, features
        Names, where there are any.
    notes
        Sentences for the user, known before reading.
    turned
        Whether the source holds features by samples.
    """

    source: Source
    samples: tuple[str, ...] | None = None
    features: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    turned: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and features."""
        rows, columns = self.source.shape
        return (columns, rows) if self.turned else (rows, columns)

    def transposed(self) -> Stream:
        """Exchange samples and features."""
        return replace(self, samples=self.features, features=self.samples, turned=not self.turned)

    def table(self) -> Table:
        """Read all counts."""
        table = Table(self.source.counts())
        counts = (table.turned() if self.turned else table).counts
        return Table(counts, self.samples, self.features, self.remarks())

    def blocks(self, workspace: Workspace) -> Blocks:
        """Read blocks of samples in order."""
        return self.source.blocks(workspace, turned=self.turned)

    def remarks(self) -> tuple[str, ...]:
        """Sentences for the user, once the counts are read."""
        return self.source.remarks() + self.notes


def entries_of(block: Counts, first: int) -> Entries:
    """Entries of a block of rows, of which the first has the given number."""
    found = sparse.coo_array(block)
    rows, columns = (part.astype(np.int32, copy=False) for part in found.coords)
    return Entries(rows + np.int32(first), columns, found.data)
