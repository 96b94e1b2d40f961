// SPDX-License-Identifier: BSD-3-Clause
// One item with its basis rows at hand, gathered once into tiles (K, TILE), so that every loop runs
// over the item's terms: its sums, a coordinate step, a Newton step.
#pragma once
#include <vector>

#include "dense.hpp"
#include "newton.hpp"

namespace sipower {
namespace {

// One item: its values v > 0, its tiles, the point h, and z = b.h, w = 1/z at its terms.
template <class T> class Item {
    static constexpr int L = Simd<T>::lanes;

public:
    Item(const Basis<T>& B, int64_t longest)
        : B_(B), tiles_(padded(longest) * B.k), v_(padded(longest)), z_(padded(longest)),
          w_(padded(longest)), along_(padded(longest)),
          weighted_(static_cast<int64_t>(TILE) * B.k), packed_(static_cast<int64_t>(TILE) * B.k),
          p_(B.width), diagonal_(B.width), free_(B.k), h(B.width), g(B.width) {}

    void enter(const Csr& V, int64_t item) {
        const int64_t from = V.start(item);
        n_ = V.terms(item);
        from_ = tiles_.get();
        for (int64_t t = 0; t < n_; ++t) {
            T one;
            v_[t] = *read_values(V.values, from + t, 1, &one);
        }
        rows_ = V.columns(from, n_);
        take_rows();
    }

    // Zeros of a dense item play no part: their terms enter through d alone. Without zeros the
    // tiles are those of the basis.
    void enter(const Dense& V, int64_t item) {
        bool positive = true;
        for (int64_t i = 0; i < V.others; i += TILE) {
            const int n = static_cast<int>(V.others - i < TILE ? V.others - i : TILE);
            T buffer[TILE];
            const T* v = read_values(V.values, item * V.others + i, n, buffer);
            for (int t = 0; t < TILE; ++t) v_[i + t] = t < n ? v[t] : T(0);
            for (int t = 0; t < n; ++t) positive = positive && v[t] > 0;
        }
        n_ = V.others;
        rows_ = nullptr;
        from_ = positive ? B_.tiles : tiles_.get();
        if (positive) return;
        kept_.resize(static_cast<size_t>(V.others));
        gather_positive(V.others);
    }

    int64_t terms() const { return n_; }
    int32_t row(int64_t t) const { return rows_ ? rows_[t] : static_cast<int32_t>(t); }
    T value(int64_t t) const { return v_.get()[t]; }
    T quotient(int64_t t) const { return v_.get()[t] * w_.get()[t]; }  // v / z

    // z = b.h and w = 1/z from scratch; beyond the last term z = 1 and v = 0. False if some z is 0.
    bool refresh() {
        Vec<T> smallest = spread(T(1));
        for_tiles([&](const T* tile, int64_t at, int n) { refresh_tile(tile, at, n, smallest); });
        return positive(smallest);
    }
    // g_k = sum_i v_i b_ik / z_i
    void ratio_sums() {
        for (int k = 0; k < B_.k; ++k) g[k] = 0;
        for_tiles([&](const T* tile, int64_t at, int n) { add_ratios(tile, at, n); });
    }
    // Both, with one look at the tiles.
    bool refresh_with_sums() {
        Vec<T> smallest = spread(T(1));
        for (int k = 0; k < B_.k; ++k) g[k] = 0;
        for_tiles([&](const T* tile, int64_t at, int n) {
            refresh_tile(tile, at, n, smallest);
            add_ratios(tile, at, n);
        });
        return positive(smallest);
    }

    // max_k G_k - 1 from the ratio sums; d.h = c must hold.
    double gap() const {
        double largest = 1;
        for (int k = 0; k < B_.k; ++k) {
            const double G = g.get()[k] * B_.inverse[k];
            largest = G <= largest ? largest : G;  // NaN is not passed over
        }
        return largest - 1;
    }

    // One Newton step on coordinate k. Going up the step undershoots (the derivative is concave in
    // h_k). Going down by delta, with m = max_i b_i/z_i, the objective is at most
    // f - delta g + hess (-log(1 - m delta) - m delta)/m^2, which delta = newton/(1 + m newton)
    // minimises: every step descends and no z reaches 0.
    void coordinate_step(int k) {
        if (!(B_.d[k] > 0)) return;
        double slope = B_.d[k], curvature = 0, steepest = 0;
        for_tiles([&](const T* tile, int64_t at, int n) {
            Vec<T> first = {}, second = {}, most = {};
            for (int t = 0; t < n; t += L) {
                const Vec<T> ratio = load(tile + k * TILE + t) * load(w_.get() + at + t);
                const Vec<T> q = load(v_.get() + at + t) * ratio;
                first += q;
                second += q * ratio;
                most = ratio > most ? ratio : most;
            }
            slope -= static_cast<double>(sum(first));
            curvature += static_cast<double>(sum(second));
            const double m = static_cast<double>(largest(most));
            steepest = steepest > m ? steepest : m;
        });
        if (slope >= 0 && !(h[k] > 0)) return;  // at zero and pushed outwards
        double delta;
        if (curvature > 0) {
            delta = slope / curvature;
            if (delta > 0) delta /= 1 + steepest * delta;
        } else {
            delta = h[k];  // the component meets no term: it only costs
        }
        const double next = h[k] > delta ? h[k] - delta : 0;
        move(k, next);
    }

    void sweep(Order order, Random& random) {
        if (order == Order::random) {
            for (int k = 0; k < B_.k; ++k) coordinate_step(static_cast<int>(random.below(B_.k)));
        } else {
            for (int a = 0; a < free_count_; ++a) coordinate_step(free_[a]);
        }
    }
    void free_all() {
        free_count_ = B_.k;
        for (int k = 0; k < B_.k; ++k) free_[k] = k;
    }
    // Those that are positive or pushed upwards.
    void free_active() {
        ratio_sums();
        free_count_ = 0;
        for (int k = 0; k < B_.k; ++k)
            if (h[k] > 0 || g[k] > B_.d[k]) free_[free_count_++] = k;
    }

    // Where rounding has left next to nothing of some z, a count may meet no component any more and
    // its divergence would be infinite: then every living component keeps FLOOR of the mass, as after
    // a power step.
    void keep_alive(double c) {
        if (!some_z_vanishes() || refresh()) return;
        for (int k = 0; k < B_.k; ++k) {
            const double least = FLOOR * c * B_.inverse[k];
            if (h[k] < least) h[k] = least;
        }
    }

    // h <- scaled to d.h = c; z and w are to be refreshed.
    void fit_mass(double c) {
        double mass = 0;
        for (int k = 0; k < B_.k; ++k) mass += B_.d[k] * h[k];
        if (!(mass > 0)) return;
        const double scale = c / mass;
        for (int k = 0; k < B_.k; ++k) h[k] *= scale;
    }

    // d.h - sum v log z, up to a constant: sum v log(v/z) + d.h
    double objective() {
        double sum = 0;
        for (int64_t at = 0; at < n_; at += TILE) {
            const int n = static_cast<int>(n_ - at < TILE ? n_ - at : TILE);
            sum += relative_entropy<double>(v_.get() + at, z_.get() + at, n);
        }
        for (int k = 0; k < B_.k; ++k) sum += B_.d[k] * h[k];
        return sum;
    }

    // sum_i v_i (b_i.p)^2 / z_i^2, the curvature along p; m = max_i -(b_i.p)/z_i beside it, and b.p is
    // kept for a step.
    double curvature_along(const double* p, double* m) {
        Vec<T> most = {};
        double total = 0;
        for_tiles([&](const T* tile, int64_t at, int n) {
            Vec<T> bp[TILE / L] = {};
            for (int k = 0; k < B_.k; ++k) {
                if (p[k] == 0) continue;
                const Vec<T> x = spread(static_cast<T>(p[k]));
                for (int t = 0; t < n; t += L) bp[t / L] += x * load(tile + k * TILE + t);
            }
            Vec<T> bends = {};
            for (int t = 0; t < n; t += L) {
                store(along_.get() + at + t, bp[t / L]);
                const Vec<T> fall = -bp[t / L] * load(w_.get() + at + t);
                most = fall > most ? fall : most;
                bends += load(v_.get() + at + t) * fall * fall;
            }
            total += static_cast<double>(sum(bends));
        });
        *m = static_cast<double>(largest(most));
        return total;
    }

    // One Newton step on the coordinates that are positive or pushed upwards: p minimises the
    // second-order model over h + p >= 0. With s = -slope.p, kappa = p.Hp and m = max_i -(b_i.p)/z_i
    // the bound of coordinate_step along p is least at the length s / (kappa + m s). False where the
    // model sees nothing to gain. The Hessian of a long item is that of a sample of its terms, with
    // the true diagonal; kappa is of all terms, so every step descends.
    bool newton_step(Model& model, const ModelAccuracy& accuracy) {
        const int64_t stride = accuracy.terms ? n_ / (accuracy.terms * static_cast<int64_t>(B_.k)) : 1;
        ratio_sums();
        int size = 0;
        double mass = 0;
        for (int k = 0; k < B_.k; ++k) mass += B_.d[k] * h[k];
        for (int k = 0; k < B_.k; ++k) {
            p_[k] = 0;
            if (!(B_.d[k] > 0)) continue;
            if (g[k] <= B_.d[k] && B_.d[k] * h[k] <= nothing() * mass) h[k] = 0;
            if (!(h[k] > 0 || g[k] > B_.d[k])) continue;
            model.index[size] = k;
            model.h[size] = h[k];
            model.r[size++] = B_.d[k] - g[k];
        }
        hessian(model, size, stride);
        if (stride > 1) {
            square_sums(diagonal_.get());
            model.fit_diagonal(size, diagonal_.get());
        }
        model.solve(size, accuracy);
        double s = 0;
        for (int a = 0; a < size; ++a) {
            p_[model.index[a]] = model.p[a];
            s -= model.r[a] * model.p[a];
        }
        double m;
        const double kappa = curvature_along(p_.get(), &m);
        if (!(s > 0) || !(kappa >= 0)) return false;
        const double best = s / (kappa + m * s), length = best < 1 ? best : 1;
        for (int a = 0; a < size; ++a) {
            const int k = model.index[a];
            const double next = h[k] + length * p_[k];
            h[k] = next > 0 ? next : 0;
        }
        const Vec<T> x = spread(static_cast<T>(length));
        for (int64_t t = 0; t < n_; t += L) {
            const Vec<T> z = load(z_.get() + t), moved = z + x * load(along_.get() + t);
            put_z(t, at_least(moved, z));
        }
        return true;
    }

private:
    static int64_t padded(int64_t n) { return (n + TILE - 1) / TILE * TILE; }
    // The share of an item's mass under which a component that is pushed down is zero.
    static double nothing() { return sizeof(T) == 4 ? 1e-8 : 1e-15; }
    static T tiny() { return sizeof(T) == 4 ? T(1e-30) : T(1e-290); }

    void refresh_tile(const T* tile, int64_t at, int n, Vec<T>& smallest) {
        Vec<T> z[TILE / L] = {};
        for (int k = 0; k < B_.k; ++k) {
            if (h[k] == 0) continue;
            const Vec<T> x = spread(static_cast<T>(h[k]));
            for (int t = 0; t < n; t += L) z[t / L] += x * load(tile + k * TILE + t);
        }
        for (int64_t t = n_ - at; t < n; ++t) z[t / L][t % L] = T(1);
        for (int t = 0; t < n; t += L) {
            smallest = z[t / L] < smallest ? z[t / L] : smallest;
            put_z(at + t, z[t / L] > spread(tiny()) ? z[t / L] : spread(tiny()));
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
            const Vec<T> found = sums(part);
            for (int l = 0; l < count; ++l) g[k + l] += static_cast<double>(found[l]);
        }
    }

    // Whether some z is next to nothing beside its count.
    bool some_z_vanishes() const {
        const Vec<T> share = spread(sizeof(T) == 4 ? T(1e-5) : T(1e-12));
        Vec<T> vanishing = {};
        for (int64_t t = 0; t < n_; t += L) {
            const Vec<T> missing = load(v_.get() + t) * share - load(z_.get() + t);
            vanishing = missing > vanishing ? missing : vanishing;
        }
        return largest(vanishing) > 0;
    }

    void gather_positive(int64_t others) {
        n_ = 0;
        for (int64_t i = 0; i < others; ++i) {
            if (!(v_[i] > 0)) continue;
            v_[n_] = v_[i];
            kept_[static_cast<size_t>(n_++)] = static_cast<int32_t>(i);
        }
        rows_ = kept_.data();
        take_rows();
    }
    // The basis rows of all terms, as many at a time as a vector has lanes, transposed into tiles.
    // Terms up to a whole vector are blank: v = 0 and zero rows.
    void take_rows() {
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
    // visit(tile, first term, length): lengths are whole vectors, terms beyond the last are blank
    template <class Visit> void for_tiles(Visit visit) {
        for (int64_t at = 0; at < n_; at += TILE) {
            const int64_t left = (n_ - at + L - 1) / L * L;
            visit(from_ + at * B_.k, at, static_cast<int>(left < TILE ? left : TILE));
        }
    }
    // What rounding may leave of a z that falls, at the least.
    static Vec<T> at_least(Vec<T> z, Vec<T> old) {
        const Vec<T> least = old * spread(sizeof(T) == 4 ? T(1e-6) : T(1e-14));
        return z > least ? z : least;
    }
    void put_z(int64_t t, Vec<T> z) {
        store(z_.get() + t, z);
        store(w_.get() + t, spread(T(1)) / z);
    }
    void move(int k, double next) {
        const Vec<T> change = spread(static_cast<T>(next - h[k]));
        h[k] = next;
        for_tiles([&](const T* tile, int64_t at, int n) {
            for (int t = 0; t < n; t += L) {
                const Vec<T> old = load(z_.get() + at + t);
                put_z(at + t, at_least(old + change * load(tile + k * TILE + t), old));
            }
        });
    }
    // second_k = sum_i v_i b_ik^2 / z_i^2
    void square_sums(double* second) {
        for (int k = 0; k < B_.k; ++k) second[k] = 0;
        for_tiles([&](const T* tile, int64_t at, int n) {
            Vec<T> u[TILE / L];
            weights(at, n, u);
            for (int k = 0; k < B_.k; k += L) {
                const int count = B_.k - k < L ? B_.k - k : L;
                Vec<T> part[L] = {};
                for (int l = 0; l < count; ++l)
                    for (int t = 0; t < n; t += L) {
                        const Vec<T> b = load(tile + (k + l) * TILE + t);
                        part[l] += u[t / L] * b * b;
                    }
                const Vec<T> found = sums(part);
                for (int l = 0; l < count; ++l) second[k + l] += static_cast<double>(found[l]);
            }
        });
    }
    // u_i = v_i / z_i^2
    void weights(int64_t at, int n, Vec<T>* u) const {
        for (int t = 0; t < n; t += L) {
            const Vec<T> w = load(w_.get() + at + t);
            u[t / L] = load(v_.get() + at + t) * w * w;
        }
    }
    // visit(tile, u, length): all tiles, or every stride-th vector of terms packed into tiles.
    template <class Visit> void for_sampled_tiles(int64_t stride, Visit visit) {
        Vec<T> u[TILE / L];
        if (stride <= 1) {
            for_tiles([&](const T* tile, int64_t at, int n) {
                weights(at, n, u);
                visit(tile, u, n);
            });
            return;
        }
        int filled = 0;
        for (int64_t at = 0; at < n_; at += stride * L) {
            weights(at, L, u + filled / L);
            const T* from = from_ + at / TILE * TILE * B_.k + at % TILE;
            for (int k = 0; k < B_.k; ++k) store(packed_.get() + k * TILE + filled, load(from + k * TILE));
            filled += L;
            if (filled == TILE || at + stride * L >= n_) {
                visit(packed_.get(), u, filled);
                filled = 0;
            }
        }
    }
    // H_ab = sum_i v_i b_ia b_ib / z_i^2 over the free coordinates, lower half, four rows by two
    // columns at a time; rows and columns beyond the last repeat it and are not kept.
    void hessian(Model& model, int size, int64_t stride) {
        model.clear_blocks(size);
        const auto index = [&](int a) { return a < size ? a : size - 1; };
        for_sampled_tiles(stride, [&](const T* tile, const Vec<T>* u, int n) {
            for (int a = 0; a < size; ++a) {
                const T* from = tile + model.index[a] * TILE;
                T* to = weighted_.get() + a * TILE;
                for (int t = 0; t < n; t += L) store(to + t, u[t / L] * load(from + t));
            }
            double* block = model.blocks.get();
            for (int a = 0; a < size; a += 4) {
                const T* row[4];
                for (int i = 0; i < 4; ++i) row[i] = weighted_.get() + index(a + i) * TILE;
                for (int b = 0; b < a + 4 && b < size; b += 2, block += 8) {
                    const T* left = tile + model.index[b] * TILE;
                    const T* right = tile + model.index[index(b + 1)] * TILE;
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
                    T found[8];
                    for (int i = 0; i < 8; i += L) store(found + i, sums(part + i));
                    for (int i = 0; i < 8; ++i) block[i] += static_cast<double>(found[i]);
                }
            }
        });
        model.take_blocks(size);
    }

    const Basis<T>& B_;
    Buffer<T> tiles_, v_, z_, w_, along_, weighted_, packed_;
    std::vector<int32_t> kept_;  // positive terms of a dense item
    const T* from_ = nullptr;
    const int32_t* rows_ = nullptr;  // of the basis, term by term; null: all of them in order
    int64_t n_ = 0;
    Buffer<double> p_, diagonal_;
    Buffer<int> free_;  // coordinates that a sweep visits
    int free_count_ = 0;

public:
    Buffer<double> h, g;
};

}  // namespace
}  // namespace sipower
