// SPDX-License-Identifier: BSD-3-Clause
// `WaitingItems`: steps without a batch for several items at once, which update one number per item.
#pragma once
#include "epoch_item.hpp"

namespace sipower {
namespace {

// Items that have no nonzero in the current batch. Without a batch a step is
//   y+ ~ (1 - eta) y + eta g / (y.y0),
// so y stays in the span of g and the point y_s after the last step with a batch: y ~ y_s + rho g.
// With a = eta / (1 - eta), b = y_s.g, c = g.g, e = y_s.y0 and sigma = e + rho = (y_s + rho g).y0
//   rho  <- rho + a |y_s + rho g|^2 / sigma,   that is
//   sigma <- (1 + a c) sigma + 2 a (b - c e) + a |y_s - e g|^2 / sigma.
// These formulas need eta < 1 and hold while the threshold does not bind, which eta <= 1 - threshold ensures.
// At sigma = 1e100, y equals g / |g| up to rounding, so sigma is bounded by 1e100.
class WaitingItems {
public:
    static constexpr int LANES = 16;  // items handled together: four vectors hide the division's latency
    static constexpr int64_t UNCHECKED = 8;  // number of steps after which the bound of sigma is applied

    explicit WaitingItems(double eta) : a_(eta / (1 - eta)) {
        for (int l = 0; l < LANES; ++l) sigma_[l] = growth_[l] = 1;
    }

    void enter(int lane, const EpochItem<double>& item) {
        double b = 0, c = 0, e = 0;
        for (int i = 0; i < item.n; ++i) {
            const double g = item.y0[i] * item.G0[i];
            b += item.y[i] * g;
            c += g * g;
            e += item.y[i] * item.y0[i];
        }
        e = e > MIN_COSINE ? e : MIN_COSINE;
        const double apart = 1 - 2 * b * e + c * e * e;  // |y_s - e g|^2
        b_[lane] = b, c_[lane] = c, e_[lane] = sigma_[lane] = e;
        growth_[lane] = 1 + a_ * c;
        shift_[lane] = 2 * a_ * (b - c * e);
        pull_[lane] = apart > 0 ? a_ * apart : 0;
    }
    // Advance all lanes; the state before the last step is kept for `leave_before_last`.
    void advance(int64_t steps) {
        constexpr int L = Simd<double>::lanes, N = LANES / L;
        const Vec<double> largest = broadcast(1e100);
        Vec<double> sigma[N], before[N], growth[N], shift[N], pull[N];
        for (int v = 0; v < N; ++v) {
            sigma[v] = before[v] = load(sigma_ + v * L);
            growth[v] = load(growth_ + v * L);
            shift[v] = load(shift_ + v * L);
            pull[v] = load(pull_ + v * L);
        }
        for (; steps > 0; steps -= UNCHECKED) {
            const int64_t now = steps < UNCHECKED ? steps : UNCHECKED;
            for (int64_t t = 0; t < now; ++t)
                for (int v = 0; v < N; ++v) {
                    before[v] = sigma[v];
                    sigma[v] = growth[v] * sigma[v] + shift[v] + pull[v] / sigma[v];
                }
            for (int v = 0; v < N; ++v) {
                before[v] = before[v] < largest ? before[v] : largest;
                sigma[v] = sigma[v] < largest ? sigma[v] : largest;
            }
        }
        for (int v = 0; v < N; ++v) {
            store(before_ + v * L, before[v]);
            store(sigma_ + v * L, sigma[v]);
        }
    }
    // y = (y_s + rho g) / |y_s + rho g|
    void leave(int lane, EpochItem<double>& item) const { leave_at(sigma_[lane], lane, item); }
    void leave_before_last(int lane, EpochItem<double>& item) const { leave_at(before_[lane], lane, item); }

private:
    void leave_at(double sigma, int lane, EpochItem<double>& item) const {
        const double rho = sigma - e_[lane];
        const double scale = 1 / std::sqrt(1 + rho * (2 * b_[lane] + rho * c_[lane])), along = scale * rho;
        for (int i = 0; i < item.n; ++i) item.y[i] = scale * item.y[i] + along * item.y0[i] * item.G0[i];
    }

    const double a_;
    alignas(32) double sigma_[LANES], growth_[LANES], before_[LANES] = {}, shift_[LANES] = {}, pull_[LANES] = {};
    double b_[LANES] = {}, c_[LANES] = {}, e_[LANES] = {};
};

}  // namespace
}  // namespace sipower
