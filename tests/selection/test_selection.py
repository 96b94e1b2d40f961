# SPDX-License-Identifier: BSD-3-Clause
"""Choosing K and trusting components: thinning, blocks, merging, matching, replicates."""

import threading
import zipfile

import numpy as np
import pytest
from scipy import sparse
from scipy.special import xlogy

from sipower import KLNMF, as_matrix, consensus, rank_selection
from sipower.datasets import poisson, poisson_topics
from sipower.selection import (
    Consensus,
    RankSelection,
    estimated_seconds,
    load_outcome,
    match,
    merge,
    save_outcome,
)
from sipower.selection.holdout import SHARE, are_counts, halve, prediction_errors, thin
from sipower.selection.rank import _recommend


def kl(V, Z):
    return float((xlogy(V, V) - xlogy(V, Z) - V + Z).sum())


# ---- held-out counts ---------------------------------------------------------------------------


def test_thinning_splits_every_count():
    V = poisson_topics(40, 30, 3, seed=1)
    split = thin(as_matrix(V), seed=0)
    np.testing.assert_array_equal((split.train + split.test).toarray(), V.toarray())
    assert split.test.min() >= 0
    assert split.test.sum() / V.sum() == pytest.approx(SHARE, abs=0.02)


def test_thinned_halves_of_poisson_counts_are_independent():
    """The covariance of the two parts of Poisson(λ) is 0; of a fixed count n it is -n ε (1 - ε)."""
    V = np.random.default_rng(0).poisson(20.0, (300, 300))
    split = thin(as_matrix(V), seed=3)
    train, test = split.train.toarray().ravel(), split.test.toarray().ravel()
    covariance = np.cov(train, test)[0, 1]
    assert abs(covariance) < 0.1  # a fixed count of 20 would give -3.2


@pytest.mark.parametrize("dense", [True, False])
def test_halves_are_blocks_of_the_data(dense):
    V = np.random.default_rng(0).gamma(1.0, size=(11, 8))
    split = halve(as_matrix(V if dense else sparse.csr_array(V)), seed=0)
    total = sum(np.asarray(block.sum()) for block in
                (split.train, split.test, split.beside, split.below))  # fmt: skip
    assert total == pytest.approx(V.sum())
    assert split.train.shape == (5, 4)
    assert len(split.features) == 4


def test_what_counts_as_counts():
    assert are_counts(as_matrix(np.array([[1, 2], [0, 3]])))
    assert are_counts(as_matrix(np.array([[1.0, 2.0], [0.0, 3.0]])))
    assert not are_counts(as_matrix(np.array([[1.5, 2.0], [0.0, 3.0]])))


def test_prediction_error_is_the_divergence_of_the_best_mixture():
    rng = np.random.default_rng(0)
    W, H = rng.gamma(1.0, size=(9, 2)), rng.gamma(1.0, size=(2, 7))
    r, c = rng.gamma(1.0, size=(9, 1)), rng.gamma(1.0, size=(1, 7))
    V = rng.poisson(W @ H)
    found = prediction_errors(sparse.csr_array(V), (W, H), (r, c)).sum()
    shares = np.linspace(1e-6, 1, 20001)
    tried = [kl(V, (1 - s) * W @ H + s * r @ c) / V.sum() for s in shares[::200]]
    assert found <= min(tried) + 1e-5
    assert found >= min(tried) - 1e-3


def test_a_feature_that_was_never_seen_does_not_count():
    W, H = np.ones((3, 1)), np.array([[1.0, 0.0]])
    background = np.ones((3, 1)), np.array([[1.0, 0.0]])
    test = sparse.csr_array(np.array([[1, 5], [1, 0], [1, 0]]))
    assert prediction_errors(test, (W, H), background).sum() == pytest.approx(0.0, abs=1e-9)


# ---- merging and matching ----------------------------------------------------------------------


def test_merging_a_split_component_gives_it_back():
    """Two halves of one component, by samples or by features alike, are the cheapest to merge."""
    rng = np.random.default_rng(0)
    W, H = rng.gamma(0.3, size=(30, 3)), rng.gamma(0.3, size=(3, 20))
    share = rng.uniform(size=30)
    split = np.c_[W, W[:, 0] * share]
    split[:, 0] *= 1 - share
    found_W, found_H = merge(split, np.r_[H, H[:1]], 3)
    np.testing.assert_allclose(found_W @ found_H, W @ H, rtol=1e-3, atol=1e-3)


def test_merging_costs_no_more_than_its_bound():
    """The docstring's bound, against the divergence between the pair and its merger."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        W, H = rng.gamma(0.5, size=(12, 2)), rng.gamma(0.5, size=(2, 9))
        mass = W.sum(0) * H.sum(1)
        u, v = W / W.sum(0), H / H.sum(1, keepdims=True)

        def disorder(p):
            return -xlogy(p, p).sum()

        bounds = []
        for F in (u.T, v):
            mean = mass @ F / mass.sum()
            bounds.append(mass.sum() * disorder(mean) - sum(mass * [disorder(f) for f in F]))
        one_W, one_H = merge(W, H, 1)
        assert kl(W @ H, one_W @ one_H) <= min(bounds) * (1 + 1e-4) + 1e-3
        assert (one_W @ one_H).sum() == pytest.approx(mass.sum(), rel=1e-4)


def test_merging_keeps_mass_and_has_no_zeros():
    rng = np.random.default_rng(2)
    W, H = rng.gamma(0.5, size=(12, 6)), rng.gamma(0.5, size=(6, 9))
    W[:, 4] = 0.0  # a dead component
    one, other = merge(W, H, 4)
    assert one.shape == (12, 4)
    assert one.min() > 0
    assert other.min() > 0
    assert (one @ other).sum() == pytest.approx((W @ H).sum(), rel=1e-4)


def test_matching_undoes_a_permutation():
    H = np.random.default_rng(0).gamma(0.2, size=(6, 40))
    order = np.array([3, 1, 0, 5, 4, 2])
    partners, cosine = match(H[order] * np.arange(1, 7)[:, None], H)
    np.testing.assert_array_equal(partners, order)
    np.testing.assert_allclose(cosine, 1.0)


def test_a_dead_component_matches_with_cosine_zero():
    H = np.eye(3)
    dead = H.copy()
    dead[1] = 0
    assert match(dead, H)[1].tolist() == [1.0, 0.0, 1.0]


# ---- choosing K --------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1, 0.37], ids=["thinning", "bi-cross-validation"])
def test_rank_of_a_topic_model_is_found(scale):
    V = poisson_topics(300, 200, 5, length=300, seed=2) * scale
    found = rank_selection(V, range(2, 9), replicates=2)
    assert found.method == ("thinning" if scale == 1 else "bi-cross-validation")
    assert found.best == 5
    assert found.stability[3] > 0.95
    assert found.deviance.shape == (7, 2)
    assert "the lowest of all" in found.reason


def test_independent_counts_have_rank_one():
    found = rank_selection(poisson(200, 150, 0.3, seed=5), range(1, 5), replicates=3)
    assert found.best <= 2


@pytest.mark.parametrize("seed", range(6))
def test_independent_counts_of_any_seed_have_a_small_rank(seed):
    """Chance in the held-out counts made K = 3 look best before it was allowed for."""
    V = np.random.default_rng(10 + seed).poisson(1.0, (100, 60))
    assert rank_selection(V, range(1, 6), replicates=3).best <= 2


def test_exact_products_have_their_rank():
    for seed in range(3):
        u, v = np.random.default_rng(seed).random(40), np.random.default_rng(seed + 9).random(30)
        assert rank_selection(np.outer(u, v), range(1, 5), replicates=3).best == 1


def test_too_few_counts_are_refused():
    with pytest.raises(ValueError, match="All data are zero"):
        rank_selection(np.zeros((5, 4)), [1, 2])
    one = np.zeros((5, 4))
    one[2, 2] = 1
    with pytest.raises(ValueError, match="too few counts"):
        rank_selection(one, [1, 2], replicates=2)


def test_recommendation_is_the_smallest_within_one_standard_error():
    errors = np.array([[2.0, 2.0], [1.02, 0.99], [1.0, 1.0]])  # +0.005 ± 0.015
    groups = np.repeat(errors[:, :, None] / 20, 20, axis=2)
    best, reason = _recommend((2, 3, 4), groups, np.array([1.0, 0.5, 1.0]))
    assert best == 3
    assert "within one standard error of the lowest (1 at K = 4)" in reason
    assert "few of them should be named" in reason


def test_largest_rank_is_called_so():
    groups = np.array([[2.0, 2.1], [1.0, 1.1]])[:, :, None] * np.full(20, 1 / 20)
    _, reason = _recommend((2, 3), groups, np.ones(2))
    assert "largest K tried" in reason


def test_bad_ranks_are_refused():
    V = np.ones((4, 4))
    for ranks in ([], [0, 3]):
        with pytest.raises(ValueError, match="ranks are"):
            rank_selection(V, ranks)
    with pytest.raises(ValueError, match="replicates is 0"):
        rank_selection(V, [2], replicates=0)
    with pytest.raises(ValueError, match="cannot be halved"):
        rank_selection(np.full((1, 5), 0.5), [1])


def test_cost_is_estimated():
    V = poisson_topics(100, 80, 3, seed=0)
    assert 0 < estimated_seconds(V, [2, 4], replicates=2) < 60


def test_interrupted_rank_selection_goes_on(tmp_path):
    V = poisson_topics(120, 90, 3, length=150, seed=0)
    whole = rank_selection(V, range(1, 6), replicates=2)

    def interrupt(done, total):
        assert total == 10
        if done == 4:
            raise KeyboardInterrupt

    model = KLNMF(tol=1e-2, random_state=0, n_jobs=1)
    with pytest.raises(KeyboardInterrupt):
        rank_selection(V, range(1, 6), model, replicates=2, folder=tmp_path, on_fit=interrupt)
    counted = []
    again = rank_selection(
        V, range(1, 6), replicates=2, folder=tmp_path, on_fit=lambda *n: counted.append(n)
    )
    assert len(counted) < 10  # what was finished is not fitted again
    np.testing.assert_array_equal(again.deviance, whole.deviance)
    np.testing.assert_array_equal(again.stability, whole.stability)


# ---- consensus ---------------------------------------------------------------------------------


def test_consensus_of_clear_topics_is_stable_and_its_medoid_is_a_fit():
    V = poisson_topics(200, 150, 4, seed=0)
    found = consensus(V, KLNMF(4, random_state=0, tol=1e-4), replicates=4)
    np.testing.assert_allclose(found.similarity, found.similarity.T, atol=1e-12)
    assert np.diag(found.similarity).tolist() == [1.0] * 4
    assert found.medoid == np.argmax(found.similarity.sum(axis=1))
    one = KLNMF(4, random_state=found.medoid, tol=1e-4)
    np.testing.assert_array_equal(one.fit_transform(V), found.W)
    assert one.kl_divergence_ == found.divergences[found.medoid]
    assert set(found.statuses) == {"converged"}


def test_stability_tells_a_component_that_comes_back_from_one_that_does_not():
    """Two clear blocks, and noise that more components split as they like."""
    rng = np.random.default_rng(0)
    V = rng.poisson(0.5, (80, 60))
    V[:30, :20] += rng.poisson(20, (30, 20))
    V[30:60, 20:40] += rng.poisson(20, (30, 20))
    found = consensus(V, KLNMF(4, random_state=0), replicates=6)
    ordered = np.sort(found.stability)
    assert ordered[-2:].min() > 0.95
    assert ordered[0] < 0.7


def test_interrupted_consensus_gives_the_same_bits(tmp_path):
    V, model = poisson_topics(100, 80, 3, seed=0), KLNMF(3, random_state=7, n_jobs=2)
    whole = consensus(V, model, replicates=5)

    def interrupt(done, total):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        consensus(V, model, replicates=5, folder=tmp_path, on_fit=interrupt)
    kept = len(list(tmp_path.glob("replicate-*.npz")))
    assert 2 <= kept < 5
    again = consensus(V, model, replicates=5, folder=tmp_path)
    np.testing.assert_array_equal(again.W, whole.W)
    np.testing.assert_array_equal(again.stability, whole.stability)
    assert again.medoid == whole.medoid


def test_a_torn_piece_is_fitted_again(tmp_path):
    V, model = poisson_topics(60, 50, 2, seed=0), KLNMF(2, random_state=0)
    whole = consensus(V, model, replicates=2, folder=tmp_path)
    piece = tmp_path / "replicate-001.npz"
    piece.write_bytes(piece.read_bytes()[:100])
    again = consensus(V, model, replicates=2, folder=tmp_path)
    np.testing.assert_array_equal(again.similarity, whole.similarity)


def test_a_piece_with_a_head_that_is_no_source_is_fitted_again(tmp_path):
    V, model = poisson_topics(60, 50, 2, seed=0), KLNMF(2, random_state=0)
    whole = consensus(V, model, replicates=2, folder=tmp_path)
    piece = tmp_path / "replicate-001.npz"
    with zipfile.ZipFile(piece) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(piece, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content.replace(b"), }", b")  (", 1))
    again = consensus(V, model, replicates=2, folder=tmp_path)
    np.testing.assert_array_equal(again.similarity, whole.similarity)


def test_a_note_of_the_task_that_is_no_text_is_one_of_another_task(tmp_path):
    (tmp_path / "task.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=f"{tmp_path} holds pieces of another task"):
        consensus(np.ones((4, 3)), KLNMF(2, random_state=0), replicates=1, folder=tmp_path)


def test_pieces_of_other_data_are_refused(tmp_path):
    model = KLNMF(2, random_state=0)
    consensus(poisson_topics(60, 50, 2, seed=0), model, replicates=1, folder=tmp_path)
    with pytest.raises(ValueError, match="pieces of another task"):
        consensus(poisson_topics(60, 50, 2, seed=1), model, replicates=1, folder=tmp_path)
    with pytest.raises(ValueError, match="pieces of another task"):
        consensus(
            poisson_topics(60, 50, 2), KLNMF(3, random_state=0), replicates=1, folder=tmp_path
        )


def test_a_failing_fit_stops_the_others():
    V = poisson_topics(60, 50, 2, seed=0)

    def fail(record):
        raise RuntimeError("listener")

    before = threading.active_count()
    with pytest.raises(RuntimeError, match="listener"):
        consensus(V, KLNMF(2, random_state=0, on_round=fail, n_jobs=2), replicates=4)
    assert threading.active_count() == before


def test_outcomes_survive_their_file(tmp_path):
    one = rank_selection(poisson_topics(60, 50, 2, seed=0), [1, 2, 3], replicates=2)
    save_outcome(one, tmp_path / "rank.json")
    found = load_outcome(RankSelection, tmp_path / "rank.json")
    assert (found.ranks, found.best, found.reason) == (one.ranks, one.best, one.reason)
    np.testing.assert_array_equal(found.deviance, one.deviance)
    two = consensus(poisson_topics(60, 50, 2, seed=0), KLNMF(2, random_state=0), replicates=2)
    save_outcome(two, tmp_path / "consensus.json")
    back = load_outcome(Consensus, tmp_path / "consensus.json", W=two.W, H=two.H)
    np.testing.assert_array_equal(back.similarity, two.similarity)
    assert back.statuses == two.statuses
    with pytest.raises(ValueError, match="is no Consensus of sipower"):
        load_outcome(Consensus, tmp_path / "rank.json")


def test_a_folder_needs_a_seed(tmp_path):
    with pytest.raises(ValueError, match="random_state is None"):
        consensus(poisson_topics(20, 10, 2), KLNMF(2), replicates=1, folder=tmp_path)


def test_rows_without_a_partner_say_so():
    """The best assignment by brute force, whichever side has more rows."""
    A, B = np.eye(3), np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    np.testing.assert_array_equal(match(A, B), ([1, -1, 0], [1, 0, 1]))
    np.testing.assert_array_equal(match(B, A), ([2, 0], [1, 1]))


def test_a_model_whose_output_is_a_frame_chooses_as_any_other(tmp_path):
    V = poisson_topics(60, 40, 2, length=80, seed=0)
    plain = KLNMF(2, tol=1e-2, random_state=0)
    framed = KLNMF(2, tol=1e-2, random_state=0).set_output(transform="pandas")
    one, other = (rank_selection(V, [1, 2], model, replicates=2) for model in (plain, framed))
    np.testing.assert_array_equal(one.deviance, other.deviance)
    for _ in range(2):  # made, and read again
        found = consensus(V, framed, replicates=2, folder=tmp_path / "fits")
        assert isinstance(found.W, np.ndarray)
