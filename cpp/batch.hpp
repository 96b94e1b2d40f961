// SPDX-License-Identifier: BSD-3-Clause
// `Batch`: a random sample of one item's nonzeros, copied to contiguous memory.
#pragma once
#include <vector>

#include "matrices.hpp"
#include "values.hpp"

namespace sipower {
namespace {

// Drawn nonzeros of an item: columns, values v, and quotients v / z0, where z0 is z at the anchor, the point at which
// the epoch began. Values and quotients are multiplied by the factors that make the batch unbiased.
template <class T> class Batch {
public:
    void resize(int64_t s) {
        index.resize(static_cast<size_t>(s));
        v.resize(index.size());
        q0.resize(index.size());
    }
    void take(int64_t i, const Csr& V, int64_t nonzero, T quotient, double factor) {
        const size_t to = static_cast<size_t>(i);
        T one;
        index[to] = *V.columns(nonzero, 1);
        v[to] = *read_values(V.values, nonzero, 1, &one) * static_cast<T>(factor);
        q0[to] = quotient * static_cast<T>(factor);
    }
    std::vector<int32_t> index;
    std::vector<T> v, q0;
};

}  // namespace
}  // namespace sipower
