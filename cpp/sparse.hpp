// SPDX-License-Identifier: BSD-3-Clause
// Passes over CSR data: z is formed at the nonzeros only and never stored for the whole matrix.
#pragma once
#include "item.hpp"

namespace sipower {
namespace {

constexpr int CHUNK = 64;  // nonzeros handled together: their basis rows stay in the first cache
constexpr int FEW = 4;     // a smaller batch is added up nonzero by nonzero

// z_t = b_{index[t]} . u  and  g += sum_t q_t b_{index[t]}, with NV vectors a block known to the
// compiler; a width above 64 is several blocks.
template <class T> struct Gather {
    void (*dot)(const T* rows, int width, const int32_t* index, int n, const T* u, T* z);
    void (*add)(const T* rows, int width, const int32_t* index, int n, const T* q, T* g);
};

template <class T, int NV> SIPOWER_INLINE Vec<T> lanes_dot(const T* row, const Vec<T>* h) {
    Vec<T> even = load(row) * h[0];
    if constexpr (NV == 1) return even;
    Vec<T> odd = load(row + Simd<T>::lanes) * h[1];
    for (int v = 2; v < NV; ++v) (v % 2 ? odd : even) += load(row + v * Simd<T>::lanes) * h[v];
    return even + odd;
}

template <class T, int NV>
void gather_dot(const T* rows, int width, const int32_t* index, int n, const T* u, T* z) {
    constexpr int L = Simd<T>::lanes;
    for (int block = 0; block < width; block += NV * L) {
        Vec<T> h[NV];
        for (int v = 0; v < NV; ++v) h[v] = load(u + block + v * L);
        const T* base = rows + block;
        const auto dots = [&](int t, const int32_t* at) {
            Vec<T> part[L];
            for (int l = 0; l < L; ++l)
                part[l] = lanes_dot<T, NV>(base + static_cast<int64_t>(at[l]) * width, h);
            const Vec<T> found = sums(part);
            store(z + t, block ? load(z + t) + found : found);
        };
        int t = 0;
        for (; t + L <= n; t += L) dots(t, index + t);
        if (t < n) {
            int32_t last[L];
            for (int l = 0; l < L; ++l) last[l] = index[t + l < n ? t + l : n - 1];
            dots(t, last);
        }
    }
}

// Two sets of partial sums, so that one nonzero need not wait for the one before it.
template <class T, int NV>
void gather_add(const T* rows, int width, const int32_t* index, int n, const T* q, T* g) {
    constexpr int L = Simd<T>::lanes;
    for (int block = 0; block < width; block += NV * L) {
        Vec<T> even[NV], odd[NV] = {};
        for (int v = 0; v < NV; ++v) even[v] = load(g + block + v * L);
        const T* base = rows + block;
        int t = 0;
        for (; t + 2 <= n; t += 2) {
            const T* row0 = base + static_cast<int64_t>(index[t]) * width;
            const T* row1 = base + static_cast<int64_t>(index[t + 1]) * width;
            const Vec<T> q0 = spread(q[t]), q1 = spread(q[t + 1]);
            for (int v = 0; v < NV; ++v) {
                even[v] += q0 * load(row0 + v * L);
                odd[v] += q1 * load(row1 + v * L);
            }
        }
        if (t < n) {
            const T* row = base + static_cast<int64_t>(index[t]) * width;
            for (int v = 0; v < NV; ++v) even[v] += spread(q[t]) * load(row + v * L);
        }
        for (int v = 0; v < NV; ++v) store(g + block + v * L, even[v] + odd[v]);
    }
}

template <class T, int NV> Gather<T> gather_of() { return {gather_dot<T, NV>, gather_add<T, NV>}; }

template <class T> Gather<T> gather_for(int width) {
    switch (width / Simd<T>::lanes) {
        case 1: return gather_of<T, 1>();
        case 2: return gather_of<T, 2>();
        case 3: return gather_of<T, 3>();
        case 4: return gather_of<T, 4>();
        case 5: return gather_of<T, 5>();
        case 6: return gather_of<T, 6>();
        case 8: return gather_of<T, 8>();
        case 12: return gather_of<T, 12>();
        case 16: return gather_of<T, 16>();
        default: return gather_of<T, 32 / Simd<T>::lanes>();
    }
}

// The values [at, at + n) in the working type: read in place where they are of it already.
template <class T, class From> const T* converted(const From* from, int n, T* buffer) {
    for (int t = 0; t < n; ++t) buffer[t] = static_cast<T>(from[t]);
    return buffer;
}
template <class T> const T* read_values(const Values& v, int64_t at, int n, T* buffer) {
    switch (v.type) {
        case Type::uint8: return converted(static_cast<const uint8_t*>(v.data) + at, n, buffer);
        case Type::uint16: return converted(static_cast<const uint16_t*>(v.data) + at, n, buffer);
        case Type::float32:
            if constexpr (sizeof(T) == 4) return static_cast<const float*>(v.data) + at;
            else return converted(static_cast<const float*>(v.data) + at, n, buffer);
        default:
            if constexpr (sizeof(T) == 8) return static_cast<const double*>(v.data) + at;
            else return converted(static_cast<const double*>(v.data) + at, n, buffer);
    }
}

// q = v / z; a zero over a zero is zero, and no quotient overflows.
template <class T> SIPOWER_INLINE void quotients(const T* v, const T* z, int n, T* q) {
    const T tiny = sizeof(T) == 4 ? T(1e-30) : T(1e-290);
    for (int t = 0; t < n; ++t) q[t] = v[t] / (z[t] > tiny ? z[t] : tiny);
}

// sum_t v_t log(v_t / z_t), in the arithmetic of A
template <class A, class T> double relative_entropy(const T* v, const T* z, int n) {
    const A least = sizeof(A) == 4 ? A(1.2e-38) : A(2.3e-308);
    A sum = 0;
    for (int t = 0; t < n; ++t) {
        const A a = static_cast<A>(v[t]), b = static_cast<A>(z[t]);
        const A ratio = a > 0 ? a / (b > least ? b : least) : A(1);
        sum += a * log_positive(ratio);
    }
    return static_cast<double>(sum);
}

// Sums over a batch of an item's terms, at the point u that its caller has written.
template <class T> class BatchSums {
public:
    explicit BatchSums(const Basis<T>& B) : B_(B), gather_(gather_for<T>(B.width)), u_(B.width), part_(B.width) {}

    T* point() { return u_.get(); }

    // The terms' rows of the basis, values v and, at the anchor, quotients q0 = v / z0, both times their
    // factor.  GS = sum v b / z / d,  GS0 = sum q0 b / d.
    void operator()(const int32_t* rows, const T* v, const T* q0, int64_t s, double* GS, double* GS0) {
        for (int i = 0; i < whole_vectors(B_.width); ++i) GS[i] = GS0[i] = 0;
        if (s < FEW) {
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
            GS[i] *= B_.inverse[i];
            GS0[i] *= B_.inverse[i];
        }
    }

private:
    // One term of a batch so small that gathering would take longer than the sums.
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

template <class T> class SparsePass {
public:
    SparsePass(const Csr& V, const Basis<T>& B)
        : V_(V), B_(B), gather_(gather_for<T>(B.width)), u_(B.width), part_(B.width) {}

    // g = sum_i v_i b_i / z_i over the item's nonzeros, z = b.h; keeps q = v / z where asked to.
    void ratio_sums(int64_t item, const T* h, double* g, T* kept = nullptr) {
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
                fetch_ahead(p + n);
                gather_.dot(B_.rows, B_.width, V_.columns(p, n), n, u_.get(), z);
                quotients(v, z, n, q);
                gather_.add(B_.rows, B_.width, V_.columns(p, n), n, q, part_.get());
                if (kept) std::memcpy(kept + (p - V_.start(item)), q, static_cast<size_t>(n) * sizeof(T));
            }
            for (int i = 0; i < B_.width; ++i) g[i] += static_cast<double>(part_[i]);
        }
    }

    // sum_i v_i log(v_i / z_i) - c + d.h
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
        for (int i = 0; i < B_.k; ++i) sum += B_.d[i] * static_cast<double>(h[i]);
        return sum - mass;
    }

    // For the other side: g[i] += (v_i / z_i) h for every nonzero i of the item.
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
    // Ask for the basis rows of the next nonzeros, also those of the next item, line by line.
    void fetch_ahead(int64_t p) const {
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

template <class T>
void gradient_csr(const Csr& V, const Basis<T>& B, const T* h, int64_t begin, int64_t end, double* g) {
    SparsePass<T> pass(V, B);
    Buffer<double> sums(B.width);
    for (int64_t j = begin; j < end; ++j) {
        pass.ratio_sums(j, h + j * B.k, sums.get());
        std::memcpy(g + j * B.k, sums.get(), static_cast<size_t>(B.k) * sizeof(double));
    }
}

template <class T>
void sums_csr(const Csr& V, const Basis<T>& B, const T* h, int64_t begin, int64_t end, double* g) {
    SparsePass<T> pass(V, B);
    for (int64_t j = begin; j < end; ++j) pass.scatter(j, h + j * B.k, g);
}

template <class T>
void divergence_csr(const Csr& V, const Basis<T>& B, const T* h, int64_t begin, int64_t end, double* out) {
    SparsePass<T> pass(V, B);
    for (int64_t j = begin; j < end; ++j) out[j] = pass.divergence(j, h + j * B.k);
}

// Visit every item that has mass: u is h at that mass, g the ratio sums there.
template <class T, class Visit>
void visit_csr(const Csr& V, const Basis<T>& B, const Items<T>& items, Visit visit) {
    SparsePass<T> pass(V, B);
    Buffer<double> u(B.width), g(B.width);
    Buffer<T> h(B.width);
    for (int64_t j = items.begin; j < items.end; ++j) {
        if (!(items.c[j] > 0)) continue;
        scale_to_mass(B, items.h + j * B.k, items.c[j], u.get());
        for (int i = 0; i < B.k; ++i) h[i] = static_cast<T>(u[i]);
        pass.ratio_sums(j, h.get(), g.get());
        visit(j, g.get(), u.get());
    }
}

template <class T> void mu_csr(const Csr& V, const Basis<T>& B, const Items<T>& items) {
    visit_csr(V, B, items, Update<T, MuRule>{B, items, {}});
}
template <class T> void power_csr(const Csr& V, const Basis<T>& B, const Items<T>& items, double step) {
    visit_csr(V, B, items, Update<T, PowerRule>{B, items, {step}});
}
template <class T> void gaps_csr(const Csr& V, const Basis<T>& B, const Items<T>& items, double* out) {
    visit_csr(V, B, items, Certify<T>{B, items, out});
}

}  // namespace
}  // namespace sipower
