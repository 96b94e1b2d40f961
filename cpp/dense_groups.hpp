// SPDX-License-Identifier: BSD-3-Clause
// `DenseGroups`: items of dense data in groups that share each read of the basis.
#pragma once
#include "dense_pass.hpp"

namespace sipower {
namespace {

// The items [begin, end) in groups; u holds their points, (count * GROUP, width), padded with zeros.
template <class T> struct DenseGroups {
    int64_t begin, end, count;
    Buffer<T> u;
    DenseGroups(int64_t first, int64_t last, int width)
        : begin(first), end(last), count((last - first + GROUP - 1) / GROUP), u(count * GROUP * width) {}
};

// Call visit(a, first, count, from) for every stretch of basis rows (see `stretch`) and every group of items: the
// stretch begins at row `from`, and group number a has `count` items, the first of which is `first`. The outer loop
// runs over the stretches, so that the basis rows of a stretch stay in cache.
template <class T, class Visit> void for_groups(const Dense& V, const Basis<T>& B, const DenseGroups<T>& groups, Visit visit) {
    const int64_t step = stretch(B);
    for (int64_t from = 0; from < V.n_columns; from += step)
        for (int64_t a = 0; a < groups.count; ++a) {
            const int64_t first = groups.begin + a * GROUP;
            const int64_t left = groups.end - first;
            visit(a, first, static_cast<int>(left < GROUP ? left : GROUP), from);
        }
}

template <class T> void copy_items(DenseGroups<T>& groups, const Basis<T>& B, const T* h) {
    for (int64_t j = groups.begin; j < groups.end; ++j)
        for (int i = 0; i < B.k; ++i) groups.u[(j - groups.begin) * B.width + i] = h[j * B.k + i];
}

}  // namespace
}  // namespace sipower
