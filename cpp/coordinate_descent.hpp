// SPDX-License-Identifier: BSD-3-Clause
// Coordinate descent on one gathered item.
#pragma once
#include "gathered_item.hpp"

namespace sipower {
namespace {

// Sweeps over the coordinates of an item: all of them, those that are active, or K at random.
template <class T> class CoordinateDescent {
    static constexpr int L = Simd<T>::lanes;

public:
    explicit CoordinateDescent(const Basis<T>& B) : B_(B), general_(!B.is_scaled()), visits_(B.k) {}

    void visit_all() {
        count_ = B_.k;
        for (int k = 0; k < B_.k; ++k) visits_[k] = k;
    }
    // Visit only the coordinates that are positive or would increase.
    void visit_active(GatheredItem<T>& item) {
        const Basis<T>& B = item.basis();
        item.ratio_sums();
        count_ = 0;
        for (int k = 0; k < B.k; ++k)
            if (item.h[k] > 0 || item.g[k] > B.d[k]) visits_[count_++] = k;
    }
    void sweep(GatheredItem<T>& item, Order order, Random& random) {
        if (general_) sweep_as<true>(item, order, random);
        else sweep_as<false>(item, order, random);
    }

private:
    // `general`: there is a ridge or a fixed component.
    template <bool general> void sweep_as(GatheredItem<T>& item, Order order, Random& random) {
        if (order == Order::random) {
            for (int k = 0; k < B_.k; ++k) step<general>(item, static_cast<int>(random.below(B_.k)));
        } else {
            for (int a = 0; a < count_; ++a) step<general>(item, visits_[a]);
        }
    }
    // Take one Newton step on coordinate k. A step up stops short of the minimum, because the derivative
    // is concave in h_k. After a step down by delta, with m = max_i b_i/z_i, the objective is at most
    // f - delta slope + curvature (-log(1 - m delta) - m delta)/m^2. This bound is minimised by
    // delta = newton/(1 + m newton), where newton = slope/curvature. So no step raises the objective,
    // and no z reaches 0. A ridge r adds r to the curvature: r delta^2/2 is below its share of the bound.
    // 1 - m h_k is the part of some z that other components explain: if rounding hides it, h_k must not reach 0.
    template <bool general> void step(GatheredItem<T>& item, int k) {
        const Basis<T>& B = item.basis();
        double slope = B.d[k], curvature = 0, steepest = 0;
        if (general) {
            if (!B.is_free(k)) return;
            slope += B.ridge * item.h[k];
            curvature = B.ridge;
        } else if (!(slope > 0)) {
            return;
        }
        item.for_tiles([&](const T* tile, int64_t at, int n) {
            Vec<T> first = {}, second = {}, steepest_ratio = {};
            for (int t = 0; t < n; t += L) {
                const Vec<T> ratio = load(tile + k * TILE + t) * item.inverses(at + t);
                const Vec<T> q = item.values(at + t) * ratio;
                first += q;
                second += q * ratio;
                steepest_ratio = ratio > steepest_ratio ? ratio : steepest_ratio;
            }
            slope -= static_cast<double>(sum(first));
            curvature += static_cast<double>(sum(second));
            const double m = static_cast<double>(largest(steepest_ratio));
            steepest = steepest > m ? steepest : m;
        });
        if (slope >= 0 && !(item.h[k] > 0)) return;  // h_k is zero and must not become negative
        const double h = item.h[k], newton = slope / curvature;
        double next;
        if (!(curvature > 0)) {
            next = 0;  // no nonzero depends on the component
        } else if (newton > 0) {
            const double others = 1 - steepest * h;
            next = (others > rounding() ? h - newton * others : h) / (1 + steepest * newton);
        } else {
            next = h - newton;
        }
        next = next > 0 ? next : 0;
        item.set(k, next, 1 - steepest * (h - next));
    }

    // What 1 - m h_k may be by rounding alone, with the z that `set` allows.
    static double rounding() { return sizeof(T) == 4 ? 1e-3 : 1e-6; }

    const Basis<T>& B_;
    const bool general_;  // whether there is a ridge or a fixed component
    Buffer<int> visits_;
    int count_ = 0;
};

}  // namespace
}  // namespace sipower
