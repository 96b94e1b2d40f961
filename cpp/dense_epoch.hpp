// SPDX-License-Identifier: BSD-3-Clause
// An epoch of S-SCI-PI over dense data. Every inner step draws rows of the basis, the same rows for all
// items. Each lane of a vector belongs to one item, so that no sum is taken across lanes.
#pragma once
#include <vector>

#include "dense_groups.hpp"
#include "draws.hpp"
#include "epoch_item.hpp"
#include "sparse_shuffle.hpp"

namespace sipower {
namespace {

// One epoch on the items of a block.
template <class T> class DenseEpoch {
    static constexpr int L = Simd<T>::lanes, ROWS = 4;  // ROWS rows of a batch are handled together

public:
    DenseEpoch(const Dense& V, const Basis<T>& B, const Items<T>& items, const Epoch& e)
        : V_(V), B_(B), items_(items), e_(e), count_(items.end - items.begin), size_(batch_size(e.batch, B.n)),
          drawn_(static_cast<size_t>((e.length - 1) * size_)), u_(count_ * B.width), sums_((count_ + GROUP) * B.width),
          q0_((count_ + GROUP) * V.n_columns), lanes_(7 * L * B.k), v_batch_(L * (size_ + ROWS)), q0_batch_(L * (size_ + ROWS)) {}

    void run() {
        full_gradient();
        draw();
        for (int64_t first = 0; first < count_; first += L) run_group(first);
    }

private:
    Vec<T>* lanes(int which) { return reinterpret_cast<Vec<T>*>(lanes_.get()) + which * B_.k; }

    // Compute u (every item scaled to its mass), the ratio sums at u, and the quotients q0 = v / z0.
    void full_gradient() {
        DensePass<T> pass(V_, B_);
        DenseGroups<T> groups(items_.begin, items_.end, B_.width);
        for (int64_t i = 0; i < count_; ++i) {
            double* u = u_.get() + i * B_.width;
            scale_to_mass(B_.of_item(items_.begin + i), items_.h + (items_.begin + i) * B_.k, items_.c[items_.begin + i], u);
            for (int k = 0; k < B_.k; ++k) groups.u[i * B_.width + k] = static_cast<T>(u[k]);
        }
        for_groups(V_, B_, groups, [&](int64_t a, int64_t first, int count, int64_t from) {
            const int64_t at = a * GROUP * B_.width;
            pass.ratio_sums(first, count, from, groups.u.get() + at, sums_.get() + at, q0_.get() + a * GROUP * V_.n_columns, V_.n_columns);
        });
    }

    // Draw the rows of all inner steps but the first, in which the gradients of the batch cancel.
    void draw() {
        SparseShuffle shuffle(e_.replace ? 0 : size_);
        for (int64_t t = 1; t < e_.length; ++t) {
            Random random(e_.key, {e_.round, e_.side, 0, static_cast<uint64_t>(t)});
            int32_t* batch = drawn_.data() + (t - 1) * size_;
            if (e_.replace) draw_repeated(random, B_.n, size_, batch);
            else shuffle.draw(random, B_.n, size_, batch);
        }
    }

    void run_group(int64_t first) {
        EpochItem<Vec<T>> item{lanes(0), lanes(1), lanes(2), B_.k};
        Vec<T>*u = lanes(3), *GS = lanes(4), *GS0 = lanes(5), *inverse = lanes(6), mass = {};
        const Vec<T> factor = broadcast(static_cast<T>(static_cast<double>(B_.n) / static_cast<double>(size_)));
        for (int l = 0; l < L; ++l) start_lane(first, l, item, inverse, mass);
        item.plain_step(e_);
        for (int64_t t = 1; t < e_.length; ++t) {
            const int32_t* rows = drawn_.data() + (t - 1) * size_;
            gather(first, rows);
            for (int k = 0; k < B_.k; ++k) {
                u[k] = mass * (item.y[k] * item.y[k] * inverse[k]);
                GS[k] = GS0[k] = Vec<T>{};
            }
            for (int64_t i = 0; i < size_; i += ROWS) add_rows(rows + i, i, u, GS, GS0);
            for (int k = 0; k < B_.k; ++k) {
                const Vec<T> weight = factor * inverse[k];
                GS[k] *= weight;
                GS0[k] *= weight;
            }
            item.inner_step(GS, GS0, e_);
        }
        for (int l = 0; l < L && first + l < count_; ++l) finish_lane(first + l, l, item);
    }
    // Return the number of the item in a lane. Lanes beyond the last item repeat that item; their results are discarded.
    int64_t lane_item(int64_t first, int lane) const { return first + lane < count_ ? first + lane : count_ - 1; }
    // Start the epoch of one lane. An item without mass starts at the uniform point; its result is discarded.
    void start_lane(int64_t first, int lane, EpochItem<Vec<T>>& item, Vec<T>* inverse, Vec<T>& mass) {
        const int64_t i = lane_item(first, lane);
        const Basis<T> own = B_.of_item(items_.begin + i);
        const double c = items_.c[items_.begin + i];
        mass[lane] = static_cast<T>(c > 0 ? c : 1);
        for (int k = 0; k < B_.k; ++k) {
            const double x = c > 0 ? u_[i * B_.width + k] * own.d[k] / c : 1.0 / B_.k;
            item.y[k][lane] = item.y0[k][lane] = static_cast<T>(std::sqrt(x));
            item.G0[k][lane] = c > 0 ? static_cast<T>(sums_[i * B_.width + k] * own.inverse[k]) : T(1);
            inverse[k][lane] = static_cast<T>(own.inverse[k]);
        }
    }
    void finish_lane(int64_t i, int lane, const EpochItem<Vec<T>>& item) {
        const double c = items_.c[items_.begin + i];
        if (!(c > 0)) return;
        const Basis<T> own = B_.of_item(items_.begin + i);
        double* u = u_.get() + i * B_.width;
        for (int k = 0; k < B_.k; ++k) {
            const double y = static_cast<double>(item.y[k][lane]);
            u[k] = c * y * y * own.inverse[k];
        }
        const int64_t at = (items_.begin + i) * B_.k;
        write_factor(own, u, items_.h + at, c, items_.out + at);
    }

    // Copy the values and the quotients q0 of the drawn rows for the items in all lanes, (s, L).
    void gather(int64_t first, const int32_t* rows) {
        const int64_t begin = items_.begin;
        const auto from = [&](const auto* values) { gather_lanes(values + begin * V_.n_columns, first, rows, v_batch_.get()); };
        switch (V_.values.type) {
            case Type::uint8: from(static_cast<const uint8_t*>(V_.values.data)); break;
            case Type::uint16: from(static_cast<const uint16_t*>(V_.values.data)); break;
            case Type::float32: from(static_cast<const float*>(V_.values.data)); break;
            default: from(static_cast<const double*>(V_.values.data));
        }
        gather_lanes(q0_.get(), first, rows, q0_batch_.get());
    }
    template <class From> void gather_lanes(const From* items, int64_t first, const int32_t* rows, T* out) const {
        const From* lane_items[L];
        for (int l = 0; l < L; ++l) lane_items[l] = items + lane_item(first, l) * V_.n_columns;
        for (int64_t i = 0; i < size_; ++i)
            for (int l = 0; l < L; ++l) out[i * L + l] = static_cast<T>(lane_items[l][rows[i]]);
    }

    // Add v b / z to GS and q0 b to GS0 for ROWS rows of the batch, starting at row i. Rows beyond the last
    // one have zero values and quotients and add nothing.
    void add_rows(const int32_t* rows, int64_t i, const Vec<T>* u, Vec<T>* GS, Vec<T>* GS0) const {
        const T* b[ROWS];
        for (int r = 0; r < ROWS; ++r) b[r] = B_.row(rows[i + r < size_ ? r : 0]);
        Vec<T> z[ROWS] = {}, q[ROWS], q0[ROWS];
        for (int k = 0; k < B_.k; ++k)
            for (int r = 0; r < ROWS; ++r) z[r] += u[k] * b[r][k];
        const Vec<T> tiny = broadcast(sizeof(T) == 4 ? T(1e-30) : T(1e-290));
        for (int r = 0; r < ROWS; ++r) {
            q[r] = load(v_batch_.get() + (i + r) * L) / larger(z[r], tiny);
            q0[r] = load(q0_batch_.get() + (i + r) * L);
        }
        for (int k = 0; k < B_.k; ++k) {
            Vec<T> sum = GS[k], sum0 = GS0[k];
            for (int r = 0; r < ROWS; ++r) {
                const Vec<T> x = broadcast(b[r][k]);
                sum += q[r] * x;
                sum0 += q0[r] * x;
            }
            GS[k] = sum;
            GS0[k] = sum0;
        }
    }

    const Dense& V_;
    const Basis<T>& B_;
    const Items<T>& items_;
    const Epoch& e_;
    const int64_t count_, size_;
    std::vector<int32_t> drawn_;
    Buffer<double> u_, sums_;
    Buffer<T> q0_, lanes_, v_batch_, q0_batch_;
};

template <class T>
void epoch_dense(const Dense& V, const Basis<T>& B, const Items<T>& items, const Epoch& e) {
    DenseEpoch<T>(V, B, items, e).run();
}

}  // namespace
}  // namespace sipower
