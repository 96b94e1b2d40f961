# SPDX-License-Identifier: BSD-3-Clause
"""Drawing of figures as PNG with matplotlib, and as interactive offline HTML with plotly."""

from __future__ import annotations

from math import floor, log10
from pathlib import Path
from typing import Any

from sipower._files import atomic_write
from sipower.experiments.figures import Curve, Figure, Panel, label_heights

DASHES = {"solid": "-", "dash": "--", "dot": ":"}
ERROR = "relative error"


def draw_png(figure: Figure, file: Path) -> None:
    """Draw a figure with matplotlib as a PNG file, with labels at the ends of the curves."""
    from matplotlib.figure import Figure as Canvas  # noqa: PLC0415 - optional, and no global state
    from matplotlib.layout_engine import ConstrainedLayoutEngine  # noqa: PLC0415

    columns = max(len(row) for row in figure.rows)
    boxes = bool(figure.rows[0][0].boxes)
    height = (4.2 if boxes else 3.2) * len(figure.rows) + 0.6
    layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08)
    canvas = Canvas(figsize=(13.0, height), layout=layout)
    canvas.suptitle(figure.title, x=0.01, ha="left", fontsize="x-large", weight="bold")
    for i, row in enumerate(figure.rows):
        for j, panel in enumerate(row):
            axes = canvas.add_subplot(len(figure.rows), columns, i * columns + j + 1)
            (_draw_boxes if boxes else _draw_curves)(axes, panel)
            axes.set_ylabel(ERROR if j == 0 else "")
    with atomic_write(file) as to:
        canvas.savefig(to, format="png", dpi=100)


def _style(axes: Any, panel: Panel) -> None:
    axes.set_yscale("log")
    axes.set_ylim(*panel.limits)
    ticks = _tick_values(*panel.limits)
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_title(panel.title, loc="left", fontsize="large")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, which="major", color="#E5E5E5", linewidth=0.7)
    axes.set_axisbelow(True)


def _tick_values(low: float, high: float) -> list[float]:
    """Return the powers of ten in a range and, if it is narrow, also 2 and 5 times these."""
    factors = (1, 2, 5) if high < 300 * low else (1,)
    exponents = range(floor(log10(low)), floor(log10(high)) + 1)
    ticks = [float(f"{factor}e{exponent}") for exponent in exponents for factor in factors]
    return [tick for tick in ticks if low <= tick <= high]


def _draw_curves(axes: Any, panel: Panel) -> None:
    for curve, height in zip(panel.curves, label_heights(panel), strict=True):
        axes.fill_between(curve.x, curve.low, curve.high, color=curve.colour, alpha=0.15, lw=0)
        axes.plot(curve.x, curve.y, DASHES[curve.dash], color=curve.colour, linewidth=1.9)
        axes.annotate(
            curve.label,
            _visible_end(curve, panel.limits[0]),
            xytext=(1.03, height),
            textcoords="axes fraction",
            color=curve.colour,
            fontsize="small",
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": curve.colour, "lw": 0.6, "alpha": 0.6},
        )
    _style(axes, panel)
    axes.set_xscale("log")
    ticks = _tick_values(*axes.get_xlim())
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xlabel(panel.x_label)
    if panel.notes:
        style = {"fontsize": "x-small", "va": "bottom", "color": "#555555"}
        axes.text(0.02, 0.03, "\n".join(panel.notes), transform=axes.transAxes, **style)


def _visible_end(curve: Curve, lowest: float) -> tuple[float, float]:
    """Return the last point of a curve, or the point where it leaves the panel."""
    end = next((i for i, y in enumerate(curve.y) if y < lowest), len(curve.y) - 1)
    return curve.x[end], max(curve.y[end], lowest)


def _draw_boxes(axes: Any, panel: Panel) -> None:
    labels = [box.label.replace("; ", "\n") for box in panel.boxes]
    values, style = [box.values for box in panel.boxes], {"medianprops": {"color": "black"}}
    plot = axes.boxplot(values, tick_labels=labels, patch_artist=True, **style)
    for patch, box in zip(plot["boxes"], panel.boxes, strict=True):
        patch.set(facecolor=box.colour, alpha=0.6)
    _style(axes, panel)
    axes.tick_params(axis="x", rotation=35)
    for label in axes.get_xticklabels():
        label.set(ha="right", rotation_mode="anchor", fontsize="small")


def draw_html(figure: Figure, file: Path) -> None:
    """Draw a figure with plotly as an HTML file.

    plotly.min.js is written to the same folder unless it exists already.
    """
    import plotly.graph_objects as go  # noqa: PLC0415 - optional
    from plotly.offline import get_plotlyjs  # noqa: PLC0415
    from plotly.subplots import make_subplots  # noqa: PLC0415

    rows, columns = len(figure.rows), max(len(row) for row in figure.rows)
    panels = [(i, j, p) for i, row in enumerate(figure.rows, 1) for j, p in enumerate(row, 1)]
    titles = ["<br>".join([panel.title, *panel.notes]) for _, _, panel in panels]
    canvas = make_subplots(
        rows,
        columns,
        subplot_titles=titles,
        horizontal_spacing=0.2,
        vertical_spacing=(0.5 if panels[0][2].boxes else 0.3) / rows,
    )
    for number, (i, j, panel) in enumerate(panels, start=1):
        for trace in _make_traces(go, panel):
            canvas.add_trace(trace, row=i, col=j)
        x_axis = {} if panel.boxes else {"type": "log", "dtick": 1, "exponentformat": "none"}
        canvas.update_xaxes(title_text=panel.x_label, **x_axis, row=i, col=j)
        ticks = _tick_values(*panel.limits)
        canvas.update_yaxes(
            title_text=ERROR if j == 1 else None,
            type="log",
            tickvals=ticks,
            ticktext=[f"{tick:g}" for tick in ticks],
            range=[log10(limit) for limit in panel.limits],
            row=i,
            col=j,
        )
        axis = "" if number == 1 else str(number)
        for curve, height in zip(panel.curves, label_heights(panel), strict=True):
            canvas.add_annotation(
                text=curve.label,
                x=1.01,
                y=height,
                xref=f"x{axis} domain",
                yref=f"y{axis} domain",
                xanchor="left",
                yanchor="middle",
                showarrow=False,
                font={"color": curve.colour, "size": 12},
            )
    canvas.update_layout(
        title=figure.title,
        height=380 * rows + 120,
        margin={"r": 220},  # for the labels of the last column
        template="plotly_white",
        showlegend=False,
    )
    library = file.with_name("plotly.min.js")
    if not library.exists():
        with atomic_write(library) as to:
            to.write(get_plotlyjs().encode())
    with atomic_write(file) as to:
        to.write(canvas.to_html(include_plotlyjs="directory", full_html=True).encode())


def _make_traces(go: Any, panel: Panel) -> list[Any]:
    """Return the traces: boxes or, for each curve, both edges of its band and its line."""
    traces = [
        go.Box(y=box.values, name=box.label, marker_color=box.colour, boxpoints="all")
        for box in panel.boxes
    ]
    for curve in panel.curves:
        red, green, blue = (int(curve.colour[i : i + 2], 16) for i in (1, 3, 5))
        edge = {"x": curve.x, "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
        fill = {"fill": "tonexty", "fillcolor": f"rgba({red},{green},{blue},0.15)"}
        line = go.Scatter(
            x=curve.x,
            y=curve.y,
            name=curve.label,
            mode="lines",
            line={"color": curve.colour, "dash": curve.dash},
            hovertemplate="%{x:.3g}: %{y:.3g}<br>" + curve.label + "<extra></extra>",
        )
        traces += [go.Scatter(y=curve.low, **edge), go.Scatter(y=curve.high, **edge, **fill), line]
    return traces
