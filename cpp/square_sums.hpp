// SPDX-License-Identifier: BSD-3-Clause
// The diagonal of an item's Hessian.
#pragma once
#include "gathered_item.hpp"

namespace sipower {
namespace {

// second_k = sum_i v_i b_ik^2 / z_i^2, from the current z of the item
template <class T> void square_sums(GatheredItem<T>& item, const Basis<T>& B, double* second) {
    constexpr int L = Simd<T>::lanes;
    for (int k = 0; k < B.k; ++k) second[k] = 0;
    item.for_tiles([&](const T* tile, int64_t at, int n) {
        Vec<T> u[TILE / L];
        item.weights(at, n, u);
        for (int k = 0; k < B.k; k += L) {
            const int count = B.k - k < L ? B.k - k : L;
            Vec<T> part[L] = {};
            for (int l = 0; l < count; ++l)
                for (int t = 0; t < n; t += L) {
                    const Vec<T> b = load(tile + (k + l) * TILE + t);
                    part[l] += u[t / L] * b * b;
                }
            const Vec<T> totals = sums(part);
            for (int l = 0; l < count; ++l) second[k + l] += static_cast<double>(totals[l]);
        }
    });
}

}  // namespace
}  // namespace sipower
