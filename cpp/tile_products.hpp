// SPDX-License-Identifier: BSD-3-Clause
// Small matrix products held in registers: four items against a tile of the basis.
#pragma once
#include "basis.hpp"
#include "simd.hpp"

namespace sipower {
namespace {

constexpr int GROUP = 4;  // items handled together

// Compute z[j][i] = sum_k tile[k][i] u[j][k] for i < n, with n rounded up to whole groups of NV vectors.
template <class T> void tile_dot(const T* tile, int k, const T* u, int stride, int n, T* z) {
    constexpr int L = Simd<T>::lanes, NV = 3;
    static_assert(TILE % (L * NV) == 0, "a tile must consist of whole vector groups");
    for (int i = 0; i < n; i += L * NV) {
        Vec<T> sum[GROUP][NV] = {};
        for (int a = 0; a < k; ++a) {
            const T* row = tile + a * TILE + i;
            const Vec<T> b[NV] = {load(row), load(row + L), load(row + 2 * L)};
            for (int j = 0; j < GROUP; ++j) {
                const Vec<T> x = broadcast(u[j * stride + a]);
                for (int v = 0; v < NV; ++v) sum[j][v] += x * b[v];
            }
        }
        for (int j = 0; j < GROUP; ++j)
            for (int v = 0; v < NV; ++v) store(z + j * TILE + i + v * L, sum[j][v]);
    }
}

// Compute g[j][:] += sum_i q[j][i] rows[i][:]^POWER for NV vectors of every row.
template <class T, int NV, int POWER> void rows_add_part(const T* rows, int width, int n, const T* q, T* g) {
    constexpr int L = Simd<T>::lanes;
    Vec<T> sum[GROUP][NV];
    for (int j = 0; j < GROUP; ++j)
        for (int v = 0; v < NV; ++v) sum[j][v] = load(g + j * width + v * L);
    for (int i = 0; i < n; ++i) {
        Vec<T> b[NV];
        for (int v = 0; v < NV; ++v) {
            b[v] = load(rows + static_cast<int64_t>(i) * width + v * L);
            if constexpr (POWER == 2) b[v] *= b[v];
        }
        for (int j = 0; j < GROUP; ++j) {
            const Vec<T> x = broadcast(q[j * TILE + i]);
            for (int v = 0; v < NV; ++v) sum[j][v] += x * b[v];
        }
    }
    for (int j = 0; j < GROUP; ++j)
        for (int v = 0; v < NV; ++v) store(g + j * width + v * L, sum[j][v]);
}

// Compute g[j][:] += sum_i q[j][i] rows[i][:]^POWER for whole rows; POWER is 1 or 2.
template <class T, int POWER = 1> void rows_add(const T* rows, int width, int n, const T* q, T* g) {
    constexpr int L = Simd<T>::lanes;
    int at = 0;
    for (; at + 3 * L <= width; at += 3 * L) rows_add_part<T, 3, POWER>(rows + at, width, n, q, g + at);
    if (at + 2 * L <= width) rows_add_part<T, 2, POWER>(rows + at, width, n, q, g + at);
    else if (at + L <= width) rows_add_part<T, 1, POWER>(rows + at, width, n, q, g + at);
}

}  // namespace
}  // namespace sipower
