// SPDX-License-Identifier: BSD-3-Clause
// The kernels of one pass over CSR data: gradient, sums, divergence, MU, SCI-PI, power steps with
// line search, gaps.
#pragma once
#include "line_search.hpp"
#include "sparse_pass.hpp"
#include "update_rules.hpp"

namespace sipower {
namespace {

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

// Call visit(j, own, mass, g, u) for every item j of positive mass, where `own` is the basis with the terms of the
// item, u is h scaled to that mass and g holds the ratio sums at u; call visit.empty(j) for the other items.
template <class T, class Visit>
void visit_csr(const Csr& V, const Basis<T>& B, const Items<T>& items, Visit visit) {
    SparsePass<T> pass(V, B);
    Buffer<double> u(B.width), g(B.width);
    Buffer<T> h(B.width);
    ItemBasis<T> bases(B);
    for (int64_t j = items.begin; j < items.end; ++j) {
        const Basis<T>& own = bases.at(j);
        const double mass = total_mass(own, items.c[j]);
        if (!(mass > 0)) {
            visit.empty(j);
            continue;
        }
        scale_to_mass(own, items.h + j * B.k, mass, u.get());
        for (int i = 0; i < B.k; ++i) h[i] = static_cast<T>(u[i]);
        pass.ratio_sums(j, h.get(), g.get());
        add_prior(own, u.get(), g.get());
        visit(j, own, mass, g.get(), u.get());
    }
}

template <class T> void mu_csr(const Csr& V, const Basis<T>& B, const Items<T>& items) {
    visit_csr(V, B, items, Update<T, MuRule>{B, items, {}});
}
template <class T> void power_csr(const Csr& V, const Basis<T>& B, const Items<T>& items, double step) {
    visit_csr(V, B, items, Update<T, PowerRule>{B, items, {step}});
}
// Take a power step with line search on every item. If the step is short, a smaller exponent is tried too,
// and the step with the larger expected gain (slope times length) is taken.
template <class T> void power_search_csr(const Csr& V, const Basis<T>& B, const Items<T>& items, int64_t exponent) {
    SparsePass<T> pass(V, B);
    const int64_t longest = whole_lanes<T>(longest_item(V, items.begin, items.end));
    Buffer<double> u(B.width), g(B.width);
    Buffer<T> h(B.width), p(B.width), v(longest), q(longest), e(longest);
    SearchDirection direction(B.width);
    ItemBasis<T> bases(B);
    for (int64_t j = items.begin; j < items.end; ++j) {
        const Basis<T>& own = bases.at(j);
        const double c = items.c[j];
        if (!(c > 0)) continue;
        scale_to_mass(own, items.h + j * B.k, c, u.get());
        for (int i = 0; i < B.k; ++i) h[i] = static_cast<T>(u[i]);
        pass.ratio_sums(j, h.get(), g.get(), q.get());
        const int64_t n = whole_lanes<T>(V.nonzeros(j));
        const auto search = [&](int64_t power) {
            direction(own, c, g.get(), u.get(), power, p.get());
            pass.ratios_along(j, p.get(), q.get(), v.get(), e.get());
            for (int64_t i = V.nonzeros(j); i < n; ++i) v[i] = e[i] = 0;
            return search_length(v.get(), e.get(), n, direction.slope, 0, direction.limit);
        };
        double t = search(exponent), gain = t * direction.slope;
        if (t < SHORT_STEP && exponent > SHORT_EXPONENT) {
            const double second = search(SHORT_EXPONENT);
            if (second * direction.slope >= gain) t = second;
            else direction(own, c, g.get(), u.get(), exponent, p.get());
        }
        for (int i = 0; i < B.k; ++i) u[i] += t * static_cast<double>(p[i]);
        write_factor(own, u.get(), items.h + j * B.k, c, items.out + j * B.k);
    }
}
template <class T> void gaps_csr(const Csr& V, const Basis<T>& B, const Items<T>& items, double* out) {
    visit_csr(V, B, items, Certify<T>{B, items, out});
}

}  // namespace
}  // namespace sipower
