// SPDX-License-Identifier: BSD-3-Clause
// The update rules on one item: formulas on K numbers, in float64. x_k = d_k h_k / c lies on the
// simplex, y = sqrt(x) on the unit sphere (Lemma 9 of the paper).
#pragma once
#include "kernels.hpp"

namespace sipower {
namespace {

// The padded width again, in a form that tells the compiler that no lanes of a vector are left over.
inline int whole_vectors(int width) { return width & ~3; }

// u = h scaled to the item's mass, d.u = c. An item that lost all mass starts again from the
// uniform point. A component with d_k = 0 carries no mass and meets only zeros of the basis.
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

// h = u, with every living component kept at FLOOR of the mass; a dead one keeps its value.
template <class T> void put(const Basis<T>& B, const double* u, const T* h, double c, T* out) {
    for (int i = 0; i < B.k; ++i) {
        const double least = FLOOR * c * B.inverse[i], kept = u[i] > least ? u[i] : least;
        out[i] = B.inverse[i] > 0 ? static_cast<T>(kept) : h[i];
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

// What to do with an item whose ratio sums are known: apply a rule to it ...
template <class T, class Rule> struct Update {
    const Basis<T>& B;
    const Items<T>& items;
    Rule rule;
    void operator()(int64_t j, const double* g, double* u) const {
        rule(B, items.c[j], g, u);
        put(B, u, items.h + j * B.k, items.c[j], items.out + j * B.k);
    }
};

// ... or certify it: the divergence can fall by no more than c (max_k G_k - 1).
template <class T> struct Certify {
    const Basis<T>& B;
    const Items<T>& items;
    double* out;
    void operator()(int64_t j, const double* g, const double*) const {
        double largest = 1;
        for (int i = 0; i < B.k; ++i) {
            const double G = g[i] * B.inverse[i];
            largest = G <= largest ? largest : G;  // NaN is not passed over
        }
        out[j] = items.c[j] * (largest - 1);
    }
};

}  // namespace
}  // namespace sipower
