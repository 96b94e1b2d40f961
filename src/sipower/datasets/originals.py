# SPDX-License-Identifier: BSD-3-Clause
"""The formats in which the owners offer the paper's data: UCI bags of words, PGM and BMP images."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sipower.io.coordinates import read_docword as read_bag

__all__ = ["read_bmp", "read_docword", "read_images", "read_pgm"]

Image = NDArray[np.uint8]


def read_docword(file: Path) -> sparse.csr_array[np.int32, tuple[int, int]]:
    """Read a bag of words: lines D, W and NNZ, then `document word count`, counted from 1."""
    counts = read_bag(file).counts
    if counts.dtype != np.int32:
        raise ValueError(f"{file} has a count above 2^31.")
    return sparse.csr_array(counts)


def read_pgm(content: bytes) -> Image:
    """Grey values of a binary PGM image of at most 8 bits."""
    header = re.match(rb"P5\s+(?:#[^\n]*\n\s*)*(\d+)\s+(\d+)\s+(\d+)\s", content)
    if header is None:
        raise ValueError("no binary PGM image")
    width, height, largest = (int(number) for number in header.groups())
    pixels = np.frombuffer(content, np.uint8, offset=header.end())
    if largest > 255 or len(pixels) < width * height:
        raise ValueError("a PGM image that is torn or has more than 8 bits")
    return pixels[: width * height].reshape(height, width)


def read_bmp(content: bytes) -> Image:
    """Grey values of an uncompressed 24-bit BMP image, by the luma of ITU-R 601-2."""
    if content[:2] != b"BM" or len(content) < 54:
        raise ValueError("no BMP image")
    offset, width, height = (_integer(content, at) for at in (10, 18, 22))
    bits, compression = _integer(content, 28) & 0xFFFF, _integer(content, 30)
    if (bits, compression) != (24, 0) or width <= 0 or height == 0:
        raise ValueError(f"a BMP image of {bits} bits a pixel, expected 24 without compression")
    stride = (3 * width + 3) // 4 * 4  # rows are padded to whole words
    if len(content) < offset + stride * abs(height):
        raise ValueError("a BMP image that is torn")
    rows = np.frombuffer(content, np.uint8, stride * abs(height), offset)
    colours = rows.reshape(abs(height), stride)[:, : 3 * width].reshape(-1, width, 3)
    weighted = colours @ np.array([7471, 38470, 19595])  # blue, green, red
    grey: Image = ((weighted + 0x8000) >> 16).astype(np.uint8)
    return grey[::-1] if height > 0 else grey  # rows are stored bottom up unless told otherwise


def read_images(files: Sequence[Path], read: Callable[[bytes], Image]) -> Image:
    """Images as columns, pixels row by row: (pixels, images)."""
    images = []
    for file in files:
        try:
            images.append(read(file.read_bytes()))
        except ValueError as problem:
            raise ValueError(f"{file}: {problem}.") from None
        if images[-1].shape != images[0].shape:
            raise ValueError(
                f"{file} is an image of {images[-1].shape}, expected {images[0].shape}."
            )
    return np.ascontiguousarray(np.stack([image.ravel() for image in images], axis=1))


def _integer(content: bytes, at: int) -> int:
    return int.from_bytes(content[at : at + 4], "little", signed=True)
