# SPDX-License-Identifier: BSD-3-Clause
"""
Choosing the number of components
=================================

A fifth of all counts is held out. The remaining counts are factorised with each number of
components, and the error on the held-out counts shows which number is enough. The data are drawn
from a model with six topics.
"""

import matplotlib.pyplot as plt

from sipower import KLNMF, consensus, pl, rank_selection
from sipower.datasets import poisson_topics

V = poisson_topics(300, 200, 6, length=200, seed=0)
selection = rank_selection(V, range(1, 13), replicates=4)
print(selection.reason)

# %%
# The held-out error falls steeply up to six components and rises slowly after that; the band is the
# range of the replicates. Stability, the agreement of the components of different replicates, falls
# beyond six: the additional components fit noise.
#
# The lower panel compares six fits from different starts at the recommended number. A component
# with a mean cosine of 1 occurs in all of them; a start that ends in another local minimum lowers
# the cosine of the components that it misses.

result = consensus(V, KLNMF(selection.best, tol=1e-2, random_state=0), replicates=6)

figure, axes = plt.subplots(2, 1, figsize=(8, 7), layout="constrained", height_ratios=(3, 2))
pl.rank_selection(selection, axes[0])
pl.consensus(result, axes[1])
plt.show()
