# SPDX-License-Identifier: BSD-3-Clause
"""Generators of dense data: mutation counts, spectrograms, images, spectra and plain mixtures.

Each function draws from a numpy Generator with the given seed, so that its result is the same in
every process, and returns float64 values.
"""

from __future__ import annotations

import numpy as np
from scipy import signal
from sklearn.datasets import load_digits, load_sample_image
from sklearn.feature_extraction.image import extract_patches_2d


def signatures(
    tumours: int, processes: int, burden: float, seed: int, tail: float = 1.8
) -> np.ndarray:
    """Draw counts of the 96 types of mutations in tumours.

    Parameters
    ----------
    tumours
        Number of rows.
    processes
        Number of mutational signatures; each acts in a third of the tumours.
    burden
        Median number of mutations of a process.
    seed
        Seed of the generator.
    tail
        Standard deviation of the logarithm of the burden.
    """
    rng = np.random.default_rng(seed)
    H = rng.dirichlet(np.full(96, 0.3), processes)
    W = rng.lognormal(np.log(burden), tail, (tumours, processes))
    W *= rng.random(W.shape) < 1 / 3
    return rng.poisson(W @ H).astype(float)


def melody(seconds: float, notes: int, window: int, seed: int) -> np.ndarray:
    """Return the magnitude spectrogram of plucked notes with harmonics and some noise."""
    rng, rate = np.random.default_rng(seed), 16_000
    time = np.arange(int(seconds * rate)) / rate
    sound = 0.003 * rng.normal(size=len(time))
    pitches = 110 * 2 ** (rng.choice(36, notes, replace=False) / 12)
    for at in range(0, len(time) - rate, rate // 4):
        since = time[:rate]  # a note lasts one second
        for pitch in rng.choice(pitches, rng.integers(1, 4), replace=False):
            tone = sum(np.sin(2 * np.pi * h * pitch * since) / h**1.5 for h in range(1, 9))
            sound[at : at + rate] += rng.uniform(0.3, 1) * tone * np.exp(-4 * since)
    return np.abs(signal.stft(sound, rate, nperseg=window)[2])


def drums(seconds: float, kinds: int, window: int, seed: int) -> np.ndarray:
    """Return the power spectrogram of bursts of filtered noise over a chirp."""
    rng, rate = np.random.default_rng(seed), 16_000
    time = np.arange(int(seconds * rate)) / rate
    sound = 0.2 * signal.chirp(time, 200, seconds, 5000) + 0.01 * rng.normal(size=len(time))
    bands = np.sort(rng.uniform(50, 7500, (kinds, 2)), axis=1) + np.array([0, 200])
    for onset in rng.uniform(0, seconds - 0.3, int(8 * seconds)):
        at, burst = int(onset * rate), rng.normal(size=rate // 4)
        sections = signal.butter(2, bands[rng.integers(kinds)], "band", fs=rate, output="sos")
        decay = np.exp(-np.arange(len(burst)) / rng.uniform(200, 1500))
        sound[at : at + len(burst)] += signal.sosfilt(sections, burst * decay)
    return 1e3 * np.abs(signal.stft(sound, rate, nperseg=window)[2]) ** 2


def digits(low: int, high: int) -> np.ndarray:
    """Return scikit-learn's images of the digits from `low` to `high` as rows."""
    X, y = load_digits(return_X_y=True)
    return X[(y >= low) & (y <= high)]


def patches(image: str, size: int, count: int, seed: int, gray: bool = True) -> np.ndarray:
    """Return random square patches of a sample image of scikit-learn as rows."""
    pixels = load_sample_image(image).astype(float)
    parts = extract_patches_2d(
        pixels.mean(axis=2) if gray else pixels, (size, size), max_patches=count, random_state=seed
    )
    return np.round(parts.reshape(count, -1))


def spectra(
    shape: tuple[int, int], substances: int, counts: float, seed: int, width: float = 0.02
) -> np.ndarray:
    """Draw photon counts of mixtures of substances with smooth peaks on a background."""
    rng, (n, m) = np.random.default_rng(seed), shape
    axis = np.linspace(0, 1, m)
    centre, spread = rng.random((substances, 8, 1)), width * rng.uniform(0.5, 2, (substances, 8, 1))
    peaks = rng.gamma(1.0, size=(substances, 8, 1)) * np.exp(-0.5 * ((axis - centre) / spread) ** 2)
    H = peaks.sum(axis=1) + 0.05 * np.exp(-axis)
    W = rng.dirichlet(np.full(substances, 0.4), n)
    return rng.poisson(counts * W @ (H / H.mean(axis=1, keepdims=True))).astype(float)


def mixture(
    shape: tuple[int, int], parts: int, mean: float, seed: int, overlap: float = 0.0
) -> np.ndarray:
    """Draw Poisson counts of a mixture of gamma distributed parts.

    Parameters
    ----------
    shape
        Number of rows and of columns.
    parts
        Number of components.
    mean
        Approximate mean of the counts.
    seed
        Seed of the generator.
    overlap
        Share of the counts that the components have in common.
    """
    rng, (n, m) = np.random.default_rng(seed), shape
    special = rng.gamma(0.4, size=(parts, m))
    H = overlap * rng.gamma(1.0, size=m) + (1 - overlap) * special / special.mean()
    W = rng.dirichlet(np.full(parts, 0.3), n)
    return rng.poisson(mean * W @ H).astype(float)


def rank_one(shape: tuple[int, int], mean: float, seed: int) -> np.ndarray:
    """Draw Poisson counts of an outer product that a few components change by percents."""
    rng, (n, m) = np.random.default_rng(seed), shape
    first = np.outer(rng.lognormal(0, 1, n), rng.lognormal(0, 1, m))
    change = rng.random((n, 4)) @ rng.random((4, m)) - 1
    return rng.poisson(mean * first * (1 + 0.05 * change)).astype(float)


def exact(shape: tuple[int, int], parts: int, share: float, seed: int) -> np.ndarray:
    """Return a product of sparse factors without noise; `share` of their entries is positive."""
    rng, (n, m) = np.random.default_rng(seed), shape
    W, H = (rng.gamma(1.0, size=s) * (rng.random(s) < share) for s in ((n, parts), (parts, m)))
    return W @ H


def flat(shape: tuple[int, int], mean: float, seed: int) -> np.ndarray:
    """Draw 1 plus Poisson counts without any structure."""
    return np.random.default_rng(seed).poisson(mean, shape) + 1.0
