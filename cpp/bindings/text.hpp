// SPDX-License-Identifier: BSD-3-Clause
// Parsing of text for Python. It is no kernel: it reads files, not matrices.
#pragma once
#include <cmath>
#include <string>

#include "bindings/arguments.hpp"
#include "entry_lines.hpp"

namespace sipower {
namespace {

// Round the numbers that `EntryLines` left open, as Python's float() does; what is no positive finite number after
// that makes its line the bad one.
inline void round_hard_numbers(const char* text, EntryLines& lines) {
    for (const HardNumber& number : lines.hard) {
        const std::string digits(text + number.begin, text + number.end);
        const double value = PyOS_string_to_double(digits.c_str(), nullptr, nullptr);
        if (PyErr_Occurred()) throw nb::python_error();
        if (!(value > 0 && std::isfinite(value))) {
            lines.bad_line = number.line;
            return;
        }
        lines.decimals[number.entry] = value;
    }
}

// Parse lines of entries: rows and columns if `indices`, and a value if `values`, whole or decimal. Returns rows and
// columns counted from 0, the values, and the first line that is not valid, counted from 0, or -1.
inline nb::tuple parse_entries(const nb::bytes& text, bool indices, bool values, bool whole, int64_t n_rows, int64_t n_columns) {
    EntryLines lines{indices, values, whole, n_rows, n_columns};
    const char* const data = text.c_str();
    {
        nb::gil_scoped_release unlocked;
        lines.parse(data, static_cast<int64_t>(text.size()));
    }
    round_hard_numbers(data, lines);
    nb::object numbers = whole ? to_numpy(std::move(lines.wholes)) : to_numpy(std::move(lines.decimals));
    return nb::make_tuple(to_numpy(std::move(lines.row)), to_numpy(std::move(lines.column)), numbers, lines.bad_line);
}

inline void bind_text(nb::module_& m) {
    using nb::arg;
    m.def("parse_entries", &parse_entries, arg("text"), arg("indices"), arg("values"), arg("whole"), arg("n_rows"), arg("n_columns"));
}

}  // namespace
}  // namespace sipower
