// SPDX-License-Identifier: BSD-3-Clause
// Functions that sparse and dense data share: lengths of items, conversion of values to the working type, quotients v / z
// and relative entropy.
#pragma once
#include "matrices.hpp"
#include "simd.hpp"

namespace sipower {
namespace {

// Return the largest number of nonzeros of an item; for dense data, the number of columns.
inline int64_t longest_item(const Csr& V, int64_t begin, int64_t end) {
    int64_t longest = 0;
    for (int64_t j = begin; j < end; ++j)
        longest = longest < V.nonzeros(j) ? V.nonzeros(j) : longest;
    return longest;
}
inline int64_t longest_item(const Dense& V, int64_t, int64_t) { return V.n_columns; }

template <class T, class From> const T* convert(const From* from, int n, T* buffer) {
    for (int t = 0; t < n; ++t) buffer[t] = static_cast<T>(from[t]);
    return buffer;
}
// Return the values [at, at + n) in the working type; they are copied to `buffer` only if their type differs.
template <class T> const T* read_values(const Values& v, int64_t at, int n, T* buffer) {
    switch (v.type) {
        case Type::uint8: return convert(static_cast<const uint8_t*>(v.data) + at, n, buffer);
        case Type::uint16: return convert(static_cast<const uint16_t*>(v.data) + at, n, buffer);
        case Type::float32:
            if constexpr (sizeof(T) == 4) return static_cast<const float*>(v.data) + at;
            else return convert(static_cast<const float*>(v.data) + at, n, buffer);
        default:
            if constexpr (sizeof(T) == 8) return static_cast<const double*>(v.data) + at;
            else return convert(static_cast<const double*>(v.data) + at, n, buffer);
    }
}

// Compute q = v / z with z raised to a tiny positive number, so that 0 / 0 = 0 and no quotient is infinite.
template <class T> SIPOWER_INLINE void quotients(const T* v, const T* z, int n, T* q) {
    const T tiny = sizeof(T) == 4 ? T(1e-30) : T(1e-290);
    for (int t = 0; t < n; ++t) q[t] = v[t] / (z[t] > tiny ? z[t] : tiny);
}

// Compute e = bp / z from q = v / z, with e = 0 where v = 0, and copy v to v_out.
template <class T> SIPOWER_INLINE void ratios(const T* v, const T* bp, const T* q, int n, T* v_out, T* e) {
    for (int t = 0; t < n; ++t) {
        v_out[t] = v[t];
        e[t] = v[t] > 0 ? bp[t] * q[t] / v[t] : T(0);
    }
}

// Compute w = 1 / z, with w = 0 where v = 0, and q = v w; no quotient is infinite.
template <class T> SIPOWER_INLINE void inverses(const T* v, const T* z, int n, T* w, T* q) {
    const T tiny = sizeof(T) == 4 ? T(1e-30) : T(1e-290);
    for (int t = 0; t < n; ++t) {
        w[t] = v[t] > 0 ? 1 / (z[t] > tiny ? z[t] : tiny) : T(0);
        q[t] = v[t] * w[t];
    }
}

// Return sum_t v_t log(v_t / z_t), computed in the type A.
template <class A, class T> double relative_entropy(const T* v, const T* z, int n) {
    const A smallest = sizeof(A) == 4 ? A(1.2e-38) : A(2.3e-308);
    A sum = 0;
    for (int t = 0; t < n; ++t) {
        const A a = static_cast<A>(v[t]), b = static_cast<A>(z[t]);
        const A ratio = a > 0 ? a / (b > smallest ? b : smallest) : A(1);
        sum += a * log_positive(ratio);
    }
    return static_cast<double>(sum);
}

}  // namespace
}  // namespace sipower
