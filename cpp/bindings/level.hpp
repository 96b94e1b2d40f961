// SPDX-License-Identifier: BSD-3-Clause
// Choice of the instruction-set level, and the kernels compiled for it.
#pragma once
#if defined(_WIN32) && defined(SIPOWER_HAS_X86_64_V3)
#include <cpuid.h>
// As windows.h declares it; that header also defines macros such as `near`.
extern "C" __declspec(dllimport) int __stdcall IsProcessorFeaturePresent(unsigned long);
#endif

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "kernels.hpp"

namespace sipower {
namespace {

inline bool runs_v3() {
#if defined(_WIN32) && defined(SIPOWER_HAS_X86_64_V3)
    // clang-cl links no library that has the data of __builtin_cpu_supports.
    constexpr unsigned long avx2 = 40;  // PF_AVX2_INSTRUCTIONS_AVAILABLE: the processor and the system support it
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0, unused = 0, extended = 0;
    return IsProcessorFeaturePresent(avx2) && __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_FMA) &&
           __get_cpuid_count(7, 0, &unused, &extended, &eax, &edx) && (extended & bit_BMI2);
#elif defined(SIPOWER_HAS_X86_64_V3)
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
#else
    return false;
#endif
}

// Return the best level that the processor supports, or the level that SIPOWER_ISA names.
inline std::string level() {
    static const std::string chosen = [] {
        const char* requested = std::getenv("SIPOWER_ISA");
        if (!requested || !*requested) return std::string(runs_v3() ? "x86-64-v3" : "baseline");
        if (std::string(requested) == "baseline") return std::string("baseline");
        if (std::string(requested) == "x86-64-v3" && runs_v3()) return std::string("x86-64-v3");
        throw std::runtime_error(std::string("SIPOWER_ISA=") + requested +
                                 " is not supported by this processor: use " + (runs_v3() ? "x86-64-v3 or baseline." : "baseline."));
    }();
    return chosen;
}

template <class T, class Data> const Kernels<T, Data>& kernels() {
#if defined(SIPOWER_HAS_X86_64_V3)
    static const bool v3 = level() == "x86-64-v3";
    if (v3) return x86_64_v3::table<T, Data>();
#endif
    return baseline::table<T, Data>();
}

}  // namespace
}  // namespace sipower
