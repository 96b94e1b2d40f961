// SPDX-License-Identifier: BSD-3-Clause
// Deliberate faults, compiled like the kernels in the builds of tools/sanitize.py: one of each kind
// that a build must report. That kernels have no reports means something only if these do.
#include <climits>
#include <cmath>
#include <thread>
#include <vector>

#include "buffer.hpp"
#include "matrices.hpp"

namespace {

// Hides a value from the compiler, so that it cannot optimise the fault away.
template <class T> T hidden(T value) {
    volatile T copy = value;
    return copy;
}

}  // namespace

extern "C" {

// address
int heap_overflow() {
    const std::vector<int> held(static_cast<size_t>(hidden(4)));
    return held.data()[hidden(4)];
}
int use_after_free() {
    int* const held = new int[4]();
    delete[] held;
    return held[hidden(1)];
}
int stack_overflow() {
    int held[4] = {hidden(1)};
    return held[hidden(4)];
}
int signed_overflow() { return hidden(INT_MAX) + hidden(1); }
int shift_too_far() { return 1 << hidden(40); }
int cast_of_nan() { return static_cast<int>(hidden(NAN)); }
double misaligned() {
    alignas(8) char held[16] = {};
    return *reinterpret_cast<const double*>(held + hidden(1));
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
    return held[hidden(4)];
}
int beyond_a_vector() {
    const std::vector<int> held(static_cast<size_t>(hidden(4)));
    return held[static_cast<size_t>(hidden(4))];
}
int beyond_the_columns() {
    const int64_t indptr[] = {0, 1};
    const int32_t indices[] = {hidden(7)};
    const sipower::Csr V{indptr, indices, {nullptr, sipower::Type::float64}, 1, 7, 0, 1};
    return *V.columns(0, 1);
}

}
