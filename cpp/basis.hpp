// SPDX-License-Identifier: BSD-3-Clause
// `Basis`: the fixed factor in the padded layout of the kernels.
#pragma once
#include <cstdint>

#include "extent.hpp"

namespace sipower {

// The number of basis rows in a tile, a multiple of the number of rows that `tile_dot` handles at a time.
constexpr int TILE = 96;

// The basis, whose rows are padded with zeros to `width`. For dense data, `tiles` also holds the basis transposed
// tile by tile, (tiles, K, TILE).
template <class T> struct Basis {
    int64_t n;
    int k, width;
    const T* rows;
    const T* tiles;
    const double* d;        // column sums, padded with zeros
    const double* inverse;  // 1 / d, or zero where d = 0
    int alive;              // number of components with d > 0

    const T* row(int64_t i) const {
        Extent(n).expect(i);
        return rows + i * width;
    }
};

// Return the padded width for k components: whole vectors of 32 bytes up to 24 components, a few fixed
// widths up to 64, then multiples of 32.
template <class T> static inline int padded_width(int k) {
    constexpr int lanes = 32 / sizeof(T);
    if (k <= 24) return (k + lanes - 1) / lanes * lanes;
    if (k <= 64) return k <= 32 ? 32 : k <= 48 ? 48 : 64;
    return (k + 31) / 32 * 32;
}

}  // namespace sipower
