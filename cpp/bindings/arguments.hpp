// SPDX-License-Identifier: BSD-3-Clause
// Conversion and validation of arguments from Python: array types, checks, keys of random numbers.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "matrices.hpp"
#include "random.hpp"

namespace sipower {
namespace {

namespace nb = nanobind;

template <class T> using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Array = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Values of any type that a matrix may have (uint8, uint16, float32, float64).
using ValueVector = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ValueArray = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

inline void require(bool holds, const char* message) {
    if (!holds) throw std::invalid_argument(message);
}

// Return a pointer to the first element. An array that is a view of raw bytes may be unaligned; kernels must not
// read it.
template <class A> auto* aligned_data(const A& array) {
    const bool aligned = reinterpret_cast<uintptr_t>(array.data()) % array.itemsize() == 0;
    require(aligned || array.size() == 0, "an array is not aligned to its type: copy it first");
    return array.data();
}

// The largest number of rounds in one call; a call cannot be interrupted.
constexpr int64_t MAX_ROUNDS = 1 << 20;
inline void require_rounds(int64_t count) {
    require(0 <= count && count <= MAX_ROUNDS, "the number of sweeps, steps or rounds must lie between 0 and 2^20");
}

inline Type value_type(const nb::dlpack::dtype& t) {
    if (t == nb::dtype<uint8_t>()) return Type::uint8;
    if (t == nb::dtype<uint16_t>()) return Type::uint16;
    if (t == nb::dtype<float>()) return Type::float32;
    if (t == nb::dtype<double>()) return Type::float64;
    throw std::invalid_argument("values must be uint8, uint16, float32 or float64");
}

template <class T> nb::object to_numpy(std::vector<T>&& data) {
    auto* owned = new std::vector<T>(std::move(data));
    nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(owned->data(), {owned->size()}, owner));
}

// Key and counter of a random number, as Python tuples.
using Pair = std::tuple<uint64_t, uint64_t>;
using Quad = std::tuple<uint64_t, uint64_t, uint64_t, uint64_t>;
inline Key as_key(const Pair& p) { return {std::get<0>(p), std::get<1>(p)}; }
inline Place as_place(const Quad& p) { return {std::get<0>(p), std::get<1>(p), std::get<2>(p), std::get<3>(p)}; }

}  // namespace
}  // namespace sipower
