// SPDX-License-Identifier: BSD-3-Clause
// Bounds of an array, checked in the builds of tools/sanitize.py alone.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace sipower {
namespace {

// How many elements something has. In a bounds-checked build (tools/sanitize.py) an index beyond
// them ends the process where it is used; in any other this is nothing.
#if defined(SIPOWER_CHECKED)
class Extent {
public:
    explicit Extent(int64_t size) : size_(size) {}
    void expect(int64_t index) const {
        if (0 <= index && index < size_) return;
        std::fprintf(stderr, "an index of %lld elements is %lld\n", static_cast<long long>(size_), static_cast<long long>(index));
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
