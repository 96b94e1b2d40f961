# SPDX-License-Identifier: BSD-3-Clause
"""A part of `make campaign` with a fixed seed, and its resumption."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from systems import linux_only

sys.path.append(str(Path(__file__).parents[2] / "fuzz"))
sys.path.append(str(Path(__file__).parents[2] / "tools"))

import campaign
import driver
import fits

pytestmark = linux_only
ROOT = Path(__file__).parents[2]
FITS = 100


def run_fits(number: int) -> None:
    outcome = driver.run(fits.target, number, seed=1)
    assert not outcome.failures, outcome.failures[0]
    assert outcome.words.total() == number
    kinds = {word.split(",")[0].split()[0] for word in outcome.words}
    assert kinds == {"fit", "refit", "differential"}
    assert {word.split()[2] for word in outcome.words if word.startswith("fit")} >= {
        "general", "plain", "general,", "plain,",
    }  # fmt: skip


def test_generated_fits_keep_their_promises() -> None:
    run_fits(FITS)


@pytest.mark.stress
def test_many_generated_fits_keep_their_promises() -> None:
    run_fits(5000)


def test_a_campaign_goes_on_where_it_stopped(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(campaign.INPUTS_AT_ONCE, "bindings", 150)
    target = campaign.bindings.target, campaign.bindings.prepare
    for expected in (150, 300, 400):
        part = campaign.Campaign(tmp_path, 3, 2)
        part.advance("bindings", *target, 400)
        assert part.parts["bindings"].done == expected
    whole = driver.run(target[0], 400, seed=3, prepare=target[1])
    progress = json.loads((tmp_path / "progress.json").read_text())
    assert progress["parts"]["bindings"]["outcomes"] == dict(whole.words)
    with pytest.raises(SystemExit, match="holds a campaign with the seed 3, got 4"):
        campaign.Campaign(tmp_path, 4, 2)


def test_a_failure_is_kept_with_the_command_that_repeats_it(tmp_path) -> None:
    def target(source) -> str:
        assert source.random() < 0.9, "planted"
        return "fine"

    kept = campaign.Campaign(tmp_path, 0, 2)
    kept.advance("fits", target, driver.do_nothing, 50)
    failures = [json.loads(line) for line in (tmp_path / "failures.jsonl").read_text().splitlines()]
    expected = {n for n in range(50) if driver.make_source(0, n).random() >= 0.9}
    assert {failure["number"] for failure in failures} == expected
    assert all("planted" in failure["output"] for failure in failures)
    part = kept.parts["fits"]
    assert (part.failures, part.outcomes) == (len(expected), {"fine": 50 - len(expected)})
    words = failures[0]["repeat"].split()
    assert words[:2] == ["python", "fuzz/fits.py"]
    repeated = subprocess.run(
        [sys.executable, *words[1:]], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert repeated.stdout.startswith(("fit", "refit", "differential"))
