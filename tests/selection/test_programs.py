# SPDX-License-Identifier: BSD-3-Clause
"""Programs over groups of samples: shared and specific ones, the joint fit, saved fits."""

import json

import numpy as np
import pytest

from sipower import KLNMF, consensus
from sipower.selection import match, save_outcome
from sipower.selection.programs import cluster_components


def simulate(seed, shared=6, private=2, n=150, m=200):
    """Counts of three groups with shared and private programs, labels and true profiles."""
    rng = np.random.default_rng(seed)
    profiles = rng.dirichlet(np.full(m, 0.05), shared + 3 * private)
    counts = []
    for g in range(3):
        own = [*range(shared), *range(shared + private * g, shared + private * (g + 1))]
        weights = rng.dirichlet(np.full(len(own), 0.2), n)
        counts.append(rng.poisson(400 * weights @ profiles[own]))
    return np.vstack(counts), np.repeat(["A", "B", "C"], n), profiles


@pytest.fixture(scope="module")
def found():
    V, labels, profiles = simulate(0)
    order = np.random.default_rng(0).permutation(len(V))
    V, labels = V[order], labels[order]
    return V, labels, profiles, consensus(
        V, KLNMF(8, random_state=0), groups=labels, replicates=3
    )  # fmt: skip


def test_shared_and_private_programs_are_found(found):
    """The bar: cosine at least 0.9, and no private program is called shared."""
    _V, _labels, profiles, result = found
    partners, cosine = match(profiles, result.H)
    assert len(result.H) == 12
    assert cosine.min() >= 0.9
    np.testing.assert_array_equal(result.shared[partners], [True] * 6 + [False] * 6)
    assert result.shared[:6].all()  # shared ones come first
    expected = np.zeros((3, 12), bool)
    expected[:, :6] = True
    expected[[0, 0, 1, 1, 2, 2], range(6, 12)] = True
    np.testing.assert_array_equal(result.presence, expected)
    assert result.names == (
        *(f"shared {k}" for k in range(1, 7)),
        *(f"{group} {k}" for group in "ABC" for k in (1, 2)),
    )
    assert result.summary == "12 programs of 3 groups: 6 shared, 6 specific."


def test_the_joint_fit_is_certified_and_has_weights_of_all_programs(found):
    V, labels, _, result = found
    assert result.status == "converged"
    assert result.gap <= 1e-3
    assert result.W.shape == (450, 12)
    again = KLNMF(12, components_fixed=result.H, random_state=0).fit(V)
    assert result.divergence == pytest.approx(again.kl_divergence_, rel=1e-3)
    np.testing.assert_allclose(result.usage.sum(axis=1), 1)
    assert result.usage[~result.presence].max() < 0.02
    counts = result.W * result.H.sum(axis=1)
    np.testing.assert_allclose(
        counts[labels == "B"].sum(axis=0) / counts[labels == "B"].sum(), result.usage[1]
    )
    assert result.drift.max() < 0.01


def test_groups_have_the_fits_of_their_samples(found):
    V, labels, _, result = found
    alone = consensus(V[labels == "B"], KLNMF(8, random_state=0), replicates=3)
    np.testing.assert_array_equal(result.by_group[1].H, alone.H)
    for program in np.flatnonzero(result.presence[1]):
        component = alone.H[result.members[1, program]]
        cosine = (
            component
            @ result.H[program]
            / (np.linalg.norm(component) * np.linalg.norm(result.H[program]))
        )
        assert result.similarity[1, program] == pytest.approx(cosine)
    assert np.isnan(result.similarity[~result.presence]).all()
    assert np.isnan(result.cohesion[6:]).all()
    assert (result.cohesion[:6] > 0.9).all()


def test_min_groups_decides_what_is_shared():
    rng = np.random.default_rng(0)
    profiles = rng.dirichlet(np.full(60, 0.1), 3)
    members = [[0, 1], [0, 1], [0, 2]]  # program 1 is in two groups of three
    V = np.vstack([
        rng.poisson(300 * rng.dirichlet([0.3, 0.3], 60) @ profiles[own]) for own in members
    ])  # fmt: skip
    labels = np.repeat([1, 2, 3], 60)
    two, three = (
        consensus(V, KLNMF(2, random_state=0), groups=labels, replicates=2, min_groups=k)
        for k in (2, 3)
    )
    assert two.names == ("shared 1", "shared 2", "3 1")
    assert three.names == ("shared 1", "1 and 2 1", "3 1")
    np.testing.assert_array_equal(two.presence.sum(axis=0), [3, 2, 1])


def test_a_cluster_has_one_component_of_each_group_and_average_linkage():
    a, b, c = np.eye(3)
    members = cluster_components(
        [np.stack([a, b]), np.stack([b, a + 0.1 * b, c]), np.stack([a, a])],
        [np.ones(2, bool), np.array([True, True, False]), np.ones(2, bool)],
        0.7,
    )
    assert sorted(map(tuple, members.T.tolist())) in (
        [(-1, -1, 0), (0, 1, 1), (1, 0, -1)],
        [(-1, -1, 1), (0, 1, 0), (1, 0, -1)],
    )


def test_components_that_are_not_stable_are_left_out():
    V, labels, profiles = simulate(1, shared=3, private=1, n=80, m=100)
    result = consensus(
        V, KLNMF(8, random_state=0, init="random"), groups=labels, replicates=4, min_cosine=0.9
    )
    assert sum(result.left_out) > 0
    assert "Components that are not stable are left out" in result.summary
    assert match(profiles, result.H)[1].min() >= 0.9


def test_interrupted_groups_continue_with_the_same_bits(tmp_path):
    V, labels, _ = simulate(2, shared=2, private=1, n=40, m=50)
    model, total = KLNMF(3, random_state=5, n_jobs=2), 3 * 4 + 1
    calls = []
    whole = consensus(
        V, model, groups=labels, replicates=4, on_fit=lambda done, all_: calls.append((done, all_))
    )
    assert calls[-1] == (total, total)

    def interrupt(done, _):
        if done == 3:
            raise KeyboardInterrupt

    options = {"groups": labels, "replicates": 4, "folder": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        consensus(V, model, on_fit=interrupt, **options)
    again, once_more = (consensus(V, model, **options) for _ in range(2))
    for result in (again, once_more):
        np.testing.assert_array_equal(result.W, whole.W)
        np.testing.assert_array_equal(result.usage, whole.usage)
        assert (result.status, result.gap) == (whole.status, whole.gap)
    other = np.where(labels == "A", "D", labels)
    with pytest.raises(ValueError, match="fits of another task"):
        consensus(V, model, **options | {"groups": other})


def test_observed_arguments_are_divided_among_the_groups():
    V, labels, _ = simulate(3, shared=2, private=1, n=60, m=50)
    rng = np.random.default_rng(0)
    given = {
        "offsets": rng.uniform(0.5, 2, len(V)), "sample_weight": rng.uniform(0.5, 2, len(V)),
        "mask": rng.random(V.shape) > 0.1, "batch": labels,
    }  # fmt: skip
    model = KLNMF(3, random_state=0, tol=1e-2)
    result = consensus(V, model, groups=labels, replicates=2, **given)
    assert result.batch_effects.shape == (3, 50)
    own = {key: value[labels == "A"] for key, value in given.items() if key != "batch"}
    alone = consensus(V[labels == "A"], model, replicates=2, **own)
    np.testing.assert_allclose(result.by_group[0].H, alone.H, rtol=1e-12)


def test_the_table_and_the_file_have_no_factors(found, tmp_path):
    result = found[3]
    table = result.table()
    assert {len(column) for column in table.values()} == {12}
    assert list(table)[:3] == ["program", "shared", "groups"]
    save_outcome(result, tmp_path / "programs.json")
    content = json.loads((tmp_path / "programs.json").read_text())
    assert content["groups"] == ["A", "B", "C"]
    assert content["members"] == result.members.tolist()
    assert "W" not in content
    assert "H" not in content["by_group"][0]
    assert content["cohesion"][-1] is None


def test_bad_groups_get_one_sentence():
    V, model = np.ones((6, 4)), KLNMF(2, random_state=0)
    cases = {
        "`groups` must have one label for each of the 6 samples, got shape": ["a"] * 5,
        "`groups` must have a label for every sample, got none for sample 1": ["a", None] * 3,
        "`groups` must have two or more different labels, got 'a' only": ["a"] * 6,
    }
    for message, groups in cases.items():
        with pytest.raises(ValueError, match=message):
            consensus(V, model, groups=groups, replicates=1)
    labels = ["a", "b"] * 3
    with pytest.raises(ValueError, match="`min_groups` must be an integer from 2 to 2"):
        consensus(V, model, groups=labels, replicates=1, min_groups=3)
    with pytest.raises(ValueError, match=r"`min_cosine` must be in \(0, 1\], got 0"):
        consensus(V, model, groups=labels, replicates=1, min_cosine=0)
    guided = KLNMF(2, guides={"x": [0]}, random_state=0)
    with pytest.raises(ValueError, match="`groups` cannot be used with `guides`"):
        consensus(V, guided, groups=labels, replicates=1)
    V = V * (np.array(labels) == "a")[:, None]
    with pytest.raises(ValueError, match="`groups`: the 3 samples of 'b' are all zero"):
        consensus(V, model, groups=labels, replicates=1)
