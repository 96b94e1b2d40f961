// SPDX-License-Identifier: BSD-3-Clause
// Scratch memory of the kernels.
#pragma once
#include <cstring>

#include "aligned_memory.hpp"
#include "extent.hpp"

namespace sipower {
namespace {

// Scratch memory of one kernel call, aligned for vectors and zeroed.
template <class T> class Buffer : Extent {
public:
    explicit Buffer(int64_t n) : Extent(n) {
        const size_t bytes = (static_cast<size_t>(n > 0 ? n : 1) * sizeof(T) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
        data_ = static_cast<T*>(allocate_aligned(CACHE_LINE, bytes));
        std::memset(static_cast<void*>(data_), 0, bytes);
    }
    ~Buffer() { free_aligned(data_); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    T* get() { return data_; }
    const T* get() const { return data_; }
    T& operator[](int64_t i) {
        expect(i);
        return data_[i];
    }

private:
    T* data_;
};

}  // namespace
}  // namespace sipower
