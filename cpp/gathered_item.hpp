// SPDX-License-Identifier: BSD-3-Clause
// `GatheredItem`: one item with its basis rows copied into tiles (K, TILE), so that inner loops run over
// the nonzeros of the item in contiguous memory.
#pragma once
#include <vector>

#include "buffer.hpp"
#include "kernels.hpp"
#include "line_search.hpp"
#include "simd.hpp"
#include "values.hpp"

namespace sipower {
namespace {

// One item: its values v > 0, its tiles, the point h, its ratio sums g, and z = b.h, w = 1/z at its
// nonzeros. `set` and `step_along` keep z and w up to date; after writing to h directly, call `refresh`.
template <class T> class GatheredItem {
    static constexpr int L = Simd<T>::lanes;

public:
    GatheredItem(const Basis<T>& B, int64_t longest)
        : B_(B), tiles_(padded(longest) * B.k), v_(padded(longest)), z_(padded(longest)),
          w_(padded(longest)), along_(padded(longest)), h(B.width), g(B.width) {}

    void enter(const Csr& V, int64_t item) {
        const int64_t from = V.start(item);
        n_ = V.nonzeros(item);
        from_ = tiles_.get();
        for (int64_t t = 0; t < n_; ++t) {
            T one;
            v_[t] = *read_values(V.values, from + t, 1, &one);
        }
        rows_ = V.columns(from, n_);
        fill_tiles();
    }

    // Skip the zeros of a dense item, which enter the objective through d alone. An item without zeros
    // uses the tiles of the basis.
    void enter(const Dense& V, int64_t item) {
        bool positive = true;
        for (int64_t i = 0; i < V.n_columns; i += TILE) {
            const int n = static_cast<int>(V.n_columns - i < TILE ? V.n_columns - i : TILE);
            T buffer[TILE];
            const T* v = read_values(V.values, item * V.n_columns + i, n, buffer);
            for (int t = 0; t < TILE; ++t) v_[i + t] = t < n ? v[t] : T(0);
            for (int t = 0; t < n; ++t) positive = positive && v[t] > 0;
        }
        n_ = V.n_columns;
        rows_ = nullptr;
        from_ = positive ? B_.tiles : tiles_.get();
        if (positive) return;
        positive_rows_.resize(static_cast<size_t>(V.n_columns));
        gather_positive(V.n_columns);
    }

    int64_t nonzeros() const { return n_; }
    int32_t row(int64_t t) const { return rows_ ? rows_[t] : static_cast<int32_t>(t); }
    T value(int64_t t) const { return v_.get()[t]; }
    T quotient(int64_t t) const { return v_.get()[t] * w_.get()[t]; }  // v / z

    // Call visit(tile, first nonzero, length) for each tile. Lengths are multiples of the vector width;
    // beyond the last nonzero v = 0.
    template <class Visit> void for_tiles(Visit visit) {
        for (int64_t at = 0; at < n_; at += TILE) {
            const int64_t left = (n_ - at + L - 1) / L * L;
            visit(from_ + at * B_.k, at, static_cast<int>(left < TILE ? left : TILE));
        }
    }
    // Return the address of the first component of nonzero t in its tile; the next component is TILE elements away.
    const T* tile_at(int64_t t) const { return from_ + t / TILE * TILE * B_.k + t % TILE; }
    Vec<T> values(int64_t t) const { return load(v_.get() + t); }
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
        Vec<T> smallest = broadcast(T(1));
        for_tiles([&](const T* tile, int64_t at, int n) { refresh_tile(tile, at, n, smallest); });
        return positive(smallest);
    }
    // g_k = sum_i v_i b_ik / z_i
    void ratio_sums() {
        for (int k = 0; k < B_.k; ++k) g[k] = 0;
        for_tiles([&](const T* tile, int64_t at, int n) { add_ratios(tile, at, n); });
    }
    // Do `refresh` and `ratio_sums` in one read of the tiles.
    bool refresh_with_sums() {
        Vec<T> smallest = broadcast(T(1));
        for (int k = 0; k < B_.k; ++k) g[k] = 0;
        for_tiles([&](const T* tile, int64_t at, int n) {
            refresh_tile(tile, at, n, smallest);
            add_ratios(tile, at, n);
        });
        return positive(smallest);
    }

    // Return max_k G_k - 1, computed from the ratio sums; d.h = c must hold.
    double gap() const {
        double largest = 1;
        for (int k = 0; k < B_.k; ++k) {
            const double G = g.get()[k] * B_.inverse[k];
            largest = G <= largest ? largest : G;  // written so that NaN is not ignored
        }
        return largest - 1;
    }

    // If rounding has made some z vanish, raise every component with d > 0 to at least FLOOR of the mass, as after
    // a power step, because the divergence could otherwise become infinite.
    void keep_alive(double c) {
        if (!some_z_vanishes() || refresh()) return;
        for (int k = 0; k < B_.k; ++k) {
            const double floor = FLOOR * c * B_.inverse[k];
            if (h[k] < floor) h[k] = floor;
        }
    }

    // Scale h so that d.h = c; the caller must then call `refresh` to recompute z and w.
    void fit_mass(double c) {
        double mass = 0;
        for (int k = 0; k < B_.k; ++k) mass += B_.d[k] * h[k];
        if (!(mass > 0)) return;
        const double scale = c / mass;
        for (int k = 0; k < B_.k; ++k) h[k] *= scale;
    }

    // Set h_k = next and update z and w.
    void set(int k, double next) {
        const Vec<T> change = broadcast(static_cast<T>(next - h[k]));
        h[k] = next;
        for_tiles([&](const T* tile, int64_t at, int n) {
            for (int t = 0; t < n; t += L) {
                const Vec<T> old = load(z_.get() + at + t);
                set_z(at + t, at_least(old + change * load(tile + k * TILE + t), old));
            }
        });
    }

    // Return sum v log(v/z) + d.h, which is the objective d.h - sum v log z up to a constant.
    double objective() {
        double sum = 0;
        for (int64_t at = 0; at < n_; at += TILE) {
            const int n = static_cast<int>(n_ - at < TILE ? n_ - at : TILE);
            sum += relative_entropy<double>(v_.get() + at, z_.get() + at, n);
        }
        for (int k = 0; k < B_.k; ++k) sum += B_.d[k] * h[k];
        return sum;
    }

    // Return the curvature along p, sum_i v_i (b_i.p)^2 / z_i^2, and set m = max_i -(b_i.p)/z_i. The ratios
    // e = (b.p)/z are kept for `length_along` and `step_along`.
    double curvature_along(const double* p, double* m) {
        Vec<T> steepest_fall = {};
        double total = 0;
        for_tiles([&](const T* tile, int64_t at, int n) {
            Vec<T> bp[TILE / L] = {};
            for (int k = 0; k < B_.k; ++k) {
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
    double length_along(double slope, double d_p, double limit) const {
        return search_length(v_.get(), along_.get(), whole_lanes<T>(n_), slope, d_p, limit);
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
    static int64_t padded(int64_t n) { return (n + TILE - 1) / TILE * TILE; }
    static T tiny() { return sizeof(T) == 4 ? T(1e-30) : T(1e-290); }

    void refresh_tile(const T* tile, int64_t at, int n, Vec<T>& smallest) {
        Vec<T> z[TILE / L] = {};
        for (int k = 0; k < B_.k; ++k) {
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
        for (int k = 0; k < B_.k; k += L) {
            const int count = B_.k - k < L ? B_.k - k : L;
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

    void gather_positive(int64_t n_columns) {
        n_ = 0;
        for (int64_t i = 0; i < n_columns; ++i) {
            if (!(v_[i] > 0)) continue;
            v_[n_] = v_[i];
            positive_rows_[static_cast<size_t>(n_++)] = static_cast<int32_t>(i);
        }
        rows_ = positive_rows_.data();
        fill_tiles();
    }
    // Transpose the basis rows of all nonzeros into tiles, as many rows at a time as a vector has lanes.
    // The last vector is padded with v = 0 and zero rows.
    void fill_tiles() {
        static const T zeros[L] = {};
        for (int64_t t = 0; t < n_; t += L) {
            const T* from[L];
            for (int l = 0; l < L; ++l)
                from[l] = t + l < n_ ? B_.row(rows_[t + l]) : nullptr;
            T* tile = tiles_.get() + t / TILE * TILE * B_.k + t % TILE;
            for (int k = 0; k < B_.k; k += L) {
                Vec<T> square[L];
                for (int l = 0; l < L; ++l) square[l] = load(from[l] ? from[l] + k : zeros);
                transpose(square);
                const int last = B_.k - k < L ? B_.k - k : L;
                for (int l = 0; l < last; ++l) store(tile + (k + l) * TILE, square[l]);
            }
        }
        for (int64_t t = n_; t < (n_ + L - 1) / L * L; ++t) v_[t] = 0;
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

    const Basis<T>& B_;
    Buffer<T> tiles_, v_, z_, w_, along_;
    std::vector<int32_t> positive_rows_;  // basis rows of the positive values of a dense item
    const T* from_ = nullptr;  // the tiles in use: `tiles_`, or those of the basis
    const int32_t* rows_ = nullptr;  // basis row of each nonzero; null: all rows in order
    int64_t n_ = 0;

public:
    Buffer<double> h, g;
};

}  // namespace
}  // namespace sipower
