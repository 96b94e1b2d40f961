# SPDX-License-Identifier: BSD-3-Clause
"""`pl.volcano` and `pl.intervals` draw the numbers, and their labels do not overlap."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from results.differences import NOISE, example
from sipower import pl
from sipower.results.differences_table import write_differences
from sipower.results.plot_differences import leading_features

pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def close():
    yield
    pyplot.close("all")


def points(ax):
    """All drawn points."""
    return np.concatenate([np.asarray(part.get_offsets()) for part in ax.collections])


def boxes(ax):
    """The places of the labels once the figure is drawn."""
    ax.figure.canvas.draw()
    renderer = ax.figure.canvas.get_renderer()
    return [super(type(t), t).get_window_extent(renderer) for t in ax.texts]


def test_volcano_draws_every_feature(tmp_path):
    differences = example()
    ax = pl.volcano(differences, "component 2")
    drawn = points(ax)
    expected = np.stack([differences.posterior_mean[1], -np.log10(differences.lfsr[1])], axis=1)
    assert_allclose(np.sort(drawn, axis=0), np.sort(expected, axis=0))
    hits = int((differences.lfsr[1] <= 0.05).sum())
    named = {text.get_text() for text in ax.texts}
    assert len(named) == min(hits, 10)
    assert named <= {str(name) for name in differences.features[differences.lfsr[1] <= 0.05]}
    assert ax.get_title() == "component 2"
    by_z = pl.volcano(differences, 1, y="z", features=["feature 3"], n_labels=0)
    assert_allclose(np.sort(points(by_z)[:, 1]), np.sort(np.abs(differences.z[1])))
    assert [text.get_text() for text in by_z.texts] == ["feature 3"]
    table, _ = write_differences(differences, tmp_path / "table.csv")
    assert_array_equal(points(pl.volcano(table, 1)), drawn)


def test_small_rates_are_cut_off():
    differences = example()
    rates = np.where(np.arange(30) < 5, 0.0, differences.lfsr)
    ax = pl.volcano(replace(differences, lfsr=rates), 0)
    assert points(ax)[:, 1].max() == 50
    assert ax.get_ylim()[1] < 60


def test_labels_overlap_neither_each_other_nor_the_edge():
    rng = np.random.default_rng(0)
    differences = example()
    crowded = replace(
        differences,
        posterior_mean=rng.normal(2, 0.3, (3, 30)),
        lfsr=10 ** -rng.normal(8, 1.0, (3, 30)),
    )
    ax = pl.volcano(crowded, 0, n_labels=12)
    places, frame = boxes(ax), ax.bbox
    for at, box in enumerate(places):
        assert frame.x0 <= box.x0
        assert box.x1 <= frame.x1 + 1
        assert not any(box.overlaps(other) for other in places[:at])


def test_volcano_without_hits_and_with_noise():
    differences = example()
    ax = pl.volcano(replace(differences, lfsr=np.ones((3, 30)), replication=NOISE), 0)
    assert not ax.texts
    assert ax.get_title() == "component 1\nnot supported by independent counts: do not interpret"
    assert ax.get_ylim()[1] > 1.3
    empty = pl.intervals(replace(differences, lfsr=np.ones((3, 30))), contrast=0)
    assert empty.texts[0].get_text() == "no feature with a local false sign rate of at most 0.05"


@pytest.mark.parametrize("contrast", ["least extreme", "null", "pairwise"])
def test_intervals_are_those_of_the_analysis(contrast):
    differences = example(contrast)
    ax = pl.intervals(differences, contrast=1, n=6)
    top = leading_features(differences, 1, 6)
    assert (differences.lfsr[1, top] <= 0.05).all()
    assert_allclose(points(ax)[-len(top) :, 0], differences.posterior_mean[1, top])
    lines = [np.array(path.vertices)[:, 0] for path in ax.collections[0].get_paths()]
    ends = np.stack([differences.lower[1, top], differences.upper[1, top]], axis=1)
    assert_allclose(lines, ends)
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert labels == [str(name) for name in differences.features[top]]
    if contrast != "pairwise":
        assert_array_equal(np.sort(top), np.sort(differences.top(1, 6)))
    chosen = pl.intervals(differences, ["feature 9", "feature 0"])
    assert [t.get_text() for t in chosen.get_yticklabels()] == ["feature 9", "feature 0"]


def test_arguments_that_cannot_be_used_are_named():
    differences = example()
    with pytest.raises(ValueError, match="`contrast` must be an integer from 0 to 2 or a label"):
        pl.volcano(differences, 3)
    with pytest.raises(ValueError, match="such as 'component 1', got 'component 9'"):
        pl.intervals(differences, contrast="component 9")
    with pytest.raises(ValueError, match="`features` must be names of features, got 'x'"):
        pl.intervals(differences, ["x"])
    with pytest.raises(ValueError, match="`y` must be 'lfsr' or 'z', got 'p'"):
        pl.volcano(differences, y="p")
    with pytest.raises(TypeError, match=r"`differences` must be the result of .*, got a DataFrame"):
        pl.volcano(differences.to_frame())
