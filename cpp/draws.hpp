// SPDX-License-Identifier: BSD-3-Clause
// Random batches of positions: uniform or by weight, with or without replacement.
#pragma once
#include <cstdint>

#include "random.hpp"

namespace sipower {
namespace {

// Draw s of n positions without replacement: the first s entries of a Fisher-Yates shuffle. `order` must
// hold 0, 1, ..., n-1 and is restored afterwards, so a draw costs O(s) and keeps no state.
inline void draw_distinct(Random random, int64_t n, int64_t s, int32_t* order,
                                 int32_t* swaps, int32_t* out) {
    for (int64_t t = 0; t < s; ++t) {
        const int64_t other = t + random.below(n - t);
        swaps[t] = static_cast<int32_t>(other);
        const int32_t drawn = order[other];
        order[other] = order[t];
        order[t] = drawn;
        out[t] = drawn;
    }
    for (int64_t t = s - 1; t >= 0; --t) {
        const int32_t back = order[swaps[t]];
        order[swaps[t]] = order[t];
        order[t] = back;
    }
}

inline void draw_repeated(Random random, int64_t n, int64_t s, int32_t* out) {
    for (int64_t t = 0; t < s; ++t) out[t] = static_cast<int32_t>(random.below(n));
}

// Draw s positions with replacement, position i with probability w_i / sum(w). The factor that makes the
// batch unbiased is sum(w) / (s w_i). `upto` holds the running sums of the weights w, which are positive.
inline void draw_weighted(Random random, const double* w, const double* upto, int64_t n,
                                 int64_t s, int32_t* out, double* factor) {
    for (int64_t t = 0; t < s; ++t) {
        const double mark = random.uniform() * upto[n - 1];
        int64_t low = 0, high = n - 1;
        while (low < high) {
            const int64_t middle = (low + high) / 2;
            if (upto[middle] <= mark) low = middle + 1; else high = middle;
        }
        out[t] = static_cast<int32_t>(low);
        factor[t] = upto[n - 1] / (static_cast<double>(s) * w[low]);
    }
}

// Draw about s distinct positions by systematic sampling, position i with inclusion probability
// pi_i = min(1, tau w_i), where sum(pi) = s. The factor that makes the batch unbiased is 1 / pi_i. Returns
// the number of positions drawn (s or s +- 1).
inline int64_t draw_systematic(Random random, const double* w, double total, int64_t n,
                                      int64_t s, int32_t* out, double* factor) {
    // Find tau by fixed-point iteration: positions with tau w_i >= 1 are always drawn, and the other
    // positions share the remaining draws.
    double tau = static_cast<double>(s) / total;
    for (int pass = 0; pass < 64; ++pass) {
        double certain = 0, mass = 0;
        for (int64_t i = 0; i < n; ++i) {
            if (tau * w[i] >= 1) certain += 1; else mass += w[i];
        }
        const double next = mass > 0 ? (static_cast<double>(s) - certain) / mass : tau;
        if (!(next > tau)) break;
        tau = next;
    }
    double sum = 0, mark = random.uniform();
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) {
        const double pi = tau * w[i] < 1 ? tau * w[i] : 1.0;
        sum += pi;
        if (mark < sum && count < n) {
            out[count] = static_cast<int32_t>(i);
            factor[count++] = 1 / pi;
            mark += 1;
        }
    }
    return count;
}

}  // namespace
}  // namespace sipower
