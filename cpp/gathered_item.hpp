// SPDX-License-Identifier: BSD-3-Clause
// `GatheredItem`: one item with its gathered basis rows and a point h that moves.
#pragma once
#include "gathered_rows.hpp"
#include "line_search.hpp"

namespace sipower {
namespace {

// One item with the point h, its ratio sums g, and z = b.h, w = 1/z at its nonzeros. `set` and `step_along` keep z
// and w up to date; after writing to h directly, call `refresh`.
template <class T> class GatheredItem : public GatheredRows<T> {
    using Rows = GatheredRows<T>;
    using Rows::L;
    using Rows::n_;
    using Rows::v_;

public:
    using Rows::basis;
    using Rows::for_tiles;

    GatheredItem(const Basis<T>& B, int64_t longest)
        : Rows(B, longest), z_(Rows::room_), w_(Rows::room_), along_(Rows::room_), h(B.width), g(B.width) {}

    T quotient(int64_t t) const { return v_.get()[t] * w_.get()[t]; }  // v / z
    Vec<T> inverses(int64_t t) const { return load(w_.get() + t); }  // w
    // u_i = v_i / z_i^2
    void weights(int64_t at, int n, Vec<T>* u) const {
        for (int t = 0; t < n; t += L) {
            const Vec<T> w = load(w_.get() + at + t);
            u[t / L] = load(v_.get() + at + t) * w * w;
        }
    }

    // Compute z = b.h and w = 1/z; beyond the last nonzero z = 1 and v = 0. Returns false if some z is 0.
    bool refresh() {
        left_ = 1;
        Vec<T> smallest = broadcast(T(1));
        for_tiles([&](const T* tile, int64_t at, int n) { refresh_tile(tile, at, n, smallest); });
        return positive(smallest);
    }
    // g_k = sum_i v_i b_ik / z_i
    void ratio_sums() {
        for (int k = 0; k < basis().k; ++k) g[k] = 0;
        for_tiles([&](const T* tile, int64_t at, int n) { add_ratios(tile, at, n); });
    }
    // Do `refresh` and `ratio_sums` in one read of the tiles.
    bool refresh_with_sums() {
        left_ = 1;
        Vec<T> smallest = broadcast(T(1));
        for (int k = 0; k < basis().k; ++k) g[k] = 0;
        for_tiles([&](const T* tile, int64_t at, int n) {
            refresh_tile(tile, at, n, smallest);
            add_ratios(tile, at, n);
        });
        return positive(smallest);
    }

    // Return max_k G_k - 1, computed from the ratio sums; d.h = c must hold.
    double gap() const {
        double largest = 1;
        for (int k = 0; k < basis().k; ++k) {
            const double G = g.get()[k] * basis().inverse[k];
            largest = G <= largest ? largest : G;  // written so that NaN is not ignored
        }
        return largest - 1;
    }

    // If rounding has made some z vanish, raise every component with d > 0 to at least FLOOR of the mass, as after
    // a power step, because the divergence could otherwise become infinite.
    void keep_alive(double c) {
        if (!some_z_vanishes() || refresh()) return;
        for (int k = 0; k < basis().k; ++k) {
            const double floor = FLOOR * c * basis().inverse[k];
            if (h[k] < floor && !basis().is_fixed(k)) h[k] = floor;
        }
    }

    // Scale h so that d.h = c, if that is best; the caller must then call `refresh` to recompute z and w.
    void fit_mass(double c) {
        if (!basis().is_scaled()) return;
        double mass = 0;
        for (int k = 0; k < basis().k; ++k) mass += basis().d[k] * h[k];
        if (!(mass > 0)) return;
        const double scale = c / mass;
        for (int k = 0; k < basis().k; ++k) h[k] *= scale;
    }

    // Set h_k = next and update z and w; every z keeps at least the share `left` of its value. The rounding errors of
    // the updates are relative to the largest z so far, so if little of it is left, all are computed again.
    void set(int k, double next, double left) {
        const Vec<T> change = broadcast(static_cast<T>(next - h[k]));
        h[k] = next;
        left_ *= left < 1 ? left : 1;
        if (!(left_ > least_left())) {
            refresh();
            return;
        }
        for_tiles([&](const T* tile, int64_t at, int n) {
            for (int t = 0; t < n; t += L)
                set_z(at + t, load(z_.get() + at + t) + change * load(tile + k * TILE + t));
        });
    }

    // Return sum v log(v/z) + d.h, which is the objective d.h - sum v log z up to a constant.
    double objective() {
        double sum = 0;
        for (int64_t at = 0; at < n_; at += TILE) {
            const int n = static_cast<int>(n_ - at < TILE ? n_ - at : TILE);
            sum += relative_entropy<double>(v_.get() + at, z_.get() + at, n);
        }
        for (int k = 0; k < basis().k; ++k) sum += basis().d[k] * h[k];
        return sum;
    }

    // Return the curvature along p, sum_i v_i (b_i.p)^2 / z_i^2, and set m = max_i -(b_i.p)/z_i. The ratios
    // e = (b.p)/z are kept for `length_along` and `step_along`.
    double curvature_along(const double* p, double* m) {
        Vec<T> steepest_fall = {};
        double total = 0;
        for_tiles([&](const T* tile, int64_t at, int n) {
            Vec<T> bp[TILE / L] = {};
            for (int k = 0; k < basis().k; ++k) {
                if (p[k] == 0) continue;
                const Vec<T> x = broadcast(static_cast<T>(p[k]));
                for (int t = 0; t < n; t += L) bp[t / L] += x * load(tile + k * TILE + t);
            }
            Vec<T> curvature = {};
            for (int t = 0; t < n; t += L) {
                const Vec<T> fall = -bp[t / L] * load(w_.get() + at + t);
                store(along_.get() + at + t, -fall);
                steepest_fall = fall > steepest_fall ? fall : steepest_fall;
                curvature += load(v_.get() + at + t) * fall * fall;
            }
            total += static_cast<double>(sum(curvature));
        });
        *m = static_cast<double>(largest(steepest_fall));
        return total;
    }
    // Return the length of the step along the last p of `curvature_along` that lowers the objective most.
    double length_along(double slope, double d_p, double limit, double r_pp = 0) const {
        return search_length(v_.get(), along_.get(), whole_lanes<T>(n_), slope, d_p, limit, r_pp);
    }
    // Update z and w for a step of this length along the last p of `curvature_along`; the caller updates h.
    void step_along(double length) {
        const Vec<T> x = broadcast(static_cast<T>(length));
        for (int64_t t = 0; t < n_; t += L) {
            const Vec<T> z = load(z_.get() + t), moved = z + x * z * load(along_.get() + t);
            set_z(t, at_least(moved, z));
        }
    }

private:
    static T tiny() { return sizeof(T) == 4 ? T(1e-30) : T(1e-290); }
    static double least_left() { return sizeof(T) == 4 ? 1e-4 : 1e-9; }  // eps/least_left is the relative error of z

    void refresh_tile(const T* tile, int64_t at, int n, Vec<T>& smallest) {
        Vec<T> z[TILE / L] = {};
        for (int k = 0, last = basis().k; k < last; ++k) {
            if (h[k] == 0) continue;
            const Vec<T> x = broadcast(static_cast<T>(h[k]));
            for (int t = 0; t < n; t += L) z[t / L] += x * load(tile + k * TILE + t);
        }
        for (int64_t t = n_ - at; t < n; ++t) z[t / L][t % L] = T(1);
        for (int t = 0; t < n; t += L) {
            smallest = z[t / L] < smallest ? z[t / L] : smallest;
            set_z(at + t, z[t / L] > broadcast(tiny()) ? z[t / L] : broadcast(tiny()));
        }
    }
    static bool positive(Vec<T> smallest) {
        for (int l = 0; l < L; ++l)
            if (!(smallest[l] > tiny())) return false;
        return true;
    }
    void add_ratios(const T* tile, int64_t at, int n) {
        Vec<T> q[TILE / L];
        for (int t = 0; t < n; t += L) q[t / L] = load(v_.get() + at + t) * load(w_.get() + at + t);
        for (int k = 0; k < basis().k; k += L) {
            const int count = basis().k - k < L ? basis().k - k : L;
            const T* rows[L];
            for (int l = 0; l < L; ++l) rows[l] = tile + (k + (l < count ? l : 0)) * TILE;
            Vec<T> part[L] = {};
            for (int t = 0; t < n; t += L)
                for (int l = 0; l < L; ++l) part[l] += q[t / L] * load(rows[l] + t);
            const Vec<T> totals = sums(part);
            for (int l = 0; l < count; ++l) g[k + l] += static_cast<double>(totals[l]);
        }
    }

    // Return whether some z is negligible compared with its v.
    bool some_z_vanishes() const {
        const Vec<T> share = broadcast(sizeof(T) == 4 ? T(1e-5) : T(1e-12));
        Vec<T> vanishing = {};
        for (int64_t t = 0; t < n_; t += L) {
            const Vec<T> missing = load(v_.get() + t) * share - load(z_.get() + t);
            vanishing = missing > vanishing ? missing : vanishing;
        }
        return largest(vanishing) > 0;
    }

    // Return z, raised to at least a tiny share of its old value, because rounding must not make it zero.
    static Vec<T> at_least(Vec<T> z, Vec<T> old) {
        const Vec<T> smallest = old * broadcast(sizeof(T) == 4 ? T(1e-6) : T(1e-14));
        return z > smallest ? z : smallest;
    }
    void set_z(int64_t t, Vec<T> z) {
        store(z_.get() + t, z);
        store(w_.get() + t, broadcast(T(1)) / z);
    }

    Buffer<T> z_, w_, along_;
    double left_ = 1;  // lower bound of z / (z at the last `refresh`)

public:
    Buffer<double> h, g;
};

}  // namespace
}  // namespace sipower
