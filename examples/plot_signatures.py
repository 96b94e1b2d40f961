# SPDX-License-Identifier: BSD-3-Clause
"""
Mutational signatures, simulated and recovered
==============================================

Each process that damages DNA has a signature, the frequencies of the 96 kinds of mutation that it
causes. The mutations of a tumour are the sum over the processes. Here signatures and exposures are
drawn at random, so the truth is known.
"""

import matplotlib.pyplot as plt
import numpy as np

from sipower import KLNMF
from sipower.results import Run
from sipower.selection import match

rng = np.random.default_rng(0)
signatures = rng.dirichlet(np.full(96, 0.15), 5)
exposures = rng.gamma(0.5, 300, (150, 5))  # mutations of each tumour by each process
V = rng.poisson(exposures @ signatures)  # tumours x kinds of mutation

# %%
# Counts of independent events are Poisson, so the maximum likelihood is the minimum KL divergence.

model = KLNMF(5, tol=1e-4, random_state=0)
W = model.fit_transform(V)
run = Run.from_model(model, W).normalised()
recovered, burden = run.H, run.W  # signatures that sum to 1, and mutations
partner, cosine = match(signatures, recovered)
recovered, burden = recovered[partner], burden[:, partner]
for process, (c, r) in enumerate(
    zip(cosine, (np.corrcoef(exposures[:, k], burden[:, k])[0, 1] for k in range(5)), strict=True),
    start=1,
):
    print(f"process {process}: cosine of the signature {c:.4f}, correlation of exposures {r:.4f}")

# %%
# The 96 kinds are six substitutions in sixteen contexts each, drawn in the usual colours.

SUBSTITUTIONS = ("C>A", "C>G", "C>T", "T>A", "T>C", "T>G")
COLOURS = np.repeat(["#1ebff0", "#050708", "#e62725", "#cbcacb", "#a1cf64", "#edc8c5"], 16, axis=0)

figure, axes = plt.subplots(5, 2, figsize=(11, 9), layout="constrained", sharex=True, sharey="row")
for process, (truth, estimate) in enumerate(zip(signatures, recovered, strict=True)):
    axes[process, 0].bar(np.arange(96), truth, color=COLOURS)
    axes[process, 1].bar(np.arange(96), estimate, color=COLOURS)
    axes[process, 0].set_ylabel(f"process {process + 1}")
    axes[process, 1].set_title(f"cosine {cosine[process]:.3f}", loc="right", fontsize="small")
for ax, title in zip(axes[0], ("true signatures", "recovered signatures"), strict=True):
    ax.set_title(title)
for ax in axes[-1]:
    ax.set_xticks(np.arange(8, 96, 16), SUBSTITUTIONS)
plt.show()
