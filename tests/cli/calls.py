# SPDX-License-Identifier: BSD-3-Clause
"""Calls of the command in this process or as another one, and the counts in its files."""

import json
import sys

import scipy.sparse as sp
from typer.testing import CliRunner

import messages
import oracles
from sipower.cli import app
from sipower.datasets import poisson_topics

V = poisson_topics(60, 40, 3, length=80, seed=0).toarray()  # in counts.csv, which is dense
SPARSE_V = sp.csr_array(oracles.counts(300, 200, density=0.5))  # in counts.npz


def call(*words, code=0):
    """Run a command here; it must exit with the code."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    messages.add_output(result.stderr, words)
    assert result.exit_code == code, (result.output, result.stderr, result.exception)
    return result


def events(result):
    """The events that a command with --json has printed."""
    return [json.loads(line) for line in result.stdout.splitlines()]


def command(*words):
    """The words of a process of its own."""
    return [sys.executable, "-m", "sipower", *map(str, words)]
