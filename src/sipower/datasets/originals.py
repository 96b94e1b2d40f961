# SPDX-License-Identifier: BSD-3-Clause
"""Readers for the original files of the paper's data: UCI bags of words, PGM and BMP images."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sipower._files import shorten
from sipower.io.docword import open_docword


def read_docword(file: Path) -> sparse.csr_array[np.int32, tuple[int, int]]:
    """Read a bag of words in the UCI format.

    The first three lines hold the numbers of documents, words and nonzeros. Each later line holds
    the number of a document, the number of a word, both starting at 1, and a count.
    """
    counts = open_docword(file).read(file).counts
    if counts.dtype != np.int32:
        raise ValueError(f"{file} has a count above 2^31 - 1: it is not the original data set.")
    return sparse.csr_array(counts)


def read_image(file: Path) -> NDArray[np.uint8]:
    """Read the grey values of a PGM or BMP image; colours are converted to ITU-R 601-2 luma."""
    try:
        pillow = import_module("PIL.Image")
    except ImportError:
        raise ValueError(
            f"{file} needs the package pillow: install it, for example with pip."
        ) from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # raise if an image would take gigabytes
            with pillow.open(file, formats=("PPM", "BMP")) as image:
                mode, grey = image.mode, np.asarray(image.convert("L"))
    except Exception as problem:  # damaged files can raise nearly anything
        raise ValueError(f"{file} is damaged or not an image: {shorten(problem)}.") from None
    if mode not in ("L", "RGB"):
        raise ValueError(f"{file} is an image of the mode {mode}, expected 8 bits of grey or RGB.")
    return grey


def read_images(files: Sequence[Path]) -> NDArray[np.uint8]:
    """Read images as the columns of an array (pixels, images), with pixels row by row."""
    images = []
    for file in files:
        images.append(read_image(file))
        if images[-1].shape != images[0].shape:
            raise ValueError(f"{file} has shape {images[-1].shape}, expected {images[0].shape}.")
    return np.ascontiguousarray(np.stack([image.ravel() for image in images], axis=1))
