// SPDX-License-Identifier: BSD-3-Clause
// Bounds checks of array indices, only in the builds of tools/sanitize.py.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace sipower {
namespace {

// The number of elements of an array. In a bounds-checked build (tools/sanitize.py) an index out of range
// aborts the process where it is used; in any other build the check compiles to nothing.
#if defined(SIPOWER_CHECKED)
class Extent {
public:
    explicit Extent(int64_t size) : size_(size) {}
    void expect(int64_t index) const {
        if (0 <= index && index < size_) return;
        std::fprintf(stderr, "index out of range: an array of %lld elements has no element %lld\n", static_cast<long long>(size_), static_cast<long long>(index));
        std::abort();
    }

private:
    int64_t size_;
};
#else
struct Extent {
    explicit Extent(int64_t) {}
    void expect(int64_t) const {}
};
#endif

}  // namespace
}  // namespace sipower
