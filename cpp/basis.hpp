// SPDX-License-Identifier: BSD-3-Clause
// `Basis`: the fixed factor in the padded layout of the kernels.
#pragma once
#include <cstdint>

#include "extent.hpp"

namespace sipower {

// Rows of a dense panel are handled in tiles of this many; a multiple of every vector group.
constexpr int TILE = 96;

// The basis, its rows padded with zeros to `width`; for dense data also transposed tile by tile,
// (tiles, K, TILE).
template <class T> struct Basis {
    int64_t n;
    int k, width;
    const T* rows;
    const T* tiles;
    const double* d;        // column sums, padded with zeros
    const double* inverse;  // 1 / d, zero where d is
    int alive;              // components with d > 0

    const T* row(int64_t i) const {
        Extent(n).expect(i);
        return rows + i * width;
    }
};

// Whole vectors of 32 bytes up to 24 components, a few fixed widths up to 64, then blocks of 32.
template <class T> static inline int padded_width(int k) {
    constexpr int lanes = 32 / sizeof(T);
    if (k <= 24) return (k + lanes - 1) / lanes * lanes;
    if (k <= 64) return k <= 32 ? 32 : k <= 48 ? 48 : 64;
    return (k + 31) / 32 * 32;
}

}  // namespace sipower
