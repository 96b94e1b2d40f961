# SPDX-License-Identifier: BSD-3-Clause
"""`write_report`: write the report of a run as one self-contained HTML file."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

from sipower._files import atomic_write
from sipower.inference import Differences
from sipower.results.as_run import RunLike, RunParts, as_run
from sipower.results.describe import Exclude, choose_evenly, describe, is_excluded, readable
from sipower.results.report.content import (
    HELD_OUT,
    content,
    features,
    format_or_dash,
    images,
    number,
    plot_data,
)
from sipower.results.report.differences import difference_content, difference_data
from sipower.selection import Consensus, GroupConsensus, RankSelection

MAX_SAMPLES = 2000


def write_report(
    run: RunLike,
    file: str | PathLike[str],
    *,
    selection: RankSelection | None = None,
    consensus: Consensus | None = None,
    programs: GroupConsensus | None = None,
    differences: Differences | None = None,
    image_shape: tuple[int, int] | None = None,
    exclude: Exclude = None,
    **parts: Unpack[RunParts],
) -> Path:
    """Write the report of a run as one HTML file that opens offline and loads no other file.

    Components are numbered by size: 1 is the largest. If there are more than 2,000 samples, 2,000
    evenly spaced ones are drawn.

    Parameters
    ----------
    run
        A run; a fitted `KLNMF`, which needs `W`; an AnnData object after `sipower.tl.nmf`; or a
        pair of arrays (W, H). Facts that a run does not have are left out.
    file
        Path of the report. Missing folders are created; an older report is replaced.
    selection, consensus, programs
        Optional results that are shown as well. `programs` is a consensus over groups.
    differences
        Differences between the components, in the order of the run: the result of
        ``sipower.differential(V, run.W)``.
    image_shape
        Height and width of the images if the features are pixels, row by row.
    exclude
        Features to leave out of the lists: a regular expression such as ``"^RP[LS]"``, or a list of
        names. They remain part of the profiles and of all numbers.
    **parts
        ``W``: the result of `fit_transform`, required with a fitted model. ``samples``,
        ``features``: names. ``key``: the name of the results in an AnnData object. ``V``: the
        counts, for the section on the quality of the components.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from sipower import KLNMF
    >>> from sipower.report import write_report
    >>> model = KLNMF(2, random_state=0)
    >>> W = model.fit_transform(np.random.default_rng(0).poisson(2.0, (30, 20)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(write_report(model, f"{folder}/report.html", W=W).name)
    report.html
    """
    run, target = as_run(run, **parts), Path(file)
    pixels = run.H.shape[1]
    if target.is_dir():
        raise ValueError(f"{target} is a folder: name a file in it, such as report.html.")
    if image_shape is not None and image_shape[0] * image_shape[1] != pixels:
        height, width = image_shape
        raise ValueError(
            f"`image_shape` {height} x {width} must have {pixels} pixels, one per feature."
        )
    about, excluded = describe(run), is_excluded(run.feature_names(), exclude)
    drawn = choose_evenly(len(run.W), MAX_SAMPLES)
    source = (run.facts.get("input") or {}).get("file")
    page = _template().render(
        content(run, about, excluded),
        title="sipower report" + (f": {Path(source).name}" if source else ""),
        images=[] if image_shape is None else list(images(about, image_shape)),
        drawn=len(drawn),
        selection=selection,
        held_out=HELD_OUT.get(selection.method, "") if selection is not None else "",
        consensus=consensus,
        programs=programs,
        differences=difference_content(differences, about, excluded),
        style=_own_text("page.css"),
        plotly=_plotly(),
        data=plot_data(run, about, drawn, selection, consensus)
        | {"features": features(run, about, excluded)}
        | difference_data(differences, about, excluded),
        script="".join(map(_own_text, ("page.js", "drawing.js", "plots.js"))),
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(target) as out:
        out.write(page.encode())
    return target


def _template() -> Any:
    """Return the template of the report, which escapes all values."""
    try:
        import jinja2  # noqa: PLC0415 - optional
    except ImportError:
        raise ImportError('The report needs jinja2: pip install "sipower[report]".') from None
    environment = jinja2.Environment(
        autoescape=True, finalize=_printable, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {"number": number, "readable": readable, "known": format_or_dash}
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return environment.from_string(_own_text("page.html"))


def _printable(value: Any) -> Any:
    """Replace unprintable characters of a string by symbols; return other values unchanged."""
    if not isinstance(value, str) or hasattr(value, "__html__"):  # the template's own markup
        return value
    return "\n".join(readable(line, len(line)) for line in value.split("\n"))


@cache
def _own_text(name: str) -> str:
    return (files("sipower.results.report") / name).read_text("utf-8")


@cache
def _plotly() -> str:
    try:
        from plotly.offline import get_plotlyjs  # noqa: PLC0415 - optional
    except ImportError:
        raise ImportError('The report needs plotly: pip install "sipower[report]".') from None
    return str(get_plotlyjs())
