// SPDX-License-Identifier: BSD-3-Clause
// The kernels of one pass over dense data: gradient, sums, divergence, MU, SCI-PI, power steps with
// line search, gaps.
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

// Call visit(j, g, u) for every item j of positive mass, where u is h scaled to that mass and g holds the
// ratio sums at u.
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
// Power steps with line search on a few items at a time, so that their quotients stay in cache.
template <class T> class DenseSearch {
public:
    DenseSearch(const Dense& V, const Basis<T>& B, int64_t items)
        : V_(V), B_(B), pass_(V, B), direction_(B.width), stride_(whole_lanes<T>(V.n_columns)), v_(items * stride_), q_(items * stride_),
          e_(items * stride_), points_(items * B.width), best_(items * B.width), lengths_(items), gains_(items) {}

    // Take the same steps as `power_search_csr`: if some step is short, a smaller exponent is tried too.
    void run(const Items<T>& items, int64_t exponent) {
        DenseGroups<T> groups(items.begin, items.end, B_.width);
        Buffer<double> sums(groups.count * GROUP * B_.width);
        for (int64_t j = items.begin; j < items.end; ++j) {
            double* u = point(j - items.begin);
            scale_to_mass(B_, items.h + j * B_.k, items.c[j], u);
            for (int i = 0; i < B_.k; ++i) groups.u[(j - items.begin) * B_.width + i] = static_cast<T>(u[i]);
            lengths_[j - items.begin] = gains_[j - items.begin] = 0;
        }
        for_groups(V_, B_, groups, [&](int64_t a, int64_t first, int count, int64_t from) {
            const int64_t at = a * GROUP * B_.width;
            pass_.ratio_sums(first, count, from, groups.u.get() + at, sums.get() + at, q_.get() + (first - items.begin) * stride_, stride_);
        });
        if (search(items, groups, sums.get(), exponent) && exponent > SHORT_EXPONENT) search(items, groups, sums.get(), SHORT_EXPONENT);
        for (int64_t j = items.begin; j < items.end; ++j) {
            if (!(items.c[j] > 0)) continue;
            double* u = point(j - items.begin);
            for (int i = 0; i < B_.k; ++i) u[i] += lengths_[j - items.begin] * static_cast<double>(best_[(j - items.begin) * B_.width + i]);
            write_factor(B_, u, items.h + j * B_.k, items.c[j], items.out + j * B_.k);
        }
    }

private:
    double* point(int64_t at) { return points_.get() + at * B_.width; }

    // Search along the directions of one exponent, and keep for each item the step with the larger expected
    // gain. Items whose first step was not short are skipped. Returns whether some step is short.
    bool search(const Items<T>& items, DenseGroups<T>& groups, const double* sums, int64_t exponent) {
        const int64_t count = items.end - items.begin;
        Buffer<double> slopes(count), limits(count);
        for (int64_t a = 0; a < count; ++a) {
            direction_(B_, items.c[items.begin + a], sums + a * B_.width, point(a), exponent, groups.u.get() + a * B_.width);
            slopes[a] = direction_.slope;
            limits[a] = direction_.limit;
        }
        for_groups(V_, B_, groups, [&](int64_t a, int64_t first, int members, int64_t from) {
            const int64_t at = (first - items.begin) * stride_;
            pass_.ratios_along(first, members, from, groups.u.get() + a * GROUP * B_.width, q_.get() + at, v_.get() + at, e_.get() + at, stride_);
        });
        bool some_short = false;
        for (int64_t a = 0; a < count; ++a) {
            if (lengths_[a] >= SHORT_STEP || !(items.c[items.begin + a] > 0)) continue;
            const double t = search_length(v_.get() + a * stride_, e_.get() + a * stride_, stride_, slopes[a], 0, limits[a]);
            if (t * slopes[a] >= gains_[a]) {
                lengths_[a] = t;
                gains_[a] = t * slopes[a];
                for (int i = 0; i < B_.k; ++i) best_[a * B_.width + i] = groups.u[a * B_.width + i];
            }
            some_short = some_short || t < SHORT_STEP;
        }
        return some_short;
    }

    const Dense& V_;
    const Basis<T>& B_;
    DensePass<T> pass_;
    SearchDirection direction_;
    int64_t stride_;  // row length of the buffers; elements beyond the last column stay zero
    Buffer<T> v_, q_, e_;
    Buffer<double> points_;
    Buffer<T> best_;
    Buffer<double> lengths_, gains_;
};

template <class T> void power_search_dense(const Dense& V, const Basis<T>& B, const Items<T>& items, int64_t exponent) {
    constexpr int64_t room = 256 * 1024;  // number of elements that a buffer may hold
    const int64_t fitting = room / (V.n_columns > 0 ? V.n_columns : 1) / GROUP * GROUP, step = fitting < GROUP ? GROUP : fitting;
    const int64_t count = items.end - items.begin;
    DenseSearch<T> search(V, B, count < step ? count : step);
    for (int64_t begin = items.begin; begin < items.end; begin += step)
        search.run({items.h, items.c, items.out, begin, begin + step < items.end ? begin + step : items.end}, exponent);
}
template <class T> void gaps_dense(const Dense& V, const Basis<T>& B, const Items<T>& items, double* out) {
    visit_dense(V, B, items, Certify<T>{B, items, out});
}

}  // namespace
}  // namespace sipower
