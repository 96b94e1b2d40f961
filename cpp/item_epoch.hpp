// SPDX-License-Identifier: BSD-3-Clause
// `ItemEpoch`: S-SCI-PI on one gathered item, for the exact solution of items with far more nonzeros than
// K^2. An epoch then costs little more than its full gradient and reduces the gap about tenfold. Batches of
// 10 K nonzeros and 4 K inner steps were tuned on mixture proportions with a 300,000 x 50 matrix of
// gamma-distributed likelihoods.
#pragma once
#include <vector>

#include "batch_sums.hpp"
#include "draws.hpp"
#include "epoch_item.hpp"
#include "gathered_item.hpp"

namespace sipower {
namespace {

// The stream of the random numbers of these epochs, whose seed is 0. ONLINE and CUT of `Stream` in kernels/random.py
// use the same number, but only at inner step 0, where an epoch draws nothing.
constexpr uint64_t ITEM_EPOCH_STREAM = 3;

template <class T> class ItemEpoch {
public:
    explicit ItemEpoch(const Basis<T>& B)
        : B_(B), sums_(B), points_(5 * B.width), size_(10 * static_cast<int64_t>(B.k)), rows_(size_), v_(size_), q0_(size_) {}

    // Return the cost of the batches of an epoch, in passes.
    double passes(int64_t nonzeros) const {
        return 1.5 * static_cast<double>(length() - 1) * static_cast<double>(size_) / static_cast<double>(nonzeros);
    }

    // Run one epoch from the current point of the item, whose ratio sums must be known. Afterwards the caller must
    // refresh z and w. The batches depend only on the number of the epoch and on the number of nonzeros.
    void run(GatheredItem<T>& item, double c, int64_t epoch) {
        const int width = B_.width;
        double *GS = points_.get() + 3 * width, *GS0 = GS + width;
        EpochItem<double> point{points_.get(), points_.get() + width, points_.get() + 2 * width, whole_vectors(width)};
        const Epoch plan = make_plan();
        const Basis<T>& own = item.basis();
        start_epoch(own, item.h.get(), c, point);
        multiplier(own, item.g.get(), point.G0);
        point.plain_step(plan);
        const T weight = static_cast<T>(static_cast<double>(item.nonzeros()) / static_cast<double>(size_));
        const int32_t* drawn = batches(item.nonzeros(), epoch);
        for (int64_t t = 1; t < plan.length; ++t, drawn += size_) {
            for (int64_t i = 0; i < size_; ++i) {
                rows_[i] = item.row(drawn[i]);
                prefetch(B_.row(rows_[i]));
                v_[i] = weight * item.value(drawn[i]);
                q0_[i] = weight * item.quotient(drawn[i]);
            }
            factor(own, point, c, sums_.point());
            sums_(own.inverse, rows_.get(), v_.get(), q0_.get(), size_, GS, GS0);
            point.inner_step(GS, GS0, plan);
        }
        factor(own, point, c, item.h.get());
    }

private:
    // Return the batches of an epoch on n nonzeros. They are drawn with replacement and kept for the next item
    // with the same n.
    const int32_t* batches(int64_t n, int64_t epoch) {
        if (n != nonzeros_) drawn_.clear();
        nonzeros_ = n;
        for (int64_t e = static_cast<int64_t>(drawn_.size()); e <= epoch; ++e) {
            drawn_.emplace_back(static_cast<size_t>((length() - 1) * size_));
            for (int64_t t = 1; t < length(); ++t)
                draw_repeated(Random({0, ITEM_EPOCH_STREAM}, {static_cast<uint64_t>(e), 0, 0, static_cast<uint64_t>(t)}), n, size_,
                              drawn_.back().data() + (t - 1) * size_);
        }
        return drawn_[static_cast<size_t>(epoch)].data();
    }
    int64_t length() const { return 4 * static_cast<int64_t>(B_.k); }
    Epoch make_plan() const {
        Epoch plan{};
        plan.step = 1;
        plan.threshold = 0.01;
        plan.length = length();
        return plan;
    }
    void prefetch(const T* row) const {
        constexpr int line = 64 / sizeof(T);
        for (int i = 0; i < B_.width; i += line) __builtin_prefetch(row + i);
    }

    const Basis<T>& B_;
    BatchSums<T> sums_;
    Buffer<double> points_;
    const int64_t size_;  // s
    Buffer<int32_t> rows_;
    Buffer<T> v_, q0_;
    int64_t nonzeros_ = 0;
    std::vector<std::vector<int32_t>> drawn_;  // the batches of each epoch
};

}  // namespace
}  // namespace sipower
