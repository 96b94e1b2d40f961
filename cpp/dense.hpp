// SPDX-License-Identifier: BSD-3-Clause
// Passes over dense data: four items meet a tile of the basis as two small matrix products held in
// registers; Z exists one tile at a time.
#pragma once
#include "sparse.hpp"

namespace sipower {
namespace {

constexpr int GROUP = 4;                               // items handled together
constexpr int64_t PANEL = 256 * 1024;                  // bytes of the basis that stay in cache

// How many others are met before going to float64 and to the next items.
template <class T> int64_t stretch(const Basis<T>& B) {
    const int64_t most = LONGEST_SUM / TILE, tile = TILE * static_cast<int64_t>((B.k + B.width) * sizeof(T));
    const int64_t tiles = PANEL / tile;
    return TILE * (tiles < 1 ? 1 : tiles < most ? tiles : most);
}

// z[j][i] = sum_k tile[k][i] u[j][k], i < TILE
template <class T> void tile_dot(const T* tile, int k, const T* u, int stride, T* z) {
    constexpr int L = Simd<T>::lanes, NV = 3;
    static_assert(TILE % (L * NV) == 0, "a tile is whole vector groups");
    for (int i = 0; i < TILE; i += L * NV) {
        Vec<T> sum[GROUP][NV] = {};
        for (int a = 0; a < k; ++a) {
            const T* row = tile + a * TILE + i;
            const Vec<T> b[NV] = {load(row), load(row + L), load(row + 2 * L)};
            for (int j = 0; j < GROUP; ++j) {
                const Vec<T> x = spread(u[j * stride + a]);
                for (int v = 0; v < NV; ++v) sum[j][v] += x * b[v];
            }
        }
        for (int j = 0; j < GROUP; ++j)
            for (int v = 0; v < NV; ++v) store(z + j * TILE + i + v * L, sum[j][v]);
    }
}

// g[j][:] += sum_i q[j][i] rows[i][:], NV vectors of every row
template <class T, int NV> void rows_add_part(const T* rows, int width, int n, const T* q, T* g) {
    constexpr int L = Simd<T>::lanes;
    Vec<T> sum[GROUP][NV];
    for (int j = 0; j < GROUP; ++j)
        for (int v = 0; v < NV; ++v) sum[j][v] = load(g + j * width + v * L);
    for (int i = 0; i < n; ++i) {
        Vec<T> b[NV];
        for (int v = 0; v < NV; ++v) b[v] = load(rows + static_cast<int64_t>(i) * width + v * L);
        for (int j = 0; j < GROUP; ++j) {
            const Vec<T> x = spread(q[j * TILE + i]);
            for (int v = 0; v < NV; ++v) sum[j][v] += x * b[v];
        }
    }
    for (int j = 0; j < GROUP; ++j)
        for (int v = 0; v < NV; ++v) store(g + j * width + v * L, sum[j][v]);
}

template <class T> void rows_add(const T* rows, int width, int n, const T* q, T* g) {
    constexpr int L = Simd<T>::lanes;
    int at = 0;
    for (; at + 3 * L <= width; at += 3 * L) rows_add_part<T, 3>(rows + at, width, n, q, g + at);
    if (at + 2 * L <= width) rows_add_part<T, 2>(rows + at, width, n, q, g + at);
    else if (at + L <= width) rows_add_part<T, 1>(rows + at, width, n, q, g + at);
}

// A group of items against a stretch of a panel (a basis or a sample of its rows).
template <class T> class DensePass {
public:
    DensePass(const Dense& V, const Basis<T>& B) : V_(V), B_(B), part_(GROUP * B.width) {}

    int members(int64_t first, int64_t end) const { return static_cast<int>(end - first < GROUP ? end - first : GROUP); }

    // u: (GROUP, width), rows beyond the members zero. g: (GROUP, width) in float64, added to.
    // kept, where asked for: q = v / z of each member over all others, (GROUP, others).
    void ratio_sums(int64_t first, int count, int64_t from, const T* u, double* g, T* kept) {
        const int64_t upto = end_of_stretch(from);
        clear();
        for (int64_t i = from; i < upto; i += TILE) {
            const int n = static_cast<int>(upto - i < TILE ? upto - i : TILE);
            T q[GROUP * TILE] = {};
            tile_quotients(first, count, i, n, u, q);
            rows_add(B_.rows + i * B_.width, B_.width, n, q, part_.get());
            if (kept)
                for (int j = 0; j < count; ++j)
                    std::memcpy(kept + j * V_.others + i, q + j * TILE, static_cast<size_t>(n) * sizeof(T));
        }
        flush(g);
    }

    // g[i][:] += sum over members (v / z) h: the same quotients, summed for the other side.
    void scatter(int64_t first, int count, int64_t from, const T* u, const T* h, double* g) {
        const int64_t upto = end_of_stretch(from);
        for (int64_t i = from; i < upto; i += TILE) {
            const int n = static_cast<int>(upto - i < TILE ? upto - i : TILE);
            T q[GROUP * TILE] = {};
            tile_quotients(first, count, i, n, u, q);
            for (int t = 0; t < n; ++t)
                for (int j = 0; j < count; ++j) {
                    const double weight = static_cast<double>(q[j * TILE + t]);
                    for (int a = 0; a < B_.k; ++a)
                        g[(i + t) * B_.k + a] += weight * static_cast<double>(h[j * B_.k + a]);
                }
        }
    }

    // entropy[j] += sum_i v log(v / z) - v
    void divergence(int64_t first, int count, int64_t from, const T* u, double* entropy) {
        const int64_t upto = end_of_stretch(from);
        for (int64_t i = from; i < upto; i += TILE) {
            const int n = static_cast<int>(upto - i < TILE ? upto - i : TILE);
            T z[GROUP * TILE], buffer[TILE];
            tile_dot(B_.tiles + i * B_.k, B_.k, u, B_.width, z);
            for (int j = 0; j < count; ++j) {
                const T* v = read_values(V_.values, (first + j) * V_.others + i, n, buffer);
                double mass = 0;
                for (int t = 0; t < n; ++t) mass += static_cast<double>(v[t]);
                entropy[j] += relative_entropy<T>(v, z + j * TILE, n) - mass;
            }
        }
    }

private:
    int64_t end_of_stretch(int64_t from) const {
        const int64_t end = from + stretch(B_);
        return end < V_.others ? end : V_.others;
    }
    void tile_quotients(int64_t first, int count, int64_t i, int n, const T* u, T* q) {
        T z[GROUP * TILE], buffer[TILE];
        tile_dot(B_.tiles + i * B_.k, B_.k, u, B_.width, z);
        for (int j = 0; j < count; ++j) {
            const T* v = read_values(V_.values, (first + j) * V_.others + i, n, buffer);
            quotients(v, z + j * TILE, n, q + j * TILE);
        }
    }
    void clear() { std::memset(part_.get(), 0, static_cast<size_t>(GROUP * B_.width) * sizeof(T)); }
    void flush(double* g) {
        for (int a = 0; a < GROUP * B_.width; ++a) g[a] += static_cast<double>(part_[a]);
    }

    const Dense& V_;
    const Basis<T>& B_;
    Buffer<T> part_;
};

// Items [begin, end) in padded groups: u (groups * GROUP, width) in the working type.
template <class T> struct Groups {
    int64_t begin, end, count;
    Buffer<T> u;
    Groups(int64_t first, int64_t last, int width)
        : begin(first), end(last), count((last - first + GROUP - 1) / GROUP), u(count * GROUP * width) {}
};

// Visit (stretch of the basis) x (group of items), the stretch outermost: it stays in cache.
template <class T, class Visit> void for_groups(const Dense& V, const Basis<T>& B, const Groups<T>& groups, Visit visit) {
    const int64_t step = stretch(B);
    for (int64_t from = 0; from < V.others; from += step)
        for (int64_t a = 0; a < groups.count; ++a) {
            const int64_t first = groups.begin + a * GROUP;
            const int64_t left = groups.end - first;
            visit(a, first, static_cast<int>(left < GROUP ? left : GROUP), from);
        }
}

template <class T> void copy_items(Groups<T>& groups, const Basis<T>& B, const T* h) {
    for (int64_t j = groups.begin; j < groups.end; ++j)
        for (int i = 0; i < B.k; ++i) groups.u[(j - groups.begin) * B.width + i] = h[j * B.k + i];
}

template <class T>
void gradient_dense(const Dense& V, const Basis<T>& B, const T* h, int64_t begin, int64_t end, double* g) {
    DensePass<T> pass(V, B);
    Groups<T> groups(begin, end, B.width);
    Buffer<double> sums(groups.count * GROUP * B.width);
    copy_items(groups, B, h);
    for_groups(V, B, groups, [&](int64_t a, int64_t first, int count, int64_t from) {
        const int64_t at = a * GROUP * B.width;
        pass.ratio_sums(first, count, from, groups.u.get() + at, sums.get() + at, nullptr);
    });
    for (int64_t j = begin; j < end; ++j)
        std::memcpy(g + j * B.k, sums.get() + (j - begin) * B.width, static_cast<size_t>(B.k) * sizeof(double));
}

template <class T>
void sums_dense(const Dense& V, const Basis<T>& B, const T* h, int64_t begin, int64_t end, double* g) {
    DensePass<T> pass(V, B);
    Groups<T> groups(begin, end, B.width);
    copy_items(groups, B, h);
    for_groups(V, B, groups, [&](int64_t a, int64_t first, int count, int64_t from) {
        pass.scatter(first, count, from, groups.u.get() + a * GROUP * B.width, h + first * B.k, g);
    });
}

template <class T>
void divergence_dense(const Dense& V, const Basis<T>& B, const T* h, int64_t begin, int64_t end, double* out) {
    DensePass<T> pass(V, B);
    Groups<T> groups(begin, end, B.width);
    copy_items(groups, B, h);
    for (int64_t j = begin; j < end; ++j) {
        out[j] = 0;
        for (int i = 0; i < B.k; ++i) out[j] += B.d[i] * static_cast<double>(h[j * B.k + i]);
    }
    for_groups(V, B, groups, [&](int64_t a, int64_t first, int count, int64_t from) {
        pass.divergence(first, count, from, groups.u.get() + a * GROUP * B.width, out + first);
    });
}

// Visit every item that has mass: u is h at that mass, g the ratio sums there.
template <class T, class Visit>
void visit_dense(const Dense& V, const Basis<T>& B, const Items<T>& items, Visit visit) {
    DensePass<T> pass(V, B);
    Groups<T> groups(items.begin, items.end, B.width);
    Buffer<double> u(B.width), sums(groups.count * GROUP * B.width);
    for (int64_t j = items.begin; j < items.end; ++j) {
        scale_to_mass(B, items.h + j * B.k, items.c[j], u.get());
        for (int i = 0; i < B.k; ++i) groups.u[(j - items.begin) * B.width + i] = static_cast<T>(u[i]);
    }
    for_groups(V, B, groups, [&](int64_t a, int64_t first, int count, int64_t from) {
        const int64_t at = a * GROUP * B.width;
        pass.ratio_sums(first, count, from, groups.u.get() + at, sums.get() + at, nullptr);
    });
    for (int64_t j = items.begin; j < items.end; ++j) {
        if (!(items.c[j] > 0)) continue;
        scale_to_mass(B, items.h + j * B.k, items.c[j], u.get());
        visit(j, sums.get() + (j - items.begin) * B.width, u.get());
    }
}

template <class T> void mu_dense(const Dense& V, const Basis<T>& B, const Items<T>& items) {
    visit_dense(V, B, items, Update<T, MuRule>{B, items, {}});
}
template <class T> void power_dense(const Dense& V, const Basis<T>& B, const Items<T>& items, double step) {
    visit_dense(V, B, items, Update<T, PowerRule>{B, items, {step}});
}
template <class T> void gaps_dense(const Dense& V, const Basis<T>& B, const Items<T>& items, double* out) {
    visit_dense(V, B, items, Certify<T>{B, items, out});
}

}  // namespace
}  // namespace sipower
