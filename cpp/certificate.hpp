// SPDX-License-Identifier: BSD-3-Clause
// The certified gap of an item with any terms: how much its objective can fall at most (docs/general_model.md).
#pragma once
#include <cmath>

#include "basis.hpp"

namespace sipower {
namespace {

// The dual objective of an item along u = t v / z. With C = sum_i v_i, s = sum_i (v_i / z_i) z0_i, where z0 is the part
// of z that fixed components explain, and the sums over the components that may change,
//     dual(t) = C + C log t - t s + sum_k q_k(d_k - t g_k) - sum_i v_i log z_i,
//     q_k(e) = min over h >= 0 of  e h + r h^2 / 2 - a_k log h,
// is concave and bounds the minimum from below for every t that it is finite at. At a solution t = 1 is best.
template <class T> class DualLine {
public:
    // g holds the ratio sums of the data at h, without prior counts; c is their mass.
    DualLine(const Basis<T>& B, const double* g, const double* h, double c) : B_(B), g_(g), c_(c) {
        for (int k = 0; k < B.k; ++k) {
            const double a = B.prior_of(k);
            if (B.is_fixed(k)) {
                s_ += g[k] * h[k];
            } else {
                primal_ += B.d[k] * h[k] + B.ridge * h[k] * h[k] / 2;
                if (a > 0) primal_ -= a * std::log(h[k]);
                if (B.ridge == 0 && t_max_ * g[k] > B.d[k]) t_max_ = B.d[k] / g[k];
                open_ = open_ || a > 0;
            }
        }
    }
    // Return the primal objective minus the largest dual objective that a few steps find. Every t gives a valid bound.
    double gap() const {
        double low = 0, high = t_max_, t = high > 1 ? 1 : open_ && B_.ridge == 0 ? 0.999 * high : high, best = value(t);
        for (int step = 0; step < MAX_STEPS && high > low; ++step) {
            const double slope = slope_at(t);
            if (slope >= 0) low = t;
            else high = t;
            if (!(std::fabs(slope) * t > 1e-15 * (c_ + 1e-300)) || (slope >= 0 && t >= t_max_)) break;
            const double newton = t - slope / curvature_at(t);
            const double upper = high < LARGEST ? high : 4 * t;
            t = newton > low && newton < high ? newton : slope > 0 && t_max_ <= newton && !open_ ? t_max_ : (low + upper) / 2;
            const double now = value(t);
            best = now > best ? now : best;
        }
        const double gap = primal_ - best;
        return gap >= 0 ? gap : gap < 0 ? 0 : gap;  // negative values are rounding errors; NaN stays NaN
    }

private:
    static constexpr int MAX_STEPS = 60;
    static constexpr double LARGEST = 1e300;

    // The minimiser h of q_k(e); infinite where the dual is not finite.
    double minimiser(int k, double e) const {
        const double a = B_.prior_of(k), r = B_.ridge;
        if (r == 0) return a > 0 ? a / e : 0;
        const double root = std::sqrt(e * e + 4 * r * a);
        return e > 0 ? 2 * a / (e + root) : (root - e) / (2 * r);
    }
    double value(double t) const {
        if (!(t > 0)) return -LARGEST;
        double sum = (c_ > 0 ? c_ + c_ * std::log(t) : 0) - t * s_;
        for (int k = 0; k < B_.k; ++k) {
            if (B_.is_fixed(k)) continue;
            const double a = B_.prior_of(k), e = B_.d[k] - t * g_[k], h = minimiser(k, e);
            if (a > 0 && !(h > 0 && h < LARGEST)) return -LARGEST;
            sum += B_.ridge > 0 ? e * h + B_.ridge * h * h / 2 : a;  // without a ridge e h = a
            if (a > 0) sum -= a * std::log(h);
        }
        return sum;
    }
    double slope_at(double t) const {
        double slope = c_ / t - s_;
        for (int k = 0; k < B_.k; ++k)
            if (!B_.is_fixed(k)) slope -= g_[k] * minimiser(k, B_.d[k] - t * g_[k]);
        return slope;
    }
    // dual''(t), with dh/de = -h / sqrt(e^2 + 4 r a), or -h^2 / a without a ridge
    double curvature_at(double t) const {
        double sum = -c_ / (t * t);
        for (int k = 0; k < B_.k; ++k) {
            if (B_.is_fixed(k)) continue;
            const double a = B_.prior_of(k), e = B_.d[k] - t * g_[k], h = minimiser(k, e), g = g_[k];
            if (B_.ridge > 0) {
                const double root = std::sqrt(e * e + 4 * B_.ridge * a);
                if (h > 0 && root > 0) sum -= g * g * h / root;
            } else if (a > 0) {
                sum -= g * g * h * h / a;
            }
        }
        return sum;
    }

    const Basis<T>& B_;
    const double* g_;
    const double c_;
    double s_ = 0, primal_ = 0, t_max_ = LARGEST;
    bool open_ = false;  // whether a prior count keeps t below its largest value
};

}  // namespace
}  // namespace sipower
