# SPDX-License-Identifier: BSD-3-Clause
"""
Topics guided by seed words
===========================

An editor wants seven topics of a newspaper, and two of them should be sailing and medicine. With
nine subjects for seven topics, a free fit merges those it likes. Seed words guide two components;
the other five stay free. The texts are simulated, so the subjects of all words are known.
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
}
COMMON = "year people new first city report time week country group"
words = np.array(" ".join([*SUBJECTS.values(), COMMON]).split())
rng = np.random.default_rng(4)
topics = np.kron(np.eye(9, 10), np.ones(10)) * rng.gamma(2, 1, 100) + 1e-3
topics = 0.75 * topics / topics.sum(axis=1, keepdims=True) + 0.025 * (np.arange(100) >= 90)
size = np.array([0.2, 0.16, 0.12, 0.1, 0.1, 0.1, 0.08, 0.07, 0.07])
V = rng.poisson(80 * rng.dirichlet(2 * size, 500) @ topics)
X = pd.DataFrame(V, columns=words)

# %%
# A guide is a list of words. They get `guide_strength` prior counts in their component: here 1,500,
# as if the topic had been seen in 1,500 words besides the 40,000 of the corpus. If another subject
# takes the component, the share of the seed words is small, and a stronger guide is needed.

GUIDES = {name: SUBJECTS[name].split()[:5] for name in ("sailing", "medicine")}
free = KLNMF(7, random_state=0).fit(X)
guided = KLNMF(7, guides=GUIDES, guide_strength=1500, random_state=0).fit(X)
print(*guided.guides_, sep="\n")

# %%
# The fit tests whether the words of a guide occur together more often than by chance. These do not.

nonsense = {"nonsense": ["vote", "violin", "frost", "goal"]}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the fit warns of this guide
    report = KLNMF(7, guides=nonsense, random_state=0).fit(X).guides_[0]
print(report, report.is_supported)

# %%
# In the upper panels a row is a component; the colour is its share in the words of a subject. The
# free fit merges sailing and medicine. The guided fit merges others instead, as it has to. Its
# guided components have the seed words (red) and also the other words of their subject (blue).

figure = plt.figure(figsize=(10, 7.5), layout="constrained")
axes = figure.subplot_mosaic("fg;sm")
for model, place, title in ((free, "f", "free"), (guided, "g", "components 0 and 1 guided")):
    profile = model.components_ / model.components_.sum(axis=1, keepdims=True)
    shares = profile.reshape(7, 10, 10).sum(axis=2)
    image = axes[place].imshow(shares, cmap="Greys", vmin=0, vmax=1, aspect="auto")
    axes[place].set_xticks(range(10), [*SUBJECTS, "common"], rotation=45, ha="right")
    axes[place].set(title=title, ylabel="component")
figure.colorbar(image, ax=axes["g"], label="share of the component")
for guide, place in zip(guided.guides_, "sm", strict=True):
    top = np.argsort(profile[guide.component])[-10:]
    colours = np.where(np.isin(words[top], guide.features), "#d62728", "#1f77b4")
    axes[place].barh(words[top], profile[guide.component, top], color=colours)
    axes[place].set(title=f"component {guide.component}: {guide.name}", xlabel="probability")
plt.show()
