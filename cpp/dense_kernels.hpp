// SPDX-License-Identifier: BSD-3-Clause
// The kernels of one pass over dense data: gradient, sums, divergence, MU, SCI-PI, searched
// power steps, gaps.
#pragma once
#include "dense_groups.hpp"
#include "line_search.hpp"
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
        out[j] = 0;
        for (int i = 0; i < B.k; ++i) out[j] += B.d[i] * static_cast<double>(h[j * B.k + i]);
    }
    for_groups(V, B, groups, [&](int64_t a, int64_t first, int count, int64_t from) {
        pass.divergence(first, count, from, groups.u.get() + a * GROUP * B.width, out + first);
    });
}

// Call visit(j, g, u) for every item j of positive mass: u is h scaled to that mass, g the ratio
// sums at u.
template <class T, class Visit>
void visit_dense(const Dense& V, const Basis<T>& B, const Items<T>& items, Visit visit) {
    DensePass<T> pass(V, B);
    DenseGroups<T> groups(items.begin, items.end, B.width);
    Buffer<double> u(B.width), sums(groups.count * GROUP * B.width);
    for (int64_t j = items.begin; j < items.end; ++j) {
        scale_to_mass(B, items.h + j * B.k, items.c[j], u.get());
        for (int i = 0; i < B.k; ++i) groups.u[(j - items.begin) * B.width + i] = static_cast<T>(u[i]);
    }
    for_groups(V, B, groups, [&](int64_t a, int64_t first, int count, int64_t from) {
        const int64_t at = a * GROUP * B.width;
        pass.ratio_sums(first, count, from, groups.u.get() + at, sums.get() + at, nullptr, 0);
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
// A searched power step on a few items at a time, whose quotients stay in cache.
template <class T> void power_search_dense(const Dense& V, const Basis<T>& B, const Items<T>& items, int64_t exponent) {
    constexpr int64_t room = 256 * 1024;  // entries of the buffers
    const int64_t fitting = room / (V.n_columns > 0 ? V.n_columns : 1) / GROUP * GROUP, step = fitting < GROUP ? GROUP : fitting;
    DensePass<T> pass(V, B);
    SearchDirection direction(exponent, B.width);
    const int64_t most = items.end - items.begin < step ? items.end - items.begin : step;
    const int64_t stride = whole_lanes<T>(V.n_columns);  // the rest of each row stays zero
    Buffer<T> v(most * stride), e(most * stride);
    Buffer<double> points(most * B.width), slopes(most), limits(most);
    for (int64_t begin = items.begin; begin < items.end; begin += step) {
        const int64_t end = begin + step < items.end ? begin + step : items.end;
        DenseGroups<T> groups(begin, end, B.width);
        Buffer<double> sums(groups.count * GROUP * B.width);
        for (int64_t j = begin; j < end; ++j) {
            double* u = points.get() + (j - begin) * B.width;
            scale_to_mass(B, items.h + j * B.k, items.c[j], u);
            for (int i = 0; i < B.k; ++i) groups.u[(j - begin) * B.width + i] = static_cast<T>(u[i]);
        }
        for_groups(V, B, groups, [&](int64_t a, int64_t first, int count, int64_t from) {
            const int64_t at = a * GROUP * B.width;
            pass.ratio_sums(first, count, from, groups.u.get() + at, sums.get() + at, e.get() + (first - begin) * stride, stride);
        });
        for (int64_t j = begin; j < end; ++j) {
            const int64_t at = (j - begin) * B.width;
            direction(B, items.c[j], sums.get() + at, points.get() + at, groups.u.get() + at);
            slopes[j - begin] = direction.slope;
            limits[j - begin] = direction.limit;
        }
        for_groups(V, B, groups, [&](int64_t a, int64_t first, int count, int64_t from) {
            const int64_t at = (first - begin) * stride;
            pass.ratios_along(first, count, from, groups.u.get() + a * GROUP * B.width, v.get() + at, e.get() + at, stride);
        });
        for (int64_t j = begin; j < end; ++j) {
            if (!(items.c[j] > 0)) continue;
            const int64_t at = (j - begin) * stride;
            double* u = points.get() + (j - begin) * B.width;
            const double t = search_length(v.get() + at, e.get() + at, stride, slopes[j - begin], 0, limits[j - begin]);
            for (int i = 0; i < B.k; ++i) u[i] += t * static_cast<double>(groups.u[(j - begin) * B.width + i]);
            write_factor(B, u, items.h + j * B.k, items.c[j], items.out + j * B.k);
        }
    }
}
template <class T> void gaps_dense(const Dense& V, const Basis<T>& B, const Items<T>& items, double* out) {
    visit_dense(V, B, items, Certify<T>{B, items, out});
}

}  // namespace
}  // namespace sipower
