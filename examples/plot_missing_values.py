# SPDX-License-Identifier: BSD-3-Clause
"""
Missing counts, filled in
=========================

Counters beside bicycle paths count riders by the hour, and fail for a day or so now and then. An
hour without a count is not an hour without riders: in the table it is NaN, not zero. The fit leaves
these entries out and then predicts them. The counts are simulated, so the lost ones are known.
"""

import matplotlib.pyplot as plt
import numpy as np

from sipower import KLNMF

COUNTERS, HOURS = 150, 7 * 24
rng = np.random.default_rng(0)
hour, day = np.arange(HOURS) % 24, np.arange(HOURS) // 24


def bump(centre, width):  # a bell curve over the hours of every day
    return np.exp(-0.5 * ((hour - centre) / width) ** 2)


work = (day < 5) * (bump(8, 1) + bump(17.5, 1.5))
leisure = (day >= 5) * bump(14, 3) + 0.3 * (day < 5) * bump(19, 1.5)
shopping = (day < 6) * bump(12.5, 2.5)
night = np.isin(day, (4, 5)) * bump(22, 1.5) + 0.2 * bump(23, 1)
patterns = np.array([work, leisure, shopping, night, np.full(HOURS, 0.02)])
expected = rng.gamma(0.6, 40, (COUNTERS, 5)) @ patterns
V = rng.poisson(expected)  # counters x hours of a week

# %%
# Counters fail at random, for 12 to 36 hours, until the given share of the table is lost. NaN is
# left out of the fit with ``missing="nan"``; ``fit(X, mask=observed)`` does the same.


def lose_counts(share):
    """Return the table with NaN where a counter has failed."""
    rng, X = np.random.default_rng(1), V.astype(float)
    while np.isnan(X).mean() < share:
        start = rng.integers(0, HOURS)
        X[rng.integers(COUNTERS), start : start + rng.integers(12, 36)] = np.nan
    return X


def predict(X):
    """Return W H of a fit with five components to the counts that are not NaN."""
    model = KLNMF(5, missing="nan", random_state=0)
    return model.fit_transform(X) @ model.components_


SHARES, LABELS = (0.05, 0.1, 0.2, 0.3, 0.4), ("left out", "as zeros", "hourly means")
errors = np.empty((len(SHARES), 3))
for row, share in zip(errors, SHARES, strict=True):
    X = lose_counts(share)
    lost = np.isnan(X)
    filled = predict(X), predict(np.nan_to_num(X)), np.nanmean(X, axis=0) + np.zeros(X.shape)
    row[:] = [np.abs(guess - expected)[lost].mean() for guess in filled]
    print(f"{lost.mean():.0%} lost:", ", ".join(map("{} {:.1f}".format, LABELS, row)))

# %%
# The upper panel is a counter in the table with 40 % lost. If lost counts are taken for zeros, the
# fit learns the gaps: it predicts too few riders, in the gaps and elsewhere. Hourly means know
# nothing of the counter. The lower panel is the error of the expected riders in lost hours.

figure, (top, bottom) = plt.subplots(2, 1, figsize=(9, 7), layout="constrained")
counter = np.argsort(-(lost * expected).sum(axis=1))[3]
top.plot(np.where(lost[counter], np.nan, V[counter]), ".", color="black", ms=4, label="counted")
top.plot(np.where(lost[counter], V[counter], np.nan), "x", color="#d62728", ms=5, label="lost")
for guess, label, style in zip(filled, LABELS, ("-", "--", ":"), strict=True):
    top.plot(guess[counter], style, linewidth=1.2, label=label)
    bottom.plot(SHARES, errors[:, LABELS.index(label)], style, marker="o", label=label)
top.set_xticks(np.arange(12, HOURS, 24), ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"])
top.set(ylabel="riders per hour", xlim=(0, HOURS))
bottom.set(xlabel="share of counts lost", ylabel="mean error (riders per hour)", ylim=(0, None))
top.legend(ncols=5)
bottom.legend()
plt.show()
