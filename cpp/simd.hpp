// SPDX-License-Identifier: BSD-3-Clause
// SIMD vectors of 32 bytes and the operations on them that the kernels need. Everything here is
// inlined into the kernels of one instruction-set level.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#define SIPOWER_INLINE inline __attribute__((always_inline))

namespace sipower {
namespace {

template <class T> struct Simd;
template <> struct Simd<float> {
    typedef float type __attribute__((vector_size(32)));
    static constexpr int lanes = 8;
};
template <> struct Simd<double> {
    typedef double type __attribute__((vector_size(32)));
    static constexpr int lanes = 4;
};
template <class T> using Vec = typename Simd<T>::type;

// Return n rounded up to a multiple of the number of lanes.
template <class T> SIPOWER_INLINE int64_t whole_lanes(int64_t n) {
    return (n + Simd<T>::lanes - 1) / Simd<T>::lanes * Simd<T>::lanes;
}

template <class T> SIPOWER_INLINE Vec<T> load(const T* p) {
    Vec<T> v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
template <class T> SIPOWER_INLINE void store(T* p, Vec<T> v) { std::memcpy(p, &v, sizeof v); }
// Keep a value in a register: compilers may otherwise reload it at every use.
template <class V> SIPOWER_INLINE void in_register(V& v) {
#if defined(__x86_64__) && defined(__AVX2__)
    asm("" : "+x"(v));
#else
    (void)v;
#endif
}
template <class T> SIPOWER_INLINE Vec<T> broadcast(T x) { return x - Vec<T>{}; }

// Operations for formulas that are written once for single numbers and for vectors.
template <class R> SIPOWER_INLINE R larger(R a, R b) { return a > b ? a : b; }
template <class R> SIPOWER_INLINE R constant(double x) {
    if constexpr (sizeof(R) <= sizeof(double)) return static_cast<R>(x);
    else return R{} + static_cast<std::remove_reference_t<decltype(R{}[0])>>(x);
}
SIPOWER_INLINE float inverse_root(float x) { return x > 0 ? 1 / std::sqrt(x) : 0; }
SIPOWER_INLINE double inverse_root(double x) { return x > 0 ? 1 / std::sqrt(x) : 0; }
template <class V> SIPOWER_INLINE V inverse_root(V x) {
    for (unsigned l = 0; l < sizeof(V) / sizeof x[0]; ++l) x[l] = inverse_root(x[l]);
    return x;
}

SIPOWER_INLINE float sum(Vec<float> v) {
    typedef float half __attribute__((vector_size(16)));
    half s = __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
    s += __builtin_shufflevector(s, s, 2, 3, 0, 1);
    return s[0] + s[1];
}
SIPOWER_INLINE double sum(Vec<double> v) {
    typedef double half __attribute__((vector_size(16)));
    const half s = __builtin_shufflevector(v, v, 0, 1) + __builtin_shufflevector(v, v, 2, 3);
    return s[0] + s[1];
}

SIPOWER_INLINE float largest(Vec<float> v) {
    typedef float half __attribute__((vector_size(16)));
    const half a = __builtin_shufflevector(v, v, 0, 1, 2, 3), b = __builtin_shufflevector(v, v, 4, 5, 6, 7);
    half m = a > b ? a : b;
    const half c = __builtin_shufflevector(m, m, 2, 3, 0, 1);
    m = m > c ? m : c;
    return m[0] > m[1] ? m[0] : m[1];
}
SIPOWER_INLINE double largest(Vec<double> v) {
    typedef double half __attribute__((vector_size(16)));
    const half a = __builtin_shufflevector(v, v, 0, 1), b = __builtin_shufflevector(v, v, 2, 3);
    const half m = a > b ? a : b;
    return m[0] > m[1] ? m[0] : m[1];
}

// Return the sums of as many vectors as a vector has lanes: lane t of the result is sum(v[t]).
SIPOWER_INLINE Vec<float> sums(const Vec<float>* v) {
    Vec<float> two[4], four[2];
    for (int i = 0; i < 4; ++i)
        two[i] = __builtin_shufflevector(v[2 * i], v[2 * i + 1], 0, 8, 1, 9, 4, 12, 5, 13) +
                 __builtin_shufflevector(v[2 * i], v[2 * i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    for (int i = 0; i < 2; ++i)
        four[i] = __builtin_shufflevector(two[2 * i], two[2 * i + 1], 0, 1, 8, 9, 4, 5, 12, 13) +
                  __builtin_shufflevector(two[2 * i], two[2 * i + 1], 2, 3, 10, 11, 6, 7, 14, 15);
    return __builtin_shufflevector(four[0], four[1], 0, 1, 2, 3, 8, 9, 10, 11) +
           __builtin_shufflevector(four[0], four[1], 4, 5, 6, 7, 12, 13, 14, 15);
}
SIPOWER_INLINE Vec<double> sums(const Vec<double>* v) {
    Vec<double> two[2];
    for (int i = 0; i < 2; ++i)
        two[i] = __builtin_shufflevector(v[2 * i], v[2 * i + 1], 0, 4, 2, 6) +
                 __builtin_shufflevector(v[2 * i], v[2 * i + 1], 1, 5, 3, 7);
    return __builtin_shufflevector(two[0], two[1], 0, 1, 4, 5) +
           __builtin_shufflevector(two[0], two[1], 2, 3, 6, 7);
}

// Transpose a square of L vectors with L lanes each: lane i of v[j] goes to lane j of v[i].
SIPOWER_INLINE void transpose(Vec<float>* v) {
    Vec<float> a[8], b[8];
    for (int i = 0; i < 8; i += 2) {
        a[i] = __builtin_shufflevector(v[i], v[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        a[i + 1] = __builtin_shufflevector(v[i], v[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int i = 0; i < 8; i += 4)
        for (int j = 0; j < 2; ++j) {
            b[i + 2 * j] = __builtin_shufflevector(a[i + j], a[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
            b[i + 2 * j + 1] = __builtin_shufflevector(a[i + j], a[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    for (int i = 0; i < 4; ++i) {
        v[i] = __builtin_shufflevector(b[i], b[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        v[i + 4] = __builtin_shufflevector(b[i], b[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}
SIPOWER_INLINE void transpose(Vec<double>* v) {
    Vec<double> a[4];
    for (int i = 0; i < 4; i += 2) {
        a[i] = __builtin_shufflevector(v[i], v[i + 1], 0, 4, 2, 6);
        a[i + 1] = __builtin_shufflevector(v[i], v[i + 1], 1, 5, 3, 7);
    }
    for (int i = 0; i < 2; ++i) {
        v[i] = __builtin_shufflevector(a[i], a[i + 2], 0, 1, 4, 5);
        v[i + 2] = __builtin_shufflevector(a[i], a[i + 2], 2, 3, 6, 7);
    }
}

// log(x) for positive normal x, to about 1 ulp, written so that a loop over it vectorises:
// x = 2^e m with m in [sqrt(1/2), sqrt(2)), log m = 2 artanh(s), s = (m - 1) / (m + 1).
SIPOWER_INLINE double log_positive(double x) {
    uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    const uint64_t shifted = bits - 0x3FE6A09E667F3BCDull;  // sqrt(1/2)
    const uint64_t mantissa = bits - (shifted & 0xFFF0000000000000ull);
    double m;
    std::memcpy(&m, &mantissa, sizeof m);
    // The exponent is computed in integers: adding and subtracting 2^52 is wrong where sums may be reassociated.
    const double e = static_cast<int32_t>((shifted + 0x4000000000000000ull) >> 52) - 1024;
    const double s = (m - 1) / (m + 1), q = s * s;
    double p = 2.0 / 19;
    p = p * q + 2.0 / 17;
    p = p * q + 2.0 / 15;
    p = p * q + 2.0 / 13;
    p = p * q + 2.0 / 11;
    p = p * q + 2.0 / 9;
    p = p * q + 2.0 / 7;
    p = p * q + 2.0 / 5;
    p = p * q + 2.0 / 3;
    return e * 0x1.62e42fefa39efp-1 + (2 * s + s * q * p);
}
SIPOWER_INLINE float log_positive(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    const uint32_t shifted = bits - 0x3F3504F3u;  // sqrt(1/2)
    const uint32_t mantissa = bits - (shifted & 0xFF800000u);
    float m;
    std::memcpy(&m, &mantissa, sizeof m);
    const float e = static_cast<float>(static_cast<int32_t>(shifted) >> 23);
    const float s = (m - 1) / (m + 1), q = s * s;
    float p = 2.0f / 9;
    p = p * q + 2.0f / 7;
    p = p * q + 2.0f / 5;
    p = p * q + 2.0f / 3;
    return e * 0x1.62e43p-1f + (2 * s + s * q * p);
}

}  // namespace
}  // namespace sipower
