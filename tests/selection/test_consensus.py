# SPDX-License-Identifier: BSD-3-Clause
"""`consensus`: the medoid, stability, saved fits."""

import threading
import zipfile

import numpy as np
import pytest

from sipower import KLNMF, consensus, rank_selection
from sipower.datasets import poisson_topics
from sipower.selection import (
    Consensus,
    RankSelection,
    load_outcome,
    save_outcome,
)


def test_consensus_of_clear_topics_is_stable_and_its_medoid_is_a_fit():
    V = poisson_topics(200, 150, 4, seed=0)
    result = consensus(V, KLNMF(4, random_state=0, tol=1e-4), replicates=4)
    np.testing.assert_allclose(result.similarity, result.similarity.T, atol=1e-12)
    assert np.diag(result.similarity).tolist() == [1.0] * 4
    assert result.medoid == np.argmax(result.similarity.sum(axis=1))
    one = KLNMF(4, random_state=result.medoid, tol=1e-4)
    np.testing.assert_array_equal(one.fit_transform(V), result.W)
    assert one.kl_divergence_ == result.divergences[result.medoid]
    assert set(result.statuses) == {"converged"}


def test_stability_tells_a_component_that_comes_back_from_one_that_does_not():
    """Two clear blocks, and noise that more components split as they like."""
    rng = np.random.default_rng(0)
    V = rng.poisson(0.5, (80, 60))
    V[:30, :20] += rng.poisson(20, (30, 20))
    V[30:60, 20:40] += rng.poisson(20, (30, 20))
    result = consensus(V, KLNMF(4, random_state=0), replicates=6)
    ordered = np.sort(result.stability)
    assert ordered[-2:].min() > 0.95
    assert ordered[0] < 0.7


def test_one_bad_start_of_ten_is_dropped():
    V = poisson_topics(200, 150, 4, length=200, seed=0)
    model = KLNMF(4, init="random", solver="ccd", tol=1e-2, random_state=0)
    result = consensus(V, model, replicates=10)
    bad = int(np.argmax(result.divergences))
    assert result.divergences[bad] > 1.1 * np.median(result.divergences)
    assert [r for r in range(10) if result.outliers[r]] == [bad]
    assert result.outliers[bad] == "worse"
    assert result.summary.startswith(f"1 of 10 replicates dropped: replicate {bad + 1} (divergence")
    assert result.stability.min() > 0.99
    everything = consensus(V, model, replicates=10, drop_outliers=False)
    assert everything.is_kept.all()
    assert everything.summary == "All 10 replicates are kept."
    assert everything.stability.min() < 0.95


def test_a_replicate_unlike_all_others_is_dropped(tmp_path):
    V, model = poisson_topics(100, 80, 3, seed=0), KLNMF(3, random_state=0)
    whole = consensus(V, model, replicates=8, folder=tmp_path)
    assert set(whole.outliers) == {""}
    with np.load(tmp_path / "replicate-005.npz") as archive:
        piece = dict(archive)
    piece["H"] = piece["H"][:, ::-1]
    np.savez(tmp_path / "replicate-005.npz", **piece)
    result = consensus(V, model, replicates=8, folder=tmp_path)
    assert result.outliers == ("",) * 5 + ("far", "", "")
    assert "replicate 6 (components unlike those of all others)" in result.summary
    np.testing.assert_allclose(result.stability, whole.stability, atol=1e-3)


def test_replicates_that_all_differ_are_all_kept():
    """No fit is called far where none is near: the stability says that."""
    V = np.random.default_rng(0).poisson(2.0, (40, 30))
    result = consensus(V, KLNMF(8, init="random", random_state=0), replicates=8)
    assert result.is_kept.all()
    assert result.stability.mean() < 0.9


def test_nearly_equal_fits_of_an_exact_product_are_all_kept():
    rng = np.random.default_rng(0)
    V = rng.random((30, 1)) @ rng.random((1, 20))
    assert consensus(V, KLNMF(1, random_state=0), replicates=4).is_kept.all()


def test_interrupted_consensus_gives_the_same_bits(tmp_path):
    V, model = poisson_topics(100, 80, 3, seed=0), KLNMF(3, random_state=7, n_jobs=2)
    whole = consensus(V, model, replicates=20)

    def interrupt(completed, total):
        if completed == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        consensus(V, model, replicates=20, folder=tmp_path, on_fit=interrupt)
    n_saved = len(list(tmp_path.glob("replicate-*.npz")))
    assert 2 <= n_saved < 20  # fits that run are finished, none begins
    again = consensus(V, model, replicates=20, folder=tmp_path)
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
    with pytest.raises(ValueError, match=f"{tmp_path} holds fits of another task"):
        consensus(np.ones((4, 3)), KLNMF(2, random_state=0), replicates=1, folder=tmp_path)


def test_pieces_of_other_data_are_refused(tmp_path):
    model = KLNMF(2, random_state=0)
    consensus(poisson_topics(60, 50, 2, seed=0), model, replicates=1, folder=tmp_path)
    with pytest.raises(ValueError, match="fits of another task"):
        consensus(poisson_topics(60, 50, 2, seed=1), model, replicates=1, folder=tmp_path)
    with pytest.raises(ValueError, match="fits of another task"):
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
    loaded = load_outcome(RankSelection, tmp_path / "rank.json")
    assert (loaded.ranks, loaded.best, loaded.reason) == (one.ranks, one.best, one.reason)
    np.testing.assert_array_equal(loaded.deviance, one.deviance)
    two = consensus(poisson_topics(60, 50, 2, seed=0), KLNMF(2, random_state=0), replicates=2)
    save_outcome(two, tmp_path / "consensus.json")
    back = load_outcome(Consensus, tmp_path / "consensus.json", W=two.W, H=two.H)
    np.testing.assert_array_equal(back.similarity, two.similarity)
    assert back.statuses == two.statuses
    assert back.outliers == two.outliers == ("", "")
    np.testing.assert_array_equal(loaded.standard_error, one.standard_error)
    with pytest.raises(ValueError, match="is not a Consensus of sipower"):
        load_outcome(Consensus, tmp_path / "rank.json")


def test_a_folder_needs_a_seed(tmp_path):
    with pytest.raises(ValueError, match="`random_state` must be an integer if `folder` is given"):
        consensus(poisson_topics(20, 10, 2), KLNMF(2), replicates=1, folder=tmp_path)
