// SPDX-License-Identifier: BSD-3-Clause
// A basis from Python, copied into the kernels' layout.
#pragma once
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "aligned_memory.hpp"
#include "basis.hpp"
#include "bindings/arguments.hpp"

namespace sipower {
namespace {

// The rows of a large basis are read in random order: huge pages, if available, avoid most TLB misses.
constexpr size_t HUGE_PAGE = 2 << 20, LARGE = 8 * HUGE_PAGE;

// A padded copy of a basis, the terms of the objective and, for dense data, the tiles of the basis.
template <class T> struct BasisData {
    struct FreeMemory {
        void operator()(T* p) const { free_aligned(p); }
    };
    std::unique_ptr<T, FreeMemory> rows, tiles;
    std::vector<double> d, inverse, prior, ridges;
    std::vector<uint8_t> fixed;
    int64_t items = -1;  // number of items that the terms belong to; -1: any
    Basis<T> view;

    static std::unique_ptr<T, FreeMemory> allocate(int64_t rows, int64_t columns) {
        const size_t size = std::max<size_t>(static_cast<size_t>(rows * columns), 1) * sizeof(T);
        const size_t page = size >= LARGE ? HUGE_PAGE : CACHE_LINE, bytes = (size + page - 1) / page * page;
        T* p = static_cast<T*>(allocate_aligned(page, bytes));
#if defined(MADV_HUGEPAGE)
        if (page == HUGE_PAGE) madvise(p, bytes, MADV_HUGEPAGE);
#endif
        return std::unique_ptr<T, FreeMemory>(p);
    }

    // Each of `linear` (d), `prior` and `fixed` has one row for all items or one row per item. Without `linear`, d holds
    // the column sums.
    BasisData(Array<const T> a, bool dense, std::optional<Array<const double>> linear, std::optional<Array<const double>> prior_counts,
              std::optional<Array<const uint8_t>> fixed_components, std::optional<Vector<const double>> ridge) {
        const int64_t n = static_cast<int64_t>(a.shape(0));
        require(a.shape(1) >= 1 && a.shape(1) <= 65536, "the basis must have between 1 and 65536 columns");
        const int k = static_cast<int>(a.shape(1)), width = padded_width<T>(k);
        double largest_ridge = 0;
        if (ridge) {
            const int64_t count = static_cast<int64_t>(ridge->shape(0));
            require(count == 1 || items < 0 || items == count, "ridge must have one number, or one number per item");
            ridges.assign(aligned_data(*ridge), aligned_data(*ridge) + count);
            for (const double r : ridges) {
                require(r >= 0 && r < 1e300, "ridge must be finite and not negative");
                largest_ridge = std::max(largest_ridge, r);
            }
            if (count != 1) items = count;
        }
        int64_t strides[3] = {term_stride(linear, k, width), term_stride(prior_counts, k, width), term_stride(fixed_components, k, width)};
        const T* from = aligned_data(a);
        nb::gil_scoped_release release;
        rows = allocate(n, width);
        for (int64_t i = 0; i < n; ++i) {
            T* const to = rows.get() + i * width;
            std::copy_n(from + i * k, k, to);
            std::fill_n(to + k, width - k, T(0));
        }
        if (linear) {
            copy_term(*linear, width, d);
        } else {
            d.assign(static_cast<size_t>(width), 0.0);
            double* const sums = d.data();
            for (int64_t i = 0; i < n; ++i)
                for (int c = 0; c < k; ++c) sums[c] += static_cast<double>(from[i * k + c]);
        }
        inverse.resize(d.size());
        for (size_t i = 0; i < d.size(); ++i) inverse[i] = d[i] > 0 ? 1 / d[i] : 0;
        if (prior_counts) copy_term(*prior_counts, width, prior);
        if (fixed_components) copy_term(*fixed_components, width, fixed);
        if (dense) fill_tiles(from, n, k);
        view = {n, k, width, rows.get(), tiles.get(), d.data(), inverse.data(), prior_counts ? prior.data() : nullptr,
                fixed_components ? fixed.data() : nullptr, largest_ridge, ridges.size() > 1 ? ridges.data() : nullptr,
                strides[0], strides[1], strides[2]};
    }

    // Return 0 if a term is the same for all items, else the row length of its padded copy.
    template <class Term> int64_t term_stride(const std::optional<Term>& term, int k, int width) {
        if (!term) return 0;
        require(static_cast<int>(term->shape(1)) == k, "d, prior and fixed must have one column per component");
        const int64_t count = static_cast<int64_t>(term->shape(0));
        if (count == 1) return 0;
        require(items < 0 || items == count, "d, prior and fixed must have one row, or one row per item");
        items = count;
        return width;
    }
    template <class Term, class Number> static void copy_term(const Term& term, int width, std::vector<Number>& to) {
        const size_t count = term.shape(0), k = term.shape(1);
        to.assign(std::max<size_t>(count, 1) * static_cast<size_t>(width), Number(0));
        for (size_t j = 0; j < count; ++j) std::copy_n(aligned_data(term) + j * k, k, to.begin() + static_cast<int64_t>(j) * width);
    }

    // Transpose the basis tile by tile, (tiles, K, TILE), with zeros beyond the last row.
    void fill_tiles(const T* from, int64_t n, int k) {
        tiles = allocate((n + TILE - 1) / TILE * TILE, k);
        for (int64_t first = 0; first < n; first += TILE) {
            const int64_t count = std::min<int64_t>(TILE, n - first);
            for (int c = 0; c < k; ++c) {
                T* const to = tiles.get() + first * k + c * TILE;
                for (int64_t t = 0; t < count; ++t) to[t] = from[(first + t) * k + c];
                std::fill(to + count, to + TILE, T(0));
            }
        }
    }
};

template <class T> void bind_basis(nb::module_& m, const char* name) {
    using nb::arg;
    nb::class_<BasisData<T>>(m, name)
        .def(nb::init<Array<const T>, bool, std::optional<Array<const double>>, std::optional<Array<const double>>,
                      std::optional<Array<const uint8_t>>, std::optional<Vector<const double>>>(),
             arg("array").noconvert(), arg("dense"), arg("d").noconvert() = nb::none(), arg("prior").noconvert() = nb::none(),
             arg("fixed").noconvert() = nb::none(), arg("ridge").noconvert() = nb::none())
        .def_prop_ro("column_sums", [](const BasisData<T>& b) { return to_numpy(std::vector<double>(b.d.begin(), b.d.begin() + b.view.k)); });
}

}  // namespace
}  // namespace sipower
