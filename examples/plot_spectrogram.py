# SPDX-License-Identifier: BSD-3-Clause
"""
A spectrogram separated into notes
==================================

Three notes are played, alone and together. The magnitude of the short-time Fourier transform is a
non-negative matrix of times by frequencies; its three components are the notes, and their weights
over time show when each of them sounds.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.signal import ShortTimeFFT

from sipower import KLNMF

RATE = 8000  # samples per second
NOTES = {"C4": (261.6, (0, 3, 4.5)), "E4": (329.6, (1, 3, 5)), "G4": (392.0, (2, 4, 5))}

time = np.arange(6 * RATE) / RATE


def play(pitch, starts):
    """Return eight harmonics that swell at the given seconds and die away."""
    tone = sum(np.sin(2 * np.pi * k * pitch * time) / k for k in range(1, 9))
    since = ((time - start).clip(0) for start in starts)
    return tone * sum((1 - np.exp(-30 * t)) * np.exp(-3 * t) for t in since)


sources = np.array([play(pitch, starts) for pitch, starts in NOTES.values()])
sound = sources.sum(axis=0)

# %%
# Rows are times (the samples of the factorisation), columns are frequencies (its features).

fourier = ShortTimeFFT.from_window("hann", RATE, nperseg=1024, noverlap=768)
complex_spectrum = fourier.stft(sound).T
V = np.abs(complex_spectrum)
model = KLNMF(3, random_state=0)
W = model.fit_transform(V)
H = model.components_
by_pitch = np.argsort(H.argmax(axis=1))  # the strongest frequency is the fundamental
W, H = W[:, by_pitch], H[by_pitch]

# %%
# To hear one note alone, multiply the spectrum by the share of the note at each time and frequency,
# and transform back.

share = W[:, :, None] * H / np.maximum(W @ H, 1e-12)[:, None, :]
parts = np.array(
    [fourier.istft((share[:, k] * complex_spectrum).T, k1=len(time)) for k in range(3)]
)
ratio = 10 * np.log10((sources**2).sum(axis=1) / ((sources - parts) ** 2).sum(axis=1))
for name, decibels in zip(NOTES, ratio, strict=True):
    print(f"{name}: {decibels:.1f} dB signal-to-distortion ratio")

# %%

figure, axes = plt.subplots(3, 1, figsize=(9, 8), layout="constrained")
extent = (0, 6, 0, RATE / 2)
level = 20 * np.log10(V.T + 1e-3)
axes[0].imshow(level, origin="lower", aspect="auto", extent=extent, vmin=-40)
axes[0].set(title="the spectrogram", xlabel="seconds", ylabel="hertz", ylim=(0, 2500))
for name, weight, spectrum in zip(NOTES, W.T, H, strict=True):
    axes[1].plot(fourier.delta_t * np.arange(len(W)), weight * spectrum.sum(), label=name)
    axes[2].plot(fourier.f, spectrum / spectrum.sum(), label=name)
axes[1].set(title="when each note sounds", xlabel="seconds", ylabel="magnitude", xlim=(0, 6))
axes[2].set(title="spectrum of each note", xlabel="hertz", ylabel="share", xlim=(0, 2500))
axes[1].legend()
plt.show()
