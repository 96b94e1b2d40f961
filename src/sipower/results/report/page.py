# SPDX-License-Identifier: BSD-3-Clause
"""`write_report`: one HTML file with everything in it."""

from __future__ import annotations

from importlib.resources import files
from os import PathLike
from pathlib import Path
from string import Template

from sipower.files import replacing
from sipower.results.describe import choose_evenly, describe
from sipower.results.report import sections
from sipower.results.report.data import as_json, collect
from sipower.results.report.origin import provenance
from sipower.results.report.text import text
from sipower.results.run import Run
from sipower.selection import Consensus, RankSelection

__all__ = ["write_report"]

MOST_SAMPLES = 2000


def write_report(
    run: Run,
    file: str | PathLike[str],
    *,
    selection: RankSelection | None = None,
    consensus: Consensus | None = None,
    image_shape: tuple[int, int] | None = None,
) -> Path:
    """Write a run as one HTML file that opens offline and asks no server for anything.

    Components are numbered by size: 1 is the largest. Of more than 2,000 samples, 2,000 evenly
    chosen ones are drawn.

    Parameters
    ----------
    run
        The run; what its facts lack is left out.
    file
        Where to write. Missing folders are made, an older report is replaced.
    selection, consensus
        Drawn too, where given.
    image_shape
        Height and width, where the features are pixels, row by row.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from sipower.results.report import write_report
    >>> from sipower.results.run import Run
    >>> run = Run(np.array([[1.0, 0.0], [2.0, 3.0]]), np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(write_report(run, f"{folder}/report.html").name)
    report.html
    """
    target, pixels = Path(file), run.H.shape[1]
    if target.is_dir():
        raise ValueError(f"{target} is a folder: name a file in it, such as report.html.")
    if image_shape is not None and image_shape[0] * image_shape[1] != pixels:
        height, width = image_shape
        raise ValueError(f"Images of {height} x {width} pixels do not fit {pixels} features.")
    page = _page(run, selection, consensus, image_shape)
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as out:
        out.write(page.encode())
    return target


def _page(
    run: Run,
    selection: RankSelection | None,
    consensus: Consensus | None,
    image_shape: tuple[int, int] | None,
) -> str:
    about = describe(run.W, run.H)
    drawn = choose_evenly(len(run.W), MOST_SAMPLES)
    parts = [
        sections.summary(run, about),
        sections.convergence(run),
        sections.components(run, about),
        sections.images(about, image_shape) if image_shape is not None else "",
        sections.samples(run, about, len(drawn)),
        sections.correlations(about),
        sections.rank_selection(selection) if selection is not None else "",
        sections.consensus(consensus) if consensus is not None else "",
        provenance(run.facts),
    ]
    source = (run.facts.get("input") or {}).get("file")

    def ours(*names: str) -> str:
        return "\n".join(
            (files("sipower.results.report") / name).read_text("utf-8") for name in names
        )

    return Template(ours("page.html")).substitute(
        title=text("sipower report" + (f": {Path(source).name}" if source else "")),
        body="\n".join(parts),
        style=ours("page.css"),
        plotly=_plotly(),
        data=as_json(collect(run, about, drawn, selection, consensus)),
        script=ours("page.js", "plots.js"),
    )


def _plotly() -> str:
    try:
        from plotly.offline import get_plotlyjs  # noqa: PLC0415 - optional
    except ImportError:
        raise ImportError('The report needs plotly: pip install "sipower[report]".') from None
    return str(get_plotlyjs())
