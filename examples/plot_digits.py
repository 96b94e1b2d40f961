# SPDX-License-Identifier: BSD-3-Clause
"""
Handwritten digits as sums of parts
===================================

A picture is a non-negative vector of ink. Non-negative components and weights can only add ink, so
the components are strokes, and a digit is the sum of a few of them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from sipower import KLNMF

V = load_digits().data  # 1,797 pictures of 8 x 8 pixels, grey from 0 to 16
model = KLNMF(16, tol=1e-3, random_state=0)
W = model.fit_transform(V)
H = model.components_
print(model.status_, f"certified gap {model.kkt_residual_:.1e}")

# %%
# The left panel shows all sixteen parts. The right panel shows four digits: the picture, its
# approximation W H, and the four parts that hold most of its ink, on the scale of the picture.

figure = plt.figure(figsize=(10, 5), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=(1, 1.5))
left.suptitle("the parts")
for part, ax in zip(H, left.subplots(4, 4).flat, strict=True):
    ax.imshow(part.reshape(8, 8), cmap="gray_r")
    ax.set_axis_off()

right.suptitle("picture, sum of all parts, its four largest parts")
for digit, row in zip((0, 4, 8, 12), right.subplots(4, 6), strict=True):
    ink = W[digit] * H.sum(axis=1)
    largest = np.argsort(-ink)[:4]
    pictures = [V[digit], W[digit] @ H, *(W[digit, k] * H[k] for k in largest)]
    titles = ["", "", *(f"{share:.0%}" for share in ink[largest] / ink.sum())]
    for picture, title, ax in zip(pictures, titles, row, strict=True):
        ax.imshow(picture.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        ax.set_title(title, fontsize="small")
        ax.set_axis_off()
plt.show()
