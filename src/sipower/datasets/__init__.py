# SPDX-License-Identifier: BSD-3-Clause
"""Example count matrices: the paper's seven, and the docstrings of installed packages."""

from sipower.datasets.catalogue import CATALOGUE, Entry, is_present, load, vocabulary, without_rare
from sipower.datasets.docstrings import Corpus, docstrings
from sipower.datasets.synthetic import negative_binomial_topics, poisson, poisson_topics

__all__ = [
    "CATALOGUE",
    "Corpus",
    "Entry",
    "docstrings",
    "is_present",
    "load",
    "negative_binomial_topics",
    "poisson",
    "poisson_topics",
    "vocabulary",
    "without_rare",
]
