// SPDX-License-Identifier: BSD-3-Clause
// The update rules on one item: formulas on K numbers in float64. The point x_k = d_k h_k / c lies on the
// simplex, and y = sqrt(x) lies on the unit sphere (Lemma 9 of the paper).
#pragma once
#include <cmath>

#include "buffer.hpp"
#include "kernels.hpp"
#include "simd.hpp"

namespace sipower {
namespace {

// Return the padded width, in a form that tells the compiler that it is a multiple of 4.
inline int whole_vectors(int width) { return width & ~3; }

// Return the mass of an item with its prior counts, which are observations of single components.
template <class T> double total_mass(const Basis<T>& B, double c) {
    for (int i = 0; B.prior && i < B.k; ++i)
        if (!B.is_fixed(i)) c += B.prior[i];
    return c;
}

// Set the components that may change to equal shares of the mass; the others keep u.
template <class T> void start_uniform(const Basis<T>& B, double mass, double* u) {
    int free = 0;
    for (int i = 0; i < B.k; ++i) free += B.is_free(i);
    for (int i = 0; i < B.k; ++i) {
        if (B.is_free(i)) u[i] = B.d[i] > 0 ? mass / free * B.inverse[i] : std::sqrt(mass / free / B.ridge);
        else if (!B.is_fixed(i)) u[i] = 0;
    }
}

// Make u a valid start if there are prior counts, a ridge or fixed components. If nothing explains the data, start at
// the uniform point; if fixed components do, components that are zero get FLOOR of the mass, because a jump to the
// uniform point could raise the objective. A component with prior counts must be positive.
template <class T> void start_general(const Basis<T>& B, double mass, double* u) {
    bool zero = true, explained = false;
    for (int i = 0; i < B.k; ++i) {
        if (B.is_fixed(i)) explained = explained || u[i] > 0;
        else zero = zero && !(u[i] > 0);
    }
    if (zero && !explained) start_uniform(B, mass, u);
    for (int i = 0; i < B.k; ++i) {
        if (!B.is_free(i) || u[i] > 0) continue;
        const double a = B.prior_of(i), d = B.d[i];
        if (a > 0) u[i] = 2 * a / (d + std::sqrt(d * d + 4 * B.ridge * a));
        else if (zero) u[i] = FLOOR * mass * B.inverse[i];
    }
}

// Set u to h scaled to the mass of the item, d.u = mass. An item whose h is zero starts again from the uniform
// point. A component with d_k = 0 has a zero basis column and carries no mass. With a ridge or fixed components
// the best scale is not known, but the components that may change never have more than the mass at the optimum:
// scaling them down to it lowers the objective all the way. See `start_general` too.
template <class T> void scale_to_mass(const Basis<T>& B, const T* h, double mass, double* u) {
    double current = 0;
    for (int i = 0; i < B.k; ++i) {
        u[i] = static_cast<double>(h[i]);
        if (!B.is_fixed(i)) current += B.d[i] * u[i];
    }
    if (B.is_scaled() && !(current > 0)) {
        start_uniform(B, mass, u);
    } else if (B.is_scaled() || current > mass) {
        const double scale = mass / current;
        for (int i = 0; i < B.k; ++i)
            if (!B.is_fixed(i)) u[i] *= scale;
    }
    if (B.prior || !B.is_scaled()) start_general(B, mass, u);
}

// Write u to `out`, with at least FLOOR of the mass in every component that may change; others keep h.
template <class T> void write_factor(const Basis<T>& B, const double* u, const T* h, double mass, T* out) {
    for (int i = 0; i < B.k; ++i) {
        const double floor = FLOOR * mass * B.inverse[i], floored = u[i] > floor ? u[i] : floor;
        out[i] = B.inverse[i] > 0 ? static_cast<T>(floored) : h[i];
    }
    for (int i = 0; !B.is_scaled() && i < B.k; ++i) {
        if (B.is_fixed(i)) out[i] = h[i];
        else if (!(B.d[i] > 0) && B.ridge > 0) out[i] = static_cast<T>(u[i]);
    }
}

// Write the factor of an item without mass: zero, but for fixed components.
template <class T> void write_empty(const Basis<T>& B, const T* h, T* out) {
    for (int i = 0; i < B.k; ++i) out[i] = B.is_fixed(i) ? h[i] : T(0);
}

// Add the prior counts to the ratio sums: each is an observation a_k of h_k alone, so its quotient is a_k / h_k.
template <class T> void add_prior(const Basis<T>& B, const double* u, double* g) {
    for (int i = 0; B.prior && i < B.k; ++i)
        if (u[i] > 0) g[i] += B.prior[i] / u[i];
}

// G_k = g_k / d_k, or zero where d_k = 0.
template <class T, class R> void multiplier(const Basis<T>& B, const double* g, R* G) {
    for (int i = 0; i < whole_vectors(B.width); ++i) G[i] = static_cast<R>(g[i] * B.inverse[i]);
}

// MU, which is EM:  x+ = x o G. The mass stays the same because sum_k x_k G_k = 1. With a ridge, u+ is the root of
// r u+^2 + d u+ = u g, the minimiser of the same upper bound.
struct MuRule {
    template <class T> void operator()(const Basis<T>& B, double, const double* g, double* u) const {
        if (B.is_scaled()) {
            for (int i = 0; i < B.width; ++i) u[i] *= g[i] * B.inverse[i];
            return;
        }
        for (int i = 0; i < B.k; ++i) {
            const double share = u[i] * g[i], d = B.d[i];
            if (B.is_fixed(i)) continue;
            if (!(share > 0)) u[i] = 0;
            else u[i] = B.ridge > 0 ? 2 * share / (d + std::sqrt(d * d + 4 * B.ridge * share)) : share * B.inverse[i];
        }
    }
};

// Damped SCI-PI:  x+ = normalised( x o ((1 - eta) + eta G)^2 ).
struct PowerRule {
    double step;
    template <class T> void operator()(const Basis<T>& B, double c, const double* g, double* u) const {
        double mass = 0;
        for (int i = 0; i < B.width; ++i) {
            const double bracket = (1 - step) + step * (g[i] * B.inverse[i]);
            u[i] *= bracket > 0 ? bracket * bracket : 0;
            mass += B.d[i] * u[i];
        }
        const double scale = mass > 0 ? c / mass : 0;
        for (int i = 0; i < B.width; ++i) u[i] *= scale;
    }
};

// The direction p of a power step with line search: normalised(x o G^exponent) - x, converted to h.
class SearchDirection {
public:
    explicit SearchDirection(int width) : power_(width), square_(width) {}

    // Write p. Set `slope` to the rate at which a step along p lowers the objective, and `limit` to the step
    // length at which some component has lost nearly all of its mass.
    template <class T>
    void operator()(const Basis<T>& B, double c, const double* g, const double* u, int64_t exponent, T* p) {
        constexpr double longest = 100, share = 0.99;
        const int width = whole_vectors(B.width);
        double *power = power_.get(), *square = square_.get(), mass = 0, steepest = share / longest;
        double largest = 0;
        for (int i = 0; i < width; ++i) largest = larger(largest, u[i] > 0 ? g[i] * B.inverse[i] : 0.0);
        for (int i = 0; i < width; ++i) {  // powers of G relative to its largest value do not overflow
            power[i] = u[i];
            square[i] = largest > 0 ? g[i] * B.inverse[i] / largest : 0;
        }
        for (int64_t n = exponent; n > 0; n /= 2)
            for (int i = 0; i < width; ++i) {
                power[i] *= n % 2 ? square[i] : 1.0;
                square[i] *= square[i];
            }
        for (int i = 0; i < width; ++i) mass += B.d[i] * power[i];
        const double scale = mass > 0 && mass < 1e300 ? c / mass : 0;
        slope = 0;
        for (int i = 0; i < width; ++i) {
            const double step = scale > 0 && B.inverse[i] > 0 ? scale * power[i] - u[i] : 0;
            const double fall = u[i] > 0 ? -step / u[i] : 0;
            p[i] = static_cast<T>(step);
            slope += (g[i] - B.d[i]) * step;
            steepest = fall > steepest ? fall : steepest;
        }
        limit = share / steepest;
    }

    double slope = 0, limit = 0;

private:
    Buffer<double> power_, square_;
};

// Applies an update rule to an item whose ratio sums are known.
template <class T, class Rule> struct Update {
    const Basis<T>& B;
    const Items<T>& items;
    Rule rule;
    void operator()(int64_t j, const Basis<T>& own, double mass, const double* g, double* u) const {
        rule(own, mass, g, u);
        write_factor(own, u, items.h + j * B.k, mass, items.out + j * B.k);
    }
    void empty(int64_t j) const { write_empty(B.of_item(j), items.h + j * B.k, items.out + j * B.k); }
};

// Computes the certified gap of an item whose ratio sums are known: its divergence can fall by at most
// c (max_k G_k - 1).
template <class T> struct Certify {
    const Basis<T>& B;
    const Items<T>& items;
    double* out;
    void operator()(int64_t j, const Basis<T>& own, double, const double* g, const double*) const {
        double largest = 1;
        for (int i = 0; i < B.k; ++i) {
            const double G = g[i] * own.inverse[i];
            largest = G <= largest ? largest : G;  // written so that NaN is not ignored
        }
        out[j] = items.c[j] * (largest - 1);
    }
    void empty(int64_t) const {}
};

}  // namespace
}  // namespace sipower
