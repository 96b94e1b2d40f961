// SPDX-License-Identifier: BSD-3-Clause
// Scratch memory of the kernels.
#pragma once
#include <cstdlib>
#include <cstring>
#include <new>

#include "extent.hpp"

namespace sipower {
namespace {

// Scratch memory of one kernel call, aligned for vectors and zeroed.
template <class T> class Buffer : Extent {
public:
    explicit Buffer(int64_t n) : Extent(n) {
        const size_t bytes = (static_cast<size_t>(n > 0 ? n : 1) * sizeof(T) + 63) / 64 * 64;
        data_ = static_cast<T*>(std::aligned_alloc(64, bytes));
        if (!data_) throw std::bad_alloc();
        std::memset(static_cast<void*>(data_), 0, bytes);
    }
    ~Buffer() { std::free(data_); }
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
