# SPDX-License-Identifier: BSD-3-Clause
"""
Choosing the number of components
=================================

A fifth of all counts is held out. What is left is factorised with each number of components, and
what was held out says which number is enough. The data are drawn from a model with six topics.
"""

import matplotlib.pyplot as plt

from sipower import KLNMF, consensus, pl, rank_selection
from sipower.datasets import poisson_topics

V = poisson_topics(300, 200, 6, length=200, seed=0)
selection = rank_selection(V, range(1, 13), replicates=4)
print(selection.reason)

# %%
# Held-out error falls steeply until six and rises slowly after; the band is the range of the
# replicates. Stability, how far the components of different replicates agree, falls beyond six: the
# further components are inventions.
#
# Below it six fits from different starts at the recommended number. Components with a mean cosine
# of 1 come back in every one of them; some starts end in another local minimum and miss the others.

again = consensus(V, KLNMF(selection.best, tol=1e-2, random_state=0), replicates=6)

figure, axes = plt.subplots(2, 1, figsize=(8, 7), layout="constrained", height_ratios=(3, 2))
pl.rank_selection(selection, axes[0])
pl.consensus(again, axes[1])
plt.show()
