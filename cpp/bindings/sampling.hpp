// SPDX-License-Identifier: BSD-3-Clause
// Random batches for Python: the same numbers that the epoch kernels draw.
#pragma once
#include <algorithm>
#include <vector>

#include "bindings/csr_data.hpp"
#include "draws.hpp"
#include "epoch.hpp"
#include "sparse_shuffle.hpp"

namespace sipower {
namespace {

inline nb::object draw_batch(Pair key, Quad place, int64_t n, int64_t s, bool replace) {
    require(1 <= s && n >= 1 && n <= INT32_MAX && (replace || s <= n), "s must lie between 1 and n, and n below 2^31");
    std::vector<int32_t> out(static_cast<size_t>(s));
    Random random(as_key(key), as_place(place));
    if (replace) draw_repeated(random, n, s, out.data());
    else SparseShuffle(s).draw(random, n, s, out.data());
    return to_numpy(std::move(out));
}

// Draw a share of the nonzeros of every item that V holds, uniformly or by weight. Returns the values, multiplied
// by the factors that make the batch unbiased, the columns, and the number of nonzeros drawn from every item.
template <class T>
nb::tuple sample(const CsrData& V, Pair key, Quad place, double share, bool weighted, bool replace) {
    const Csr& from = V.view;
    require(share > 0 && share <= 1, "share must be a number in (0, 1]");
    std::vector<int64_t> counts;
    std::vector<int32_t> indices, order, swaps, at;
    std::vector<T> picked;
    std::vector<double> values, upto, factor;
    Place where = as_place(place);
    for (int64_t j = from.first; j < from.last; ++j) {
        const int64_t first = from.start(j), n = from.nonzeros(j), s = batch_size(share, n);
        counts.push_back(0);
        if (n == 0) continue;
        while (static_cast<int64_t>(order.size()) < n) order.push_back(static_cast<int32_t>(order.size()));
        swaps.resize(order.size()), at.resize(order.size()), factor.resize(order.size());
        values.clear();
        for (int64_t i = 0; i < n; ++i) values.push_back(sum_values(from.values, first + i, 1));
        where.item = static_cast<uint64_t>(j);
        Random random(as_key(key), where);
        int64_t count = s;
        if (weighted) {
            upto = values;
            for (int64_t i = 1; i < n; ++i) upto[static_cast<size_t>(i)] += upto[static_cast<size_t>(i) - 1];
            if (replace) draw_weighted(random, values.data(), upto.data(), n, s, at.data(), factor.data());
            else count = draw_systematic(random, values.data(), upto.back(), n, s, at.data(), factor.data());
        } else {
            if (replace) draw_repeated(random, n, s, at.data());
            else draw_distinct(random, n, s, order.data(), swaps.data(), at.data());
            std::fill_n(factor.begin(), s, static_cast<double>(n) / static_cast<double>(s));
        }
        for (int64_t t = 0; t < count; ++t) {
            const size_t chosen = static_cast<size_t>(at[static_cast<size_t>(t)]);
            indices.push_back(from.indices[first + static_cast<int64_t>(chosen)]);
            picked.push_back(static_cast<T>(values[chosen] * factor[static_cast<size_t>(t)]));
        }
        counts.back() = count;
    }
    return nb::make_tuple(to_numpy(std::move(picked)), to_numpy(std::move(indices)), to_numpy(std::move(counts)));
}

inline nb::object draw_uniform(Pair key, Quad place, int64_t n) {
    require(n >= 0, "n must not be negative");
    std::vector<double> out(static_cast<size_t>(n));
    Random random(as_key(key), as_place(place));
    for (double& x : out) x = random.uniform();
    return to_numpy(std::move(out));
}

inline void bind_sampling(nb::module_& m) {
    using nb::arg;
    m.def("draw_batch", &draw_batch, arg("key"), arg("place"), arg("n"), arg("s"), arg("replace"));
    m.def("draw_uniform", &draw_uniform, arg("key"), arg("place"), arg("n"));
    m.def("sample_float32", &sample<float>, arg("V"), arg("key"), arg("place"), arg("share"), arg("weighted"), arg("replace"));
    m.def("sample_float64", &sample<double>, arg("V"), arg("key"), arg("place"), arg("share"), arg("weighted"), arg("replace"));
}

}  // namespace
}  // namespace sipower
