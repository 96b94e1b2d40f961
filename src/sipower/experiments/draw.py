# SPDX-License-Identifier: BSD-3-Clause
"""Figures as files: PNG by matplotlib, interactive HTML by plotly that opens offline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sipower.experiments.figures import Figure, Panel
from sipower.files import replacing

__all__ = ["draw_html", "draw_png"]

DASHES = {"solid": "-", "dash": "--", "dot": ":"}


def draw_png(figure: Figure, file: Path) -> None:
    """Draw with matplotlib, one legend below."""
    from matplotlib.figure import Figure as Canvas  # noqa: PLC0415 - optional, and no global state

    rows, columns = len(figure.rows), max(len(row) for row in figure.rows)
    boxes = figure.rows[0][0].boxes is not None
    width = max(8.0, (6.5 if boxes else 4.0) * columns)
    canvas = Canvas(figsize=(width, 3.4 * rows + 1.2), layout="constrained")
    canvas.suptitle(figure.title)
    lines: dict[str, Any] = {}
    for i, row in enumerate(figure.rows):
        for j, panel in enumerate(row):
            axes = canvas.add_subplot(rows, columns, i * columns + j + 1)
            lines |= _panel(axes, panel, first=j == 0)
    if lines:
        canvas.legend(
            lines.values(), lines.keys(), loc="outside lower center",
            ncols=max(3, int(width / 2.6)), fontsize="small", frameon=False,
        )  # fmt: skip
    with replacing(file) as to:
        canvas.savefig(to, format="png", dpi=110)


def _panel(axes: Any, panel: Panel, *, first: bool) -> dict[str, Any]:
    from matplotlib.ticker import LogFormatterSciNotation, LogLocator  # noqa: PLC0415 - optional

    lines = {}
    for curve in panel.curves:
        (line,) = axes.plot(curve.x, curve.y, DASHES[curve.dash], color=curve.colour, linewidth=1.6)
        if curve.low is not None and curve.high is not None:
            axes.fill_between(curve.x, curve.low, curve.high, color=curve.colour, alpha=0.12, lw=0)
        lines[curve.label] = line
    if panel.notes:
        note = "\n".join(panel.notes)
        axes.text(0.02, 0.02, note, transform=axes.transAxes, fontsize="x-small", va="bottom")
    if panel.boxes is not None:
        labels = [label.replace("; ", "\n") for label in panel.boxes.labels]
        black = {"color": "black"}
        drawn = axes.boxplot(
            panel.boxes.values, tick_labels=labels, patch_artist=True, medianprops=black
        )
        for box, colour in zip(drawn["boxes"], panel.boxes.colours, strict=True):
            box.set(facecolor=colour, alpha=0.6)
        axes.tick_params(axis="x", rotation=35)
        for label in axes.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor", fontsize="small")
    else:
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(LogLocator(subs=(2, 5)))
        axes.xaxis.set_minor_formatter(LogFormatterSciNotation(minor_thresholds=(1, 0.4)))
        axes.tick_params(axis="x", which="minor", labelsize="x-small")
    axes.set_yscale("log")
    if panel.curves:
        lowest = min(min(curve.y) for curve in panel.curves)
        axes.set_ylim(bottom=max(panel.least, 0.7 * lowest))
    axes.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label if first else "")
    axes.grid(visible=True, which="major", color="#DDDDDD", linewidth=0.6)
    return lines


def draw_html(figure: Figure, file: Path) -> None:
    """Draw with plotly; plotly.min.js is put beside the file, once."""
    import plotly.graph_objects as go  # noqa: PLC0415 - optional
    from plotly.offline import get_plotlyjs  # noqa: PLC0415
    from plotly.subplots import make_subplots  # noqa: PLC0415

    rows, columns = len(figure.rows), max(len(row) for row in figure.rows)
    panels = [(i, j, p) for i, row in enumerate(figure.rows, 1) for j, p in enumerate(row, 1)]
    titles = ["<br>".join([panel.title, *panel.notes]) for _, _, panel in panels]
    made = make_subplots(rows, columns, subplot_titles=titles)
    shown: set[str] = set()
    for i, j, panel in panels:
        for trace in _traces(go, panel, shown):
            made.add_trace(trace, row=i, col=j)
        x_type = None if panel.boxes is not None else "log"
        made.update_xaxes(title_text=panel.x_label, type=x_type, row=i, col=j)
        title = panel.y_label if j == 1 else None
        made.update_yaxes(title_text=title, type="log", exponentformat="power", row=i, col=j)
    made.update_layout(
        title=figure.title,
        height=420 * rows,
        template="plotly_white",
        legend={"groupclick": "togglegroup"},
    )
    library = file.with_name("plotly.min.js")
    if not library.exists():
        with replacing(library) as to:
            to.write(get_plotlyjs().encode())
    with replacing(file) as to:
        to.write(made.to_html(include_plotlyjs="directory", full_html=True).encode())


def _traces(go: Any, panel: Panel, shown: set[str]) -> list[Any]:
    traces: list[Any] = []
    for curve in panel.curves:
        name = curve.label
        line = {"color": curve.colour, "dash": curve.dash}
        traces.append(
            go.Scatter(
                x=curve.x,
                y=curve.y,
                name=name,
                legendgroup=name,
                mode="lines",
                line=line,
                showlegend=name not in shown,
                hovertemplate="%{x:.3g}: %{y:.3g}<br>" + curve.label,
            )
        )
        shown.add(name)
        if curve.low is not None and curve.high is not None:
            band = {"x": curve.x, "mode": "lines", "line": {"width": 0}, "legendgroup": name}
            quiet = {"showlegend": False, "hoverinfo": "skip"}
            traces.append(go.Scatter(y=curve.low, **band, **quiet))
            red, green, blue = (int(curve.colour[at : at + 2], 16) for at in (1, 3, 5))
            fill = {"fill": "tonexty", "fillcolor": f"rgba({red},{green},{blue},0.12)"}
            traces.append(go.Scatter(y=curve.high, **band, **quiet, **fill))
    if panel.boxes is not None:
        for label, colour, values in zip(
            panel.boxes.labels, panel.boxes.colours, panel.boxes.values, strict=True
        ):
            box = go.Box(y=values, name=label, marker_color=colour, showlegend=False)
            traces.append(box.update(boxpoints="all"))
    return traces
