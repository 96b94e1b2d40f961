// SPDX-License-Identifier: BSD-3-Clause
// `Gather`: products with basis rows that are selected by index.
#pragma once
#include <cstdint>

#include "simd.hpp"

namespace sipower {
namespace {

constexpr int CHUNK = 64;  // nonzeros handled together, so that their basis rows stay in the L1 cache

// The operations z_t = b_{index[t]} . u  and  g += sum_t q_t b_{index[t]}. The number NV of vectors in a
// block is known at compile time; a width above 64 consists of several blocks.
template <class T> struct Gather {
    void (*dot)(const T* rows, int width, const int32_t* index, int n, const T* u, T* z);
    void (*add)(const T* rows, int width, const int32_t* index, int n, const T* q, T* g);
};

template <class T, int NV> SIPOWER_INLINE Vec<T> lanes_dot(const T* row, const Vec<T>* h) {
    Vec<T> even = load(row) * h[0];
    if constexpr (NV == 1) return even;
    Vec<T> odd = load(row + Simd<T>::lanes) * h[1];
    for (int v = 2; v < NV; ++v) (v % 2 ? odd : even) += load(row + v * Simd<T>::lanes) * h[v];
    return even + odd;
}

template <class T, int NV>
void gather_dot(const T* rows, int width, const int32_t* index, int n, const T* u, T* z) {
    constexpr int L = Simd<T>::lanes;
    for (int block = 0; block < width; block += NV * L) {
        Vec<T> h[NV];
        for (int v = 0; v < NV; ++v) h[v] = load(u + block + v * L);
        const T* base = rows + block;
        const auto dots = [&](int t, const int32_t* at) {
            Vec<T> part[L];
            for (int l = 0; l < L; ++l)
                part[l] = lanes_dot<T, NV>(base + static_cast<int64_t>(at[l]) * width, h);
            const Vec<T> products = sums(part);
            store(z + t, block ? load(z + t) + products : products);
        };
        int t = 0;
        for (; t + L <= n; t += L) dots(t, index + t);
        if (t < n) {
            int32_t last[L];
            for (int l = 0; l < L; ++l) last[l] = index[t + l < n ? t + l : n - 1];
            dots(t, last);
        }
    }
}

// Add with two sets of partial sums, which shortens the chain of dependent additions.
template <class T, int NV>
void gather_add(const T* rows, int width, const int32_t* index, int n, const T* q, T* g) {
    constexpr int L = Simd<T>::lanes;
    for (int block = 0; block < width; block += NV * L) {
        Vec<T> even[NV], odd[NV] = {};
        for (int v = 0; v < NV; ++v) even[v] = load(g + block + v * L);
        const T* base = rows + block;
        int t = 0;
        for (; t + 2 <= n; t += 2) {
            const T* row0 = base + static_cast<int64_t>(index[t]) * width;
            const T* row1 = base + static_cast<int64_t>(index[t + 1]) * width;
            const Vec<T> q0 = broadcast(q[t]), q1 = broadcast(q[t + 1]);
            for (int v = 0; v < NV; ++v) {
                even[v] += q0 * load(row0 + v * L);
                odd[v] += q1 * load(row1 + v * L);
            }
        }
        if (t < n) {
            const T* row = base + static_cast<int64_t>(index[t]) * width;
            for (int v = 0; v < NV; ++v) even[v] += broadcast(q[t]) * load(row + v * L);
        }
        for (int v = 0; v < NV; ++v) store(g + block + v * L, even[v] + odd[v]);
    }
}

template <class T, int NV> Gather<T> make_gather() { return {gather_dot<T, NV>, gather_add<T, NV>}; }

template <class T> Gather<T> choose_gather(int width) {
    switch (width / Simd<T>::lanes) {
        case 1: return make_gather<T, 1>();
        case 2: return make_gather<T, 2>();
        case 3: return make_gather<T, 3>();
        case 4: return make_gather<T, 4>();
        case 5: return make_gather<T, 5>();
        case 6: return make_gather<T, 6>();
        case 8: return make_gather<T, 8>();
        case 12: return make_gather<T, 12>();
        case 16: return make_gather<T, 16>();
        default: return make_gather<T, 32 / Simd<T>::lanes>();
    }
}

}  // namespace
}  // namespace sipower
