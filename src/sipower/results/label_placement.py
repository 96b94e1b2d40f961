# SPDX-License-Identifier: BSD-3-Clause
"""Labels of points in a matplotlib plot that are moved until they do not overlap.

The positions are computed whenever the figure is drawn, so they are right for its final size.
This module imports matplotlib; plots import it when they need it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.text import Text
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["add_labels", "separate"]

Float = NDArray[np.float64]
GAP = 4.0  # pixels between a point and its label, and between labels
MAX_OBSTACLES = 2000  # other points that labels avoid
ANGLES, RADII = 24, np.array([6.0, 12, 20, 30, 42, 56, 72, 90, 120, 160, 200])  # of places, pixels
LINE = np.linspace(0.1, 0.9, 9)  # where the line between a point and its label is checked
COST_OF_POINT, COST_OF_LINE, COST_OF_OVERLAP = 12.0, 60.0, 2000.0  # pixels


class _Placement(Artist):
    """An artist that draws nothing: it moves the labels before they are drawn."""

    def __init__(self, labels: Sequence[Any], points: Float, obstacles: Float) -> None:
        super().__init__()
        self._labels, self._points, self._obstacles = labels, points, obstacles
        self.set_zorder(labels[0].get_zorder() - 0.1)
        self.set_in_layout(False)

    def draw(self, renderer: Any) -> None:
        """Move the labels."""
        axes: Any = self.axes
        to_pixels = axes.transData.transform
        points, obstacles = to_pixels(self._points), to_pixels(self._obstacles)
        boxes = [Text.get_window_extent(label, renderer) for label in self._labels]  # no arrows
        sizes = np.array([(box.width, box.height) for box in boxes])
        frame = np.array(axes.bbox.get_points())
        centres = separate(points, sizes, obstacles, frame)
        scale = 72 / axes.figure.dpi
        reach = np.maximum(np.abs(centres - points) - sizes / 2, 0).max(axis=1)
        for label, shift, far in zip(self._labels, centres - points, reach > 2 * GAP, strict=True):
            label.set_position(tuple(shift * scale))
            label.arrow_patch.set_visible(bool(far))


def add_labels(
    ax: Axes, points: Float, names: Sequence[str], others: Float, **style: Any
) -> list[Any]:
    """Add a label to each of some points; the labels overlap neither each other nor points.

    Parameters
    ----------
    ax
        The axes.
    points
        The points in data coordinates, (n, 2).
    names
        Their labels.
    others
        More points that labels should not cover, (p, 2); at most 2,000 are considered.
    **style
        Properties of the texts.
    """
    arrow = {"arrowstyle": "-", "color": "#808080", "linewidth": 0.6, "shrinkA": 0, "shrinkB": 2}
    labels = [
        ax.annotate(
            name, point, xytext=(0, 0), textcoords="offset points", ha="center", va="center",
            arrowprops=dict(arrow), zorder=4, annotation_clip=False, **style,
        )
        for name, point in zip(names, points, strict=True)
    ]  # fmt: skip
    for label in labels:
        label.set_in_layout(False)
    if labels:
        step = max(1, -(-len(others) // MAX_OBSTACLES))
        ax.add_artist(_Placement(labels, points, np.concatenate([points, others[::step]])))
    return labels


def separate(points: Float, sizes: Float, obstacles: Float, frame: Float) -> Float:
    """Return centres of boxes (n, 2) that are near their points and do not overlap, if possible.

    Boxes are placed one after the other, each at the best of some places around its point. A place
    costs its distance from the point, and much more if the box overlaps another one, covers
    obstacles or leaves the frame, or if the line to the point crosses another line or box.

    Parameters
    ----------
    points
        The points that the boxes belong to, (n, 2).
    sizes
        Widths and heights of the boxes, (n, 2).
    obstacles
        Points that boxes should not cover, (p, 2).
    frame
        Lower left and upper right corner of the area, (2, 2).
    """
    half = sizes / 2 + GAP / 2
    centres, order = points.copy(), np.argsort(-points[:, 1], kind="stable")
    for count, i in enumerate(order):
        before = order[:count]
        places = _places(points[i], half[i], frame)
        reach = np.maximum(np.abs(places - points[i]) - half[i], 0)
        cost = np.hypot(*reach.T) + 0.01 * np.arange(len(places))  # left and right before others
        cost += COST_OF_POINT * _covers(places, half[i], obstacles).sum(axis=1)
        cost += COST_OF_OVERLAP * _covers(places, half[i] + half[before], centres[before]).sum(
            axis=1
        )
        line = points[i] + LINE[:, None, None] * (places - points[i])  # points on the line
        crossed = [_covers(part, half[before], centres[before]) for part in line]
        own = points[before] + LINE[:, None, None] * (centres[before] - points[before])
        crossed += [_covers(places, half[i], part) for part in own]
        cost += COST_OF_LINE * np.array(crossed).any(axis=0).sum(axis=1)
        cost += COST_OF_LINE * _cross(points[i], places, points[before], centres[before]).sum(
            axis=1
        )
        centres[i] = places[np.argmin(cost)]
    return centres


def _places(point: Float, half: Float, frame: Float) -> Float:
    """Return possible centres of a box around its point, inside the frame, the nearest first."""
    right = np.array([[1.0, 0], [-1, 0], [1, 1], [-1, 1], [0, 1], [1, -1], [-1, -1], [0, -1]])
    near = point + right * (half + GAP / 2)
    angles = np.linspace(0, 2 * np.pi, ANGLES, endpoint=False)
    rings = np.stack([np.cos(angles), np.sin(angles)], axis=1) * RADII[:, None, None]
    far = (point + rings + np.sign(rings.round(9)) * half).reshape(-1, 2)
    low, high = frame[0] + half, np.maximum(frame[1] - half, frame[0] + half)
    return np.asarray(np.clip(np.concatenate([near, far]), low, high))


def _covers(centres: Float, half: Float, points: Float) -> NDArray[np.bool_]:
    """Return whether boxes with some centres (c, 2) contain points (p, 2), as (c, p)."""
    return np.asarray((np.abs(centres[:, None] - points) < half).all(axis=2))


def _cross(start: Float, ends: Float, starts: Float, others: Float) -> NDArray[np.bool_]:
    """Return whether the lines from `start` to `ends` (c, 2) cross other lines, as (c, lines)."""

    def side(a: Float, b: Float, c: Float) -> Float:
        u, v = b - a, c - a
        return np.asarray(np.sign(u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0]))

    ends = ends[:, None]
    is_apart = side(start, ends, starts) * side(start, ends, others) < 0
    return np.asarray(is_apart & (side(starts, others, start) * side(starts, others, ends) < 0))
