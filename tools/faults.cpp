// SPDX-License-Identifier: BSD-3-Clause
// Faults on purpose, compiled as the kernels are in the builds of tools/sanitize.py: one of each kind
// that a build must see. Silence about the kernels means something only if these are reported.
#include <climits>
#include <cmath>
#include <thread>
#include <vector>

#include "buffer.hpp"
#include "matrices.hpp"

namespace {

// What the compiler cannot know, so that it can leave nothing out.
template <class T> T unknown(T value) {
    volatile T hidden = value;
    return hidden;
}

}  // namespace

extern "C" {

// address
int heap_overflow() {
    const std::vector<int> held(static_cast<size_t>(unknown(4)));
    return held.data()[unknown(4)];
}
int use_after_free() {
    int* const held = new int[4]();
    delete[] held;
    return held[unknown(1)];
}
int stack_overflow() {
    int held[4] = {unknown(1)};
    return held[unknown(4)];
}
int signed_overflow() { return unknown(INT_MAX) + unknown(1); }
int shift_too_far() { return 1 << unknown(40); }
int cast_of_nan() { return static_cast<int>(unknown(NAN)); }
double misaligned() {
    alignas(8) char held[16] = {};
    return *reinterpret_cast<const double*>(held + unknown(1));
}

// thread
int race() {
    int shared = 0;
    const auto work = [&] {
        for (int i = 0; i < 1000; ++i) shared += i;
    };
    std::thread other(work);
    work();
    other.join();
    return shared;
}

// bounds
double beyond_a_buffer() {
    sipower::Buffer<double> held(4);
    return held[unknown(4)];
}
int beyond_a_vector() {
    const std::vector<int> held(static_cast<size_t>(unknown(4)));
    return held[static_cast<size_t>(unknown(4))];
}
int beyond_the_columns() {
    const int64_t indptr[] = {0, 1};
    const int32_t indices[] = {unknown(7)};
    const sipower::Csr V{indptr, indices, {nullptr, sipower::Type::float64}, 1, 7, 0, 1};
    return *V.columns(0, 1);
}

}
