// SPDX-License-Identifier: BSD-3-Clause
// The tables of kernels, compiled once per instruction-set level and working type (see CMakeLists.txt).
// Everything but these tables has internal linkage, so no code of one level can be linked into another.
#include "curvatures.hpp"
#include "dense_epoch.hpp"
#include "dense_kernels.hpp"
#include "dense_search.hpp"
#include "item_kernels.hpp"
#include "sparse_epoch.hpp"
#include "sparse_kernels.hpp"

namespace sipower {
namespace SIPOWER_LEVEL {

typedef SIPOWER_TYPE T;

template <> const Kernels<T, Csr>& table<T, Csr>() {
    static const Kernels<T, Csr> kernels = {
        gradient_csr<T>, sums_csr<T>, curvatures_csr<T>,       divergence_csr<T>,          mu_csr<T>,           power_csr<T>,
        power_search_csr<T>, gaps_csr<T>,     coordinate<T, Csr>, newton<T, Csr>, shared_newton_csr<T>, projected_gradient<T, Csr>, solve_items<T, Csr>, epoch_csr<T>,
    };
    return kernels;
}

template <> const Kernels<T, Dense>& table<T, Dense>() {
    static const Kernels<T, Dense> kernels = {
        gradient_dense<T>, sums_dense<T>, curvatures_dense<T>,       divergence_dense<T>,          mu_dense<T>,           power_dense<T>,
        power_search_dense<T>, gaps_dense<T>,     coordinate<T, Dense>, newton<T, Dense>, shared_newton_dense<T>, projected_gradient<T, Dense>, solve_items<T, Dense>, epoch_dense<T>,
    };
    return kernels;
}

}  // namespace SIPOWER_LEVEL
}  // namespace sipower
