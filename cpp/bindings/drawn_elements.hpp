// SPDX-License-Identifier: BSD-3-Clause
// The entries that an epoch draws from all nonzeros at once (scheme "elements").
#pragma once
#include <cstdint>
#include <vector>

#include "bindings/arguments.hpp"
#include "draws.hpp"
#include "epoch.hpp"
#include "sparse_shuffle.hpp"

namespace sipower {
namespace {

// The nonzeros drawn for every inner step of an epoch, sorted by the items they belong to.
class DrawnElements {
public:
    DrawnElements(const Vector<const int64_t>& indptr, const Epoch& e) {
        require(indptr.shape(0) >= 1, "indptr is empty");
        items = static_cast<int64_t>(indptr.shape(0)) - 1;
        const int64_t* const first = aligned_data(indptr);
        nb::gil_scoped_release release;
        require(first[0] == 0, "indptr does not begin with 0");
        for (int64_t j = 0; j < items; ++j) require(first[j] <= first[j + 1], "indptr decreases");
        const int64_t nnz = first[items];
        require(nnz <= INT32_MAX, "scheme 'elements' takes at most 2^31 - 1 nonzeros: use 'stratified'");
        start.assign(static_cast<size_t>(items) + 1, 0);
        if (nnz == 0) return;
        count = batch_size(e.batch, nnz);
        sort(first, draw(nnz, e));
    }
    Elements view() const { return {start.data(), step.data(), at.data(), count}; }

    int64_t items = 0;
    std::vector<int64_t> start;
    std::vector<int32_t> step, at;

private:
    // Draw positions among all nonzeros, `count` for each of the inner steps 1, ..., m - 1. Step 0 needs no batch.
    std::vector<int32_t> draw(int64_t nnz, const Epoch& e) const {
        std::vector<int32_t> drawn(static_cast<size_t>((e.length - 1) * count));
        SparseShuffle shuffle(e.replace ? 0 : count);
        for (int64_t t = 1; t < e.length; ++t) {
            Random random(e.key, {e.round, e.side, 0, static_cast<uint64_t>(t)});
            int32_t* batch = drawn.data() + (t - 1) * count;
            if (e.replace) draw_repeated(random, nnz, count, batch);
            else shuffle.draw(random, nnz, count, batch);
        }
        return drawn;
    }
    void sort(const int64_t* indptr, const std::vector<int32_t>& drawn) {
        // near[i] is the item that contains position 64 i, where the search for the item of a position starts.
        std::vector<int32_t> near(static_cast<size_t>(indptr[items] / 64 + 1)), owner(drawn.size());
        for (int64_t i = 0, item = 0; i < static_cast<int64_t>(near.size()); ++i) {
            while (item + 1 < items && indptr[item + 1] <= 64 * i) ++item;
            near[static_cast<size_t>(i)] = static_cast<int32_t>(item);
        }
        for (size_t i = 0; i < drawn.size(); ++i) {
            int32_t item = near[static_cast<size_t>(drawn[i] / 64)];
            while (indptr[item + 1] <= drawn[i]) ++item;
            owner[i] = item;
            ++start[static_cast<size_t>(item) + 1];
        }
        for (size_t j = 0; j < static_cast<size_t>(items); ++j) start[j + 1] += start[j];
        std::vector<int64_t> next(start.begin(), start.end() - 1);
        step.resize(drawn.size());
        at.resize(drawn.size());
        int32_t drawn_by = 1;
        for (size_t i = 0, left = static_cast<size_t>(count); i < drawn.size(); ++i) {
            const size_t item = static_cast<size_t>(owner[i]), place = static_cast<size_t>(next[item]++);
            step[place] = drawn_by;
            at[place] = static_cast<int32_t>(drawn[i] - indptr[item]);
            if (--left == 0) left = static_cast<size_t>(count), ++drawn_by;
        }
    }
    int64_t count = 0;
};

}  // namespace
}  // namespace sipower
