// SPDX-License-Identifier: BSD-3-Clause
// `ItemElements`: the nonzeros that an epoch has drawn from one item.
#pragma once
#include <cstdint>

#include "batch.hpp"

namespace sipower {
namespace {

// The drawn nonzeros of one item, in the order of the inner steps that drew them.
template <class T> struct ItemElements {
    Batch<T> elements;
    const int32_t *step = nullptr, *end = nullptr;  // inner steps of the nonzeros that are not used yet
    int64_t used = 0;                               // number of nonzeros that are used already

    int32_t next_step_or(int32_t otherwise) const { return step == end ? otherwise : *step; }
    // Return the number of nonzeros that the next step has drawn.
    int64_t next_batch_size() const {
        const int32_t* last = step;
        while (last != end && *last == *step) ++last;
        return last - step;
    }
};

}  // namespace
}  // namespace sipower
