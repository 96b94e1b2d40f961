// SPDX-License-Identifier: BSD-3-Clause
// Steps on dense data whose length every item searches exactly: power steps, and Newton steps with a
// shared Hessian.
#pragma once
#include <vector>

#include "dense_groups.hpp"
#include "line_search.hpp"
#include "shared_model.hpp"
#include "update_rules.hpp"

namespace sipower {
namespace {

// A few items at a time, whose quotients stay in cache: their points, ratio sums and line searches.
template <class T> class DenseSearch {
public:
    // `items` is the largest number of items at a time.
    DenseSearch(const Dense& V, const Basis<T>& B, int64_t items)
        : V_(V), B_(B), pass_(V, B), stride_(whole_lanes<T>(V.n_columns)), room_((items + MARGIN) * B.width), v_(items * stride_),
          q_(items * stride_), e_(items * stride_), points_(room_), sums_(room_), squares_(room_) {}

    // The points scaled to their masses, their ratio sums and, if asked for, the diagonals of their Hessians.
    void enter(const Items<T>& items, bool with_squares) {
        begin_ = items.begin;
        std::memset(sums_.get(), 0, static_cast<size_t>(room_) * sizeof(double));
        std::memset(squares_.get(), 0, static_cast<size_t>(room_) * sizeof(double));
        DenseGroups<T> groups(items.begin, items.end, B_.width);
        for (int64_t j = items.begin; j < items.end; ++j) {
            double* u = point(j - begin_);
            scale_to_mass(B_, items.h + j * B_.k, items.c[j], u);
            for (int i = 0; i < B_.k; ++i) groups.u[(j - begin_) * B_.width + i] = static_cast<T>(u[i]);
        }
        for_groups(V_, B_, groups, [&](int64_t a, int64_t first, int count, int64_t from) {
            const int64_t at = a * GROUP * B_.width;
            pass_.ratio_sums(first, count, from, groups.u.get() + at, sums_.get() + at, q_.get() + (first - begin_) * stride_, stride_,
                             with_squares ? squares_.get() + at : nullptr);
        });
    }
    double* point(int64_t a) { return points_.get() + a * B_.width; }
    const double* sums(int64_t a) const { return sums_.get() + a * B_.width; }
    const double* squares(int64_t a) const { return squares_.get() + a * B_.width; }

    // Prepare the searches along the directions in `groups.u`.
    void set_directions(const DenseGroups<T>& groups) {
        for_groups(V_, B_, groups, [&](int64_t a, int64_t first, int count, int64_t from) {
            const int64_t at = (first - begin_) * stride_;
            pass_.ratios_along(first, count, from, groups.u.get() + a * GROUP * B_.width, q_.get() + at, v_.get() + at, e_.get() + at, stride_);
        });
    }
    // Return the length of the step of an item along its direction; see `search_length`.
    double length(int64_t a, const Direction& direction, double limit) const {
        return search_length(v_.get() + a * stride_, e_.get() + a * stride_, stride_, direction.slope, direction.d_p, limit);
    }

private:
    static constexpr int64_t MARGIN = GROUP + Simd<T>::lanes;  // groups and vectors may reach beyond the last item

    const Dense& V_;
    const Basis<T>& B_;
    DensePass<T> pass_;
    int64_t stride_;  // of the buffers; the rest of each row stays zero
    int64_t room_, begin_ = 0;
    Buffer<T> v_, q_, e_;
    Buffer<double> points_, sums_, squares_;
};

// Searched power steps; as in `power_search_csr`, where a step is short, the smaller exponent is tried too.
template <class T> class PowerSteps {
public:
    PowerSteps(const Basis<T>& B, int64_t items, int64_t exponent)
        : B_(B), exponent_(exponent), direction_(B.width), best_(items * B.width), lengths_(items), gains_(items) {}

    void operator()(DenseSearch<T>& search, const Items<T>& items) {
        const int64_t count = items.end - items.begin;
        search.enter(items, false);
        for (int64_t a = 0; a < count; ++a) lengths_[a] = gains_[a] = 0;
        if (take_longer(search, items, exponent_) && exponent_ > SHORT_EXPONENT) take_longer(search, items, SHORT_EXPONENT);
        for (int64_t a = 0; a < count; ++a) {
            const int64_t j = items.begin + a;
            if (!(items.c[j] > 0)) continue;
            double* u = search.point(a);
            for (int i = 0; i < B_.k; ++i) u[i] += lengths_[a] * static_cast<double>(best_[a * B_.width + i]);
            write_factor(B_, u, items.h + j * B_.k, items.c[j], items.out + j * B_.k);
        }
    }

private:
    // Search along the directions of one exponent and keep the step of each item that promises the larger
    // gain; returns whether some step is short. An item whose first step was long is left as it is.
    bool take_longer(DenseSearch<T>& search, const Items<T>& items, int64_t exponent) {
        const int64_t count = items.end - items.begin;
        DenseGroups<T> groups(items.begin, items.end, B_.width);
        Buffer<double> slopes(count), limits(count);
        for (int64_t a = 0; a < count; ++a) {
            direction_(B_, items.c[items.begin + a], search.sums(a), search.point(a), exponent, groups.u.get() + a * B_.width);
            slopes[a] = direction_.slope;
            limits[a] = direction_.limit;
        }
        search.set_directions(groups);
        bool some_short = false;
        for (int64_t a = 0; a < count; ++a) {
            if (lengths_[a] >= SHORT_STEP || !(items.c[items.begin + a] > 0)) continue;
            const double t = search.length(a, {slopes[a], 0}, limits[a]);
            if (t * slopes[a] >= gains_[a]) {
                lengths_[a] = t;
                gains_[a] = t * slopes[a];
                for (int i = 0; i < B_.k; ++i) best_[a * B_.width + i] = groups.u[a * B_.width + i];
            }
            some_short = some_short || t < SHORT_STEP;
        }
        return some_short;
    }

    const Basis<T>& B_;
    int64_t exponent_;
    SearchDirection direction_;
    Buffer<T> best_;
    Buffer<double> lengths_, gains_;
};

// Newton steps with a shared Hessian, at most a full step long.
template <class T> class SharedNewtonSteps {
public:
    SharedNewtonSteps(const Basis<T>& B, const double* correlations) : B_(B), model_(B, correlations) {}

    void operator()(DenseSearch<T>& search, const Items<T>& items) {
        const int64_t count = items.end - items.begin;
        search.enter(items, true);
        DenseGroups<T> groups(items.begin, items.end, B_.width);
        std::vector<Direction> directions(static_cast<size_t>(count));
        for (int64_t a = 0; a < count; a += model_.capacity()) {
            const int64_t left = count - a;
            model_.solve(static_cast<int>(left < model_.capacity() ? left : model_.capacity()), search.sums(a), search.squares(a), search.point(a),
                         items.c + items.begin + a, groups.u.get() + a * B_.width, directions.data() + a);
        }
        search.set_directions(groups);
        for (int64_t a = 0; a < count; ++a) {
            const int64_t j = items.begin + a;
            if (!(items.c[j] > 0)) continue;
            const double t = search.length(a, directions[static_cast<size_t>(a)], 1);
            double* u = search.point(a);
            for (int i = 0; i < B_.k; ++i) {
                const double next = u[i] + t * static_cast<double>(groups.u[a * B_.width + i]);
                u[i] = next > 0 ? next : 0;
            }
            write_factor(B_, u, items.h + j * B_.k, items.c[j], items.out + j * B_.k);
        }
    }

private:
    const Basis<T>& B_;
    SharedModel<T> model_;
};

// Call steps(search, items) for a few items at a time, so that their buffers stay in cache.
template <class T, class MakeSteps> void search_dense(const Dense& V, const Basis<T>& B, const Items<T>& items, MakeSteps make_steps) {
    constexpr int64_t room = 256 * 1024;  // entries of a buffer
    const int64_t fitting = room / (V.n_columns > 0 ? V.n_columns : 1) / GROUP * GROUP, fewest = fitting < GROUP ? GROUP : fitting;
    const int64_t count = items.end - items.begin, step = count < fewest ? count : fewest;
    DenseSearch<T> search(V, B, step);
    auto steps = make_steps(step);
    for (int64_t begin = items.begin; begin < items.end; begin += step)
        steps(search, {items.h, items.c, items.out, begin, begin + step < items.end ? begin + step : items.end});
}
template <class T> void power_search_dense(const Dense& V, const Basis<T>& B, const Items<T>& items, int64_t exponent) {
    search_dense(V, B, items, [&](int64_t count) { return PowerSteps<T>(B, count, exponent); });
}
template <class T> void shared_newton_dense(const Dense& V, const Basis<T>& B, const Items<T>& items, const double* correlations) {
    search_dense(V, B, items, [&](int64_t) { return SharedNewtonSteps<T>(B, correlations); });
}

}  // namespace
}  // namespace sipower
