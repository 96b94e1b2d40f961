// SPDX-License-Identifier: BSD-3-Clause
// `ItemElements`: the nonzeros that an epoch has drawn of one item.
#pragma once
#include <cstdint>

#include "batch.hpp"

namespace sipower {
namespace {

// The drawn nonzeros of one item, in the order of the inner steps that drew them.
template <class T> struct ItemElements {
    Batch<T> elements;
    const int32_t *step = nullptr, *end = nullptr;  // those not yet used
    int64_t used = 0;

    int32_t next_step_or(int32_t otherwise) const { return step == end ? otherwise : *step; }
    // Number of nonzeros that the next step has drawn.
    int64_t next_batch_size() const {
        const int32_t* last = step;
        while (last != end && *last == *step) ++last;
        return last - step;
    }
};

}  // namespace
}  // namespace sipower
