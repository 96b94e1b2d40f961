// SPDX-License-Identifier: BSD-3-Clause
// `Epoch`: the settings of an epoch of S-SCI-PI, and the nonzeros that were drawn for it.
#pragma once
#include <cstdint>

#include "random.hpp"

namespace sipower {

enum class Scheme { stratified, weighted, elements };

// The nonzeros drawn from the whole matrix: s in every inner step but the first. The drawn nonzeros of item j
// have the numbers start[j], ..., start[j + 1] - 1 and are ordered by inner step.
struct Elements {
    const int64_t* start;  // (items + 1)
    const int32_t* step;   // inner step in which the nonzero was drawn
    const int32_t* at;     // index of the nonzero within its item
    int64_t count;         // s
};

struct Epoch {
    double step;       // eta
    double full_step;  // eta of the full step that short items take
    double batch;      // s / n
    int64_t length;    // m
    double threshold;  // theta: an inner step keeps y+ >= theta y
    int64_t shortest;  // items with fewer nonzeros than this take one full step instead
    Scheme scheme;
    bool replace;
    Key key;
    uint64_t round, side;
    Elements elements;  // only for the scheme `elements`
};

static inline int64_t batch_size(double share, int64_t n) {
    const double exact = share * static_cast<double>(n);
    int64_t s = static_cast<int64_t>(exact);
    if (static_cast<double>(s) < exact) ++s;
    return s > n ? n : s < 1 && n > 0 ? 1 : s;
}

}  // namespace sipower
