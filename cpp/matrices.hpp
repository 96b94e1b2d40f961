// SPDX-License-Identifier: BSD-3-Clause
// `Csr` and `Dense`: views of the data, with values in one of four types.
#pragma once
#include <cstdint>

#include "extent.hpp"

namespace sipower {

enum class Type { uint8, uint16, float32, float64 };

struct Values {
    const void* data;
    Type type;
};

// A CSR matrix, or a window of one, which holds only the nonzeros of the items [first, last).
struct Csr {
    const int64_t* indptr;  // of the whole matrix
    const int32_t* indices;
    Values values;
    int64_t items, n_columns, first, last;

    // Return the position of the first nonzero of an item in `indices` and `values`.
    int64_t start(int64_t item) const { return indptr[item] - indptr[first]; }
    int64_t nonzeros(int64_t item) const { return indptr[item + 1] - indptr[item]; }
    // Return the columns of the n nonzeros from position `at` on.
    const int32_t* columns(int64_t at, int64_t n) const {
        for (int64_t t = at; t < at + n; ++t) {
            Extent(start(last)).expect(t);
            Extent(n_columns).expect(indices[t]);
        }
        return indices + at;
    }
};

struct Dense {
    Values values;
    int64_t items, n_columns;
};

}  // namespace sipower
