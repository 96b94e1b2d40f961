// SPDX-License-Identifier: BSD-3-Clause
// Algorithm 1 of the paper on one item of KL-NMF, where p = 0, in float64 or in the working type R:
//   y, y0   point and anchor on the unit sphere, y^2 = d h / c
//   G0, g   full multiplier at the anchor and full gradient g = y0 o G0;  y0.g = 1
//   alpha   1 / (y.y0), so that alpha g is the gradient at the projection of y on y0
#pragma once
#include "item.hpp"

namespace sipower {
namespace {

// The paper excludes y.y0 <= 0. With a threshold y.y0 is positive; without one a component may
// vanish, and y.y0 with it. A smaller product counts as this one: alpha is so large that g and the
// batch at the anchor are all that is left, which is the limit of the step as printed.
constexpr double LEAST_COSINE = 1e-12;

template <class R> struct EpochItem {
    R *y, *y0, *G0;

    template <class T> void start(const Basis<T>& B, const double* u, double c) {
        const double scale = 1 / c;
        for (int i = 0; i < whole_vectors(B.width); ++i) y[i] = y0[i] = static_cast<R>(std::sqrt(u[i] * B.d[i] * scale));
    }
    // u = c y^2 / d, with 1 / d in R
    template <class U> void factor(const R* inverse, double c, U* u, int width) const {
        const R mass = static_cast<R>(c);
        for (int i = 0; i < whole_vectors(width); ++i) u[i] = static_cast<U>(mass * (y[i] * y[i] * inverse[i]));
    }
    R cosine(int width) const {
        R sum = 0;
        for (int i = 0; i < whole_vectors(width); ++i) sum += y[i] * y0[i];
        return sum > R(LEAST_COSINE) ? sum : R(LEAST_COSINE);
    }
    // The step with a batch, whose gradient is y o G_S(y) - alpha y0 o (G_S(y0) - G0).
    void inner_step(const R* GS, const R* GS0, const Epoch& e, int width) {
        const R alpha = 1 / cosine(width);
        move([&](int i) { return y[i] * GS[i] - alpha * y0[i] * (GS0[i] - G0[i]); }, e, width);
    }
    // Steps without a batch, whose gradient is alpha g. At eta = 1, as soon as the threshold does not
    // bind, y = g / |g| and stays there.
    void wait(int64_t steps, const Epoch& e, int width) {
        for (bool stays = false; steps > 0 && !stays; --steps) {
            const R alpha = 1 / cosine(width);
            stays = e.step == 1;
            for (int i = 0; i < whole_vectors(width); ++i) stays = stays && alpha * y0[i] * G0[i] >= R(e.threshold) * y[i];
            move([&](int i) { return alpha * y0[i] * G0[i]; }, e, width);
        }
    }

private:
    // y+ = (1 - eta) y + eta gradient, at least threshold y; then back to the sphere.
    template <class Gradient> void move(Gradient gradient, const Epoch& e, int width) {
        const R eta = R(e.step), rest = R(1 - e.step), threshold = R(e.threshold);
        R norm = 0;
        for (int i = 0; i < whole_vectors(width); ++i) {
            const R next = rest * y[i] + eta * gradient(i), least = threshold * y[i];
            y[i] = next > least ? next : least;
            norm += y[i] * y[i];
        }
        const R scale = norm > 0 ? 1 / std::sqrt(norm) : R(0);
        for (int i = 0; i < whole_vectors(width); ++i) y[i] *= scale;
    }
};

}  // namespace
}  // namespace sipower
