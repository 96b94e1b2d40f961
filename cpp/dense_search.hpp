// SPDX-License-Identifier: BSD-3-Clause
// Steps on dense data with an exact line search for every item: power steps, and Newton steps with a
// shared Hessian.
#pragma once
#include <vector>

#include "dense_groups.hpp"
#include "line_search.hpp"
#include "shared_model.hpp"
#include "update_rules.hpp"

namespace sipower {
namespace {

// The points, ratio sums and line searches of a few items at a time, so that their buffers stay in cache.
template <class T> class DenseSearch {
public:
    // `items` is the largest number of items at a time.
    DenseSearch(const Dense& V, const Basis<T>& B, int64_t items)
        : V_(V), B_(B), pass_(V, B), stride_(whole_lanes<T>(V.n_columns)), room_((items + MARGIN) * B.width), v_(items * stride_),
          w_(items * stride_), e_(items * stride_), points_(room_), sums_(room_), squares_(room_) {}

    // Compute the points, scaled to their masses, the ratio sums and, if `with_squares`, the diagonals of the Hessians.
    void enter(const Items<T>& items, bool with_squares) {
        begin_ = items.begin;
        std::memset(sums_.get(), 0, static_cast<size_t>(room_) * sizeof(double));
        std::memset(squares_.get(), 0, static_cast<size_t>(room_) * sizeof(double));
        DenseGroups<T> groups(items.begin, items.end, B_.width);
        for (int64_t j = items.begin; j < items.end; ++j) {
            double* u = point(j - begin_);
            scale_to_mass(B_.of_item(j), items.h + j * B_.k, items.c[j], u);
            for (int i = 0; i < B_.k; ++i) groups.u[(j - begin_) * B_.width + i] = static_cast<T>(u[i]);
        }
        for_groups(V_, B_, groups, [&](int64_t a, int64_t first, int count, int64_t from) {
            const int64_t at = a * GROUP * B_.width;
            const int64_t row = (first - begin_) * stride_;
            pass_.search_sums(first, count, from, groups.u.get() + at, sums_.get() + at, with_squares ? squares_.get() + at : nullptr,
                              v_.get() + row, w_.get() + row, stride_);
        });
    }
    double* point(int64_t a) { return points_.get() + a * B_.width; }
    const double* sums(int64_t a) const { return sums_.get() + a * B_.width; }
    const double* squares(int64_t a) const { return squares_.get() + a * B_.width; }

    // Prepare the searches along the directions in `groups.u`.
    void set_directions(const DenseGroups<T>& groups) {
        for_groups(V_, B_, groups, [&](int64_t a, int64_t first, int count, int64_t from) {
            const int64_t at = (first - begin_) * stride_;
            pass_.ratios_along(count, from, groups.u.get() + a * GROUP * B_.width, w_.get() + at, e_.get() + at, stride_);
        });
    }
    // Return the length of the step of item number a along its direction; see `search_length`.
    double length(int64_t a, const Direction& direction) const {
        return search_length(v_.get() + a * stride_, e_.get() + a * stride_, stride_, direction.slope, direction.d_p, direction.limit);
    }

private:
    static constexpr int64_t MARGIN = GROUP + Simd<T>::lanes;  // groups and vectors may reach beyond the last item

    const Dense& V_;
    const Basis<T>& B_;
    DensePass<T> pass_;
    int64_t stride_;  // row length of the buffers; elements beyond the last column stay zero
    int64_t room_, begin_ = 0;
    Buffer<T> v_, w_, e_;
    Buffer<double> points_, sums_, squares_;
};

// The steps of a few items: several directions are tried, and each item takes the one with the larger expected gain.
template <class T> class SearchedSteps {
public:
    SearchedSteps(const Dense& V, const Basis<T>& B, int64_t items)
        : B_(B), search_(V, B, items), power_(B.width), best_(items * B.width), lengths_(items), gains_(items) {}

    void enter(const Items<T>& items, bool with_squares) {
        items_ = items;
        search_.enter(items, with_squares);
        for (int64_t a = 0; a < count(); ++a) lengths_[a] = gains_[a] = 0;
    }
    // Try the directions towards x o G^exponent. Returns whether some step is short.
    bool try_powers(int64_t exponent) {
        DenseGroups<T> groups(items_.begin, items_.end, B_.width);
        std::vector<Direction> directions(static_cast<size_t>(count()));
        for (int64_t a = 0; a < count(); ++a) {
            power_(B_.of_item(items_.begin + a), mass(a), search_.sums(a), search_.point(a), exponent, groups.u.get() + a * B_.width);
            directions[static_cast<size_t>(a)] = {power_.slope, 0, power_.limit};
        }
        return keep_better(groups, directions);
    }
    // Try the directions of a quadratic model. Returns whether some step is short.
    bool try_model(SharedModel<T>& model) {
        DenseGroups<T> groups(items_.begin, items_.end, B_.width);
        std::vector<Direction> directions(static_cast<size_t>(count()));
        for (int64_t a = 0; a < count(); a += model.capacity()) {
            const int64_t left = count() - a;
            model.solve(items_.begin + a, static_cast<int>(left < model.capacity() ? left : model.capacity()), search_.sums(a),
                        search_.squares(a), search_.point(a), items_.c + items_.begin + a, groups.u.get() + a * B_.width, directions.data() + a);
        }
        return keep_better(groups, directions);
    }
    // Write the factor after the best steps.
    void finish() {
        for (int64_t a = 0; a < count(); ++a) {
            const int64_t at = (items_.begin + a) * B_.k;
            if (!(mass(a) > 0)) continue;
            double* u = search_.point(a);
            for (int i = 0; i < B_.k && lengths_[a] > 0; ++i) u[i] = larger(u[i] + lengths_[a] * static_cast<double>(best_[a * B_.width + i]), 0.0);
            write_factor(B_.of_item(items_.begin + a), u, items_.h + at, mass(a), items_.out + at);
        }
    }

private:
    int64_t count() const { return items_.end - items_.begin; }
    double mass(int64_t a) const { return items_.c[items_.begin + a]; }

    // Search along the directions and keep the better step of each item; items with a step that is not short are
    // skipped. Returns whether some step is short.
    bool keep_better(const DenseGroups<T>& groups, const std::vector<Direction>& directions) {
        search_.set_directions(groups);
        bool some_short = false;
        for (int64_t a = 0; a < count(); ++a) {
            if (lengths_[a] >= SHORT_STEP || !(mass(a) > 0)) continue;
            const Direction& direction = directions[static_cast<size_t>(a)];
            const double t = search_.length(a, direction), gain = t * direction.slope;
            if (t > 0 && gain >= gains_[a]) {
                lengths_[a] = t;
                gains_[a] = gain;
                for (int i = 0; i < B_.k; ++i) best_[a * B_.width + i] = groups.u.get()[a * B_.width + i];
            }
            some_short = some_short || t < SHORT_STEP;
        }
        return some_short;
    }

    const Basis<T>& B_;
    Items<T> items_{};
    DenseSearch<T> search_;
    SearchDirection power_;
    Buffer<T> best_;
    Buffer<double> lengths_, gains_;
};

// Handle a few items at a time, so that their buffers stay in cache: visit(steps) tries directions for them.
template <class T, class Visit>
void search_dense(const Dense& V, const Basis<T>& B, const Items<T>& items, bool with_squares, Visit visit) {
    constexpr int64_t room = 256 * 1024;  // number of elements that a buffer may hold
    const int64_t fitting = room / (V.n_columns > 0 ? V.n_columns : 1) / GROUP * GROUP, fewest = fitting < GROUP ? GROUP : fitting;
    const int64_t count = items.end - items.begin, step = count < fewest ? count : fewest;
    SearchedSteps<T> steps(V, B, step);
    for (int64_t begin = items.begin; begin < items.end; begin += step) {
        steps.enter({items.h, items.c, items.out, begin, begin + step < items.end ? begin + step : items.end}, with_squares);
        visit(steps);
        steps.finish();
    }
}
template <class T> void power_search_dense(const Dense& V, const Basis<T>& B, const Items<T>& items, int64_t exponent) {
    search_dense(V, B, items, false, [&](SearchedSteps<T>& steps) {
        if (steps.try_powers(exponent) && exponent > SHORT_EXPONENT) steps.try_powers(SHORT_EXPONENT);
    });
}
// Newton steps with a shared Hessian; where such a step is short, a power step is tried too.
template <class T> void shared_newton_dense(const Dense& V, const Basis<T>& B, const Items<T>& items, const double* correlations) {
    SharedModel<T> model(B, correlations);
    search_dense(V, B, items, true, [&](SearchedSteps<T>& steps) {
        if (steps.try_model(model)) steps.try_powers(SHORT_EXPONENT);
    });
}

}  // namespace
}  // namespace sipower
