// SPDX-License-Identifier: BSD-3-Clause
// `NewtonStep`: a Newton step on one gathered item.
#pragma once
#include "gathered_item.hpp"
#include "quadratic_model.hpp"
#include "square_sums.hpp"

namespace sipower {
namespace {

// Takes Newton steps on items. Each step minimises the quadratic model of an item over h >= 0.
template <class T> class NewtonStep {
    static constexpr int L = Simd<T>::lanes;

public:
    // `coordinates` is the largest number of free coordinates of an item.
    NewtonStep(const Basis<T>& B, int coordinates)
        : B_(B), model_(coordinates), weighted_(static_cast<int64_t>(TILE) * B.k), packed_(static_cast<int64_t>(TILE) * B.k),
          p_(B.width), diagonal_(B.width) {}

    // Take one Newton step on the free coordinates, which are positive or would increase: p minimises the
    // second-order model over h + p >= 0, and a line search finds the length of the step. Where rounding
    // hides the slope, the length is s / (kappa + m s) with s = -slope.p, kappa = p.Hp and
    // m = max_i -(b_i.p)/z_i, which minimises the bound of CoordinateDescent::step along p. Returns false if
    // the model predicts no gain. The Hessian of a long item is formed from a sample of its nonzeros, with the
    // true diagonal; kappa and the search use all nonzeros, so every step descends.
    bool operator()(GatheredItem<T>& item, const ModelAccuracy& accuracy) {
        const int64_t stride = accuracy.nonzeros ? item.nonzeros() / (accuracy.nonzeros * static_cast<int64_t>(B_.k)) : 1;
        const Basis<T>& B = item.basis();
        item.ratio_sums();
        int size = 0;
        double mass = 0;
        for (int k = 0; k < B.k; ++k) mass += B.d[k] * item.h[k];
        for (int k = 0; k < B.k; ++k) {
            p_[k] = 0;
            if (!B.is_free(k)) continue;
            if (!(B.prior_of(k) > 0) && item.g[k] <= B.d[k] && B.d[k] * item.h[k] <= negligible_share() * mass) item.h[k] = 0;
            if (!(item.h[k] > 0 || item.g[k] > B.d[k])) continue;
            model_.index[size] = k;
            model_.h[size] = item.h[k];
            model_.r[size++] = B.d[k] + B.ridge * item.h[k] - item.g[k];
        }
        form_hessian(item, size, stride);
        if (stride > 1) {
            square_sums(item, B_, diagonal_.get());
            model_.fit_diagonal(size, diagonal_.get());
        }
        for (int64_t a = 0; a < size; ++a) model_.H[a * size + a] += B.ridge;
        model_.solve(size, accuracy);
        double s = 0, d_p = 0, r_pp = 0;
        for (int a = 0; a < size; ++a) {
            p_[model_.index[a]] = model_.p[a];
            s -= model_.r[a] * model_.p[a];
            d_p += (B.d[model_.index[a]] + B.ridge * model_.h[a]) * model_.p[a];
            r_pp += B.ridge * model_.p[a] * model_.p[a];
        }
        double m;
        const double kappa = item.curvature_along(p_.get(), &m) + r_pp;
        if (!(s > 0) || !(kappa >= 0)) return false;
        // A full step must not reduce any z to zero.
        const double limit = m < 1 - 1e-5 ? 1 : 0.999 / m;
        const double searched = item.length_along(s, d_p, limit, r_pp), bound = s / (kappa + m * s);
        const double length = searched > 0 ? searched : bound < 1 ? bound : 1;
        for (int a = 0; a < size; ++a) {
            const int k = model_.index[a];
            const double next = item.h[k] + length * p_[k];
            item.h[k] = next > 0 ? next : 0;
        }
        item.step_along(length);
        return true;
    }

private:
    // A component that has less than this share of the mass and would decrease is set to zero.
    static double negligible_share() { return sizeof(T) == 4 ? 1e-8 : 1e-15; }

    // Call visit(tile, u, length) for all tiles or, if stride > 1, for tiles of every stride-th vector of nonzeros.
    template <class Visit> void for_sampled_tiles(GatheredItem<T>& item, int64_t stride, Visit visit) {
        Vec<T> u[TILE / L];
        if (stride <= 1) {
            item.for_tiles([&](const T* tile, int64_t at, int n) {
                item.weights(at, n, u);
                visit(tile, u, n);
            });
            return;
        }
        int filled = 0;
        for (int64_t at = 0; at < item.nonzeros(); at += stride * L) {
            item.weights(at, L, u + filled / L);
            const T* from = item.tile_at(at);
            for (int k = 0; k < B_.k; ++k) store(packed_.get() + k * TILE + filled, load(from + k * TILE));
            filled += L;
            if (filled == TILE || at + stride * L >= item.nonzeros()) {
                visit(packed_.get(), u, filled);
                filled = 0;
            }
        }
    }
    // Compute the lower half of H_ab = sum_i v_i b_ia b_ib / z_i^2 for the free coordinates, four rows and two
    // columns at a time. Rows and columns beyond the last one repeat it, and their results are discarded.
    void form_hessian(GatheredItem<T>& item, int size, int64_t stride) {
        model_.clear_blocks(size);
        const auto index = [&](int a) { return a < size ? a : size - 1; };
        for_sampled_tiles(item, stride, [&](const T* tile, const Vec<T>* u, int n) {
            for (int a = 0; a < size; ++a) {
                const T* from = tile + model_.index[a] * TILE;
                T* to = weighted_.get() + a * TILE;
                for (int t = 0; t < n; t += L) store(to + t, u[t / L] * load(from + t));
            }
            double* block = model_.blocks.get();
            for (int a = 0; a < size; a += 4) {
                const T* row[4];
                for (int i = 0; i < 4; ++i) row[i] = weighted_.get() + index(a + i) * TILE;
                for (int b = 0; b < a + 4 && b < size; b += 2, block += 8) {
                    const T* left = tile + model_.index[b] * TILE;
                    const T* right = tile + model_.index[index(b + 1)] * TILE;
                    Vec<T> part[8] = {};
                    for (int t = 0; t < n; t += L) {
                        const Vec<T> x = load(left + t), y = load(right + t);
                        for (int i = 0; i < 4; ++i) {
                            Vec<T> r = load(row[i] + t);
                            in_register(r);
                            part[2 * i] += r * x;
                            part[2 * i + 1] += r * y;
                        }
                    }
                    T totals[8];
                    for (int i = 0; i < 8; i += L) store(totals + i, sums(part + i));
                    for (int i = 0; i < 8; ++i) block[i] += static_cast<double>(totals[i]);
                }
            }
        });
        model_.take_blocks(size);
    }

    const Basis<T>& B_;
    QuadraticModel model_;
    Buffer<T> weighted_, packed_;
    Buffer<double> p_, diagonal_;
};

}  // namespace
}  // namespace sipower
