// SPDX-License-Identifier: BSD-3-Clause
// `EpochPlan`: the settings of an epoch, passed from Python.
#pragma once
#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "bindings/drawn_elements.hpp"

namespace sipower {
namespace {

// The settings of an epoch, and the drawn nonzeros that they point to.
struct EpochPlan {
    Epoch view{};
    std::shared_ptr<const DrawnElements> elements;
};

inline void bind_epoch_plan(nb::module_& m) {
    nb::class_<EpochPlan>(m, "EpochPlan")
        .def("__init__", [](EpochPlan* self, double step, double full_step, double batch, int64_t length, double threshold, int64_t shortest,
                            const std::string& scheme, bool replace, Pair key, uint64_t round, uint64_t side,
                            std::optional<Vector<const int64_t>> indptr) {
            require_rounds(length);
            require(length >= 1, "length must be at least 1 inner step");
            require(batch > 0 && batch <= 1, "batch must be a number in (0, 1]");
            require(scheme == "vectors" || scheme == "stratified" || scheme == "weighted" || scheme == "elements",
                    "scheme must be 'vectors', 'elements', 'stratified' or 'weighted'");
            require(scheme != "elements" || indptr, "scheme 'elements' needs indptr");
            const Scheme drawn_by = scheme == "elements" ? Scheme::elements : scheme == "weighted" ? Scheme::weighted : Scheme::stratified;
            // `shortest` is at least 1, because an item without nonzeros has nothing to draw from.
            Epoch view{step, full_step, batch, length, threshold, std::max<int64_t>(shortest, 1), drawn_by, replace,
                       as_key(key), round, side, {}};
            std::shared_ptr<const DrawnElements> drawn;
            if (drawn_by == Scheme::elements) drawn = std::make_shared<const DrawnElements>(*indptr, view);
            if (drawn) view.elements = drawn->view();
            new (self) EpochPlan{view, drawn};
        }, nb::kw_only(), nb::arg("step"), nb::arg("full_step"), nb::arg("batch"), nb::arg("length"), nb::arg("threshold"), nb::arg("shortest"), nb::arg("scheme"),
           nb::arg("replace"), nb::arg("key"), nb::arg("at_round"), nb::arg("side"), nb::arg("indptr").noconvert() = nb::none());
}

}  // namespace
}  // namespace sipower
