# SPDX-License-Identifier: BSD-3-Clause
"""
A hidden signature beside a catalogue
=====================================

Eight mutational signatures are known from a catalogue. Fifteen of a hundred tumours were also
exposed to a mutagen whose signature nobody has described. The catalogue is kept fixed, and one
more component is fitted beside it. All is drawn at random, so the truth is known.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import kl_div

from sipower import KLNMF, non_negative_factorization
from sipower.selection import match

KNOWN, TUMOURS, EXPOSED = 8, 100, 15
rng = np.random.default_rng(0)
flat, sharp = rng.dirichlet(np.full(96, 3.0), 2), rng.dirichlet(np.full(96, 0.2), 7)
signatures = np.concatenate([flat, sharp])  # the last one is the mutagen's
exposures = rng.gamma(0.5, 400, (TUMOURS, KNOWN + 1))
exposures[:, KNOWN] = np.where(np.arange(TUMOURS) < EXPOSED, rng.gamma(4, 75, TUMOURS), 0)
V = rng.poisson(exposures @ signatures)  # tumours x kinds of mutation
catalogue, hidden, burden = signatures[:KNOWN], signatures[KNOWN], exposures[:, KNOWN]

# %%
# First, is anything missing? Fit the exposures to the catalogue alone, an exact solution for each
# tumour. The deviance for each degree of freedom is about 1 where the catalogue suffices.

W, _, _ = non_negative_factorization(V, H=catalogue, n_components=KNOWN, update_H=False)
deviance = 2 * kl_div(V, W @ catalogue).sum(axis=1) / (96 - KNOWN)
exposed, others = np.median(deviance[:EXPOSED]), np.median(deviance[EXPOSED:])
print(f"median deviance: {exposed:.1f} of exposed tumours, {others:.1f} of the others")

# %%
# Then fit it. The catalogue is the first eight rows of `components_`, unchanged bit for bit; the
# last row is new. For comparison, all nine signatures are fitted without the catalogue.


def find_hidden(fixed):
    """Return the component closest to the hidden signature, its cosine and its mutations."""
    model = KLNMF(KNOWN + 1, components_fixed=fixed, tol=1e-4, random_state=0)
    W, H = model.fit_transform(V), model.components_
    (*_, k), (*_, cosine) = match(signatures, H)  # the hidden signature is the last one
    return H[k] / H[k].sum(), cosine, W[:, k] * H[k].sum()


fits = {"with the catalogue": find_hidden(catalogue), "without": find_hidden(None)}
for label, (_, cosine, estimate) in fits.items():
    error = np.abs(estimate - burden).mean()
    print(f"{label}: cosine {cosine:.3f}, mean error of a tumour {error:.0f} mutations")

# %%
# Both find the shape of the signature. The catalogue halves the error of the mutations that are
# attributed to it: the eight other signatures are exact, so their errors do not leak into it. Both
# attribute too many, because the new component also fits some of the noise.

SUBSTITUTIONS = ("C>A", "C>G", "C>T", "T>A", "T>C", "T>G")
COLOURS = np.repeat(["#1ebff0", "#050708", "#e62725", "#cbcacb", "#a1cf64", "#edc8c5"], 16, axis=0)

figure = plt.figure(figsize=(9, 8), layout="constrained")
axes = figure.subplot_mosaic("TT;NN;LR")  # truth, new component, two panels below
found, cosine, found_burden = fits["with the catalogue"]
for name, shape, title in (("T", hidden, "hidden signature"), ("N", found, "new component")):
    axes[name].bar(np.arange(96), shape, color=COLOURS)
    axes[name].set_xticks(np.arange(7.5, 96, 16), SUBSTITUTIONS)
    axes[name].set(xlim=(-1, 96), ylim=(0, 0.11), ylabel="probability", title=title)
for group, colour in ((deviance[EXPOSED:], "#b0b0b0"), (deviance[:EXPOSED], "#d62728")):
    axes["L"].hist(group, np.geomspace(0.5, 20, 30), color=colour)
axes["L"].set(xscale="log", xlabel="deviance, catalogue alone", ylabel="tumours")
axes["L"].set_xticks((0.5, 1, 2, 5, 10, 20), ("0.5", "1", "2", "5", "10", "20"))
axes["L"].legend(("not exposed", "exposed"))
for (label, (_, _, estimate)), marker in zip(fits.items(), "o^", strict=True):
    axes["R"].plot(burden, estimate, marker, ms=4, alpha=0.7, label=label)
axes["R"].axline((0, 0), slope=1, color="#808080", linewidth=1)
axes["R"].set(xlabel="true mutations by the mutagen", ylabel="attributed mutations")
axes["R"].legend()
plt.show()
