// SPDX-License-Identifier: BSD-3-Clause
// CSR data from Python.
#pragma once
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "bindings/arguments.hpp"
#include "bindings/value_sums.hpp"
#include "matrices.hpp"

namespace sipower {
namespace {

// A CSR matrix or a window of it, and the arrays that hold it.
// Indices are always checked: a damaged file must not crash the process.
struct CsrData {
    using View = Csr;
    Vector<const int64_t> indptr;
    Vector<const int32_t> indices;
    ValueVector values;
    Csr view;

    CsrData(Vector<const int64_t> p, Vector<const int32_t> i,
            ValueVector v, int64_t n_columns,
            std::optional<std::tuple<int64_t, int64_t>> window)
        : indptr(p), indices(i), values(v) {
        require(p.shape(0) >= 1, "indptr is empty");
        const int64_t items = static_cast<int64_t>(p.shape(0)) - 1, nonzeros = static_cast<int64_t>(i.shape(0));
        const int64_t first = window ? std::get<0>(*window) : 0, last = window ? std::get<1>(*window) : items;
        require(0 <= first && first <= last && last <= items, "window must lie within the rows of indptr");
        require(static_cast<int64_t>(v.shape(0)) == nonzeros, "indices and values differ in length");
        view = {aligned_data(p), aligned_data(i), {aligned_data(v), value_type(v.dtype())}, items, n_columns, first, last};
        nb::gil_scoped_release release;
        require(view.indptr[0] == 0, "indptr does not begin with 0");
        require(view.indptr[first] >= 0, "indptr decreases");
        for (int64_t j = first; j < last; ++j) {
            require(view.indptr[j] <= view.indptr[j + 1], "indptr decreases");
            require(view.nonzeros(j) < INT32_MAX, "a row has more than 2^31 nonzeros");
        }
        require(view.start(last) == nonzeros, "indptr does not span the values");
        // The highest bit of j or of n_columns − 1 − j is set unless 0 ≤ j < n_columns, so the loop needs no branch.
        require(0 <= n_columns && n_columns <= INT32_MAX, "n_columns must be between 0 and 2^31 - 1");
        const uint32_t largest = static_cast<uint32_t>(n_columns) - 1;
        uint32_t outside = n_columns == 0 && nonzeros > 0 ? 1u << 31 : 0;
        for (int64_t t = 0; t < nonzeros; ++t) {
            const uint32_t j = static_cast<uint32_t>(view.indices[t]);
            outside |= j | (largest - j);
        }
        require(outside >> 31 == 0, "a column index is out of range");
    }

    nb::object row_sums() const {
        std::vector<double> out;
        for (int64_t j = view.first; j < view.last; ++j) out.push_back(sum_values(view.values, view.start(j), view.nonzeros(j)));
        return to_numpy(std::move(out));
    }
    bool holds(int64_t begin, int64_t end) const { return view.first <= begin && begin <= end && end <= view.last; }
};

inline void bind_csr(nb::module_& m) {
    nb::class_<CsrData>(m, "Csr")
        .def(nb::init<Vector<const int64_t>, Vector<const int32_t>, ValueVector, int64_t, std::optional<std::tuple<int64_t, int64_t>>>(),
             nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(), nb::arg("values").noconvert(), nb::arg("n_columns"),
             nb::arg("window") = nb::none())
        .def("row_sums", &CsrData::row_sums);
}

}  // namespace
}  // namespace sipower
