// SPDX-License-Identifier: BSD-3-Clause
// `DenseGroups`: items of dense data in groups that share each read of the basis.
#pragma once
#include "dense_pass.hpp"

namespace sipower {
namespace {

// Items [begin, end) in padded groups: u (groups * GROUP, width) in the working type.
template <class T> struct DenseGroups {
    int64_t begin, end, count;
    Buffer<T> u;
    DenseGroups(int64_t first, int64_t last, int width)
        : begin(first), end(last), count((last - first + GROUP - 1) / GROUP), u(count * GROUP * width) {}
};

// Visit (stretch of the basis) x (group of items); the stretch is the outer loop, so that it stays in cache.
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
