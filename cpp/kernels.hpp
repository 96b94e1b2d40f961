// SPDX-License-Identifier: BSD-3-Clause
// `Kernels`: the table of kernels for one kind of data in one working type. No Python types here.
//
// Every kernel serves the item problem
//   min over h >= 0 of  d.h + r |h|^2 / 2 - sum_i v_i log(b_i.h) - sum_k a_k log h_k,
// in which some h_k may be fixed. In the plain problem d holds the column sums of the basis, r = a = 0, and nothing
// is fixed. The kernels that search or sample (power_search, shared_newton, projected_gradient, epoch) take any d, but
// no other term; power takes d and a.
//   V   (items, n_columns)  the data; every row is an item
//   b_i (K)              row i of the basis, the other factor
//   h_j (K)              the item's row of the factor being updated;  c_j = mass of the item
//   G_k = (1/d_k) sum_i b_ik v_i / z_i,  z_i = b_i.h with h scaled to d.h = c
// Kernels are serial over the items [begin, end) and keep no state between calls.
#pragma once
#include <cstdint>

#include "basis.hpp"
#include "epoch.hpp"
#include "matrices.hpp"

namespace sipower {

// A sum in the working type has at most this many terms before it is added to a float64 sum.
constexpr int LONGEST_SUM = 1024;
// The largest number of components for which a Hessian is formed.
constexpr int LARGEST_MODEL = 2048;

template <class T> struct Items {
    const T* h;       // (items, K)
    const double* c;  // (items), null if no masses are needed
    T* out;           // (items, K), zeros on entry; kernels do not write items without mass
    int64_t begin, end;
};

enum class Order { cyclic, active, random };

// The settings of `solve`, which stops at max_k G_k - 1 <= tol or after `max_rounds` rounds. Items with at least
// `min_sampled_nonzeros` nonzeros begin with epochs of S-SCI-PI.
struct Accuracy {
    double tol;
    int64_t max_rounds, min_sampled_nonzeros;
};
// The certified gap of every solved item, and the number of passes over its nonzeros.
struct ItemResults {
    double *gap, *passes;  // (items)
};

// The smallest share of an item's mass that a component keeps, because multiplicative rules cannot
// change an exact zero.
constexpr double FLOOR = 1e-15;

// The kernels for data of one kind (Csr or Dense) in one working type.
template <class T, class Data> struct Kernels {
    void (*gradient)(const Data&, const Basis<T>&, const T* h, int64_t begin, int64_t end, double* g);
    void (*sums)(const Data&, const Basis<T>&, const T* h, int64_t begin, int64_t end, double* g);
    void (*curvatures)(const Data&, const Basis<T>&, const T* h, int64_t begin, int64_t end, double* Q);
    void (*divergence)(const Data&, const Basis<T>&, const T* h, int64_t begin, int64_t end, double* out);
    void (*mu)(const Data&, const Basis<T>&, const Items<T>&);
    void (*power)(const Data&, const Basis<T>&, const Items<T>&, double step);
    void (*power_search)(const Data&, const Basis<T>&, const Items<T>&, int64_t exponent);
    void (*gaps)(const Data&, const Basis<T>&, const Items<T>&, double* out);
    void (*coordinate)(const Data&, const Basis<T>&, const Items<T>&, int64_t sweeps, Order, Key, Place);
    void (*newton)(const Data&, const Basis<T>&, const Items<T>&, int64_t steps);
    void (*shared_newton)(const Data&, const Basis<T>&, const Items<T>&, const double* correlations);
    void (*projected_gradient)(const Data&, const Basis<T>&, const Items<T>&);
    void (*solve)(const Data&, const Basis<T>&, const Items<T>&, const Accuracy&, ItemResults);
    void (*epoch)(const Data&, const Basis<T>&, const Items<T>&, const Epoch&);
};

#define SIPOWER_DECLARE(level)                                      \
    namespace level {                                               \
    template <class T, class Data> const Kernels<T, Data>& table(); \
    }
SIPOWER_DECLARE(baseline)
SIPOWER_DECLARE(x86_64_v3)

}  // namespace sipower
