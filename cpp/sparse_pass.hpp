// SPDX-License-Identifier: BSD-3-Clause
// Passes over CSR data: z is formed at the nonzeros only and never stored for the whole matrix.
#pragma once
#include "buffer.hpp"
#include "gather.hpp"
#include "kernels.hpp"
#include "values.hpp"

namespace sipower {
namespace {

// Sums over the nonzeros of one item; each call handles one item.
template <class T> class SparsePass {
public:
    SparsePass(const Csr& V, const Basis<T>& B)
        : V_(V), B_(B), gather_(choose_gather<T>(B.width)), u_(B.width), part_(B.width) {}

    // Compute g = sum_i v_i b_i / z_i over the nonzeros of the item, where z = b.h. Unless quotients_out is null,
    // q = v / z is written there.
    void ratio_sums(int64_t item, const T* h, double* g, T* quotients_out = nullptr) {
        for (int i = 0; i < B_.k; ++i) u_[i] = h[i];
        for (int i = 0; i < B_.width; ++i) g[i] = 0;
        const int64_t end = V_.start(item + 1);
        for (int64_t from = V_.start(item); from < end; from += LONGEST_SUM) {
            const int64_t upto = from + LONGEST_SUM < end ? from + LONGEST_SUM : end;
            for (int i = 0; i < B_.width; ++i) part_[i] = 0;
            for (int64_t p = from; p < upto; p += CHUNK) {
                const int n = static_cast<int>(upto - p < CHUNK ? upto - p : CHUNK);
                T buffer[CHUNK], z[CHUNK], q[CHUNK];
                const T* v = read_values(V_.values, p, n, buffer);
                prefetch_ahead(p + n);
                gather_.dot(B_.rows, B_.width, V_.columns(p, n), n, u_.get(), z);
                quotients(v, z, n, q);
                gather_.add(B_.rows, B_.width, V_.columns(p, n), n, q, part_.get());
                if (quotients_out)
                    std::memcpy(quotients_out + (p - V_.start(item)), q, static_cast<size_t>(n) * sizeof(T));
            }
            for (int i = 0; i < B_.width; ++i) g[i] += static_cast<double>(part_[i]);
        }
    }

    // Write the values v and e = (b.p)/z at the nonzeros of the item; e is computed from q = v/z.
    void ratios_along(int64_t item, const T* p, const T* q, T* v_out, T* e) {
        const int64_t from = V_.start(item), end = V_.start(item + 1);
        for (int i = 0; i < B_.k; ++i) u_[i] = p[i];
        for (int64_t at = from; at < end; at += CHUNK) {
            const int n = static_cast<int>(end - at < CHUNK ? end - at : CHUNK);
            T buffer[CHUNK], bp[CHUNK];
            const T* v = read_values(V_.values, at, n, buffer);
            gather_.dot(B_.rows, B_.width, V_.columns(at, n), n, u_.get(), bp);
            ratios(v, bp, q + (at - from), n, v_out + (at - from), e + (at - from));
        }
    }

    // Return the divergence of the item, sum_i v_i log(v_i / z_i) - c + d.h.
    double divergence(int64_t item, const T* h) {
        for (int i = 0; i < B_.k; ++i) u_[i] = h[i];
        double sum = 0, mass = 0;
        for (int64_t p = V_.start(item), end = V_.start(item + 1); p < end; p += CHUNK) {
            const int64_t left = end - p;
            const int n = static_cast<int>(left < CHUNK ? left : CHUNK);
            T buffer[CHUNK], z[CHUNK];
            const T* v = read_values(V_.values, p, n, buffer);
            gather_.dot(B_.rows, B_.width, V_.columns(p, n), n, u_.get(), z);
            sum += relative_entropy<T>(v, z, n);
            for (int t = 0; t < n; ++t) mass += static_cast<double>(v[t]);
        }
        const double* d = B_.d + item * B_.d_stride;
        for (int i = 0; i < B_.k; ++i) sum += d[i] * static_cast<double>(h[i]);
        return sum - mass;
    }

    // Add (v_i / z_i) h to g[i] for every nonzero i of the item. The sums are the ratio sums of the other factor.
    void scatter(int64_t item, const T* h, double* g) {
        for (int i = 0; i < B_.k; ++i) u_[i] = h[i];
        for (int64_t p = V_.start(item), end = V_.start(item + 1); p < end; p += CHUNK) {
            const int64_t left = end - p;
            const int n = static_cast<int>(left < CHUNK ? left : CHUNK);
            T buffer[CHUNK], z[CHUNK], q[CHUNK];
            const T* v = read_values(V_.values, p, n, buffer);
            gather_.dot(B_.rows, B_.width, V_.columns(p, n), n, u_.get(), z);
            quotients(v, z, n, q);
            for (int t = 0; t < n; ++t) {
                double* row = g + static_cast<int64_t>(V_.indices[p + t]) * B_.k;
                for (int i = 0; i < B_.k; ++i) row[i] += static_cast<double>(q[t]) * static_cast<double>(h[i]);
            }
        }
    }

private:
    // Prefetch the basis rows of the next nonzeros, which may belong to the next item.
    void prefetch_ahead(int64_t p) const {
        constexpr int line = 64 / sizeof(T);
        const int64_t left = V_.start(V_.last) - p, n = left < CHUNK ? left : CHUNK;
        for (int64_t t = 0; t < n; ++t) {
            const T* row = B_.row(V_.indices[p + t]);
            for (int i = 0; i < B_.width; i += line) __builtin_prefetch(row + i);
        }
    }

    const Csr& V_;
    const Basis<T>& B_;
    Gather<T> gather_;
    Buffer<T> u_, part_;
};

}  // namespace
}  // namespace sipower
