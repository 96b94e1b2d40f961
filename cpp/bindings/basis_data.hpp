// SPDX-License-Identifier: BSD-3-Clause
// A basis from Python, copied into the kernels' layout.
#pragma once
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "basis.hpp"
#include "bindings/arguments.hpp"

namespace sipower {
namespace {

// The rows of a large basis are read in random order: huge pages, if available, avoid most TLB misses.
constexpr size_t HUGE_PAGE = 2 << 20, LARGE = 8 * HUGE_PAGE;

// A padded copy of a basis, its column sums and, for dense data, its tiles.
template <class T> struct BasisData {
    struct FreeMemory {
        void operator()(T* p) const { std::free(p); }
    };
    std::unique_ptr<T, FreeMemory> rows, tiles;
    std::vector<double> d, inverse;
    Basis<T> view;

    static std::unique_ptr<T, FreeMemory> allocate(int64_t rows, int64_t columns) {
        const size_t size = std::max<size_t>(static_cast<size_t>(rows * columns), 1) * sizeof(T);
        const size_t page = size >= LARGE ? HUGE_PAGE : 64, bytes = (size + page - 1) / page * page;
        T* p = static_cast<T*>(std::aligned_alloc(page, bytes));
        if (!p) throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
        if (page == HUGE_PAGE) madvise(p, bytes, MADV_HUGEPAGE);
#endif
        return std::unique_ptr<T, FreeMemory>(p);
    }

    // `column_sums` are the column sums of the whole basis, if the rows are only a batch of its rows.
    BasisData(Array<const T> a, bool dense, std::optional<Vector<const double>> column_sums) {
        const int64_t n = static_cast<int64_t>(a.shape(0));
        require(a.shape(1) >= 1 && a.shape(1) <= 65536, "the basis must have between 1 and 65536 columns");
        const int k = static_cast<int>(a.shape(1)), width = padded_width<T>(k);
        require(!column_sums || column_sums->shape(0) == a.shape(1), "column_sums must have one column sum per component");
        const T* from = aligned_data(a);
        nb::gil_scoped_release release;
        rows = allocate(n, width);
        d.assign(static_cast<size_t>(width), 0.0);
        inverse = d;
        for (int64_t i = 0; i < n; ++i) {
            T* const to = rows.get() + i * width;
            std::copy_n(from + i * k, k, to);
            std::fill_n(to + k, width - k, T(0));
        }
        if (!column_sums)
            for (int64_t i = 0; i < n; ++i)
                for (int c = 0; c < k; ++c) d[static_cast<size_t>(c)] += static_cast<double>(from[i * k + c]);
        if (column_sums) std::copy_n(aligned_data(*column_sums), k, d.begin());
        int alive = 0;
        for (int c = 0; c < k; ++c)
            if (d[static_cast<size_t>(c)] > 0) {
                inverse[static_cast<size_t>(c)] = 1 / d[static_cast<size_t>(c)];
                ++alive;
            }
        if (dense) fill_tiles(from, n, k);
        view = {n, k, width, rows.get(), tiles.get(), d.data(), inverse.data(), alive};
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
    nb::class_<BasisData<T>>(m, name)
        .def(nb::init<Array<const T>, bool, std::optional<Vector<const double>>>(), nb::arg("array").noconvert(), nb::arg("dense"),
             nb::arg("column_sums").noconvert() = nb::none())
        .def_prop_ro("column_sums", [](const BasisData<T>& b) { return to_numpy(std::vector<double>(b.d.begin(), b.d.begin() + b.view.k)); });
}

}  // namespace
}  // namespace sipower
