// SPDX-License-Identifier: BSD-3-Clause
// The functions that Python calls: each checks shapes and ranges, releases the GIL and calls its kernel.
#pragma once
#include <algorithm>
#include <string>
#include <type_traits>

#include "bindings/basis_data.hpp"
#include "bindings/csr_data.hpp"
#include "bindings/dense_data.hpp"
#include "bindings/epoch_plan.hpp"
#include "bindings/level.hpp"
#include "certificate.hpp"
#include "quadratic_steps.hpp"

namespace sipower {
namespace {

template <class Data, class T>
void check(const Data& V, const BasisData<T>& B, int64_t rows, int64_t k, int64_t begin, int64_t end) {
    require(V.view.n_columns == B.view.n, "basis must have one row per column of V");
    require(rows == V.view.items && k == B.view.k, "h must have the shape (items, rank)");
    require(B.items < 0 || B.items == rows, "d, prior and fixed must have one row, or one row per item");
    require(V.holds(begin, end), "V must contain the items from begin to end");
    if constexpr (std::is_same_v<Data, DenseData>) require(B.view.tiles != nullptr, "basis must be made with dense=True for dense data");
}

// Refuse terms that a kernel does not know.
template <class T> void require_linear(const BasisData<T>& B, bool prior_too = true) {
    require(!B.view.fixed && B.view.ridge == 0, "this kernel takes neither a ridge nor fixed components");
    require(!prior_too || !B.view.prior, "this kernel takes no prior counts");
}

template <class T, class Data>
void gradient(const Data& V, const BasisData<T>& B, Array<const T> h, int64_t begin, int64_t end, Array<double> g) {
    check(V, B, h.shape(0), h.shape(1), begin, end);
    require(g.shape(0) == h.shape(0) && g.shape(1) == h.shape(1), "out must have the shape of h");
    nb::gil_scoped_release release;
    kernels<T, typename Data::View>().gradient(V.view, B.view, aligned_data(h), begin, end, aligned_data(g));
}

template <class T, class Data>
void sums(const Data& V, const BasisData<T>& B, Array<const T> h, int64_t begin, int64_t end, Array<double> g) {
    check(V, B, h.shape(0), h.shape(1), begin, end);
    require(static_cast<int64_t>(g.shape(0)) == V.view.n_columns && g.shape(1) == h.shape(1),
            "out must have the shape (columns of V, rank)");
    nb::gil_scoped_release release;
    kernels<T, typename Data::View>().sums(V.view, B.view, aligned_data(h), begin, end, aligned_data(g));
}

template <class T, class Data>
void curvatures(const Data& V, const BasisData<T>& B, Array<const T> h, int64_t begin, int64_t end, Array<double> Q) {
    check(V, B, h.shape(0), h.shape(1), begin, end);
    require(h.shape(1) <= static_cast<size_t>(LARGEST_MODEL), "rank is too large for curvatures");
    require(Q.shape(0) == h.shape(0) && Q.shape(1) == h.shape(1) * (h.shape(1) + 1) / 2,
            "out must have the shape (items, rank (rank + 1) / 2)");
    nb::gil_scoped_release release;
    kernels<T, typename Data::View>().curvatures(V.view, B.view, aligned_data(h), begin, end, aligned_data(Q));
}

template <class T, class Data>
void divergence(const Data& V, const BasisData<T>& B, Array<const T> h, int64_t begin, int64_t end, Vector<double> out) {
    check(V, B, h.shape(0), h.shape(1), begin, end);
    require(out.shape(0) == h.shape(0), "out must have one entry per item");
    nb::gil_scoped_release release;
    kernels<T, typename Data::View>().divergence(V.view, B.view, aligned_data(h), begin, end, aligned_data(out));
}

template <class T, class Data>
Items<T> items(const Data& V, const BasisData<T>& B, const Array<const T>& h, const Vector<const double>& c,
               int64_t begin, int64_t end, const Array<T>& out) {
    check(V, B, h.shape(0), h.shape(1), begin, end);
    require(c.shape(0) == h.shape(0), "mass must have one entry per item");
    require(out.shape(0) == h.shape(0) && out.shape(1) == h.shape(1), "out must have the shape of h");
    return {aligned_data(h), aligned_data(c), aligned_data(out), begin, end};
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
    require_linear(B, false);
    nb::gil_scoped_release release;
    kernels<T, typename Data::View>().power(V.view, B.view, which, step);
}

template <class T, class Data>
void power_search(const Data& V, const BasisData<T>& B, Array<const T> h, int64_t begin, int64_t end, Array<T> out,
                  Vector<const double> c, int64_t exponent) {
    const Items<T> which = items(V, B, h, c, begin, end, out);
    require(exponent >= 1 && exponent <= 64, "exponent must be between 1 and 64");
    require_linear(B);
    nb::gil_scoped_release release;
    kernels<T, typename Data::View>().power_search(V.view, B.view, which, exponent);
}

template <class T, class Data>
void gaps(const Data& V, const BasisData<T>& B, Array<const T> h, int64_t begin, int64_t end, Vector<double> out,
          Vector<const double> c) {
    check(V, B, h.shape(0), h.shape(1), begin, end);
    require(c.shape(0) == h.shape(0) && out.shape(0) == h.shape(0), "mass and out must have one entry per item");
    const Items<T> which{aligned_data(h), aligned_data(c), nullptr, begin, end};
    require_linear(B);
    nb::gil_scoped_release release;
    kernels<T, typename Data::View>().gaps(V.view, B.view, which, aligned_data(out));
}

template <class T, class Data>
void coordinate(const Data& V, const BasisData<T>& B, Array<const T> h, int64_t begin, int64_t end, Array<T> out,
                Vector<const double> c, int64_t sweeps, const std::string& order, Pair key, Quad place) {
    const Items<T> which = items(V, B, h, c, begin, end, out);
    require_rounds(sweeps);
    require(order == "cyclic" || order == "active" || order == "random", "order must be 'cyclic', 'active' or 'random'");
    const Order visits = order == "random" ? Order::random : order == "active" ? Order::active : Order::cyclic;
    const Key philox_key = as_key(key);
    const Place where = as_place(place);
    nb::gil_scoped_release release;
    kernels<T, typename Data::View>().coordinate(V.view, B.view, which, sweeps, visits, philox_key, where);
}

template <class T, class Data>
void newton(const Data& V, const BasisData<T>& B, Array<const T> h, int64_t begin, int64_t end, Array<T> out,
            Vector<const double> c, int64_t steps) {
    const Items<T> which = items(V, B, h, c, begin, end, out);
    require_rounds(steps);
    require(B.view.k <= LARGEST_MODEL, "newton takes at most 2048 components");
    nb::gil_scoped_release release;
    kernels<T, typename Data::View>().newton(V.view, B.view, which, steps);
}

template <class T, class Data>
void shared_newton(const Data& V, const BasisData<T>& B, Array<const T> h, int64_t begin, int64_t end, Array<T> out,
                   Vector<const double> c, Array<const double> correlations) {
    const Items<T> which = items(V, B, h, c, begin, end, out);
    require(B.view.k <= LARGEST_MODEL, "shared_newton takes at most 2048 components");
    require(correlations.shape(0) == h.shape(1) && correlations.shape(1) == h.shape(1), "correlations must have the shape (rank, rank)");
    require_linear(B);
    nb::gil_scoped_release release;
    kernels<T, typename Data::View>().shared_newton(V.view, B.view, which, aligned_data(correlations));
}

template <class T, class Data>
void projected_gradient(const Data& V, const BasisData<T>& B, Array<const T> h, int64_t begin, int64_t end, Array<T> out,
               Vector<const double> c) {
    const Items<T> which = items(V, B, h, c, begin, end, out);
    require_linear(B);
    nb::gil_scoped_release release;
    kernels<T, typename Data::View>().projected_gradient(V.view, B.view, which);
}

template <class T, class Data>
void solve_items(const Data& V, const BasisData<T>& B, Array<const T> h, int64_t begin, int64_t end, Array<T> out,
                 Vector<const double> c, double tol, int64_t max_rounds, int64_t min_sampled_nonzeros, Vector<double> gap, Vector<double> passes) {
    const Items<T> which = items(V, B, h, c, begin, end, out);
    require(gap.shape(0) == h.shape(0) && passes.shape(0) == h.shape(0), "gap and passes must have one entry per item");
    require_rounds(max_rounds);
    const Accuracy accuracy{tol, max_rounds, std::max<int64_t>(min_sampled_nonzeros, 1)};
    const ItemResults results{aligned_data(gap), aligned_data(passes)};
    nb::gil_scoped_release release;
    kernels<T, typename Data::View>().solve(V.view, B.view, which, accuracy, results);
}

template <class T, class Data>
void epoch(const Data& V, const BasisData<T>& B, Array<const T> h, int64_t begin, int64_t end, Array<T> out,
           Vector<const double> c, const EpochPlan& plan) {
    const Items<T> which = items(V, B, h, c, begin, end, out);
    if constexpr (std::is_same_v<Data, CsrData>) {
        if (plan.elements) {
            const DrawnElements& drawn = *plan.elements;
            require(drawn.items == V.view.items, "plan was drawn from other data");
            for (int64_t j = begin; j < end; ++j)
                for (int64_t i = drawn.start[static_cast<size_t>(j)]; i < drawn.start[static_cast<size_t>(j) + 1]; ++i)
                    require(drawn.at[static_cast<size_t>(i)] < V.view.nonzeros(j), "plan was drawn from other data");
        }
    }
    require_linear(B);
    nb::gil_scoped_release release;
    kernels<T, typename Data::View>().epoch(V.view, B.view, which, plan.view);
}

// The certified gaps of all items with any terms, given the ratio sums g of the data at h.
template <class T> void certify(const BasisData<T>& B, Array<const double> g, Array<const double> h, Vector<const double> c, Vector<double> out) {
    require(g.shape(0) == h.shape(0) && c.shape(0) == h.shape(0) && out.shape(0) == h.shape(0), "g, h, mass and out must have one row per item");
    require(static_cast<int>(g.shape(1)) == B.view.k && static_cast<int>(h.shape(1)) == B.view.k, "g and h must have the shape (items, rank)");
    require(B.items < 0 || B.items == static_cast<int64_t>(h.shape(0)), "d, prior and fixed must have one row, or one row per item");
    nb::gil_scoped_release release;
    for (size_t j = 0; j < h.shape(0); ++j) {
        const Basis<T> own = B.view.of_item(static_cast<int64_t>(j));
        const size_t at = j * h.shape(1);
        aligned_data(out)[j] = DualLine<T>(own, aligned_data(g) + at, aligned_data(h) + at, aligned_data(c)[j]).gap();
    }
}

// Steps of the quadratic models of the items [begin, end), see `quadratic_steps`.
inline void model_steps(Array<const double> Q, Array<const double> r, Array<const double> room, int64_t begin, int64_t end, int64_t sweeps,
                        Array<double> p, Vector<double> kappa) {
    const size_t items = r.shape(0), k = r.shape(1);
    require(k <= static_cast<size_t>(LARGEST_MODEL), "rank is too large for quadratic models");
    require(Q.shape(0) == items && Q.shape(1) == k * (k + 1) / 2, "Q must have the shape (items, rank (rank + 1) / 2)");
    require(room.shape(0) == items && room.shape(1) == k && p.shape(0) == items && p.shape(1) == k && kappa.shape(0) == items,
            "r, room and p must have the shape (items, rank), and kappa one entry per item");
    require(0 <= begin && begin <= end && end <= static_cast<int64_t>(items), "begin and end must be a range of items");
    nb::gil_scoped_release release;
    quadratic_steps(aligned_data(Q), aligned_data(r), aligned_data(room), static_cast<int>(k), begin, end, sweeps, aligned_data(p),
                    aligned_data(kappa));
}

template <class T, class Data> void bind_doors(nb::module_& m) {
    using nb::arg;
    m.def("gradient", &gradient<T, Data>, arg("V"), arg("basis"), arg("h").noconvert(), arg("begin"), arg("end"), arg("out").noconvert());
    m.def("sums", &sums<T, Data>, arg("V"), arg("basis"), arg("h").noconvert(), arg("begin"), arg("end"), arg("out").noconvert());
    m.def("curvatures", &curvatures<T, Data>, arg("V"), arg("basis"), arg("h").noconvert(), arg("begin"), arg("end"), arg("out").noconvert());
    m.def("divergence", &divergence<T, Data>, arg("V"), arg("basis"), arg("h").noconvert(), arg("begin"), arg("end"), arg("out").noconvert());
    m.def("mu", &mu<T, Data>, arg("V"), arg("basis"), arg("h").noconvert(), arg("begin"), arg("end"), arg("out").noconvert(), arg("mass").noconvert());
    m.def("power", &power<T, Data>, arg("V"), arg("basis"), arg("h").noconvert(), arg("begin"), arg("end"), arg("out").noconvert(), arg("mass").noconvert(), arg("step"));
    m.def("power_search", &power_search<T, Data>, arg("V"), arg("basis"), arg("h").noconvert(), arg("begin"), arg("end"), arg("out").noconvert(), arg("mass").noconvert(), arg("exponent"));
    m.def("gaps", &gaps<T, Data>, arg("V"), arg("basis"), arg("h").noconvert(), arg("begin"), arg("end"), arg("out").noconvert(), arg("mass").noconvert());
    m.def("coordinate", &coordinate<T, Data>, arg("V"), arg("basis"), arg("h").noconvert(), arg("begin"), arg("end"), arg("out").noconvert(),
          arg("mass").noconvert(), arg("sweeps"), arg("order"), arg("key"), arg("place"));
    m.def("newton", &newton<T, Data>, arg("V"), arg("basis"), arg("h").noconvert(), arg("begin"), arg("end"), arg("out").noconvert(),
          arg("mass").noconvert(), arg("steps"));
    m.def("shared_newton", &shared_newton<T, Data>, arg("V"), arg("basis"), arg("h").noconvert(), arg("begin"), arg("end"), arg("out").noconvert(),
          arg("mass").noconvert(), arg("correlations").noconvert());
    m.def("projected_gradient", &projected_gradient<T, Data>, arg("V"), arg("basis"), arg("h").noconvert(), arg("begin"), arg("end"), arg("out").noconvert(), arg("mass").noconvert());
    m.def("solve_items", &solve_items<T, Data>, arg("V"), arg("basis"), arg("h").noconvert(), arg("begin"), arg("end"), arg("out").noconvert(),
          arg("mass").noconvert(), arg("tol"), arg("max_rounds"), arg("min_sampled_nonzeros"), arg("gap").noconvert(), arg("passes").noconvert());
    m.def("epoch", &epoch<T, Data>, arg("V"), arg("basis"), arg("h").noconvert(), arg("begin"), arg("end"), arg("out").noconvert(), arg("mass").noconvert(), arg("plan"));
}

}  // namespace
}  // namespace sipower
