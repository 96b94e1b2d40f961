# SPDX-License-Identifier: BSD-3-Clause
"""`signatures`: profiles of components as bars, those of SBS-96 channels in six colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sipower.inference.profiles import Profiles, as_profiles
from sipower.inference.sbs96 import CHANNELS, SUBSTITUTIONS, sbs96_order
from sipower.results.plot import palette, short_name
from sipower.results.run import Run, is_anndata

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["signatures"]

# The usual colours of the six substitutions, as in the plots of COSMIC.
COLOURS = ("#1ebff0", "#050708", "#e62725", "#cbcacb", "#a1cf64", "#edc8c5")
MAX_PANELS = 12
WIDTH, PANEL_HEIGHT = 10.0, 1.7  # inches
LABELLED_HEIGHT = 2.6  # of a panel with names of features


def signatures(
    H: Any,
    components: Sequence[int | str] | None = None,
    axes: Sequence[Axes] | None = None,
    n: int = 30,
    *,
    features: Sequence[str] | None = None,
) -> list[Axes]:
    """Draw the profiles of components as bars, one panel for each component.

    If the features are the 96 channels of single-base substitutions, such as A[C>A]A, in any order,
    they are drawn in the usual order, in the six usual colours. Otherwise the panels show the most
    frequent features of each component.

    Parameters
    ----------
    H
        Components, (K, n_features): an array, a data frame with a row for each component, a fitted
        `KLNMF`, a run, or an AnnData object after `sipower.tl.nmf`.
    components
        Components to draw, by number from 1 or by name; None: the first twelve.
    axes
        One Axes for each component; None creates a new figure.
    n
        Largest number of features in a panel, if they are not the 96 channels.
    features
        Names of the features; None: those of `H`.

    Returns
    -------
    list of Axes
        One for each component.

    Examples
    --------
    >>> from sipower import pl
    >>> axes = pl.signatures([[0.5, 0.5], [0.0, 1.0]], features=["apples", "pears"])
    >>> [ax.get_title(loc="left") for ax in axes]
    ['component 1', 'component 2']
    """
    profiles = as_profiles("H", Run.from_anndata(H) if is_anndata(H) else H)
    if features is not None:
        if len(features) != profiles.values.shape[1]:
            raise ValueError(
                f"`features` must have {profiles.values.shape[1]} names, got {len(features)}."
            )
        profiles = Profiles(profiles.values, profiles.names, tuple(map(str, features)))
    chosen = _choose(profiles, components)
    order = sbs96_order(profiles.features)
    panels = _panels(axes, len(chosen), PANEL_HEIGHT if order is not None else LABELLED_HEIGHT)
    for place, (k, ax) in enumerate(zip(chosen, panels, strict=True)):
        if order is not None:
            _draw_channels(ax, profiles.values[k, order], is_first=place == 0)
            is_last = place == len(chosen) - 1
            _label_contexts(ax, is_last=is_last)
        else:
            _draw_top(ax, profiles, k, n)
        ax.set_ylabel("probability")
        ax.set_title(short_name(profiles.names[k]), loc="left", fontsize="medium")
        ax.spines[["top", "right"]].set_visible(False)
    return panels


def _choose(profiles: Profiles, components: Sequence[int | str] | None) -> list[int]:
    """Return the positions of components that are given by number or name."""
    rank = len(profiles.names)
    if components is None:
        return list(range(min(rank, MAX_PANELS)))
    chosen = []
    for component in [components] if isinstance(components, int | str) else components:
        if isinstance(component, str) and component in profiles.names:
            chosen.append(profiles.names.index(component))
        elif not isinstance(component, str) and 1 <= component <= rank:
            chosen.append(int(component) - 1)
        else:
            raise ValueError(
                f"`components` must be integers from 1 to {rank} or names, got {component!r}."
            )
    if not chosen:
        raise ValueError("`components` must have at least one component.")
    return chosen


def _panels(axes: Sequence[Axes] | None, count: int, height: float) -> list[Axes]:
    if axes is not None:
        panels = list(np.ravel(np.asarray(axes, dtype=object)))
        if len(panels) != count:
            raise ValueError(
                f"`axes` must have {count} Axes, one per component, got {len(panels)}."
            )
        return panels
    try:
        import matplotlib.pyplot as plt  # noqa: PLC0415 - optional
    except ImportError:
        raise ImportError('Plots need matplotlib: pip install "sipower[report]".') from None
    size = WIDTH, 0.6 + height * count
    return list(plt.subplots(count, figsize=size, layout="constrained", squeeze=False)[1][:, 0])


def _draw_channels(ax: Axes, profile: Any, *, is_first: bool) -> None:
    """Draw the 96 channels with the six substitutions as coloured blocks above the first panel."""
    ax.bar(np.arange(96), profile, color=np.repeat(COLOURS, 16), width=0.7)
    ax.set(xlim=(-0.7, 95.7), ylim=(0, 1.08 * profile.max()))
    for at in range(16, 96, 16):
        ax.axvline(at - 0.5, color="#dddddd", linewidth=0.6, zorder=0)
    if not is_first:
        return
    across = ax.get_xaxis_transform()
    for at, (name, colour) in enumerate(zip(SUBSTITUTIONS, COLOURS, strict=True)):
        style: dict[str, Any] = {"transform": across, "clip_on": False}
        ends = 16 * at - 0.3, 16 * at + 15.3
        ax.plot(ends, (1.22, 1.22), color=colour, lw=7, solid_capstyle="butt", **style)
        ax.text(16 * at + 7.5, 1.29, name, ha="center", va="bottom", fontweight="bold", **style)


def _label_contexts(ax: Axes, *, is_last: bool) -> None:
    """Write the bases around the substitution, such as A·C, below the last panel."""
    contexts = [f"{channel[0]}{channel[2]}{channel[-1]}" for channel in CHANNELS]
    ax.set_xticks(np.arange(96), contexts if is_last else [""] * 96)
    ax.tick_params(axis="x", labelrotation=90, labelsize=5.5, length=1.5, pad=1)


def _draw_top(ax: Axes, profiles: Profiles, k: int, n: int) -> None:
    """Draw the most frequent features of a component, the most frequent first."""
    profile = profiles.values[k]
    top = np.argsort(-profile, kind="stable")[: min(n, np.count_nonzero(profile))]
    names = profiles.features or tuple(str(j + 1) for j in range(len(profile)))
    ax.bar(np.arange(len(top)), profile[top], color=palette(k + 1)[-1], width=0.7)
    ax.set_xticks(np.arange(len(top)), [short_name(names[j]) for j in top])
    ax.tick_params(axis="x", labelrotation=60 if len(top) > 8 else 0, labelsize=8, length=2)
    for label in ax.get_xticklabels():
        label.set(ha="right" if len(top) > 8 else "center", rotation_mode="anchor")
    ax.set_xlim(-0.7, len(top) - 0.3)
