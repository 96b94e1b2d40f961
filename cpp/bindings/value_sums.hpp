// SPDX-License-Identifier: BSD-3-Clause
// Sums of the values of a matrix.
#pragma once
#include <cstdint>

#include "kernels.hpp"

namespace sipower {
namespace {

// Sum n values in float64, LONGEST_SUM at a time, so that a row has the same sum wherever it is stored.
template <class T> double sum_values(const T* values, int64_t n) {
    double total = 0;
    for (int64_t from = 0; from < n; from += LONGEST_SUM) {
        double part = 0;
        for (int64_t i = from; i < n && i < from + LONGEST_SUM; ++i) part += static_cast<double>(values[i]);
        total += part;
    }
    return total;
}
inline double sum_values(const Values& v, int64_t at, int64_t n) {
    switch (v.type) {
        case Type::uint8: return sum_values(static_cast<const uint8_t*>(v.data) + at, n);
        case Type::uint16: return sum_values(static_cast<const uint16_t*>(v.data) + at, n);
        case Type::float32: return sum_values(static_cast<const float*>(v.data) + at, n);
        default: return sum_values(static_cast<const double*>(v.data) + at, n);
    }
}

}  // namespace
}  // namespace sipower
