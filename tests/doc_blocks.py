# SPDX-License-Identifier: BSD-3-Clause
"""The Markdown pages of the project and the code blocks in them."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
GENERATED = ("gallery", "generated")
PAGES = sorted(
    path
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))
    if not set(GENERATED) & set(path.relative_to(ROOT).parts)
)
FENCE = re.compile(r"^( *)```([^\n`]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: the text after its opening fence, and its content without indentation."""

    kind: str
    code: str


def page_id(path: Path) -> str:
    """Return the path of a page as the id of a test."""
    return str(path.relative_to(ROOT))


def code_blocks(path: Path, kind: str | None = None) -> list[Block]:
    """Return the blocks of a page, or those of one kind such as "python"."""
    blocks = [
        Block(match[2].strip(), textwrap.dedent(match[3]))
        for match in FENCE.finditer(path.read_text(encoding="utf-8"))
    ]
    return [block for block in blocks if kind in (None, block.kind)]


def quoted_code(path: Path) -> list[str]:
    """Return what stands between single backticks, outside of blocks."""
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    return [" ".join(code.split()) for code in re.findall(r"(?<!`)`([^`]+)`(?!`)", text)]
