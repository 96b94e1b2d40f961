// SPDX-License-Identifier: BSD-3-Clause
// Allocation of aligned memory.
#pragma once
#include <cstdlib>
#include <new>
#if defined(_WIN32)
#include <malloc.h>
#endif

namespace sipower {
namespace {

constexpr size_t CACHE_LINE = 64;

// Return memory that begins at a multiple of `alignment`; `bytes` must be a multiple of it.
inline void* allocate_aligned(size_t alignment, size_t bytes) {
#if defined(_WIN32)
    void* p = _aligned_malloc(bytes, alignment);
#else
    void* p = std::aligned_alloc(alignment, bytes);
#endif
    if (!p) throw std::bad_alloc();
    return p;
}

inline void free_aligned(void* p) {
#if defined(_WIN32)
    _aligned_free(p);
#else
    std::free(p);
#endif
}

}  // namespace
}  // namespace sipower
