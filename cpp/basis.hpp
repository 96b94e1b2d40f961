// SPDX-License-Identifier: BSD-3-Clause
// `Basis`: the fixed factor in the padded layout of the kernels, and the terms of the objective besides the data.
#pragma once
#include <cstdint>

#include "extent.hpp"

namespace sipower {

// The number of basis rows in a tile, a multiple of the number of rows that `tile_dot` handles at a time.
constexpr int TILE = 96;

// The basis, whose rows are padded with zeros to `width`. For dense data, `tiles` also holds the basis transposed
// tile by tile, (tiles, K, TILE). The terms d, prior and fixed are the same for all items (stride 0) or differ
// (stride `width`).
template <class T> struct Basis {
    int64_t n;
    int k, width;
    const T* rows;
    const T* tiles;
    const double* d;         // linear term, padded with zeros: the column sums in the plain problem
    const double* inverse;   // 1 / d, or zero where d = 0
    const double* prior;     // prior counts a, padded with zeros; null: none
    const uint8_t* fixed;    // 1 for a component that keeps its value, padded with zeros; null: none
    double ridge;            // r, the largest one if items differ
    const double* ridges;    // r of every item; null: all have the same
    int64_t d_stride, prior_stride, fixed_stride;

    // Return the same basis with the terms of one item.
    Basis of_item(int64_t j) const {
        Basis own = *this;
        own.d += j * d_stride;
        own.inverse += j * d_stride;
        if (prior) own.prior += j * prior_stride;
        if (fixed) own.fixed += j * fixed_stride;
        if (ridges) own.ridge = ridges[j];
        return own;
    }
    bool is_fixed(int k) const { return fixed && fixed[k]; }
    // Whether component k has a finite minimum and may change.
    bool is_free(int k) const { return d[k] + ridge > 0 && !is_fixed(k); }
    double prior_of(int k) const { return prior ? prior[k] : 0; }
    // Whether the best multiple of h has d.h = mass.
    bool is_scaled() const { return ridge == 0 && !fixed; }

    const T* row(int64_t i) const {
        Extent(n).expect(i);
        return rows + i * width;
    }
};

// The basis with the terms of one item at a time; nothing is copied if all items have the same terms.
template <class T> class ItemBasis {
public:
    explicit ItemBasis(const Basis<T>& B)
        : all_(B), own_(B), varies_(B.d_stride > 0 || B.prior_stride > 0 || B.fixed_stride > 0 || B.ridges) {}
    const Basis<T>& at(int64_t j) {
        if (varies_) own_ = all_.of_item(j);
        return own_;
    }
    const Basis<T>& current() const { return own_; }

private:
    const Basis<T>& all_;
    Basis<T> own_;
    const bool varies_;
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
