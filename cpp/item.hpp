// SPDX-License-Identifier: BSD-3-Clause
// The update rules on one item: formulas on K numbers, in float64. x_k = d_k h_k / c lies on the
// simplex, y = sqrt(x) on the unit sphere (Lemma 9 of the paper).
#pragma once
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>

#include "kernels.hpp"
#include "simd.hpp"

namespace sipower {
namespace {

// Scratch memory of one kernel call, aligned for vectors and zeroed.
template <class T> class Buffer {
public:
    explicit Buffer(int64_t n) {
        const size_t bytes = (static_cast<size_t>(n > 0 ? n : 1) * sizeof(T) + 63) / 64 * 64;
        data_ = static_cast<T*>(std::aligned_alloc(64, bytes));
        if (!data_) throw std::bad_alloc();
        std::memset(static_cast<void*>(data_), 0, bytes);
    }
    ~Buffer() { std::free(data_); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    T* get() { return data_; }
    T& operator[](int64_t i) { return data_[i]; }

private:
    T* data_;
};

// u = h scaled to the item's mass, d.u = c. Components that lost all mass start again from the
// uniform point; a component with d_k = 0 carries no mass and is left out (u_k = 0).
template <class T> void scale_to_mass(const T* h, const double* d, double c, int k, double* u) {
    double mass = 0;
    int alive = 0;
    for (int i = 0; i < k; ++i) {
        mass += d[i] * static_cast<double>(h[i]);
        alive += d[i] > 0;
    }
    for (int i = 0; i < k; ++i) {
        if (!(d[i] > 0)) u[i] = 0;
        else if (mass > 0) u[i] = static_cast<double>(h[i]) * (c / mass);
        else u[i] = c / (alive * d[i]);
    }
}

// h = u, with every living component kept at FLOOR of the mass; a dead one keeps its value.
template <class T> void put(const double* u, const T* h, const double* d, double c, int k, T* out) {
    for (int i = 0; i < k; ++i) {
        const double least = d[i] > 0 ? FLOOR * c / d[i] : 0;
        out[i] = d[i] > 0 ? static_cast<T>(u[i] > least ? u[i] : least) : h[i];
    }
}

template <class T> void put_zero(int k, T* out) {
    for (int i = 0; i < k; ++i) out[i] = 0;
}

// G_k = g_k / d_k, zero where d_k is.
inline void multiplier(const double* g, const double* d, int k, double* G) {
    for (int i = 0; i < k; ++i) G[i] = d[i] > 0 ? g[i] / d[i] : 0;
}

// MU = EM:  x+ = x o G; the mass is kept because sum_k x_k G_k = 1.
struct MuRule {
    void operator()(const double* d, double, int k, const double* g, double* u) const {
        for (int i = 0; i < k; ++i)
            if (d[i] > 0) u[i] *= g[i] / d[i];
    }
};

// SCI-PI, damped:  x+ = normalised( x o ((1 - eta) + eta G)^2 ).
struct PowerRule {
    double step;
    void operator()(const double* d, double c, int k, const double* g, double* u) const {
        double mass = 0;
        for (int i = 0; i < k; ++i) {
            if (!(d[i] > 0)) continue;
            const double bracket = (1 - step) + step * (g[i] / d[i]);
            u[i] = bracket > 0 ? u[i] * bracket * bracket : 0;
            mass += d[i] * u[i];
        }
        if (mass > 0)
            for (int i = 0; i < k; ++i) u[i] *= c / mass;
    }
};

// The point of an S-SCI-PI epoch on one item (Algorithm 1 with p = 0, per item).
struct EpochItem {
    double *y, *y0, *G0;

    void start(const double* u, const double* d, double c, int k) {
        for (int i = 0; i < k; ++i) y[i] = y0[i] = std::sqrt(u[i] * d[i] / c);
    }
    // u = c y^2 / d
    template <class T> void factor(const double* d, double c, int k, T* u) const {
        for (int i = 0; i < k; ++i) u[i] = d[i] > 0 ? static_cast<T>(c * y[i] * y[i] / d[i]) : 0;
    }
    double cosine(int k) const {
        double sum = 0;
        for (int i = 0; i < k; ++i) sum += y[i] * y0[i];
        return sum;
    }
    // y+ = (1 - eta) y + eta (y o G_S(y) - alpha y0 o (G_S(y0) - G0)), alpha = 1 / (y.y0);
    // y+ >= threshold y; then back to the sphere.
    void inner_step(const double* GS, const double* GS0, double alpha, const Epoch& e, int k) {
        double norm = 0;
        for (int i = 0; i < k; ++i) {
            const double D = y[i] * GS[i] - alpha * y0[i] * (GS0[i] - G0[i]);
            const double next = (1 - e.step) * y[i] + e.step * D, least = e.threshold * y[i];
            y[i] = next > least ? next : least;
            norm += y[i] * y[i];
        }
        const double scale = norm > 0 ? 1 / std::sqrt(norm) : 0;
        for (int i = 0; i < k; ++i) y[i] *= scale;
    }
};

}  // namespace
}  // namespace sipower
