// SPDX-License-Identifier: BSD-3-Clause
// `BatchSums`: the gradient of a batch of one item's nonzeros, at the point of the item and at its anchor.
#pragma once
#include "buffer.hpp"
#include "gather.hpp"
#include "values.hpp"
#include "update_rules.hpp"

namespace sipower {
namespace {

constexpr int SMALL_BATCH = 4;  // a smaller batch is added up nonzero by nonzero

// Computes sums over a batch of an item's nonzeros at a point u, which the caller writes to the memory at `point()`.
template <class T> class BatchSums {
public:
    explicit BatchSums(const Basis<T>& B) : B_(B), gather_(choose_gather<T>(B.width)), u_(B.width), part_(B.width) {}

    T* point() { return u_.get(); }

    // Compute GS = sum v b / z / d and GS0 = sum q0 b / d, given 1 / d of the item. `rows` are the basis rows of the
    // nonzeros. The values v
    // and the quotients q0 = v / z0 at the anchor are multiplied by the factors that make the batch unbiased.
    void operator()(const double* inverse, const int32_t* rows, const T* v, const T* q0, int64_t s, double* GS, double* GS0) {
        for (int i = 0; i < whole_vectors(B_.width); ++i) GS[i] = GS0[i] = 0;
        if (s < SMALL_BATCH) {
            for (int64_t t = 0; t < s; ++t) add_one(B_.row(rows[t]), v[t], static_cast<double>(q0[t]), GS, GS0);
        } else {
            for (int64_t from = 0; from < s; from += CHUNK) {
                const int n = static_cast<int>(s - from < CHUNK ? s - from : CHUNK);
                T z[CHUNK], q[CHUNK];
                gather_.dot(B_.rows, B_.width, rows + from, n, u_.get(), z);
                quotients(v + from, z, n, q);
                add_to(rows + from, n, q, GS);
                add_to(rows + from, n, q0 + from, GS0);
            }
        }
        for (int i = 0; i < whole_vectors(B_.width); ++i) {
            GS[i] *= inverse[i];
            GS0[i] *= inverse[i];
        }
    }

private:
    // Add one nonzero. Batches so small that gathering would take longer than the sums are added in this way.
    void add_one(const T* row, T v, double q0, double* GS, double* GS0) {
        constexpr int L = Simd<T>::lanes;
        Vec<T> dot = load(row) * load(u_.get());
        for (int i = L; i < B_.width; i += L) dot += load(row + i) * load(u_.get() + i);
        T z = sum(dot), ratio;
        quotients(&v, &z, 1, &ratio);
        const double q = static_cast<double>(ratio);
        for (int i = 0; i < whole_vectors(B_.width); ++i) {
            const double b = static_cast<double>(row[i]);
            GS[i] += q * b;
            GS0[i] += q0 * b;
        }
    }
    void add_to(const int32_t* rows, int n, const T* q, double* g) {
        for (int i = 0; i < B_.width; ++i) part_[i] = 0;
        gather_.add(B_.rows, B_.width, rows, n, q, part_.get());
        for (int i = 0; i < B_.width; ++i) g[i] += static_cast<double>(part_[i]);
    }

    const Basis<T>& B_;
    Gather<T> gather_;
    Buffer<T> u_, part_;
};

}  // namespace
}  // namespace sipower
