// SPDX-License-Identifier: BSD-3-Clause
// An epoch of S-SCI-PI over CSR data. Batches are drawn from the nonzeros of each item separately, or from all
// nonzeros at once; in the latter case most items have no nonzero in most batches.
#pragma once
#include "batch_sums.hpp"
#include "item_elements.hpp"
#include "item_sampler.hpp"
#include "sparse_pass.hpp"
#include "waiting_items.hpp"

namespace sipower {
namespace {

// One epoch on the items of a block. Items with fewer nonzeros than e.shortest take one full step.
template <class T> class SparseEpoch {
public:
    SparseEpoch(const Csr& V, const Basis<T>& B, const Items<T>& items, const Epoch& e)
        : V_(V), B_(B), items_(items), e_(e), pass_(V, B), batch_sums_(B), longest_(longest_item()), u_(B.width), g_(B.width),
          GS_(B.width), GS0_(B.width), points_(3 * WaitingItems::LANES * B.width), h_(B.width), q0_(longest_) {}

    void run() {
        if (e_.scheme != Scheme::elements) run_with_own_batches();
        else if (e_.step < 1 && e_.step <= 1 - e_.threshold) run_side_by_side();
        else run_step_by_step();
    }

private:
    // Run the epoch if every item draws its own batch in every inner step.
    void run_with_own_batches() {
        ItemSampler<T> sampler(V_, e_, longest_);
        Buffer<double> factor(longest_);
        Buffer<int32_t> at(longest_);
        Batch<T> batch;
        batch.resize(longest_);
        EpochItem<double> item = point(0);
        for (int64_t j = items_.begin; j < items_.end; ++j) {
            if (!start(j, item)) continue;
            sampler.enter(j);
            item.plain_step(e_);
            for (int64_t t = 1; t < e_.length; ++t) {
                const int64_t s = sampler.draw(t, at.get(), factor.get());
                for (int64_t i = 0; i < s; ++i) batch.take(i, V_, V_.start(j) + at[i], q0_[at[i]], factor[i]);
                sampled_step(j, item, batch, 0, s);
            }
            finish(j, item);
        }
    }

    // Run the epoch if batches are drawn from all nonzeros and the threshold may bind: each item takes all
    // of its inner steps by itself.
    void run_step_by_step() {
        const int32_t length = static_cast<int32_t>(e_.length);
        EpochItem<double> item = point(0);
        ItemElements<T> left;
        for (int64_t j = items_.begin; j < items_.end; ++j) {
            if (!start(j, item)) continue;
            list_elements(j, left);
            for (int32_t now = 0; now < length; ++now) {
                const int32_t next = left.next_step_or(length);
                item.wait(next - now, e_);
                now = next;
                if (next < length) take_batch(j, item, left);
            }
            finish(j, item);
        }
    }

    // Run the epoch if batches are drawn from all nonzeros and the threshold cannot bind: steps without a batch
    // are taken for several items at once (`WaitingItems`).
    void run_side_by_side() {
        constexpr int LANES = WaitingItems::LANES;
        WaitingItems waiting(e_.step);
        int64_t numbers[LANES];
        EpochItem<double> item[LANES];
        ItemElements<T> left[LANES];
        for (int lane = 0; lane < LANES; ++lane) item[lane] = point(lane);
        for (int64_t j = items_.begin; j < items_.end;) {
            int count = 0;
            for (; j < items_.end && count < LANES; ++j) {
                if (!start(j, item[count])) continue;
                list_elements(j, left[count]);
                waiting.enter(count, item[count]);
                numbers[count++] = j;
            }
            run_lanes(waiting, count, numbers, item, left);
        }
    }
    // Advance all lanes from one inner step in which some lane has a batch to the next, until the epoch ends.
    void run_lanes(WaitingItems& waiting, int count, const int64_t* numbers, EpochItem<double>* item, ItemElements<T>* left) {
        const int32_t length = static_cast<int32_t>(e_.length);
        int32_t next_step[WaitingItems::LANES];  // the next inner step in which the item has a batch
        for (int lane = 0; lane < WaitingItems::LANES; ++lane)
            next_step[lane] = lane < count ? left[lane].next_step_or(length) : length;
        for (int32_t now = 0;;) {
            int32_t next = length;
            for (int lane = 0; lane < WaitingItems::LANES; ++lane) next = next_step[lane] < next ? next_step[lane] : next;
            waiting.advance(next < length ? next + 1 - now : length - now);
            if (next == length) break;
            now = next + 1;
            for (int lane = 0; lane < count; ++lane) {
                if (next_step[lane] != next) continue;
                waiting.leave_before_last(lane, item[lane]);
                take_batch(numbers[lane], item[lane], left[lane]);
                waiting.enter(lane, item[lane]);
                next_step[lane] = left[lane].next_step_or(length);
            }
        }
        for (int lane = 0; lane < count; ++lane) {
            waiting.leave(lane, item[lane]);
            finish(numbers[lane], item[lane]);
        }
    }

    int64_t longest_item() const {
        int64_t longest = 0;
        for (int64_t j = items_.begin; j < items_.end; ++j) longest = longest < V_.nonzeros(j) ? V_.nonzeros(j) : longest;
        return longest;
    }
    EpochItem<double> point(int lane) {
        double* first = points_.get() + 3 * lane * B_.width;
        return {first, first + B_.width, first + 2 * B_.width, whole_vectors(B_.width)};
    }

    // Set the anchor and its full gradient. Returns false if the item needs no inner steps: it has no mass, or it
    // has few nonzeros and takes one full step here.
    bool start(int64_t j, EpochItem<double>& item) {
        const double c = items_.c[j];
        if (!(c > 0)) return false;
        const Basis<T> own = B_.of_item(j);
        scale_to_mass(own, items_.h + j * B_.k, c, u_.get());
        for (int i = 0; i < B_.k; ++i) h_[i] = static_cast<T>(u_[i]);
        const bool sampled = V_.nonzeros(j) >= e_.shortest;
        pass_.ratio_sums(j, h_.get(), g_.get(), sampled ? q0_.get() : nullptr);
        if (sampled) {
            start_epoch(own, u_.get(), c, item);
            multiplier(own, g_.get(), item.G0);
        } else {
            PowerRule{e_.full_step}(own, c, g_.get(), u_.get());
            write_factor(own, u_.get(), items_.h + j * B_.k, c, items_.out + j * B_.k);
        }
        return sampled;
    }
    void finish(int64_t j, const EpochItem<double>& item) {
        const Basis<T> own = B_.of_item(j);
        factor(own, item, items_.c[j], u_.get());
        write_factor(own, u_.get(), items_.h + j * B_.k, items_.c[j], items_.out + j * B_.k);
    }

    // Copy the drawn nonzeros of the item, each multiplied by nnz / s, while the item is in cache.
    void list_elements(int64_t j, ItemElements<T>& list) {
        const Elements& drawn = e_.elements;
        const int64_t first = drawn.start[j], count = drawn.start[j + 1] - first;
        const double factor = static_cast<double>(V_.indptr[V_.items]) / static_cast<double>(drawn.count);
        list.elements.resize(count);
        for (int64_t i = 0; i < count; ++i) {
            const int32_t at = drawn.at[first + i];
            list.elements.take(i, V_, V_.start(j) + at, q0_[at], factor);
        }
        list.step = drawn.step + first;
        list.end = list.step + count;
        list.used = 0;
    }
    // Take the inner step that has drawn the next nonzeros of the item.
    void take_batch(int64_t j, EpochItem<double>& item, ItemElements<T>& left) {
        const int64_t s = left.next_batch_size();
        sampled_step(j, item, left.elements, left.used, s);
        left.step += s;
        left.used += s;
    }
    void sampled_step(int64_t j, EpochItem<double>& item, const Batch<T>& batch, int64_t from, int64_t s) {
        const Basis<T> own = B_.of_item(j);
        factor(own, item, items_.c[j], batch_sums_.point());
        batch_sums_(own.inverse, batch.index.data() + from, batch.v.data() + from, batch.q0.data() + from, s, GS_.get(), GS0_.get());
        item.inner_step(GS_.get(), GS0_.get(), e_);
    }

    const Csr& V_;
    const Basis<T>& B_;
    const Items<T>& items_;
    const Epoch& e_;
    SparsePass<T> pass_;
    BatchSums<T> batch_sums_;
    const int64_t longest_;
    Buffer<double> u_, g_, GS_, GS0_, points_;
    Buffer<T> h_, q0_;
};

template <class T>
void epoch_csr(const Csr& V, const Basis<T>& B, const Items<T>& items, const Epoch& e) {
    SparseEpoch<T>(V, B, items, e).run();
}

}  // namespace
}  // namespace sipower
