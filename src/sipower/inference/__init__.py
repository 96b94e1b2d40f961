# SPDX-License-Identifier: BSD-3-Clause
"""What the factors mean: differences between components, spectra, quality and certainty."""

from sipower.inference.bootstrap import bootstrap
from sipower.inference.compare import CatalogueComparison, compare
from sipower.inference.component_quality import TopicQuality
from sipower.inference.differences import Differences
from sipower.inference.differential import differential
from sipower.inference.intervals import Bootstrap, Interval
from sipower.inference.quality import topic_quality
from sipower.inference.refit import refit
from sipower.inference.refitted import Refit
from sipower.inference.replication import Replication
from sipower.inference.spectra import Spectra, spectra
from sipower.inference.weight_errors import standard_errors

__all__ = [
    "Bootstrap",
    "CatalogueComparison",
    "Differences",
    "Interval",
    "Refit",
    "Replication",
    "Spectra",
    "TopicQuality",
    "bootstrap",
    "compare",
    "differential",
    "refit",
    "spectra",
    "standard_errors",
    "topic_quality",
]
