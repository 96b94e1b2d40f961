// SPDX-License-Identifier: BSD-3-Clause
// Second derivatives of every item, and the steps of the quadratic models that they give.
#pragma once
#include "buffer.hpp"
#include "gather.hpp"
#include "kernels.hpp"
#include "simd.hpp"
#include "values.hpp"

namespace sipower {
namespace {

// Q = sum_i v_i (b_i / z_i) (b_i / z_i)^T over the nonzeros of one item, z_i = b_i.h. At most LONGEST_SUM nonzeros are
// added in the working type before they are added to the result in float64. Zeros of b_i are skipped, because the rows
// of a factor of sparse data have few components.
template <class T> class Curvature {
public:
    explicit Curvature(const Basis<T>& B)
        : B_(B), u_(B.width), ratio_(B.width), part_(static_cast<int64_t>(B.k) * B.width), active_(B.k + 1) {}

    void enter(const T* h) {
        for (int k = 0; k < B_.k; ++k) u_[k] = h[k];
    }

    // Add one nonzero v with the basis row b; the result is the upper triangle, row by row.
    void add(T v, const T* b, double* triangle) {
        const int width = B_.width;
        const T* const u = u_.get();
        Vec<T> products{};
        for (int l = 0; l < width; l += L) products += load(b + l) * load(u + l);
        const T z = sum(products);
        if (!(v > 0 && z > 0)) return;
        T* const ratio = ratio_.get();
        const Vec<T> inverse = broadcast<T>(1 / z);
        for (int l = 0; l < width; l += L) store(ratio + l, load(b + l) * inverse);
        int* const active = active_.get();
        int count = 0;
        for (int k = 0; k < B_.k; ++k) {  // without branches, which could not be predicted
            active[count] = k;
            count += b[k] != 0;
        }
        for (int a = 0; a < count; ++a) {
            const Vec<T> weight = broadcast<T>(v * ratio[active[a]]);
            T* const row = part_.get() + static_cast<int64_t>(active[a]) * width;
            for (int l = 0; l < width; l += L) store(row + l, load(row + l) + weight * load(ratio + l));
        }
        if (++count_ == LONGEST_SUM) flush(triangle);
    }

    void flush(double* triangle) {
        for (int k = 0; k < B_.k; ++k) {
            T* const row = part_.get() + static_cast<int64_t>(k) * B_.width;
            for (int l = k; l < B_.k; ++l) *triangle++ += static_cast<double>(row[l]);
            for (int l = 0; l < B_.width; ++l) row[l] = 0;
        }
        count_ = 0;
    }

private:
    static constexpr int L = Simd<T>::lanes;
    const Basis<T>& B_;
    Buffer<T> u_, ratio_, part_;
    Buffer<int> active_;
    int count_ = 0;
};

// Add the curvatures of the items [begin, end) to Q, (items, K (K + 1) / 2).
template <class T>
void curvatures_csr(const Csr& V, const Basis<T>& B, const T* h, int64_t begin, int64_t end, double* Q) {
    Curvature<T> curvature(B);
    const int64_t size = static_cast<int64_t>(B.k) * (B.k + 1) / 2;
    for (int64_t j = begin; j < end; ++j) {
        const int64_t from = V.start(j), n_all = V.nonzeros(j);
        if (n_all == 0) continue;
        const int32_t* const columns = V.columns(from, n_all);
        curvature.enter(h + j * B.k);
        for (int64_t p = 0; p < n_all; p += CHUNK) {
            const int n = static_cast<int>(n_all - p < CHUNK ? n_all - p : CHUNK);
            T buffer[CHUNK];
            const T* v = read_values(V.values, from + p, n, buffer);
            for (int t = 0; t < n; ++t) curvature.add(v[t], B.row(columns[p + t]), Q + j * size);
        }
        curvature.flush(Q + j * size);
    }
}

template <class T>
void curvatures_dense(const Dense& V, const Basis<T>& B, const T* h, int64_t begin, int64_t end, double* Q) {
    Curvature<T> curvature(B);
    const int64_t size = static_cast<int64_t>(B.k) * (B.k + 1) / 2;
    for (int64_t j = begin; j < end; ++j) {
        curvature.enter(h + j * B.k);
        for (int64_t i = 0; i < V.n_columns; i += TILE) {
            const int n = static_cast<int>(V.n_columns - i < TILE ? V.n_columns - i : TILE);
            T buffer[TILE];
            const T* v = read_values(V.values, j * V.n_columns + i, n, buffer);
            for (int t = 0; t < n; ++t) curvature.add(v[t], B.row(i + t), Q + j * size);
        }
        curvature.flush(Q + j * size);
    }
}

}  // namespace
}  // namespace sipower
