// SPDX-License-Identifier: BSD-3-Clause
// Compiled once per instruction-set level and working type; see CMakeLists.txt. Everything but the
// one function below has internal linkage, so no code of one level can be linked into another.
#include "coordinate.hpp"

#define SIPOWER_JOIN_(a, b) a##_##b
#define SIPOWER_JOIN(a, b) SIPOWER_JOIN_(a, b)

namespace sipower {
namespace SIPOWER_LEVEL {

const Kernels<SIPOWER_TYPE>& SIPOWER_JOIN(kernels, SIPOWER_TYPE)() {
    typedef SIPOWER_TYPE T;
    static const Kernels<T> table = {
        gradient_csr<T>,   gradient_dense<T>,   sums_csr<T>,  sums_dense<T>,
        divergence_csr<T>, divergence_dense<T>, mu_csr<T>,    mu_dense<T>,
        power_csr<T>,      power_dense<T>,      gaps_csr<T>,  gaps_dense<T>,
        coordinate<T, Csr>,         coordinate<T, Dense>,
        projected_gradient<T, Csr>, projected_gradient<T, Dense>,
        solve_items<T, Csr>,        solve_items<T, Dense>,
        epoch_csr<T>,      epoch_dense<T>,
    };
    return table;
}

}  // namespace SIPOWER_LEVEL
}  // namespace sipower
