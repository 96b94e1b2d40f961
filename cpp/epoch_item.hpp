// SPDX-License-Identifier: BSD-3-Clause
// Algorithm 1 of the paper on one item of KL-NMF, where p = 0:
//   y, y0   point and anchor on the unit sphere, y^2 = d h / c
//   G0, g   full multiplier at the anchor and full gradient g = y0 o G0;  y0.g = 1
//   alpha   1 / (y.y0), so that alpha g is the gradient at the projection of y on y0
// The type R is a number, or a SIMD vector with one lane per item to handle several items at once.
#pragma once
#include "simd.hpp"
#include "update_rules.hpp"

namespace sipower {
namespace {

// The lower bound of y.y0. The paper excludes y.y0 <= 0. With a threshold y.y0 is positive; without one
// components may vanish, and y.y0 with them. At the bound alpha is so large that only g and the gradient
// of the batch at the anchor matter, which is the limit of the paper's step.
constexpr double MIN_COSINE = 1e-12;

template <class R> struct EpochItem {
    R *y, *y0, *G0;  // (n)
    int n;

    R cosine() const {
        R sum{};
        for (int i = 0; i < n; ++i) sum += y[i] * y0[i];
        return larger(sum, constant<R>(MIN_COSINE));
    }
    // Take a step with a batch, where the gradient is y o G_S(y) - alpha y0 o (G_S(y0) - G0).
    void inner_step(const R* GS, const R* GS0, const Epoch& e) {
        const R alpha = 1 / cosine();
        move([&](int i) { return y[i] * GS[i] - alpha * y0[i] * (GS0[i] - G0[i]); }, e);
    }
    // Take a step without a batch, where the gradient is alpha g. The first step of an epoch is such a step,
    // because the gradients of the batch cancel at y = y0.
    void plain_step(const Epoch& e) {
        const R alpha = 1 / cosine();
        move([&](int i) { return alpha * y0[i] * G0[i]; }, e);
    }
    // Take several plain steps. At eta = 1, a step in which the threshold does not bind gives y = g / |g|,
    // which later steps do not change.
    void wait(int64_t steps, const Epoch& e) {
        for (bool stays = false; steps > 0 && !stays; --steps) {
            const R alpha = 1 / cosine();
            stays = e.step == 1;
            for (int i = 0; i < n; ++i) stays = stays && alpha * y0[i] * G0[i] >= e.threshold * y[i];
            plain_step(e);
        }
    }

private:
    // y+ = (1 - eta) y + eta gradient, at least threshold y; then back to the sphere.
    template <class Gradient> void move(Gradient gradient, const Epoch& e) {
        const R eta = constant<R>(e.step), rest = constant<R>(1 - e.step), threshold = constant<R>(e.threshold);
        R norm{};
        for (int i = 0; i < n; ++i) {
            y[i] = larger(rest * y[i] + eta * gradient(i), threshold * y[i]);
            norm += y[i] * y[i];
        }
        const R scale = inverse_root(norm);
        for (int i = 0; i < n; ++i) y[i] *= scale;
    }
};

// y = y0 = sqrt(d u / c)
template <class T> void start_epoch(const Basis<T>& B, const double* u, double c, EpochItem<double>& item) {
    const double scale = 1 / c;
    for (int i = 0; i < item.n; ++i) item.y[i] = item.y0[i] = std::sqrt(u[i] * B.d[i] * scale);
}
// u = c y^2 / d
template <class T, class U> void factor(const Basis<T>& B, const EpochItem<double>& item, double c, U* u) {
    for (int i = 0; i < item.n; ++i) u[i] = static_cast<U>(c * (item.y[i] * item.y[i] * B.inverse[i]));
}

}  // namespace
}  // namespace sipower
