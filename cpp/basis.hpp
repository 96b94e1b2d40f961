// SPDX-License-Identifier: BSD-3-Clause
// `Basis`: the fixed factor in the padded layout of the kernels.
#pragma once
#include <cstdint>

#include "extent.hpp"

namespace sipower {

// The number of basis rows in a tile, for dense data; a multiple of every group of vectors.
constexpr int TILE = 96;

// The basis, its rows padded with zeros to `width`; for dense data also transposed tile by tile,
// (tiles, K, TILE).
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
