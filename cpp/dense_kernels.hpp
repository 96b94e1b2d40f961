// SPDX-License-Identifier: BSD-3-Clause
// The kernels of one pass over dense data: gradient, sums, divergence, MU, SCI-PI, gaps.
#pragma once
#include "dense_groups.hpp"
#include "update_rules.hpp"

namespace sipower {
namespace {

template <class T>
void gradient_dense(const Dense& V, const Basis<T>& B, const T* h, int64_t begin, int64_t end, double* g) {
    DensePass<T> pass(V, B);
    DenseGroups<T> groups(begin, end, B.width);
    Buffer<double> sums(groups.count * GROUP * B.width);
    copy_items(groups, B, h);
    for_groups(V, B, groups, [&](int64_t a, int64_t first, int count, int64_t from) {
        const int64_t at = a * GROUP * B.width;
        pass.ratio_sums(first, count, from, groups.u.get() + at, sums.get() + at, nullptr, 0);
    });
    for (int64_t j = begin; j < end; ++j)
        std::memcpy(g + j * B.k, sums.get() + (j - begin) * B.width, static_cast<size_t>(B.k) * sizeof(double));
}

template <class T>
void sums_dense(const Dense& V, const Basis<T>& B, const T* h, int64_t begin, int64_t end, double* g) {
    DensePass<T> pass(V, B);
    DenseGroups<T> groups(begin, end, B.width);
    copy_items(groups, B, h);
    for_groups(V, B, groups, [&](int64_t a, int64_t first, int count, int64_t from) {
        pass.scatter(first, count, from, groups.u.get() + a * GROUP * B.width, h + first * B.k, g);
    });
}

template <class T>
void divergence_dense(const Dense& V, const Basis<T>& B, const T* h, int64_t begin, int64_t end, double* out) {
    DensePass<T> pass(V, B);
    DenseGroups<T> groups(begin, end, B.width);
    copy_items(groups, B, h);
    for (int64_t j = begin; j < end; ++j) {
        const double* d = B.d + j * B.d_stride;
        out[j] = 0;
        for (int i = 0; i < B.k; ++i) out[j] += d[i] * static_cast<double>(h[j * B.k + i]);
    }
    for_groups(V, B, groups, [&](int64_t a, int64_t first, int count, int64_t from) {
        pass.divergence(first, count, from, groups.u.get() + a * GROUP * B.width, out + first);
    });
}

// Call visit(j, own, mass, g, u) for every item j of positive mass, where `own` is the basis with the terms of the
// item, u is h scaled to that mass and g holds the ratio sums at u; call visit.empty(j) for the other items.
template <class T, class Visit>
void visit_dense(const Dense& V, const Basis<T>& B, const Items<T>& items, Visit visit) {
    DensePass<T> pass(V, B);
    DenseGroups<T> groups(items.begin, items.end, B.width);
    Buffer<double> u(B.width), sums(groups.count * GROUP * B.width);
    ItemBasis<T> bases(B);
    for (int64_t j = items.begin; j < items.end; ++j) {
        const Basis<T>& own = bases.at(j);
        scale_to_mass(own, items.h + j * B.k, total_mass(own, items.c[j]), u.get());
        for (int i = 0; i < B.k; ++i) groups.u[(j - items.begin) * B.width + i] = static_cast<T>(u[i]);
    }
    for_groups(V, B, groups, [&](int64_t a, int64_t first, int count, int64_t from) {
        const int64_t at = a * GROUP * B.width;
        pass.ratio_sums(first, count, from, groups.u.get() + at, sums.get() + at, nullptr, 0);
    });
    for (int64_t j = items.begin; j < items.end; ++j) {
        const Basis<T>& own = bases.at(j);
        const double mass = total_mass(own, items.c[j]);
        if (!(mass > 0)) {
            visit.empty(j);
            continue;
        }
        double* const g = sums.get() + (j - items.begin) * B.width;
        scale_to_mass(own, items.h + j * B.k, mass, u.get());
        add_prior(own, u.get(), g);
        visit(j, own, mass, g, u.get());
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
