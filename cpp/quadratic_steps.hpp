// SPDX-License-Identifier: BSD-3-Clause
// Coordinate descent on the quadratic models r.p + p.Qp/2 of many items.
#pragma once
#include <cstdint>

#include "buffer.hpp"

namespace sipower {
namespace {

// For each item of [begin, end), find p with p >= -room by `sweeps` sweeps of coordinate descent from p = 0; a
// coordinate with room < 0 does not move. Q holds upper triangles, row by row. `kappa` gets p.Qp.
inline void quadratic_steps(const double* Q, const double* r, const double* room, int k, int64_t begin, int64_t end, int64_t sweeps,
                            double* p, double* kappa) {
    const int64_t size = static_cast<int64_t>(k) * (k + 1) / 2;
    Buffer<double> whole(static_cast<int64_t>(k) * k), slopes(k);
    double *const H = whole.get(), *const slope = slopes.get();
    for (int64_t j = begin; j < end; ++j) {
        const double* at = Q + j * size;
        for (int a = 0; a < k; ++a)
            for (int b = a; b < k; ++b) H[static_cast<int64_t>(a) * k + b] = H[static_cast<int64_t>(b) * k + a] = *at++;
        double* const x = p + j * k;
        for (int a = 0; a < k; ++a) {
            x[a] = 0;
            slope[a] = r[j * k + a];
        }
        for (int64_t sweep = 0; sweep < sweeps; ++sweep)
            for (int a = 0; a < k; ++a) {
                const double left = room[j * k + a], diagonal = H[static_cast<int64_t>(a) * k + a];
                if (left < 0) continue;
                double next = diagonal > 0 ? x[a] - slope[a] / diagonal : slope[a] > 0 ? -left : x[a];
                if (!(next > -left)) next = -left;
                const double change = next - x[a];
                if (change == 0) continue;
                x[a] = next;
                const double* const row = H + static_cast<int64_t>(a) * k;
                for (int b = 0; b < k; ++b) slope[b] += change * row[b];
            }
        kappa[j] = 0;
        for (int a = 0; a < k; ++a) kappa[j] += x[a] * (slope[a] - r[j * k + a]);
    }
}

}  // namespace
}  // namespace sipower
