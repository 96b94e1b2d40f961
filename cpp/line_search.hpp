// SPDX-License-Identifier: BSD-3-Clause
// The exact line search along a direction p of one item.
#pragma once
#include "kernels.hpp"
#include "simd.hpp"

namespace sipower {
namespace {

// If a line search returns a length below SHORT_STEP, a power step with SHORT_EXPONENT is tried as well.
constexpr double SHORT_STEP = 0.2;
constexpr int64_t SHORT_EXPONENT = 2;

// sum_i v_i e_i^2; n is a multiple of the lanes
template <class T> double curvature(const T* v, const T* e, int64_t n) {
    constexpr int L = Simd<T>::lanes;
    double total = 0;
    for (int64_t from = 0; from < n; from += LONGEST_SUM) {
        const int64_t upto = from + LONGEST_SUM < n ? from + LONGEST_SUM : n;
        Vec<T> part = {};
        for (int64_t i = from; i < upto; i += L) part += load(v + i) * load(e + i) * load(e + i);
        total += static_cast<double>(sum(part));
    }
    return total;
}

// With r = e / (1 + t e): first = sum_i v_i r_i, second = sum_i v_i r_i^2.
template <class T> void slopes_at(const T* v, const T* e, int64_t n, double t, double* first, double* second) {
    constexpr int L = Simd<T>::lanes;
    const Vec<T> x = broadcast(static_cast<T>(t)), one = broadcast(T(1));
    const Vec<T> least = broadcast(sizeof(T) == 4 ? T(1e-30) : T(1e-290));  // where z vanishes the slope is -infinity
    *first = *second = 0;
    for (int64_t from = 0; from < n; from += LONGEST_SUM) {
        const int64_t upto = from + LONGEST_SUM < n ? from + LONGEST_SUM : n;
        Vec<T> a = {}, b = {};
        for (int64_t i = from; i < upto; i += L) {
            const Vec<T> ratio = load(e + i), moved = one + x * ratio;
            const Vec<T> r = ratio / (moved > least ? moved : least), q = load(v + i) * r;
            a += q;
            b += q * r;
        }
        *first += static_cast<double>(sum(a));
        *second += static_cast<double>(sum(b));
    }
}

// Return a length t in (0, limit] that nearly minimises the objective of an item along h + t p, or 0 if no length
// was found that lowers it. The objective falls by
//     phi(t) = sum_i v_i log(1 + t e_i) - t d.p - t^2 r_pp / 2,   e_i = (b_i.p)/z_i,
// which is concave; with a ridge r, d.p includes r h.p, and r_pp = r p.p. The search ends when phi'(t) is a small share of `slope`, which is phi'(0). Only lengths with
// phi' >= 0 are returned, so the objective never rises. v and e have n entries, with v = 0 beyond the last nonzero;
// n must be a multiple of the number of lanes. h + t p must be positive for t up to `limit`.
template <class T> double search_length(const T* v, const T* e, int64_t n, double slope, double d_p, double limit, double r_pp = 0) {
    constexpr int max_trials = 8;
    constexpr double flat = 0.1, aim = 0.03;  // phi'(t) / slope: largest accepted value, and target
    if (!(slope > 0)) return 0;
    double low = 0, high = limit, first = slope, second = curvature(v, e, n) + r_pp, t = 0;
    bool bracketed = false;
    for (int trial = 0; trial < max_trials; ++trial) {
        const double next = second > 0 ? t + (first - aim * slope) / second : limit;
        if (next > low && next < high) t = next;
        else t = bracketed || next <= low ? low + (high - low) / 2 : limit;
        slopes_at(v, e, n, t, &first, &second);
        first -= d_p + t * r_pp;
        second += r_pp;
        if (first >= 0 && (first <= flat * slope || t >= limit)) return t;
        if (first >= 0) low = t;
        else {
            high = t;
            bracketed = true;
        }
    }
    return low;
}

}  // namespace
}  // namespace sipower
