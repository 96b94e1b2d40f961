// SPDX-License-Identifier: BSD-3-Clause
// The kernels that work on one gathered item at a time: coordinate descent, Newton steps, projected
// gradient, and the exact solution of an item.
#pragma once
#include "certificate.hpp"
#include "coordinate_descent.hpp"
#include "item_epoch.hpp"
#include "newton_step.hpp"
#include "shared_model.hpp"
#include "square_sums.hpp"
#include "update_rules.hpp"

namespace sipower {
namespace {

// Call visit(j, item) for every item j that has mass, prior counts included. The item is gathered and its h is scaled
// to the mass; `visit` must refresh z and w.
template <class T, class Data, class Visit>
void visit_items(const Data& V, const Basis<T>& B, const Items<T>& items, Visit visit) {
    GatheredItem<T> item(B, longest_item(V, items.begin, items.end));
    for (int64_t j = items.begin; j < items.end; ++j) {
        const double mass = B.prior ? total_mass(B.of_item(j), items.c[j]) : items.c[j];
        if (!(mass > 0)) {
            write_empty(B.of_item(j), items.h + j * B.k, items.out + j * B.k);
            continue;
        }
        item.enter(V, j);
        const Basis<T>& own = item.basis();
        scale_to_mass(own, items.h + j * B.k, mass, item.h.get());
        visit(j, item);
        item.keep_alive(mass);
        for (int k = 0; k < B.k; ++k)
            items.out[j * B.k + k] = own.d[k] + own.ridge > 0 ? static_cast<T>(item.h[k]) : items.h[j * B.k + k];
    }
}

// Coordinate descent on every item: `sweeps` sweeps of Newton steps over all coordinates, over those that are active
// before the first sweep, or over K coordinates drawn at random.
template <class T, class Data>
void coordinate(const Data& V, const Basis<T>& B, const Items<T>& items, int64_t sweeps, Order order,
                Key key, Place place) {
    CoordinateDescent<T> descent(B);
    visit_items(V, B, items, [&](int64_t j, GatheredItem<T>& item) {
        Random random(key, {place.round, place.side, static_cast<uint64_t>(j), place.inner});
        item.refresh();
        if (order == Order::active) descent.visit_active(item);
        else descent.visit_all();
        for (int64_t s = 0; s < sweeps; ++s) descent.sweep(item, order, random);
    });
}

// Newton steps on every item; the quadratic model over h >= 0 is solved to ROUGH_SOLUTION.
template <class T, class Data>
void newton(const Data& V, const Basis<T>& B, const Items<T>& items, int64_t steps) {
    NewtonStep<T> newton_step(B, B.k);
    visit_items(V, B, items, [&](int64_t, GatheredItem<T>& item) {
        item.refresh();
        for (int64_t s = 0; s < steps && newton_step(item, ROUGH_SOLUTION); ++s) {
        }
    });
}

// Newton steps with a shared Hessian; where such a step is short, a power step is tried too. See `SharedModel`.
template <class T> void shared_newton_csr(const Csr& V, const Basis<T>& B, const Items<T>& items, const double* correlations) {
    SharedModel<T> model(B, correlations);
    SearchDirection power(B.width);
    Buffer<double> squares(B.width), along(B.width), best(B.width);
    Buffer<T> p(B.width);
    GatheredItem<T> item(B, longest_item(V, items.begin, items.end));
    for (int64_t j = items.begin; j < items.end; ++j) {
        if (!(items.c[j] > 0)) continue;
        item.enter(V, j);
        const Basis<T>& own = item.basis();
        scale_to_mass(own, items.h + j * B.k, items.c[j], item.h.get());
        item.refresh_with_sums();
        square_sums(item, B, squares.get());
        double length = 0, gain = 0;
        const auto try_direction = [&](const Direction& direction) {
            double unused;
            for (int k = 0; k < B.k; ++k) along[k] = static_cast<double>(p[k]);
            item.curvature_along(along.get(), &unused);
            const double t = item.length_along(direction.slope, direction.d_p, direction.limit);
            if (!(t > 0 && t * direction.slope >= gain)) return;
            length = t;
            gain = t * direction.slope;
            for (int k = 0; k < B.k; ++k) best[k] = along[k];
        };
        Direction direction;
        model.solve(j, 1, item.g.get(), squares.get(), item.h.get(), items.c + j, p.get(), &direction);
        try_direction(direction);
        if (length < SHORT_STEP) {
            power(own, items.c[j], item.g.get(), item.h.get(), SHORT_EXPONENT, p.get());
            try_direction({power.slope, 0, power.limit});
        }
        for (int k = 0; k < B.k && length > 0; ++k) item.h[k] = larger(item.h[k] + length * best[k], 0.0);
        write_factor(own, item.h.get(), items.h + j * B.k, items.c[j], items.out + j * B.k);
    }
}

// Take one projected gradient step on every item, h+ = max(0, h - alpha (d - g)). The step size alpha is halved until
// the objective falls by at least a hundredth of what the slope predicts (Armijo).
template <class T, class Data>
void projected_gradient(const Data& V, const Basis<T>& B, const Items<T>& items) {
    Buffer<double> old(B.width), slope(B.width);
    visit_items(V, B, items, [&](int64_t, GatheredItem<T>& item) {
        item.refresh_with_sums();
        double steep = 0;
        for (int k = 0; k < B.k; ++k) {
            old[k] = item.h[k];
            const double d = item.basis().d[k];
            slope[k] = d > 0 ? d - item.g[k] : 0;
            if (slope[k] > 0 && !(old[k] > 0)) slope[k] = 0;
            steep += slope[k] * slope[k];
        }
        double unused;
        const double curvature = item.curvature_along(slope.get(), &unused), before = item.objective();
        if (!(steep > 0) || !(curvature > 0)) return;
        double alpha = steep / curvature;
        for (int trial = 0; trial < 40; ++trial, alpha /= 2) {
            double promised = 0;
            for (int k = 0; k < B.k; ++k) {
                const double next = old[k] - alpha * slope[k];
                item.h[k] = next > 0 ? next : 0;
                promised += slope[k] * (old[k] - item.h[k]);
            }
            if (item.refresh() && item.objective() <= before - 0.01 * promised) return;
        }
        for (int k = 0; k < B.k; ++k) item.h[k] = old[k];
    });
}

// Return the certified gap of an item with any terms; `sums` is memory for K numbers.
template <class T> double general_gap(const GatheredItem<T>& item, double c, double* sums) {
    const Basis<T>& B = item.basis();
    for (int k = 0; k < B.k; ++k) {
        const double h = item.h.get()[k], a = B.prior_of(k);
        // Without the prior count; rounding must not make a sum of positive terms negative.
        sums[k] = c > 0 ? larger(item.g.get()[k] - (a > 0 ? static_cast<double>(static_cast<T>(a)) / h : 0), 0.0) : 0;
    }
    return DualLine<T>(B, sums, item.h.get(), c).gap();
}

// Solve every item on its own, to max_k G_k - 1 <= tol. Items with many nonzeros begin with epochs of S-SCI-PI, as
// long as each epoch at least halves the gap; the other items begin with a few SCI-PI steps. Coordinate descent, which
// finds the zeros, and Newton steps on the other coordinates follow. An item with h = 0 starts at the uniform point, so
// that its solution depends only on its own nonzeros and the basis. With a ridge, prior counts or fixed components the
// gap is that of `DualLine`, relative to the mass, and neither SCI-PI nor S-SCI-PI is used.
template <class T, class Data>
void solve_items(const Data& V, const Basis<T>& B, const Items<T>& items, const Accuracy& accuracy, ItemResults results) {
    constexpr int power_steps = 4, first_newton = 6;
    const bool newton = B.k <= LARGEST_MODEL;
    NewtonStep<T> newton_step(B, newton ? B.k : 1);
    CoordinateDescent<T> descent(B);
    ItemEpoch<T> sampled(B);
    Buffer<double> anchor(B.width), data_sums(B.width);
    visit_items(V, B, items, [&](int64_t j, GatheredItem<T>& item) {
        const Basis<T>& own = item.basis();
        const double c = total_mass(own, items.c[j]);
        const bool general = own.prior || !own.is_scaled();
        double gap, last = 0, passes = 0;  // last: the gap at the anchor of the previous epoch
        bool sampling = !general && item.nonzeros() >= accuracy.min_sampled_nonzeros;
        int64_t steps = sampling ? first_newton : general ? power_steps : 0;  // rounds without batches; after epochs the power steps are skipped
        Random unused({0, 0}, {0, 0, 0, 0});
        descent.visit_all();
        for (int64_t round = 0;; ++round) {
            item.refresh_with_sums();
            gap = general ? general_gap(item, items.c[j], data_sums.get()) / c : item.gap();
            ++passes;
            if (sampling && round > 0 && !(gap <= last / 2)) {
                sampling = false;
                if (!(gap <= last)) {
                    for (int k = 0; k < B.k; ++k) item.h[k] = anchor[k];
                    item.refresh_with_sums();
                    gap = last;
                    ++passes;
                }
            }
            if (gap <= accuracy.tol || round >= accuracy.max_rounds) break;
            if (sampling) {
                last = gap;
                for (int k = 0; k < B.k; ++k) anchor[k] = item.h[k];
                sampled.run(item, c, round);
                passes += sampled.passes(item.nonzeros());
            } else if (steps++ < power_steps) {
                PowerRule{1.0}(own, c, item.g.get(), item.h.get());
            } else {
                const bool second_order = newton && steps > first_newton;
                descent.sweep(item, Order::cyclic, unused);
                if (second_order) newton_step(item, EXACT_SOLUTION);
                item.fit_mass(c);
                passes += 1.5 + (second_order ? 2 + B.k / 4.0 : 0);
            }
        }
        results.gap[j] = gap;
        results.passes[j] = passes;
    });
}

}  // namespace
}  // namespace sipower
