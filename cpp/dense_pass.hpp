// SPDX-License-Identifier: BSD-3-Clause
// Passes over dense data. Four items at a time are multiplied by one tile of the basis, so that z is never stored for
// the whole matrix.
#pragma once
#include <cstring>

#include "buffer.hpp"
#include "kernels.hpp"
#include "values.hpp"
#include "tile_products.hpp"

namespace sipower {
namespace {

constexpr int64_t PANEL = 256 * 1024;  // bytes of the basis that stay in cache

// Return the number of basis rows in a stretch, a range of rows that fits in cache and is short enough to be summed
// in the working type. After each stretch, the sums are added to float64 sums and the next group of items follows.
template <class T> int64_t stretch(const Basis<T>& B) {
    const int64_t max_tiles = LONGEST_SUM / TILE, tile = TILE * static_cast<int64_t>((B.k + B.width) * sizeof(T));
    const int64_t tiles = PANEL / tile;
    return TILE * (tiles < 1 ? 1 : tiles < max_tiles ? tiles : max_tiles);
}

// Computes sums of a group of items over the stretch of basis rows that begins at row `from`. Points u and directions
// p have shape (GROUP, width), with zeros after the last item.
template <class T> class DensePass {
public:
    DensePass(const Dense& V, const Basis<T>& B) : V_(V), B_(B), part_(GROUP * B.width), square_part_(GROUP * B.width) {}

    // Add the ratio sums of `count` items from `first` on to g, (GROUP, width). Unless quotients_out is null,
    // q = v / z is written there, (GROUP, stride).
    void ratio_sums(int64_t first, int count, int64_t from, const T* u, double* g, T* quotients_out, int64_t stride) {
        clear(part_);
        for_tiles(from, [&](int64_t i, int n) {
            T q[GROUP * TILE] = {};
            tile_quotients(first, count, i, n, u, q);
            rows_add(B_.rows + i * B_.width, B_.width, n, q, part_.get());
            if (quotients_out)
                for (int j = 0; j < count; ++j)
                    std::memcpy(quotients_out + j * stride + i, q + j * TILE, static_cast<size_t>(n) * sizeof(T));
        });
        flush(part_, g);
    }

    // Do the same as `ratio_sums`, and write v and w = 1 / z for a line search, (GROUP, stride). Unless `squares` is
    // null, sum_i v_i b_ik^2 / z_i^2 is added to it, (GROUP, width).
    void search_sums(int64_t first, int count, int64_t from, const T* u, double* g, double* squares, T* v_out, T* w_out, int64_t stride) {
        clear(part_);
        clear(square_part_);
        for_tiles(from, [&](int64_t i, int n) {
            T z[GROUP * TILE], q[GROUP * TILE] = {}, s[GROUP * TILE] = {}, buffer[TILE];
            tile_dot(B_.tiles + i * B_.k, B_.k, u, B_.width, n, z);
            for (int j = 0; j < count; ++j) {
                const T* v = read_values(V_.values, (first + j) * V_.n_columns + i, n, buffer);
                T *const q_row = q + j * TILE, *const s_row = s + j * TILE, *const w = w_out + j * stride + i;
                std::memcpy(v_out + j * stride + i, v, static_cast<size_t>(n) * sizeof(T));
                inverses(v, z + j * TILE, n, w, q_row);
                for (int t = 0; t < n; ++t) s_row[t] = q_row[t] * w[t];
            }
            rows_add(B_.rows + i * B_.width, B_.width, n, q, part_.get());
            if (squares) rows_add<T, 2>(B_.rows + i * B_.width, B_.width, n, s, square_part_.get());
        });
        flush(part_, g);
        if (squares) flush(square_part_, squares);
    }
    // Write e = (b.p) w of each item over a stretch; w and e have shape (GROUP, stride).
    void ratios_along(int count, int64_t from, const T* p, const T* w, T* e, int64_t stride) {
        for_tiles(from, [&](int64_t i, int n) {
            T bp[GROUP * TILE];
            tile_dot(B_.tiles + i * B_.k, B_.k, p, B_.width, n, bp);
            for (int j = 0; j < count; ++j) {
                const int64_t at = j * stride + i;
                for (int t = 0; t < n; ++t) e[at + t] = bp[j * TILE + t] * w[at + t];
            }
        });
    }

    // Add (v / z) h of each item to g[i][:] for every column i. The sums are the ratio sums of the other factor.
    void scatter(int64_t first, int count, int64_t from, const T* u, const T* h, double* g) {
        for_tiles(from, [&](int64_t i, int n) {
            T q[GROUP * TILE] = {};
            tile_quotients(first, count, i, n, u, q);
            for (int t = 0; t < n; ++t)
                for (int j = 0; j < count; ++j) {
                    const double weight = static_cast<double>(q[j * TILE + t]);
                    for (int a = 0; a < B_.k; ++a)
                        g[(i + t) * B_.k + a] += weight * static_cast<double>(h[j * B_.k + a]);
                }
        });
    }

    // entropy[j] += sum_i v log(v / z) - v
    void divergence(int64_t first, int count, int64_t from, const T* u, double* entropy) {
        for_tiles(from, [&](int64_t i, int n) {
            T z[GROUP * TILE], buffer[TILE];
            tile_dot(B_.tiles + i * B_.k, B_.k, u, B_.width, n, z);
            for (int j = 0; j < count; ++j) {
                const T* v = read_values(V_.values, (first + j) * V_.n_columns + i, n, buffer);
                double mass = 0;
                for (int t = 0; t < n; ++t) mass += static_cast<double>(v[t]);
                entropy[j] += relative_entropy<T>(v, z + j * TILE, n) - mass;
            }
        });
    }

private:
    // For each tile of the stretch, call visit(i, n), where i is the first row of the tile and n its number of rows.
    template <class Visit> void for_tiles(int64_t from, Visit visit) const {
        const int64_t end = from + stretch(B_), upto = end < V_.n_columns ? end : V_.n_columns;
        for (int64_t i = from; i < upto; i += TILE) visit(i, static_cast<int>(upto - i < TILE ? upto - i : TILE));
    }
    void tile_quotients(int64_t first, int count, int64_t i, int n, const T* u, T* q) {
        T z[GROUP * TILE], buffer[TILE];
        tile_dot(B_.tiles + i * B_.k, B_.k, u, B_.width, n, z);
        for (int j = 0; j < count; ++j) {
            const T* v = read_values(V_.values, (first + j) * V_.n_columns + i, n, buffer);
            quotients(v, z + j * TILE, n, q + j * TILE);
        }
    }
    void clear(Buffer<T>& part) { std::memset(part.get(), 0, static_cast<size_t>(GROUP * B_.width) * sizeof(T)); }
    void flush(Buffer<T>& part, double* sums) {
        for (int a = 0; a < GROUP * B_.width; ++a) sums[a] += static_cast<double>(part[a]);
    }

    const Dense& V_;
    const Basis<T>& B_;
    Buffer<T> part_, square_part_;
};

}  // namespace
}  // namespace sipower
