# SPDX-License-Identifier: BSD-3-Clause
"""
Topics in docstrings
====================

The docstrings of the installed numpy, scipy and scikit-learn are a corpus that is always available.
Each docstring is a document; the sixteen components of the word counts are topics.
"""

import matplotlib.pyplot as plt
import numpy as np

from sipower import KLNMF, pl
from sipower.datasets import docstrings
from sipower.results import Run

corpus = docstrings()
print(corpus.counts.shape, "documents x words,", corpus.counts.nnz, "nonzeros")

# %%
# float32 needs a third less memory and is exact for these counts. A certified gap of 1e-2 is enough
# to read topics.

model = KLNMF(16, tol=1e-2, random_state=0, dtype=np.float32)
W = model.fit_transform(corpus.counts)
H = model.components_
print(model.status_, f"after {model.n_iter_} rounds, certified gap {model.kkt_residual_:.1e}")

# %%
# A bar is the probability of a word in the topic, the black line is its probability in the whole
# corpus, and the number is the ratio of the two. Components are numbered by size; the figure shows
# the nine largest.

run = Run(W, H, samples=corpus.documents, features=corpus.words)
figure, axes = plt.subplots(3, 3, figsize=(12, 10), layout="constrained")
for component, ax in enumerate(axes.flat, start=1):
    pl.top_features(run, component, ax, n=7)
    ax.set(xlabel="", xlim=(0, 1.1 * ax.get_xlim()[1]))  # room for the lift
    ax.locator_params(axis="x", nbins=4)
    ax.get_legend().remove()
figure.supxlabel("probability of the word in the topic (×: lift over all)")
plt.show()
