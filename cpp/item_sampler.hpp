// SPDX-License-Identifier: BSD-3-Clause
// `ItemSampler`: batches drawn from the nonzeros of one item.
#pragma once
#include "buffer.hpp"
#include "draws.hpp"
#include "kernels.hpp"
#include "values.hpp"

namespace sipower {
namespace {

// Draws the batches of one item from its own nonzeros.
template <class T> class ItemSampler {
public:
    ItemSampler(const Csr& V, const Epoch& e, int64_t longest)
        : V_(V), e_(e), order_(longest), swaps_(longest), weight_(e.scheme == Scheme::weighted ? longest : 0),
          upto_(e.scheme == Scheme::weighted ? longest : 0) {
        for (int64_t i = 0; i < longest; ++i) order_[i] = static_cast<int32_t>(i);
    }

    void enter(int64_t item) {
        item_ = item;
        n_ = V_.nonzeros(item);
        if (e_.scheme != Scheme::weighted) return;
        double sum = 0;
        T one;
        for (int64_t i = 0; i < n_; ++i) {
            weight_[i] = static_cast<double>(*read_values(V_.values, V_.start(item) + i, 1, &one));
            upto_[i] = sum += weight_[i];
        }
    }

    // Draw a batch and return its size, at most the number of nonzeros of the item.
    int64_t draw(int64_t inner, int32_t* at, double* factor) {
        const int64_t s = batch_size(e_.batch, n_);
        Random random(e_.key, {e_.round, e_.side, static_cast<uint64_t>(item_), static_cast<uint64_t>(inner)});
        if (e_.scheme == Scheme::weighted) {
            if (!e_.replace) return draw_systematic(random, weight_.get(), upto_[n_ - 1], n_, s, at, factor);
            draw_weighted(random, weight_.get(), upto_.get(), n_, s, at, factor);
            return s;
        }
        if (e_.replace) draw_repeated(random, n_, s, at);
        else draw_distinct(random, n_, s, order_.get(), swaps_.get(), at);
        for (int64_t t = 0; t < s; ++t) factor[t] = static_cast<double>(n_) / static_cast<double>(s);
        return s;
    }

private:
    const Csr& V_;
    const Epoch& e_;
    Buffer<int32_t> order_, swaps_;
    Buffer<double> weight_, upto_;
    int64_t item_ = 0, n_ = 0;
};

}  // namespace
}  // namespace sipower
