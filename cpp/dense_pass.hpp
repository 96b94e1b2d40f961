// SPDX-License-Identifier: BSD-3-Clause
// Passes over dense data: four items and a tile of the basis give two small matrix products; Z is formed
// one tile at a time.
#pragma once
#include <cstring>

#include "buffer.hpp"
#include "kernels.hpp"
#include "values.hpp"
#include "tile_products.hpp"

namespace sipower {
namespace {

constexpr int64_t PANEL = 256 * 1024;  // bytes of the basis that stay in cache

// Rows of the basis that are handled before the sums are added to float64 ones and the next items follow.
template <class T> int64_t stretch(const Basis<T>& B) {
    const int64_t max_tiles = LONGEST_SUM / TILE, tile = TILE * static_cast<int64_t>((B.k + B.width) * sizeof(T));
    const int64_t tiles = PANEL / tile;
    return TILE * (tiles < 1 ? 1 : tiles < max_tiles ? tiles : max_tiles);
}

// The sums of a group of items over a stretch of the basis (or of a sample of its rows).
template <class T> class DensePass {
public:
    DensePass(const Dense& V, const Basis<T>& B) : V_(V), B_(B), part_(GROUP * B.width), square_part_(GROUP * B.width) {}

    // u: (GROUP, width), rows beyond the members zero. g: (GROUP, width) in float64, added to.
    // quotients_out, unless null: q = v / z of each member over all columns, (GROUP, stride).
    // squares, unless null: sum_i v_i b_ik^2 / z_i^2, shaped like g and added to.
    void ratio_sums(int64_t first, int count, int64_t from, const T* u, double* g, T* quotients_out, int64_t stride, double* squares = nullptr) {
        const int64_t upto = end_of_stretch(from);
        clear(part_);
        clear(square_part_);
        for (int64_t i = from; i < upto; i += TILE) {
            const int n = static_cast<int>(upto - i < TILE ? upto - i : TILE);
            T q[GROUP * TILE] = {}, z[GROUP * TILE];
            tile_quotients(first, count, i, n, u, z, q);
            rows_add(B_.rows + i * B_.width, B_.width, n, q, part_.get());
            if (quotients_out)
                for (int j = 0; j < count; ++j)
                    std::memcpy(quotients_out + j * stride + i, q + j * TILE, static_cast<size_t>(n) * sizeof(T));
            if (!squares) continue;
            for (int j = 0; j < count; ++j) quotients(q + j * TILE, z + j * TILE, n, q + j * TILE);
            rows_add<T, 2>(B_.rows + i * B_.width, B_.width, n, q, square_part_.get());
        }
        flush(part_, g);
        if (squares) flush(square_part_, squares);
    }

    // g[i][:] += sum over members (v / z) h: the same quotients, summed for the other side.
    void scatter(int64_t first, int count, int64_t from, const T* u, const T* h, double* g) {
        const int64_t upto = end_of_stretch(from);
        for (int64_t i = from; i < upto; i += TILE) {
            const int n = static_cast<int>(upto - i < TILE ? upto - i : TILE);
            T q[GROUP * TILE] = {}, z[GROUP * TILE];
            tile_quotients(first, count, i, n, u, z, q);
            for (int t = 0; t < n; ++t)
                for (int j = 0; j < count; ++j) {
                    const double weight = static_cast<double>(q[j * TILE + t]);
                    for (int a = 0; a < B_.k; ++a)
                        g[(i + t) * B_.k + a] += weight * static_cast<double>(h[j * B_.k + a]);
                }
        }
    }

    // e = (b.p)/z of each member over a stretch, from q = v/z there; v is written too. p: (GROUP, width), the
    // others: (GROUP, stride).
    void ratios_along(int64_t first, int count, int64_t from, const T* p, const T* q, T* v_out, T* e, int64_t stride) {
        const int64_t upto = end_of_stretch(from);
        for (int64_t i = from; i < upto; i += TILE) {
            const int n = static_cast<int>(upto - i < TILE ? upto - i : TILE);
            T bp[GROUP * TILE], buffer[TILE];
            tile_dot(B_.tiles + i * B_.k, B_.k, p, B_.width, bp);
            for (int j = 0; j < count; ++j) {
                const T* v = read_values(V_.values, (first + j) * V_.n_columns + i, n, buffer);
                const int64_t at = j * stride + i;
                ratios(v, bp + j * TILE, q + at, n, v_out + at, e + at);
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
                const T* v = read_values(V_.values, (first + j) * V_.n_columns + i, n, buffer);
                double mass = 0;
                for (int t = 0; t < n; ++t) mass += static_cast<double>(v[t]);
                entropy[j] += relative_entropy<T>(v, z + j * TILE, n) - mass;
            }
        }
    }

private:
    int64_t end_of_stretch(int64_t from) const {
        const int64_t end = from + stretch(B_);
        return end < V_.n_columns ? end : V_.n_columns;
    }
    void tile_quotients(int64_t first, int count, int64_t i, int n, const T* u, T* z, T* q) {
        T buffer[TILE];
        tile_dot(B_.tiles + i * B_.k, B_.k, u, B_.width, z);
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
