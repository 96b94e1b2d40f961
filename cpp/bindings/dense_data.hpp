// SPDX-License-Identifier: BSD-3-Clause
// Dense data from Python.
#pragma once
#include <vector>

#include "bindings/arguments.hpp"
#include "bindings/value_sums.hpp"
#include "matrices.hpp"

namespace sipower {
namespace {

// A dense matrix and the array that holds it.
struct DenseData {
    using View = Dense;
    ValueArray values;
    Dense view;

    explicit DenseData(ValueArray v) : values(v) {
        require(static_cast<int64_t>(v.shape(1)) < INT32_MAX, "values must have fewer than 2^31 - 1 columns");
        view = {{aligned_data(v), value_type(v.dtype())}, static_cast<int64_t>(v.shape(0)), static_cast<int64_t>(v.shape(1))};
    }

    nb::object row_sums() const {
        std::vector<double> out(static_cast<size_t>(view.items));
        for (int64_t j = 0; j < view.items; ++j)
            out[static_cast<size_t>(j)] = sum_values(view.values, j * view.n_columns, view.n_columns);
        return to_numpy(std::move(out));
    }
    bool holds(int64_t begin, int64_t end) const { return 0 <= begin && begin <= end && end <= view.items; }
};

inline void bind_dense(nb::module_& m) {
    nb::class_<DenseData>(m, "Dense")
        .def(nb::init<ValueArray>(), nb::arg("values").noconvert())
        .def("row_sums", &DenseData::row_sums);
}

}  // namespace
}  // namespace sipower
