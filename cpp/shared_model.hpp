// SPDX-License-Identifier: BSD-3-Clause
// `SharedModel`: quadratic models of several items whose Hessians share their correlations.
#pragma once
#include <cmath>

#include "buffer.hpp"
#include "kernels.hpp"
#include "simd.hpp"

namespace sipower {
namespace {

// What a line search along p needs: the slope (g - d).p at its start, d.p, and the largest length.
struct Direction {
    double slope, d_p, limit;
};

// The Hessian of item j is approximated by H_j = D R D: D_kk^2 = sum_i v_i b_ik^2 / z_i^2 is the item's own
// diagonal, R (K, K) has a unit diagonal and is the same for all items. With y = D p the model
//     min r.p + p.Hp/2 over h + p >= 0   becomes   min (r/D).y + y.Ry/2 over y >= -D h,
// which coordinate descent solves for as many items at once as a vector has lanes.
template <class T> class SharedModel {
    static constexpr int L = Simd<T>::lanes, SWEEPS = 6;

public:
    SharedModel(const Basis<T>& B, const double* correlations)
        : B_(B), R_(static_cast<int64_t>(B.k) * B.k), y_(L * B.k), slope_(L * B.k), lowest_(L * B.k), inverse_(L * B.k) {
        for (int64_t i = 0; i < static_cast<int64_t>(B.k) * B.k; ++i) R_[i] = static_cast<T>(correlations[i]);
    }
    static constexpr int capacity() { return L; }

    // Write the steps p and the directions of `count` items from `first` on, at most `capacity`. g, squares, u and p have shape
    // (count, width): g holds the ratio sums, squares the diagonals of the Hessians, u the points. c holds the masses.
    void solve(int64_t first, int count, const double* g, const double* squares, const double* u, const double* c, T* p, Direction* directions) {
        for (int j = 0; j < L; ++j)
            enter(j, j < count ? B_.of_item(first + j).d : nullptr, g + j * B_.width, squares + j * B_.width, u + j * B_.width, j < count ? c[j] : 0);
        for (int sweep = 0; sweep < SWEEPS; ++sweep) descend();
        for (int j = 0; j < count; ++j) {
            const double* d = B_.of_item(first + j).d;
            directions[j] = {0, 0, 1};
            for (int k = 0; k < B_.width; ++k) p[j * B_.width + k] = 0;
            for (int k = 0; k < B_.k; ++k) {
                const double bound = -u[j * B_.width + k], step = static_cast<double>(y_[k * L + j]) * inverse_[k * L + j];
                const double next = step > bound ? step : bound;
                p[j * B_.width + k] = static_cast<T>(next);
                directions[j].slope += (g[j * B_.width + k] - d[k]) * next;
                directions[j].d_p += d[k] * next;
            }
        }
    }

private:
    // Set up the model of one lane; d is null if no item is left for it. An item without mass and a component with a zero basis column do not move.
    void enter(int lane, const double* d, const double* g, const double* squares, const double* u, double c) {
        constexpr double flattest = 1e-12;  // smallest curvature, relative to a component that has all the mass
        for (int k = 0; k < B_.k; ++k) {
            const int at = k * L + lane;
            const bool moves = d && c > 0 && d[k] > 0;
            const double floor = moves ? flattest * d[k] * d[k] / c : 1;
            const double D = moves ? std::sqrt(squares[k] > floor ? squares[k] : floor) : 1;
            inverse_[at] = moves ? 1 / D : 0;
            slope_[at] = moves ? static_cast<T>((d[k] - g[k]) / D) : T(0);
            lowest_[at] = moves ? static_cast<T>(-D * u[k]) : T(0);
            y_[at] = 0;
        }
    }
    // Do one sweep of coordinate descent on all lanes. A step of y_a changes all slopes by a multiple of row a of R.
    void descend() {
        for (int a = 0; a < B_.k; ++a) {
            T* const ya = y_.get() + a * L;
            const Vec<T> old = load(ya), target = old - load(slope_.get() + a * L), low = load(lowest_.get() + a * L);
            const Vec<T> next = target > low ? target : low, change = next - old;
            store(ya, next);
            const T* const row = R_.get() + static_cast<int64_t>(a) * B_.k;
            for (int b = 0; b < B_.k; ++b) {
                T* const slope = slope_.get() + b * L;
                store(slope, load(slope) + change * broadcast(row[b]));
            }
        }
    }

    const Basis<T>& B_;
    Buffer<T> R_, y_, slope_, lowest_;
    Buffer<double> inverse_;
};

}  // namespace
}  // namespace sipower
