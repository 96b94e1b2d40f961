# SPDX-License-Identifier: BSD-3-Clause
"""
Topics guided by seed words
===========================

A small newspaper has nine subjects. Two of them, sailing and medicine, are rare. A free fit with
nine components mixes them with others. Seed words guide a component to each of the two; the other
seven stay free. The texts are simulated, so the subject of every word is known.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sipower import KLNMF

SUBJECTS = {
    "politics": "vote party minister parliament election law reform debate cabinet majority",
    "economy": "market bank inflation prices trade growth shares interest profit budget",
    "weather": "rain wind snow storm clouds forecast temperature sun flood frost",
    "music": "concert orchestra singer album violin stage melody opera band choir",
    "school": "pupils teacher exam lesson class university homework degree lecture grades",
    "traffic": "road train bus accident motorway bridge tunnel delay cyclist parking",
    "football": "goal league coach referee stadium striker penalty kick defender cup",
    "sailing": "boat sail harbour mast anchor regatta crew tide keel helm",
    "medicine": "doctor patient vaccine hospital surgery virus therapy nurse dose trial",
    "all": "year people new first city report time week country group",
}
words = np.array(" ".join(SUBJECTS.values()).split())
size = np.array([0.24, 0.2, 0.12, 0.1, 0.1, 0.1, 0.08, 0.03, 0.03])


def fit(seed, guides=None, strength=None):
    """Fit 200 texts of about 50 words; return the model and the subjects of its components."""
    rng = np.random.default_rng(seed)
    topics = np.kron(np.eye(9, 10), np.ones(10)) * rng.gamma(2, 1, 100) + 1e-3
    topics = 0.6 * topics / topics.sum(axis=1, keepdims=True) + 0.04 * (np.arange(100) >= 90)
    counts = rng.poisson(50 * rng.dirichlet(4 * size, 200) @ topics)
    model = KLNMF(9, guides=guides, guide_strength=strength, random_state=0)
    with warnings.catch_warnings(action="ignore"):  # about guides that the data do not support
        model.fit(pd.DataFrame(counts, columns=words))
    shares = model.components_.reshape(9, 10, 10).sum(axis=2)[:, :9]  # without words of all
    return model, shares / shares.sum(axis=1, keepdims=True)


# %%
# A guide is a list of words that get prior counts in their component. The default is weak. Here 200
# are needed: the corpus has 10,000 words, 300 on each of the two subjects. The fit also tests
# whether the words of a guide occur together more often than by chance.

GUIDES = {name: SUBJECTS[name].split()[:5] for name in ("sailing", "medicine")}
CASES = {"free": (), "default strength": (GUIDES,), "200 prior counts": (GUIDES, 200)}
for label, case in CASES.items():
    found = [(fit(seed, *case)[1][:, 7:].max(axis=0) > 0.8).all() for seed in range(10)]
    print(f"{label}: components for sailing and for medicine in {sum(found)} of 10 corpora")
(free, free_shares), (guided, guided_shares) = fit(8), fit(8, GUIDES, 200)
report = fit(8, {"nonsense": ["vote", "violin", "frost", "goal"]})[0].guides_[0]
print(*guided.guides_, report, sep="\n")

# %%
# The free fit has merged the two subjects, and split politics. The guided components have the seed
# words (red) and also the other words of their subject (blue).

figure, axes = plt.subplots(2, 2, figsize=(10, 8), layout="constrained")
for ax, shares in zip(axes[0], (free_shares, guided_shares), strict=True):
    image = ax.imshow(shares, cmap="Greys", vmin=0, vmax=1, aspect="auto")
    ax.set_xticks(range(9), list(SUBJECTS)[:9], rotation=45, ha="right")
    ax.set(title="free" if ax is axes[0, 0] else "guided", ylabel="component", yticks=range(9))
figure.colorbar(image, ax=axes[0, 1], label="share of the words of subjects")
for ax, guide in zip(axes[1], guided.guides_, strict=True):
    profile = guided.components_[guide.component]
    top = np.argsort(profile)[-10:]
    colours = np.where(np.isin(words[top], guide.features), "#d62728", "#1f77b4")
    ax.barh(words[top], profile[top] / profile.sum(), color=colours)
    ax.set(title=f"guided: {guide.name}", xlabel="probability", xticks=(0, 0.1, 0.2))
plt.show()
