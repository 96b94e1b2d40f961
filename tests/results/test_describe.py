# SPDX-License-Identifier: BSD-3-Clause
"""The numbers behind plots and report: identities, and independence of scale and order."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sipower.loop.solve import Record
from sipower.results import Run
from sipower.results.describe import (
    choose_evenly,
    convergence,
    correlations,
    describe,
    is_excluded,
    largest,
    order_by_similarity,
    readable,
)

RNG = np.random.default_rng(7)
W = RNG.gamma(0.5, size=(30, 5))
H = RNG.gamma(0.5, size=(5, 12)) * RNG.uniform(0.1, 10, (5, 1))


def test_sizes_profiles_and_memberships_are_probabilities() -> None:
    about = describe(W, H)
    assert_allclose(about.sizes.sum(), 1)
    assert_allclose(about.profiles.sum(axis=1), 1)
    assert_allclose(about.memberships.sum(axis=1), 1)
    assert (np.diff(about.sizes) <= 0).all()


def test_overall_profile_is_that_of_the_product() -> None:
    product = W @ H
    assert_allclose(describe(W, H).overall, product.sum(axis=0) / product.sum())


def test_sizes_are_memberships_averaged_by_counts() -> None:
    about, counts = describe(W, H), (W @ H).sum(axis=1)
    assert_allclose(counts @ about.memberships / counts.sum(), about.sizes)


def test_lift_averages_to_one_and_information_is_a_divergence() -> None:
    about = describe(W, H)
    assert_allclose(about.sizes @ about.lift(), 1)
    information = about.distinctiveness().sum(axis=1)
    expected = (about.profiles * np.log2(about.profiles / about.overall)).sum(axis=1)
    assert_allclose(information, expected)
    assert (information >= 0).all()


def test_scale_and_order_of_the_components_do_not_matter() -> None:
    scale, order = RNG.uniform(1e-3, 1e3, 5), RNG.permutation(5)
    one, other = describe(W, H), describe((W * scale)[:, order], (H / scale[:, None])[order])
    for name in ("sizes", "profiles", "overall", "memberships"):
        assert_allclose(getattr(other, name), getattr(one, name), rtol=1e-12)
    assert_array_equal(order[other.order], one.order)


def test_float32_factors_are_described_in_float64() -> None:
    one, other = describe(W, H), describe(W.astype(np.float32), H.astype(np.float32))
    assert other.profiles.dtype == np.float64
    assert_allclose(other.profiles, one.profiles, rtol=1e-6)
    assert_allclose(other.profiles.sum(axis=1), 1, rtol=1e-15)


def test_zero_rows_columns_and_components_stay_zero() -> None:
    zero_w, zero_h = W.copy(), H.copy()
    zero_w[4] = 0
    zero_w[:, 2] = 0  # the component is not used
    zero_h[:, 3] = 0
    zero_h[:, 6] = 0
    zero_h[2, 6] = 1  # a feature that only the unused component has
    about = describe(zero_w, zero_h)
    assert about.order[-1] == 2
    assert about.sizes[-1] == 0
    for nothing in (about.memberships[4], about.profiles[-1], about.overall[[3, 6]]):
        assert not nothing.any()
    assert np.isfinite(about.lift()).all()
    assert np.isfinite(about.distinctiveness()).all()
    assert about.leading_samples().sum() == len(W) - 1


@pytest.mark.parametrize(("bad", "where"), [(-1.0, "row 3, column 1"), (np.nan, "row 3, column 1")])
def test_factors_that_are_no_factors_are_refused(bad: float, where: str) -> None:
    wrong = W.copy()
    wrong[3, 1] = bad
    with pytest.raises(ValueError, match=rf"W has {bad} in {where}"):
        describe(wrong, H)
    with pytest.raises(ValueError, match="zero everywhere"):
        describe(0 * W, H)


def test_the_rarest_feature_is_not_the_most_distinctive() -> None:
    profiles = np.array([[0.5, 0.4999, 1e-4, 0], [0.1, 0.4999, 0, 0.4001]])
    about = describe(np.eye(2), profiles)
    component = int(np.flatnonzero(about.order == 0)[0])
    assert largest(about.lift()[component], 1) == 2
    assert largest(about.distinctiveness()[component], 1) == 0


def test_largest_leaves_out_what_is_not_positive() -> None:
    assert_array_equal(largest(np.array([0.0, 2, -1, 3, 2]), 10), [3, 1, 4])


@pytest.mark.parametrize(
    ("count", "max_count"), [(1, 5), (5, 5), (7, 3), (3362, 2000), (10**6, 2000)]
)
def test_chosen_samples_are_distinct_even_and_reach_both_ends(count: int, max_count: int) -> None:
    chosen = choose_evenly(count, max_count)
    steps = np.diff(chosen)
    assert len(chosen) == min(count, max_count)
    assert chosen[0] == 0
    assert chosen[-1] == count - 1
    assert not len(steps) or 1 <= steps.min() <= steps.max() <= steps.min() + 1


def test_correlations_are_those_of_numpy_and_missing_for_constants() -> None:
    assert_allclose(correlations(W), np.corrcoef(W.T))
    with_constant = np.column_stack([W, np.full(len(W), 1 / 3)])
    matrix = correlations(with_constant)
    assert np.isnan(matrix[-1]).all()
    assert_allclose(matrix[:-1, :-1], np.corrcoef(W.T))


def test_similar_samples_become_neighbours() -> None:
    groups = RNG.integers(0, 3, 60)
    order = order_by_similarity(np.eye(3)[groups] * 0.9 + 0.1 / 3)
    assert sorted(order) == list(range(60))
    assert np.count_nonzero(np.diff(groups[order])) == 2
    for n_rows in range(3):
        assert_array_equal(order_by_similarity(np.eye(3)[:n_rows]), np.arange(n_rows))


def test_convergence_is_in_shares_of_the_counts() -> None:
    nan = float("nan")
    trace = [Record(0, 0, 0, 30.0, 0.5, 1), Record(1, 2, 0.1, nan, nan, 1),
             Record(2, 4, 0.2, 10.0, 0.1, 1)]  # fmt: skip
    curves = convergence(Run(W, H, trace, {"input": {"total": 40.0}}))
    assert_allclose(curves["excess"], [0.5, nan, nan])
    assert_allclose(curves["gap"], [0.5, nan, 0.1])
    assert_allclose(curves["passes"], [0, 2, 4])
    assert_allclose(convergence(Run(W, H, trace))["excess"][0], 20 / (W @ H).sum())


def test_readable_names_are_one_visible_line() -> None:
    assert readable("a\x00b\nc\u202ed\x85e\ud800", 99) == "a␀b␊c\ufffdd\ufffde\ufffd"
    assert readable("שלום naïve 👍", 99) == "שלום naïve 👍"
    assert readable("x" * 11, 10) == "x" * 9 + "…"


def housekeeping() -> tuple[np.ndarray, np.ndarray]:
    """Return a large and two small components: five frequent features in all, ten own ones each."""
    H = np.full((3, 35), 1e-5)
    H[:, :5] = 0.1
    H[0, :5] = 0.18
    for k in range(3):
        H[k, 5 + 10 * k : 15 + 10 * k] = 0.01
    return np.diag([6.0, 3.0, 1.0]) * 1000, H


def test_frex_ranks_exclusive_features_before_frequent_ones() -> None:
    about = describe(*housekeeping())
    own = [{str(j + 1) for j in range(5 + 10 * k, 15 + 10 * k)} for k in range(3)]
    assert [set(names) for names in about.top_features(10)] == own
    assert {"1", "2", "3", "4", "5"} == set(about.top_features(5, by="probability")[0])
    assert {"1", "2", "3", "4", "5"} & set(about.top_features(5, by="information")[0])
    scores = about.frex()
    assert ((scores >= 0) & (scores <= 1)).all()


def test_frex_is_the_harmonic_mean_of_two_ranks() -> None:
    about = describe(W, H)
    exclusivity = about.profiles / about.profiles.sum(axis=0)
    for k, f in ((0, 0), (2, 7), (4, 11)):
        frequency = np.mean(about.profiles[k] <= about.profiles[k, f])
        exclusive = np.mean(exclusivity[k] <= exclusivity[k, f])
        assert_allclose(about.frex()[k, f], 1 / (0.5 / frequency + 0.5 / exclusive))
    with pytest.raises(ValueError, match="`by` must be frex, probability, lift or information"):
        about.top_features(by="bits")


def test_features_are_excluded_by_pattern_or_list() -> None:
    genes = [*(f"RPL{j}" for j in range(4)), "RPS3", *(f"gene{j}" for j in range(30))]
    about = describe(*housekeeping(), features=genes)
    assert set(about.top_features(5, by="probability")[0]) == set(genes[:5])
    for exclude in ("^RP[LS]", genes[:5]):
        assert set(about.top_features(10, by="probability", exclude=exclude)[0]) == set(genes[5:15])
    assert_array_equal(is_excluded(genes, "^RP[LS]"), np.arange(35) < 5)
    assert not is_excluded(genes, None).any()
    with pytest.raises(ValueError, match=r"`exclude` must be a regular expression .* got '\('"):
        is_excluded(genes, "(")
