// SPDX-License-Identifier: BSD-3-Clause
// S-SCI-PI on one gathered item, for the exact solution of items with far more terms than K^2: an epoch
// then costs little more than its full gradient and shrinks the gap about tenfold.
#pragma once
#include <vector>

#include "epoch.hpp"
#include "gathered.hpp"

namespace sipower {
namespace {

template <class T> class ItemEpoch {
public:
    explicit ItemEpoch(const Basis<T>& B)
        : B_(B), sums_(B), points_(5 * B.width), size_(10 * static_cast<int64_t>(B.k)), drawn_(size_), rows_(size_), v_(size_),
          q0_(size_) {}

    // Whether sampling pays: batches cost 1.5 m s / n full gradients.
    static bool pays(const Basis<T>& B, int64_t terms) { return terms >= 40 * static_cast<int64_t>(B.k) * B.k; }

    // One epoch from the item's point, whose ratio sums are known; z and w are to be refreshed. The batches depend on the number of the
    // epoch and on how many terms there are, on nothing else.
    void run(Item<T>& item, double c, int64_t epoch) {
        const int width = B_.width;
        double *GS = points_.get() + 3 * width, *GS0 = GS + width;
        EpochItem<double> point{points_.get(), points_.get() + width, points_.get() + 2 * width};
        const Epoch plan = make_plan();
        point.start(B_, item.h.get(), c);
        multiplier(B_, item.g.get(), point.G0);
        point.wait(1, plan, width);
        const T factor = static_cast<T>(static_cast<double>(item.terms()) / static_cast<double>(size_));
        for (int64_t t = 1; t < plan.length; ++t) {
            draw_repeated(Random({0, 3}, {static_cast<uint64_t>(epoch), 0, 0, static_cast<uint64_t>(t)}), item.terms(), size_, drawn_.get());
            for (int64_t i = 0; i < size_; ++i) {
                rows_[i] = item.row(drawn_[i]);
                fetch(B_.row(rows_[i]));
                v_[i] = factor * item.value(drawn_[i]);
                q0_[i] = factor * item.quotient(drawn_[i]);
            }
            point.factor(B_.inverse, c, sums_.point(), width);
            sums_(rows_.get(), v_.get(), q0_.get(), size_, GS, GS0);
            point.inner_step(GS, GS0, plan, width);
        }
        point.factor(B_.inverse, c, item.h.get(), width);
    }

private:
    Epoch make_plan() const {
        Epoch plan{};
        plan.step = 1;
        plan.threshold = 0.01;
        plan.length = 4 * static_cast<int64_t>(B_.k);
        return plan;
    }
    void fetch(const T* row) const {
        constexpr int line = 64 / sizeof(T);
        for (int i = 0; i < B_.width; i += line) __builtin_prefetch(row + i);
    }

    const Basis<T>& B_;
    BatchSums<T> sums_;
    Buffer<double> points_;
    const int64_t size_;  // s
    Buffer<int32_t> drawn_, rows_;
    Buffer<T> v_, q0_;
};

}  // namespace
}  // namespace sipower
