# SPDX-License-Identifier: BSD-3-Clause
"""Catalogues written and read again, by component or by feature, with their names."""

import numpy as np
import pandas as pd
import pytest

from sipower import KLNMF
from sipower.inference.sbs96 import CHANNELS, sbs96_order
from sipower.io import read_components, write_components

RNG = np.random.default_rng(0)
CATALOGUE = pd.DataFrame(
    RNG.dirichlet(np.full(96, 0.2), 4), ["SBS1", "SBS2", "SBS10a", "naïve, µ"], list(CHANNELS)
)


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
@pytest.mark.parametrize("transpose", [False, True])
def test_a_catalogue_is_read_as_it_was_written(tmp_path, ending, transpose):
    path = tmp_path / f"catalogue.{ending}"
    write_components(path, CATALOGUE, transpose=transpose)
    again = read_components(path)  # the channels say which side the features are
    pd.testing.assert_frame_equal(again, CATALOGUE, check_names=False, rtol=1e-15)
    some = CATALOGUE.iloc[:, :10].set_axis([f"gene{j}" for j in range(10)], axis=1)
    write_components(path, some, transpose=transpose)
    profiles = some.div(some.sum(axis=1), axis=0)
    by_name = read_components(path, features=["other", *some.columns[::-1]])
    pd.testing.assert_frame_equal(by_name, profiles, check_names=False, rtol=1e-14)
    told = read_components(path, transpose=transpose)
    pd.testing.assert_frame_equal(told, profiles, check_names=False, rtol=1e-14)


def test_the_layout_of_cosmic_is_read(tmp_path):
    path = tmp_path / "COSMIC.txt"
    CATALOGUE.T.iloc[::-1].to_csv(path, sep="\t", index_label="Type")
    again = read_components(path)
    assert list(again.index) == list(CATALOGUE.index)
    pd.testing.assert_frame_equal(again[list(CHANNELS)], CATALOGUE, check_names=False)


def test_models_without_names_are_written_with_numbers(tmp_path):
    V = RNG.poisson(3.0, (20, 6))
    model = KLNMF(2, random_state=0).fit(V)
    write_components(tmp_path / "H.csv", model)
    again = read_components(tmp_path / "H.csv")
    assert list(again.columns) == [f"feature {j}" for j in range(1, 7)]
    np.testing.assert_allclose(again.sum(axis=1), 1)
    with pytest.raises(ValueError, match=r"H\.xlsx must end in \.csv, \.tsv, \.parquet"):
        write_components(tmp_path / "H.xlsx", model)


def test_the_order_of_the_channels_is_the_usual_one():
    assert CHANNELS[:2] == ("A[C>A]A", "A[C>A]C")
    assert CHANNELS[16] == "A[C>G]A"
    order = RNG.permutation(96)
    names = [CHANNELS[at] for at in order]
    assert [names[at] for at in sbs96_order(names)] == list(CHANNELS)
    assert sbs96_order(names[:95]) is None
    assert sbs96_order([*names[:95], "x"]) is None
    assert sbs96_order(None) is None
