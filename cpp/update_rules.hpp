// SPDX-License-Identifier: BSD-3-Clause
// The update rules on one item: formulas on K numbers, in float64. x_k = d_k h_k / c lies on the
// simplex, y = sqrt(x) on the unit sphere (Lemma 9 of the paper).
#pragma once
#include "kernels.hpp"

namespace sipower {
namespace {

// Return the padded width, in a form that tells the compiler that it is a multiple of 4.
inline int whole_vectors(int width) { return width & ~3; }

// u = h scaled to the item's mass, d.u = c. An item whose h is zero starts again from the uniform
// point. A component with d_k = 0 has a zero basis column and carries no mass.
template <class T> void scale_to_mass(const Basis<T>& B, const T* h, double c, double* u) {
    double mass = 0;
    for (int i = 0; i < B.k; ++i) {
        u[i] = static_cast<double>(h[i]);
        mass += B.d[i] * u[i];
    }
    if (mass > 0) {
        const double scale = c / mass;
        for (int i = 0; i < B.k; ++i) u[i] *= scale;
    } else {
        for (int i = 0; i < B.k; ++i) u[i] = c / B.alive * B.inverse[i];
    }
}

// out = u, with at least FLOOR of the mass in every component with d > 0; the others keep their h.
template <class T> void write_factor(const Basis<T>& B, const double* u, const T* h, double c, T* out) {
    for (int i = 0; i < B.k; ++i) {
        const double floor = FLOOR * c * B.inverse[i], floored = u[i] > floor ? u[i] : floor;
        out[i] = B.inverse[i] > 0 ? static_cast<T>(floored) : h[i];
    }
}

// G_k = g_k / d_k, zero where d_k is.
template <class T, class R> void multiplier(const Basis<T>& B, const double* g, R* G) {
    for (int i = 0; i < whole_vectors(B.width); ++i) G[i] = static_cast<R>(g[i] * B.inverse[i]);
}

// MU = EM:  x+ = x o G; the mass is kept because sum_k x_k G_k = 1.
struct MuRule {
    template <class T> void operator()(const Basis<T>& B, double, const double* g, double* u) const {
        for (int i = 0; i < B.width; ++i) u[i] *= g[i] * B.inverse[i];
    }
};

// SCI-PI, damped:  x+ = normalised( x o ((1 - eta) + eta G)^2 ).
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

// Applies an update rule to an item whose ratio sums are known.
template <class T, class Rule> struct Update {
    const Basis<T>& B;
    const Items<T>& items;
    Rule rule;
    void operator()(int64_t j, const double* g, double* u) const {
        rule(B, items.c[j], g, u);
        write_factor(B, u, items.h + j * B.k, items.c[j], items.out + j * B.k);
    }
};

// Certifies such an item: its divergence can fall by no more than c (max_k G_k - 1).
template <class T> struct Certify {
    const Basis<T>& B;
    const Items<T>& items;
    double* out;
    void operator()(int64_t j, const double* g, const double*) const {
        double largest = 1;
        for (int i = 0; i < B.k; ++i) {
            const double G = g[i] * B.inverse[i];
            largest = G <= largest ? largest : G;  // written so that NaN is not ignored
        }
        out[j] = items.c[j] * (largest - 1);
    }
};

}  // namespace
}  // namespace sipower
