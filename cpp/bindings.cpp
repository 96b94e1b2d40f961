// SPDX-License-Identifier: BSD-3-Clause
// The only file that knows Python: checks shapes and index ranges, releases the GIL, picks the
// kernels of the running processor's instruction-set level.
#if defined(__linux__)
#include <sys/mman.h>
#endif
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels.hpp"

namespace nb = nanobind;
using namespace sipower;

namespace {

template <class T> using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Array = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void require(bool holds, const char* message) {
    if (!holds) throw std::invalid_argument(message);
}

// Where an array begins. A view of raw bytes may begin between two numbers, which no kernel may read.
template <class A> auto* begin_of(const A& array) {
    const bool aligned = reinterpret_cast<uintptr_t>(array.data()) % array.itemsize() == 0;
    require(aligned || array.size() == 0, "an array is not aligned");
    return array.data();
}

// Rounds that a call may take for one item: it cannot be interrupted.
constexpr int64_t MOST_ROUNDS = 1 << 20;
void require_rounds(int64_t count) {
    require(0 <= count && count <= MOST_ROUNDS, "a call takes 0 to 2^20 sweeps, steps or rounds");
}

// ---- instruction-set level -------------------------------------------------------------------

bool runs_v3() {
#if defined(SIPOWER_HAS_X86_64_V3)
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
#else
    return false;
#endif
}

std::string level() {
    static const std::string chosen = [] {
        const char* wanted = std::getenv("SIPOWER_ISA");
        if (!wanted || !*wanted) return std::string(runs_v3() ? "x86-64-v3" : "baseline");
        if (std::string(wanted) == "baseline") return std::string("baseline");
        if (std::string(wanted) == "x86-64-v3" && runs_v3()) return std::string("x86-64-v3");
        throw std::runtime_error(std::string("SIPOWER_ISA=") + wanted +
                                 " is not available here: use " + (runs_v3() ? "x86-64-v3 or baseline." : "baseline."));
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

// ---- the data --------------------------------------------------------------------------------

Type type_of(const nb::dlpack::dtype& t) {
    if (t == nb::dtype<uint8_t>()) return Type::uint8;
    if (t == nb::dtype<uint16_t>()) return Type::uint16;
    if (t == nb::dtype<float>()) return Type::float32;
    if (t == nb::dtype<double>()) return Type::float64;
    throw std::invalid_argument("values must be uint8, uint16, float32 or float64");
}

// Sum of n values in float64, in parts of LONGEST_SUM: the same bits wherever a row stands.
template <class T> double sum_of(const T* values, int64_t n) {
    double total = 0;
    for (int64_t from = 0; from < n; from += LONGEST_SUM) {
        double part = 0;
        for (int64_t i = from; i < n && i < from + LONGEST_SUM; ++i) part += static_cast<double>(values[i]);
        total += part;
    }
    return total;
}
double sum_of(const Values& v, int64_t at, int64_t n) {
    switch (v.type) {
        case Type::uint8: return sum_of(static_cast<const uint8_t*>(v.data) + at, n);
        case Type::uint16: return sum_of(static_cast<const uint16_t*>(v.data) + at, n);
        case Type::float32: return sum_of(static_cast<const float*>(v.data) + at, n);
        default: return sum_of(static_cast<const double*>(v.data) + at, n);
    }
}

template <class T> nb::object to_numpy(std::vector<T>&& data) {
    auto* owned = new std::vector<T>(std::move(data));
    nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(owned->data(), {owned->size()}, owner));
}

// Indices are never trusted, wherever they come from: damage on a disk must not become a crash.
struct CsrData {
    using View = Csr;
    Vector<const int64_t> indptr;
    Vector<const int32_t> indices;
    nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu> values;
    Csr view;

    CsrData(Vector<const int64_t> p, Vector<const int32_t> i,
            nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu> v, int64_t others,
            std::optional<std::tuple<int64_t, int64_t>> window)
        : indptr(p), indices(i), values(v) {
        require(p.shape(0) >= 1, "indptr is empty");
        const int64_t items = static_cast<int64_t>(p.shape(0)) - 1, held = static_cast<int64_t>(i.shape(0));
        const int64_t first = window ? std::get<0>(*window) : 0, last = window ? std::get<1>(*window) : items;
        require(0 <= first && first <= last && last <= items, "the window is out of range");
        require(static_cast<int64_t>(v.shape(0)) == held, "indices and values differ in length");
        view = {begin_of(p), begin_of(i), {begin_of(v), type_of(v.dtype())}, items, others, first, last};
        nb::gil_scoped_release release;
        require(view.indptr[0] == 0, "indptr does not begin with 0");
        require(view.indptr[first] >= 0, "indptr decreases");
        for (int64_t j = first; j < last; ++j) {
            require(view.indptr[j] <= view.indptr[j + 1], "indptr decreases");
            require(view.terms(j) < INT32_MAX, "an item has more than 2^31 terms");
        }
        require(view.start(last) == held, "indptr does not span the values");
        // The highest bit of j or of others − 1 − j is set unless 0 ≤ j < others: no branch, no compare.
        require(0 <= others && others <= INT32_MAX, "there are 0 to 2^31 - 1 columns");
        const uint32_t largest = static_cast<uint32_t>(others) - 1;
        uint32_t outside = others == 0 && held > 0 ? 1u << 31 : 0;
        for (int64_t t = 0; t < held; ++t) {
            const uint32_t j = static_cast<uint32_t>(view.indices[t]);
            outside |= j | (largest - j);
        }
        require(outside >> 31 == 0, "a column index is out of range");
    }

    nb::object row_sums() const {
        std::vector<double> out;
        for (int64_t j = view.first; j < view.last; ++j) out.push_back(sum_of(view.values, view.start(j), view.terms(j)));
        return to_numpy(std::move(out));
    }
    bool holds(int64_t begin, int64_t end) const { return view.first <= begin && begin <= end && end <= view.last; }
};

struct DenseData {
    using View = Dense;
    nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu> values;
    Dense view;

    explicit DenseData(nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu> v) : values(v) {
        require(static_cast<int64_t>(v.shape(1)) < INT32_MAX, "an item has more than 2^31 terms");
        view = {{begin_of(v), type_of(v.dtype())}, static_cast<int64_t>(v.shape(0)), static_cast<int64_t>(v.shape(1))};
    }

    nb::object row_sums() const {
        std::vector<double> out(static_cast<size_t>(view.items));
        for (int64_t j = 0; j < view.items; ++j)
            out[static_cast<size_t>(j)] = sum_of(view.values, j * view.others, view.others);
        return to_numpy(std::move(out));
    }
    bool holds(int64_t begin, int64_t end) const { return 0 <= begin && begin <= end && end <= view.items; }
};

// Rows of a large basis are met in any order: huge pages, where there are any, spare most of the misses.
constexpr size_t HUGE_PAGE = 2 << 20, LARGE = 8 * HUGE_PAGE;

template <class T> struct BasisData {
    struct Free {
        void operator()(T* p) const { std::free(p); }
    };
    std::unique_ptr<T, Free> rows, tiles;
    std::vector<double> d, inverse;
    Basis<T> view;

    static std::unique_ptr<T, Free> allocate(int64_t rows, int64_t columns) {
        const size_t wanted = std::max<size_t>(static_cast<size_t>(rows * columns), 1) * sizeof(T);
        const size_t page = wanted >= LARGE ? HUGE_PAGE : 64, bytes = (wanted + page - 1) / page * page;
        T* p = static_cast<T*>(std::aligned_alloc(page, bytes));
        if (!p) throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
        if (page == HUGE_PAGE) madvise(p, bytes, MADV_HUGEPAGE);
#endif
        return std::unique_ptr<T, Free>(p);
    }

    // d is given where the rows are a sample of a basis: it is the whole basis' column sums.
    BasisData(Array<const T> a, bool dense, std::optional<Vector<const double>> given) {
        const int64_t n = static_cast<int64_t>(a.shape(0));
        require(a.shape(1) >= 1 && a.shape(1) <= 65536, "the rank must lie between 1 and 65536");
        const int k = static_cast<int>(a.shape(1)), width = padded_width<T>(k);
        require(!given || given->shape(0) == a.shape(1), "there is not one column sum per component");
        const T* from = begin_of(a);
        nb::gil_scoped_release release;
        rows = allocate(n, width);
        d.assign(static_cast<size_t>(width), 0.0);
        inverse = d;
        for (int64_t i = 0; i < n; ++i) {
            T* const to = rows.get() + i * width;
            std::copy_n(from + i * k, k, to);
            std::fill_n(to + k, width - k, T(0));
        }
        if (!given)
            for (int64_t i = 0; i < n; ++i)
                for (int c = 0; c < k; ++c) d[static_cast<size_t>(c)] += static_cast<double>(from[i * k + c]);
        if (given) std::copy_n(begin_of(*given), k, d.begin());
        int alive = 0;
        for (int c = 0; c < k; ++c)
            if (d[static_cast<size_t>(c)] > 0) {
                inverse[static_cast<size_t>(c)] = 1 / d[static_cast<size_t>(c)];
                ++alive;
            }
        if (dense) {
            tiles = allocate((n + TILE - 1) / TILE * TILE, k);
            for (int64_t first = 0; first < n; first += TILE) {
                const int64_t count = std::min<int64_t>(TILE, n - first);
                for (int c = 0; c < k; ++c) {
                    T* const to = tiles.get() + first * k + c * TILE;
                    for (int64_t t = 0; t < count; ++t) to[t] = from[(first + t) * k + c];
                    std::fill(to + count, to + TILE, T(0));
                }
            }
        }
        view = {n, k, width, rows.get(), tiles.get(), d.data(), inverse.data(), alive};
    }
};

template <class Data, class T>
void check(const Data& V, const BasisData<T>& B, int64_t rows, int64_t k, int64_t begin, int64_t end) {
    require(V.view.others == B.view.n, "the basis has not one row per column of the data");
    require(rows == V.view.items && k == B.view.k, "the factor has not the shape (items, rank)");
    require(V.holds(begin, end), "the range of items is out of bounds");
    if constexpr (std::is_same_v<Data, DenseData>) require(B.view.tiles != nullptr, "the basis was not made for dense data");
}

// ---- doors -----------------------------------------------------------------------------------

template <class T, class Data>
void gradient(const Data& V, const BasisData<T>& B, Array<const T> h, int64_t begin, int64_t end, Array<double> g) {
    check(V, B, h.shape(0), h.shape(1), begin, end);
    require(g.shape(0) == h.shape(0) && g.shape(1) == h.shape(1), "the result has not the shape of the factor");
    nb::gil_scoped_release release;
    kernels<T, typename Data::View>().gradient(V.view, B.view, begin_of(h), begin, end, begin_of(g));
}

template <class T, class Data>
void sums(const Data& V, const BasisData<T>& B, Array<const T> h, int64_t begin, int64_t end, Array<double> g) {
    check(V, B, h.shape(0), h.shape(1), begin, end);
    require(static_cast<int64_t>(g.shape(0)) == V.view.others && g.shape(1) == h.shape(1),
            "the result has not the shape (others, rank)");
    nb::gil_scoped_release release;
    kernels<T, typename Data::View>().sums(V.view, B.view, begin_of(h), begin, end, begin_of(g));
}

template <class T, class Data>
void divergence(const Data& V, const BasisData<T>& B, Array<const T> h, int64_t begin, int64_t end, Vector<double> out) {
    check(V, B, h.shape(0), h.shape(1), begin, end);
    require(out.shape(0) == h.shape(0), "the result has not one entry per item");
    nb::gil_scoped_release release;
    kernels<T, typename Data::View>().divergence(V.view, B.view, begin_of(h), begin, end, begin_of(out));
}

template <class T, class Data>
Items<T> items(const Data& V, const BasisData<T>& B, const Array<const T>& h, const Vector<const double>& c,
               int64_t begin, int64_t end, const Array<T>& out) {
    check(V, B, h.shape(0), h.shape(1), begin, end);
    require(c.shape(0) == h.shape(0), "there is not one mass per item");
    require(out.shape(0) == h.shape(0) && out.shape(1) == h.shape(1), "the result has not the shape of the factor");
    return {begin_of(h), begin_of(c), begin_of(out), begin, end};
}

template <class T, class Data>
void mu(const Data& V, const BasisData<T>& B, Array<const T> h, int64_t begin, int64_t end, Array<T> out,
        Vector<const double> c) {
    const Items<T> which = items(V, B, h, c, begin, end, out);
    nb::gil_scoped_release release;
    kernels<T, typename Data::View>().mu(V.view, B.view, which);
}

template <class T, class Data>
void power(const Data& V, const BasisData<T>& B, Array<const T> h, int64_t begin, int64_t end, Array<T> out,
           Vector<const double> c, double step) {
    const Items<T> which = items(V, B, h, c, begin, end, out);
    nb::gil_scoped_release release;
    kernels<T, typename Data::View>().power(V.view, B.view, which, step);
}

template <class T, class Data>
void gaps(const Data& V, const BasisData<T>& B, Array<const T> h, int64_t begin, int64_t end, Vector<double> out,
          Vector<const double> c) {
    check(V, B, h.shape(0), h.shape(1), begin, end);
    require(c.shape(0) == h.shape(0) && out.shape(0) == h.shape(0), "there is not one mass and one result per item");
    const Items<T> which{begin_of(h), begin_of(c), nullptr, begin, end};
    nb::gil_scoped_release release;
    kernels<T, typename Data::View>().gaps(V.view, B.view, which, begin_of(out));
}

Place place_of(const std::tuple<uint64_t, uint64_t, uint64_t, uint64_t>& p) {
    return {std::get<0>(p), std::get<1>(p), std::get<2>(p), std::get<3>(p)};
}
using Pair = std::tuple<uint64_t, uint64_t>;
using Quad = std::tuple<uint64_t, uint64_t, uint64_t, uint64_t>;

template <class T, class Data>
void coordinate(const Data& V, const BasisData<T>& B, Array<const T> h, int64_t begin, int64_t end, Array<T> out,
                Vector<const double> c, int64_t sweeps, const std::string& order, Pair key, Quad place) {
    const Items<T> which = items(V, B, h, c, begin, end, out);
    require_rounds(sweeps);
    require(order == "cyclic" || order == "active" || order == "random", "the order is not cyclic, active or random");
    const Order visits = order == "random" ? Order::random : order == "active" ? Order::active : Order::cyclic;
    const Key philox_key{std::get<0>(key), std::get<1>(key)};
    const Place where = place_of(place);
    nb::gil_scoped_release release;
    kernels<T, typename Data::View>().coordinate(V.view, B.view, which, sweeps, visits, philox_key, where);
}

template <class T, class Data>
void newton(const Data& V, const BasisData<T>& B, Array<const T> h, int64_t begin, int64_t end, Array<T> out,
            Vector<const double> c, int64_t steps) {
    const Items<T> which = items(V, B, h, c, begin, end, out);
    require_rounds(steps);
    require(B.view.k <= LARGEST_MODEL, "Newton's method takes at most 2048 components");
    nb::gil_scoped_release release;
    kernels<T, typename Data::View>().newton(V.view, B.view, which, steps);
}

template <class T, class Data>
void projected(const Data& V, const BasisData<T>& B, Array<const T> h, int64_t begin, int64_t end, Array<T> out,
               Vector<const double> c) {
    const Items<T> which = items(V, B, h, c, begin, end, out);
    nb::gil_scoped_release release;
    kernels<T, typename Data::View>().projected(V.view, B.view, which);
}

template <class T, class Data>
void solve_items(const Data& V, const BasisData<T>& B, Array<const T> h, int64_t begin, int64_t end, Array<T> out,
                 Vector<const double> c, double tol, int64_t most, int64_t sampled, Vector<double> gap, Vector<double> passes) {
    const Items<T> which = items(V, B, h, c, begin, end, out);
    require(gap.shape(0) == h.shape(0) && passes.shape(0) == h.shape(0), "there is not one gap and one number of passes per item");
    require_rounds(most);
    const Accuracy accuracy{tol, most, std::max<int64_t>(sampled, 1)};
    const Reached reached{begin_of(gap), begin_of(passes)};
    nb::gil_scoped_release release;
    kernels<T, typename Data::View>().solve(V.view, B.view, which, accuracy, reached);
}

// Elements of all nonzeros for every inner step of an epoch, sorted by the items they belong to.
class DrawnElements {
public:
    DrawnElements(const Vector<const int64_t>& indptr, const Epoch& e) {
        require(indptr.shape(0) >= 1, "indptr is empty");
        items = static_cast<int64_t>(indptr.shape(0)) - 1;
        const int64_t* const first = begin_of(indptr);
        nb::gil_scoped_release release;
        require(first[0] == 0, "indptr does not begin with 0");
        for (int64_t j = 0; j < items; ++j) require(first[j] <= first[j + 1], "indptr decreases");
        const int64_t nnz = first[items];
        require(nnz <= INT32_MAX, "more than 2^31 nonzeros cannot be drawn at once");
        start.assign(static_cast<size_t>(items) + 1, 0);
        if (nnz == 0) return;
        count = batch_size(e.batch, nnz);
        sort(first, draw(nnz, e));
    }
    Elements view() const { return {start.data(), step.data(), at.data(), count}; }

    int64_t items = 0;
    std::vector<int64_t> start;
    std::vector<int32_t> step, at;

private:
    // Positions among all nonzeros, `count` for each of the steps 1, ..., m - 1; at 0 the batch cancels.
    std::vector<int32_t> draw(int64_t nnz, const Epoch& e) const {
        std::vector<int32_t> drawn(static_cast<size_t>((e.length - 1) * count));
        SparseShuffle shuffle(e.replace ? 0 : count);
        for (int64_t t = 1; t < e.length; ++t) {
            Random random(e.key, {e.round, e.side, 0, static_cast<uint64_t>(t)});
            int32_t* batch = drawn.data() + (t - 1) * count;
            if (e.replace) draw_repeated(random, nnz, count, batch);
            else shuffle.draw(random, nnz, count, batch);
        }
        return drawn;
    }
    void sort(const int64_t* indptr, const std::vector<int32_t>& drawn) {
        // Which item position 64 i belongs to; from there the owner of any position is near.
        std::vector<int32_t> near(static_cast<size_t>(indptr[items] / 64 + 1)), owner(drawn.size());
        for (int64_t i = 0, item = 0; i < static_cast<int64_t>(near.size()); ++i) {
            while (item + 1 < items && indptr[item + 1] <= 64 * i) ++item;
            near[static_cast<size_t>(i)] = static_cast<int32_t>(item);
        }
        for (size_t i = 0; i < drawn.size(); ++i) {
            int32_t item = near[static_cast<size_t>(drawn[i] / 64)];
            while (indptr[item + 1] <= drawn[i]) ++item;
            owner[i] = item;
            ++start[static_cast<size_t>(item) + 1];
        }
        for (size_t j = 0; j < static_cast<size_t>(items); ++j) start[j + 1] += start[j];
        std::vector<int64_t> next(start.begin(), start.end() - 1);
        step.resize(drawn.size());
        at.resize(drawn.size());
        int32_t drawn_by = 1;
        for (size_t i = 0, left = static_cast<size_t>(count); i < drawn.size(); ++i) {
            const size_t item = static_cast<size_t>(owner[i]), place = static_cast<size_t>(next[item]++);
            step[place] = drawn_by;
            at[place] = static_cast<int32_t>(drawn[i] - indptr[item]);
            if (--left == 0) left = static_cast<size_t>(count), ++drawn_by;
        }
    }
    int64_t count = 0;
};

struct EpochPlan {
    Epoch view{};
    std::shared_ptr<const DrawnElements> elements;
};

template <class T, class Data>
void epoch(const Data& V, const BasisData<T>& B, Array<const T> h, int64_t begin, int64_t end, Array<T> out,
           Vector<const double> c, const EpochPlan& plan) {
    const Items<T> which = items(V, B, h, c, begin, end, out);
    if constexpr (std::is_same_v<Data, CsrData>) {
        if (plan.elements) {
            const DrawnElements& drawn = *plan.elements;
            require(drawn.items == V.view.items, "the elements were drawn from other data");
            for (int64_t j = begin; j < end; ++j)
                for (int64_t i = drawn.start[static_cast<size_t>(j)]; i < drawn.start[static_cast<size_t>(j) + 1]; ++i)
                    require(drawn.at[static_cast<size_t>(i)] < V.view.terms(j), "the elements were drawn from other data");
        }
    }
    nb::gil_scoped_release release;
    kernels<T, typename Data::View>().epoch(V.view, B.view, which, plan.view);
}

// ---- draws, the same numbers as inside the epoch ----------------------------------------------

nb::object draw_batch(Pair key, Quad place, int64_t n, int64_t s, bool replace) {
    require(1 <= s && n >= 1 && n <= INT32_MAX && (replace || s <= n), "a batch has 1 to n members");
    std::vector<int32_t> out(static_cast<size_t>(s));
    Random random({std::get<0>(key), std::get<1>(key)}, place_of(place));
    if (replace) draw_repeated(random, n, s, out.data());
    else SparseShuffle(s).draw(random, n, s, out.data());
    return to_numpy(std::move(out));
}

// The batches of all items that are held: s_j of each item's terms, uniformly or by weight; values
// with their unbiased factors, columns, and how many terms every item has.
template <class T>
nb::tuple sample(const CsrData& V, Pair key, Quad place, double share, bool weighted, bool replace) {
    const Csr& from = V.view;
    require(share > 0 && share <= 1, "a batch is a share of the terms");
    std::vector<int64_t> counts;
    std::vector<int32_t> indices, order, swaps, at;
    std::vector<T> picked;
    std::vector<double> values, upto, factor;
    Place where = place_of(place);
    for (int64_t j = from.first; j < from.last; ++j) {
        const int64_t first = from.start(j), n = from.terms(j), s = batch_size(share, n);
        counts.push_back(0);
        if (n == 0) continue;
        while (static_cast<int64_t>(order.size()) < n) order.push_back(static_cast<int32_t>(order.size()));
        swaps.resize(order.size()), at.resize(order.size()), factor.resize(order.size());
        values.clear();
        for (int64_t i = 0; i < n; ++i) values.push_back(sum_of(from.values, first + i, 1));
        where.item = static_cast<uint64_t>(j);
        Random random({std::get<0>(key), std::get<1>(key)}, where);
        int64_t count = s;
        if (weighted) {
            upto = values;
            for (int64_t i = 1; i < n; ++i) upto[static_cast<size_t>(i)] += upto[static_cast<size_t>(i) - 1];
            if (replace) draw_weighted(random, values.data(), upto.data(), n, s, at.data(), factor.data());
            else count = draw_systematic(random, values.data(), upto.back(), n, s, at.data(), factor.data());
        } else {
            if (replace) draw_repeated(random, n, s, at.data());
            else draw_distinct(random, n, s, order.data(), swaps.data(), at.data());
            std::fill_n(factor.begin(), s, static_cast<double>(n) / static_cast<double>(s));
        }
        for (int64_t t = 0; t < count; ++t) {
            const size_t term = static_cast<size_t>(at[static_cast<size_t>(t)]);
            indices.push_back(from.indices[first + static_cast<int64_t>(term)]);
            picked.push_back(static_cast<T>(values[term] * factor[static_cast<size_t>(t)]));
        }
        counts.back() = count;
    }
    return nb::make_tuple(to_numpy(std::move(picked)), to_numpy(std::move(indices)), to_numpy(std::move(counts)));
}

nb::object uniform(Pair key, Quad place, int64_t n) {
    require(n >= 0, "n must not be negative");
    std::vector<double> out(static_cast<size_t>(n));
    Random random({std::get<0>(key), std::get<1>(key)}, place_of(place));
    for (double& x : out) x = random.uniform();
    return to_numpy(std::move(out));
}

template <class T, class Data> void bind_doors(nb::module_& m) {
    using nb::arg;
    m.def("gradient", &gradient<T, Data>, arg("V"), arg("basis"), arg("h").noconvert(), arg("begin"), arg("end"), arg("out").noconvert());
    m.def("sums", &sums<T, Data>, arg("V"), arg("basis"), arg("h").noconvert(), arg("begin"), arg("end"), arg("out").noconvert());
    m.def("divergence", &divergence<T, Data>, arg("V"), arg("basis"), arg("h").noconvert(), arg("begin"), arg("end"), arg("out").noconvert());
    m.def("mu", &mu<T, Data>, arg("V"), arg("basis"), arg("h").noconvert(), arg("begin"), arg("end"), arg("out").noconvert(), arg("mass").noconvert());
    m.def("power", &power<T, Data>, arg("V"), arg("basis"), arg("h").noconvert(), arg("begin"), arg("end"), arg("out").noconvert(), arg("mass").noconvert(), arg("step"));
    m.def("gaps", &gaps<T, Data>, arg("V"), arg("basis"), arg("h").noconvert(), arg("begin"), arg("end"), arg("out").noconvert(), arg("mass").noconvert());
    m.def("coordinate", &coordinate<T, Data>, arg("V"), arg("basis"), arg("h").noconvert(), arg("begin"), arg("end"), arg("out").noconvert(),
          arg("mass").noconvert(), arg("sweeps"), arg("order"), arg("key"), arg("place"));
    m.def("newton", &newton<T, Data>, arg("V"), arg("basis"), arg("h").noconvert(), arg("begin"), arg("end"), arg("out").noconvert(),
          arg("mass").noconvert(), arg("steps"));
    m.def("projected", &projected<T, Data>, arg("V"), arg("basis"), arg("h").noconvert(), arg("begin"), arg("end"), arg("out").noconvert(), arg("mass").noconvert());
    m.def("solve_items", &solve_items<T, Data>, arg("V"), arg("basis"), arg("h").noconvert(), arg("begin"), arg("end"), arg("out").noconvert(),
          arg("mass").noconvert(), arg("tol"), arg("most"), arg("sampled"), arg("gap").noconvert(), arg("passes").noconvert());
    m.def("epoch", &epoch<T, Data>, arg("V"), arg("basis"), arg("h").noconvert(), arg("begin"), arg("end"), arg("out").noconvert(), arg("mass").noconvert(), arg("plan"));
}

template <class T> void bind_sample(nb::module_& m, const char* name) {
    using nb::arg;
    m.def(name, &sample<T>, arg("V"), arg("key"), arg("place"), arg("share"), arg("weighted"), arg("replace"));
}

template <class T> void bind_basis(nb::module_& m, const char* name) {
    nb::class_<BasisData<T>>(m, name)
        .def(nb::init<Array<const T>, bool, std::optional<Vector<const double>>>(), nb::arg("array").noconvert(), nb::arg("dense"),
             nb::arg("column_sums").noconvert() = nb::none())
        .def_prop_ro("column_sums", [](const BasisData<T>& b) { return to_numpy(std::vector<double>(b.d.begin(), b.d.begin() + b.view.k)); });
    bind_doors<T, CsrData>(m);
    bind_doors<T, DenseData>(m);
}

}  // namespace

NB_MODULE(_kernels, m) {
    m.doc() = "Compiled kernels of sipower; use them through sipower.kernels.";
    // What a daemon thread still holds when the process ends is no leak; tests count references.
    nb::set_leak_warnings(false);
    m.def("level", &level, "The instruction-set level in use.");
    nb::class_<CsrData>(m, "Csr").def(
        nb::init<Vector<const int64_t>, Vector<const int32_t>, nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>, int64_t,
                 std::optional<std::tuple<int64_t, int64_t>>>(),
        nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(), nb::arg("values").noconvert(), nb::arg("others"),
        nb::arg("window") = nb::none())
        .def("row_sums", &CsrData::row_sums);
    nb::class_<DenseData>(m, "Dense").def(
        nb::init<nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>>(), nb::arg("values").noconvert())
        .def("row_sums", &DenseData::row_sums);
    nb::class_<EpochPlan>(m, "EpochPlan")
        .def("__init__", [](EpochPlan* self, double step, double full_step, double batch, int64_t length, double threshold, int64_t shortest,
                            const std::string& scheme, bool replace, Pair key, uint64_t round, uint64_t side,
                            std::optional<Vector<const int64_t>> indptr) {
            require_rounds(length);
            require(length >= 1, "an epoch has at least one inner step");
            require(batch > 0 && batch <= 1, "a batch is a share of the terms");
            require(scheme == "vectors" || scheme == "stratified" || scheme == "weighted" || scheme == "elements",
                    "the scheme must be vectors, elements, stratified or weighted");
            require(scheme != "elements" || indptr, "the scheme elements draws from all nonzeros and needs indptr");
            const Scheme how = scheme == "elements" ? Scheme::elements : scheme == "weighted" ? Scheme::weighted : Scheme::stratified;
            // An item without terms has nothing to draw from, so one term is the least.
            Epoch view{step, full_step, batch, length, threshold, std::max<int64_t>(shortest, 1), how, replace,
                       {std::get<0>(key), std::get<1>(key)}, round, side, {}};
            std::shared_ptr<const DrawnElements> drawn;
            if (how == Scheme::elements) drawn = std::make_shared<const DrawnElements>(*indptr, view);
            if (drawn) view.elements = drawn->view();
            new (self) EpochPlan{view, drawn};
        }, nb::kw_only(), nb::arg("step"), nb::arg("full_step"), nb::arg("batch"), nb::arg("length"), nb::arg("threshold"), nb::arg("shortest"), nb::arg("scheme"),
           nb::arg("replace"), nb::arg("key"), nb::arg("at_round"), nb::arg("side"), nb::arg("indptr").noconvert() = nb::none());
    m.def("draw_batch", &draw_batch, nb::arg("key"), nb::arg("place"), nb::arg("n"), nb::arg("s"), nb::arg("replace"));
    bind_sample<float>(m, "sample_float32");
    bind_sample<double>(m, "sample_float64");
    m.def("draw_uniform", &uniform, nb::arg("key"), nb::arg("place"), nb::arg("n"));
    bind_basis<float>(m, "BasisFloat32");
    bind_basis<double>(m, "BasisFloat64");
}
