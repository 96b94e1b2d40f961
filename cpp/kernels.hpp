// SPDX-License-Identifier: BSD-3-Clause
// What the kernels work on and what they offer: plain pointers, no Python types.
//
// Every kernel serves the item problem  min over h >= 0 of  d.h - sum_i v_i log(b_i.h):
//   V   (items, others)  the data; an item is a row of it
//   b_i (K)              row i of the basis, the other factor;  d = column sums of the basis
//   h_j (K)              the item's row of the factor being updated;  c_j = mass of the item
//   G_k = (1/d_k) sum_i b_ik v_i / z_i,  z_i = b_i.h with h scaled to d.h = c
// Kernels are serial over the items [begin, end) and touch no state of their own.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "philox.hpp"

namespace sipower {

namespace {  // one copy per translation unit, so per instruction-set level

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

enum class Type { uint8, uint16, float32, float64 };

struct Values {
    const void* data;
    Type type;
};

// The rows of a matrix, or a window of it: the terms of the items [first, last) alone are held.
struct Csr {
    const int64_t* indptr;  // of the whole matrix
    const int32_t* indices;
    Values values;
    int64_t items, others, first, last;

    // Where the terms of an item begin in what is held.
    int64_t start(int64_t item) const { return indptr[item] - indptr[first]; }
    int64_t terms(int64_t item) const { return indptr[item + 1] - indptr[item]; }
    // The columns of n terms from `at` on, of those held.
    const int32_t* columns(int64_t at, int64_t n) const {
        for (int64_t t = at; t < at + n; ++t) {
            Extent(start(last)).expect(t);
            Extent(others).expect(indices[t]);
        }
        return indices + at;
    }
};

struct Dense {
    Values values;
    int64_t items, others;
};

// Rows of a dense panel are handled in tiles of this many; a multiple of every vector group.
constexpr int TILE = 96;
// A sum in the working type has at most this many terms before it is added to a float64 one.
constexpr int LONGEST_SUM = 1024;
// Beyond so many components no Hessian is formed: it would not fit anywhere.
constexpr int LARGEST_MODEL = 2048;

// The basis in the kernels' own layout: rows padded with zeros to `width`; for dense data also
// transposed tile by tile, (tiles, K, TILE).
template <class T> struct Basis {
    int64_t n;
    int k, width;
    const T* rows;
    const T* tiles;
    const double* d;        // column sums, padded with zeros
    const double* inverse;  // 1 / d, zero where d is
    int alive;              // components with d > 0

    const T* row(int64_t i) const {
        Extent(n).expect(i);
        return rows + i * width;
    }
};

template <class T> struct Items {
    const T* h;       // (items, K)
    const double* c;  // (items), null where no mass is needed
    T* out;           // (items, K), zeroed: an item without mass is left as it is
    int64_t begin, end;
};

enum class Order { cyclic, active, random };

enum class Scheme { stratified, weighted, elements };

// Elements drawn from all nonzeros, s in every inner step but the first, item by item: those of item
// j are start[j], ..., start[j + 1] - 1, ordered by the step that drew them.
struct Elements {
    const int64_t* start;  // (items + 1)
    const int32_t* step;
    const int32_t* at;     // which nonzero of the item
    int64_t count;         // s
};

struct Epoch {
    double step;       // eta
    double full_step;  // eta of the full step that short items take
    double batch;      // s / n
    int64_t length;    // m
    double threshold;  // y+ >= threshold * y
    int64_t shortest;  // an item with fewer terms takes one full step instead
    Scheme scheme;
    bool replace;
    Key key;
    uint64_t round, side;
    Elements elements;  // of the scheme `elements`
};

// How far items are solved: to max_k G_k - 1 <= tol, in at most so many rounds. Items with at least
// `sampled` terms begin with epochs of S-SCI-PI.
struct Accuracy {
    double tol;
    int64_t most, sampled;
};
// What an item has reached, and the passes over its terms that it took.
struct Reached {
    double *gap, *passes;  // (items)
};

// The smallest share of an item's mass that a component keeps: multiplicative rules cannot revive
// an exact zero.
constexpr double FLOOR = 1e-15;

// Whole vectors of 32 bytes up to 24 components, a few fixed widths up to 64, then blocks of 32.
template <class T> static inline int padded_width(int k) {
    constexpr int lanes = 32 / sizeof(T);
    if (k <= 24) return (k + lanes - 1) / lanes * lanes;
    if (k <= 64) return k <= 32 ? 32 : k <= 48 ? 48 : 64;
    return (k + 31) / 32 * 32;
}

static inline int64_t batch_size(double share, int64_t n) {
    const double wanted = share * static_cast<double>(n);
    int64_t s = static_cast<int64_t>(wanted);
    if (static_cast<double>(s) < wanted) ++s;
    return s > n ? n : s < 1 && n > 0 ? 1 : s;
}

// What is offered for data of one kind (Csr or Dense) in one working type.
template <class T, class Data> struct Kernels {
    void (*gradient)(const Data&, const Basis<T>&, const T* h, int64_t begin, int64_t end, double* g);
    void (*sums)(const Data&, const Basis<T>&, const T* h, int64_t begin, int64_t end, double* g);
    void (*divergence)(const Data&, const Basis<T>&, const T* h, int64_t begin, int64_t end, double* out);
    void (*mu)(const Data&, const Basis<T>&, const Items<T>&);
    void (*power)(const Data&, const Basis<T>&, const Items<T>&, double step);
    void (*gaps)(const Data&, const Basis<T>&, const Items<T>&, double* out);
    void (*coordinate)(const Data&, const Basis<T>&, const Items<T>&, int64_t sweeps, Order, Key, Place);
    void (*newton)(const Data&, const Basis<T>&, const Items<T>&, int64_t steps);
    void (*projected)(const Data&, const Basis<T>&, const Items<T>&);
    void (*solve)(const Data&, const Basis<T>&, const Items<T>&, const Accuracy&, Reached);
    void (*epoch)(const Data&, const Basis<T>&, const Items<T>&, const Epoch&);
};

#define SIPOWER_DECLARE(level)                                      \
    namespace level {                                               \
    template <class T, class Data> const Kernels<T, Data>& table(); \
    }
SIPOWER_DECLARE(baseline)
SIPOWER_DECLARE(x86_64_v3)

}  // namespace sipower
