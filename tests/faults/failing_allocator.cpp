// SPDX-License-Identifier: BSD-3-Clause
// An allocator whose n-th allocation fails: preload it, then choose which allocations count.
//
// It counts allocations by the compiled kernels, recognised by the address that they are called
// from, and allocations of array data, for which NumPy calls the functions of `numpy_handler`.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <unordered_set>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
}

namespace {

// Memory for the set below, which must not count itself.
template <class T> struct Uncounted {
    using value_type = T;
    Uncounted() = default;
    template <class U> Uncounted(const Uncounted<U>&) {}
    T* allocate(size_t n) { return static_cast<T*>(__libc_malloc(n * sizeof(T))); }
    void deallocate(T* memory, size_t) { __libc_free(memory); }
    bool operator==(const Uncounted&) const { return true; }
    bool operator!=(const Uncounted&) const { return false; }
};
using Addresses = std::unordered_set<const void*, std::hash<const void*>, std::equal_to<const void*>, Uncounted<const void*>>;

// The counted allocations that have not been freed. Never destroyed, because memory is freed until the very end.
Addresses& live() {
    static Addresses& addresses = *::new (__libc_malloc(sizeof(Addresses))) Addresses;
    return addresses;
}

std::mutex lock;
uintptr_t code_begin = 0, code_end = 0;
long counted = 0, failing = 0, failures = 0;
bool counts_kernels = false, counts_arrays = false;

bool is_kernel(const void* caller) {
    const auto address = reinterpret_cast<uintptr_t>(caller);
    return address >= code_begin && address < code_end;
}

// Count an allocation; return whether it is the one that must fail.
bool must_fail() {
    const std::lock_guard<std::mutex> guard(lock);
    const bool fails = ++counted == failing;
    failures += fails;
    if (fails) errno = ENOMEM;
    return fails;
}

void* add(void* memory) {
    const std::lock_guard<std::mutex> guard(lock);
    live().insert(memory);
    return memory;
}

void remove(const void* memory) {
    if (!code_end) return;  // nothing has been counted yet
    const std::lock_guard<std::mutex> guard(lock);
    live().erase(memory);
}

template <class Allocate> void* allocate(const void* caller, Allocate allocate) {
    if (!is_kernel(caller)) return allocate();
    if (counts_kernels && must_fail()) return nullptr;
    void* const memory = allocate();
    return memory ? add(memory) : nullptr;
}

template <class Allocate> void* allocate_array(Allocate allocate) {
    if (counts_arrays && must_fail()) return nullptr;
    void* const memory = allocate();
    return memory ? add(memory) : nullptr;
}

}  // namespace

#define CALLER __builtin_return_address(0)

extern "C" {

void* malloc(size_t size) { return allocate(CALLER, [=] { return __libc_malloc(size); }); }
void* calloc(size_t count, size_t size) { return allocate(CALLER, [=] { return __libc_calloc(count, size); }); }
void* aligned_alloc(size_t to, size_t size) { return allocate(CALLER, [=] { return __libc_memalign(to, size); }); }
void free(void* memory) {
    remove(memory);
    __libc_free(memory);
}
void* realloc(void* memory, size_t size) {
    if (is_kernel(CALLER) && counts_kernels && must_fail()) return nullptr;
    remove(memory);
    void* const moved = __libc_realloc(memory, size);
    return is_kernel(CALLER) && moved ? add(moved) : moved;
}

// ---- the functions that NumPy calls for the data of arrays ----------------------------------

static void* array_malloc(void*, size_t size) {
    return allocate_array([=] { return __libc_malloc(size); });
}
static void* array_calloc(void*, size_t count, size_t size) {
    return allocate_array([=] { return __libc_calloc(count, size); });
}
static void* array_realloc(void*, void* memory, size_t size) {
    if (counts_arrays && must_fail()) return nullptr;
    remove(memory);
    void* const moved = __libc_realloc(memory, size);
    return moved ? add(moved) : nullptr;
}
static void array_free(void*, void* memory, size_t) { free(memory); }

// PyDataMem_Handler of NumPy, version 1.
struct {
    char name[127];
    uint8_t version;
    void* context;
    void* (*malloc)(void*, size_t);
    void* (*calloc)(void*, size_t, size_t);
    void* (*realloc)(void*, void*, size_t);
    void (*free)(void*, void*, size_t);
} numpy_handler = {"failing", 1, nullptr, array_malloc, array_calloc, array_realloc, array_free};

// ---- the functions that the test calls ------------------------------------------------------

void set_kernel_code(uintptr_t begin, uintptr_t end) {
    code_begin = begin;
    code_end = end;
}
void fail_allocation(long number, bool kernels, bool arrays) {
    counted = failures = 0;
    failing = number;
    counts_kernels = kernels;
    counts_arrays = arrays;
}
void stop_failing() { counts_kernels = counts_arrays = false; }
long allocations_failed() { return failures; }
long allocations_counted() { return counted; }
long allocations_live() {
    const std::lock_guard<std::mutex> guard(lock);
    return static_cast<long>(live().size());
}
}

void* operator new(size_t size) {
    void* const memory = allocate(CALLER, [=] { return __libc_malloc(size); });
    if (!memory) throw std::bad_alloc();
    return memory;
}
void* operator new[](size_t size) {
    void* const memory = allocate(CALLER, [=] { return __libc_malloc(size); });
    if (!memory) throw std::bad_alloc();
    return memory;
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
    return allocate(CALLER, [=] { return __libc_malloc(size); });
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
    return allocate(CALLER, [=] { return __libc_malloc(size); });
}
void* operator new(size_t size, std::align_val_t to) {
    void* const memory = allocate(CALLER, [=] { return __libc_memalign(static_cast<size_t>(to), size); });
    if (!memory) throw std::bad_alloc();
    return memory;
}
void operator delete(void* memory) noexcept { free(memory); }
void operator delete[](void* memory) noexcept { free(memory); }
void operator delete(void* memory, size_t) noexcept { free(memory); }
void operator delete[](void* memory, size_t) noexcept { free(memory); }
