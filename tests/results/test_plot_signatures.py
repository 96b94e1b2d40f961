# SPDX-License-Identifier: BSD-3-Clause
"""`pl.signatures`: SBS-96 channels in the usual order and colours, other features by size."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from sipower import pl
from sipower.inference.sbs96 import CHANNELS, SUBSTITUTIONS
from sipower.results import Run
from sipower.results.plot_signatures import COLOURS

RNG = np.random.default_rng(0)
H = pd.DataFrame(RNG.dirichlet(np.full(96, 0.2), 3), ["SBS1", "SBS2", "SBS3"], list(CHANNELS))


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def heights(ax):
    return np.array([bar.get_height() for bar in ax.patches])


def test_channels_are_in_the_usual_order_and_colours():
    axes = pl.signatures(5 * H[list(RNG.permutation(CHANNELS))])
    for ax, name in zip(axes, H.index, strict=True):
        np.testing.assert_allclose(heights(ax), H.loc[name])
        assert [to_hex(bar.get_facecolor()) for bar in ax.patches[::16]] == list(COLOURS)
        assert ax.get_title(loc="left") == name
    assert [text.get_text() for text in axes[0].texts] == list(SUBSTITUTIONS)
    labels = [label.get_text() for label in axes[-1].get_xticklabels()]
    assert (labels[0], labels[17], labels[95]) == ("ACA", "ACC", "TTT")


def test_names_choose_panels_and_axes_are_used():
    _, axes = plt.subplots(2)
    assert list(pl.signatures(H, ["SBS3", 1], axes)) == list(axes)
    np.testing.assert_allclose(heights(axes[0]), H.loc["SBS3"])
    np.testing.assert_allclose(heights(axes[1]), H.loc["SBS1"])


def test_other_features_are_the_most_frequent_ones():
    run = Run(np.ones((4, 2)), RNG.dirichlet(np.ones(50), 2), features=[f"g{j}" for j in range(50)])
    axes = pl.signatures(run, n=12)
    assert len(axes) == 2
    np.testing.assert_allclose(heights(axes[0]), np.sort(run.H[0])[::-1][:12] / run.H[0].sum())
    first = axes[0].get_xticklabels()[0].get_text()
    assert first == f"g{run.H[0].argmax()}"
    (ax,) = pl.signatures(H.to_numpy()[:1], features=list(CHANNELS))
    assert len(ax.texts) == 6


def test_wrong_choices_are_refused():
    with pytest.raises(ValueError, match="`components` must be integers from 1 to 3 or names"):
        pl.signatures(H, ["SBS9"])
    with pytest.raises(ValueError, match="`axes` must have 3 Axes, one per component, got 1"):
        pl.signatures(H, axes=[plt.subplots()[1]])
    with pytest.raises(ValueError, match="`features` must have 96 names, got 1"):
        pl.signatures(H, features=["a"])
