// SPDX-License-Identifier: BSD-3-Clause
// `SparseShuffle`: uniform draws without replacement of a few numbers from a large range.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "random.hpp"

namespace sipower {
namespace {

// Draws the same numbers as draw_distinct, for s much smaller than n. A hash table holds only those entries of
// the shuffled order that have changed, so a draw takes O(s) time and memory.
class SparseShuffle {
public:
    explicit SparseShuffle(int64_t max_draws) {
        while ((int64_t{1} << bits_) < 2 * max_draws) ++bits_;
        slots_.resize(size_t{1} << bits_);
    }
    void draw(Random random, int64_t n, int64_t s, int32_t* out) {
        ++draw_;
        for (int64_t t = 0; t < s; ++t) {
            const int64_t other = t + random.below(n - t);
            Slot& place = find(static_cast<int32_t>(other));
            const Slot& front = find(static_cast<int32_t>(t));
            out[t] = place.draw == draw_ ? place.value : static_cast<int32_t>(other);
            const int32_t moved = front.draw == draw_ ? front.value : static_cast<int32_t>(t);
            place = {draw_, static_cast<int32_t>(other), moved};
        }
    }

private:
    struct Slot {
        uint32_t draw = 0;  // the slot is free unless this is the current draw
        int32_t key = 0, value = 0;
    };
    // Return the slot of a key, or the free slot where the key belongs.
    Slot& find(int32_t key) {
        size_t at = (static_cast<uint32_t>(key) * 2654435769u) >> (32 - bits_);
        while (slots_[at].draw == draw_ && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
        return slots_[at];
    }
    int bits_ = 1;
    uint32_t draw_ = 0;
    std::vector<Slot> slots_;
};

}  // namespace
}  // namespace sipower
