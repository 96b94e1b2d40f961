# SPDX-License-Identifier: BSD-3-Clause
"""The rules of the verdicts, on made-up curves whose answer is known."""

import numpy as np
import pytest

from result_rows import BUDGET, finish, row
from sipower.experiments import Curves, judge_claims, page
from sipower.experiments.compare import (
    Comparison,
    compare,
    judge_much_faster,
    judge_not_faster,
    judge_robust,
)
from sipower.experiments.figures import figures


@pytest.fixture(autouse=True)
def with_all_data(monkeypatch):
    monkeypatch.setattr("sipower.experiments.protocol.is_present", lambda name: True)


def finding(rows, case):
    """The only finding on a case among all claims."""
    findings = [f for claim in judge_claims(Curves(rows, BUDGET)) for f in claim.findings]
    (one,) = [f for f in findings if f.case == case]
    return one


FULL_AGAINST_MU = "KOS: F-SCI-PI against MU/EM"


# ---- errors -------------------------------------------------------------------------------------


def test_the_lowest_value_and_the_papers_error():
    rows = [row("mu", [11.0, 6.0, 3.0]), row("auto", [11.0, 2.0, 1.0])]
    rows.append(row("pgd", [11.0, None, 2.0]))
    curves = Curves(rows, BUDGET)
    best = curves.best["kos"]
    assert best.value == 1.0
    assert best.run.startswith("auto, seed 0, 600 passes")
    np.testing.assert_allclose(curves.errors(rows[2]), [1.0, np.inf, 0.1])
    np.testing.assert_allclose(curves.errors(rows[1]), [1.0, 0.1, 1e-15])


@pytest.mark.parametrize("axis", ["passes", "seconds"])
def test_between_two_evaluations_the_logarithm_of_the_error_is_a_line(axis):
    lowest = row("auto", [101.0, 1.0])
    one = row("mu", [101.0, 11.0, 2.0])  # errors 1, 0.1, 0.01
    curves = Curves([lowest, one], BUDGET)
    between = 0.25 * one[axis][1] + 0.75 * one[axis][2]
    assert curves.error_at(one, between, axis) == pytest.approx(10**-1.75)
    assert curves.cost_to(one, 10**-1.75, axis) == pytest.approx(between)
    assert curves.cost_to(one, 1e-3, axis) == np.inf
    assert curves.error_at(one | {"status": "not_finite"}, 10.0, axis) == np.inf


# ---- two methods --------------------------------------------------------------------------------


def test_a_method_twice_as_fast_has_the_speed_2_on_its_axis_only():
    t = np.arange(31.0)
    rows = [row("auto", [10.0, 0.0])]
    rows.append(row("mu", (10 * 0.9**t).tolist()) | {"seconds": (t / 30).tolist()})
    rows.append(row("f-sci-pi", (10 * 0.9 ** (2 * t)).tolist()) | {"seconds": (t / 10).tolist()})
    curves = Curves(rows, BUDGET)
    fast, slow = {0: rows[2]}, {0: rows[1]}
    assert compare(curves, fast, slow, "passes").speed == pytest.approx(2, rel=1e-6)
    assert compare(curves, slow, fast, "passes").speed == pytest.approx(1 / 2, rel=1e-6)
    assert compare(curves, fast, slow, "seconds").speed == pytest.approx(2 / 3, rel=1e-6)
    assert compare(curves, fast, {1: rows[1]}, "passes") is None


def test_a_run_that_rises_again_is_judged_by_its_last_error():
    seconds = [0.0, 10.0, 20.0, 30.0]
    falls = row("f-sci-pi", [10.0, 6.0, 4.0, 2.0], seconds=seconds)
    rises = row("mu", [10.0, 2.0, 3.0, 4.0], seconds=seconds)
    curves = Curves([falls, rises, row("auto", [10.0, 0.0])], BUDGET)
    result = compare(curves, {0: rises}, {0: falls}, "seconds")
    assert result.speed == pytest.approx(20 / 30)  # 4 is reached for good at 20 s and at 30 s


def test_what_a_run_does_after_the_other_one_ended_does_not_count():
    ends_early = row("f-sci-pi", [10.0, 6.0, 4.0], seconds=[0.0, 10.0, 20.0])
    rises_late = row("mu", [10.0, 2.0, 3.0, 9.0], seconds=[0.0, 10.0, 20.0, 30.0])
    curves = Curves([ends_early, rises_late, row("auto", [10.0, 0.0])], BUDGET)
    result = compare(curves, {0: rises_late}, {0: ends_early}, "seconds")
    # At 20 s the errors are 0.3 and 0.4; the former was at 0.4 on its way from 1 to 0.2.
    assert result.speed == pytest.approx(20 / (10 * np.log(0.4) / np.log(0.2)))


def test_a_diverged_run_never_reaches_anything():
    rows = [row("f-sci-pi", [99.0, 20.0, 5.0]), row("mu", [99.0, 2.0, 1.0], status="not_finite")]
    result = finding(rows, FULL_AGAINST_MU).passes
    assert (result.verdict, result.numbers) == (
        "reproduced",
        "reached by the first only (1 of 1 seeds)",
    )
    rows[0]["status"], rows[1]["status"] = "not_finite", "stopped"
    result = finding(rows, FULL_AGAINST_MU).passes
    assert (result.verdict, result.numbers) == (
        "not reproduced",
        "never reached (0 of 1 seeds, 1 diverged)",
    )


@pytest.mark.parametrize(
    ("wins", "expected"),
    [(5, "reproduced"), (4, "reproduced"), (3, "mixed"), (1, "not reproduced")],
)
def test_a_comparison_is_judged_by_the_share_of_the_seeds(wins, expected):
    rows = [row("mu", [99.0, 50.0, 30.0], seed=s) for s in range(5)]
    rows += [row("f-sci-pi", [99.0, 15.0, 5.0 if s < wins else 60], seed=s) for s in range(5)]
    rows.append(row("auto", [99.0, 0.1]))
    assert finding(rows, FULL_AGAINST_MU).passes.verdict == expected


def test_much_faster_and_not_significantly_faster_look_at_speed_and_seeds():
    little = Comparison([1.3] * 5, 0)
    assert (judge_much_faster(little), judge_not_faster(little)) == ("mixed", "not reproduced")
    much = Comparison([3.0] * 4 + [0.5], 0)
    assert (judge_much_faster(much), judge_not_faster(much)) == ("reproduced", "not reproduced")
    three_of_five = Comparison([3.0] * 3 + [0.5] * 2, 0)  # fast in the median, on few seeds
    assert (judge_much_faster(three_of_five), judge_not_faster(three_of_five)) == (
        "mixed",
        "reproduced",
    )
    hardly = Comparison([1.05] * 5, 0)
    assert judge_not_faster(hardly) == "reproduced"


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [(1.5, "reproduced"), (3.0, "mixed"), (7.0, "not reproduced"), (np.nan, "not reproduced")],
)
def test_robust_is_a_matter_of_the_ratio(ratio, expected):
    assert judge_robust(ratio) == expected


# ---- whole tables -------------------------------------------------------------------------------


def test_power_laws_are_not_called_linear():
    t = np.linspace(0, 300, 40)

    def rows(errors):
        def objective(run):
            return 0.0 if run.method == "exact" else 1.0

        table = finish(BUDGET, "subproblem", objective)
        for one in table:
            if one["method"] == "s-sci-pi" and one["passes"][-1] == 300:
                one |= {"passes": t.tolist(), "seconds": t.tolist(), "objective": errors.tolist()}
            if one["method"] == "exact":
                one["objective"] = [0.0]
        return table

    for errors, expected in ((np.exp(-t / 25), "reproduced"), ((1 + t) ** -2.0, "not reproduced")):
        claims = {c.title: c for c in judge_claims(Curves(rows(errors), BUDGET))}
        cases = {f.case: f for f in claims["S-SCI-PI converges linearly"].findings}
        assert cases["KOS"].passes.verdict == expected
        assert cases["KOS"].seconds.verdict == expected


def test_a_complete_table_has_every_claim_with_both_verdicts():
    rng = np.random.default_rng(0)
    rows = []
    for experiment in ("nmf", "synthetic", "subproblem", "robustness", "sampling", "signs"):
        rows = finish(BUDGET, experiment, lambda run: 1.0 + rng.random(), rows)
    for one in rows:
        if one["method"] == "exact":
            one["objective"] = [0.5]
    claims = judge_claims(Curves(rows, BUDGET))
    quotes = {claim.quote for claim in claims}
    assert len(claims) == len(quotes) == 14  # not the linear rate: two evaluations are no curve
    for claim in claims:
        assert claim.place
        assert all(f.seconds or "negative" in claim.title for f in claim.findings)
    cases = [f.case for claim in claims for f in claim.findings]
    for name in ("WT", "NIPS", "KOS", "MITF", "Pois1", "Pois2", "Pois3"):
        assert f"{name}: S-SCI-PI against PGD" in cases


def test_a_data_set_on_which_everything_diverged_has_no_panels():
    rows = finish(BUDGET, "sampling", lambda run: 10.0)  # above the start
    assert [figure.name for figure in figures(Curves(rows, BUDGET))] == []


def test_pages_of_every_part_of_a_table_can_be_made():
    rng = np.random.default_rng(0)
    rows = []
    for experiment in ("nmf", "synthetic", "subproblem", "robustness", "sampling", "signs"):
        rows = finish(BUDGET, experiment, lambda run: 8.0 * rng.random(), rows)
    for one in rows:
        if rng.random() < 0.1:
            one["status"] = "not_finite"
    for size in rng.integers(0, len(rows), 8):
        part = [rows[i] for i in rng.permutation(len(rows))[:size]]
        curves = Curves(part, BUDGET)
        assert page(curves, figures(curves)).startswith("# The paper's experiments")
