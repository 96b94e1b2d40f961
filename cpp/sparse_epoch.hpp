// SPDX-License-Identifier: BSD-3-Clause
// An epoch of S-SCI-PI over CSR data. Batches are drawn from every item's own nonzeros, or from all
// nonzeros at once; then most items have no element in most batches and are advanced by one number
// each.
#pragma once
#include <vector>

#include "epoch.hpp"
#include "sparse.hpp"

namespace sipower {
namespace {

// Items without an element in the present batch. Without a batch a step is
//   y+ ~ (1 - eta) y + eta g / (y.y0),
// so y stays in the span of g and the point y_s where the item last had one: y ~ y_s + rho g.
// With a = eta / (1 - eta), b = y_s.g, c = g.g, e = y_s.y0 and sigma = e + rho = (y_s + rho g).y0
//   rho  <- rho + a |y_s + rho g|^2 / sigma,   that is
//   sigma <- (1 + a c) sigma + 2 a (b - c e) + a |y_s - e g|^2 / sigma.
// For eta < 1 the threshold cannot bind while eta <= 1 - threshold. A sigma of 1e100 is y = g / |g| to rounding.
class Waiting {
public:
    static constexpr int LANES = 16;  // items side by side: four vectors hide the division's latency
    static constexpr int64_t UNCHECKED = 8;  // steps until sigma is compared with its bound

    explicit Waiting(double eta) : a_(eta / (1 - eta)) {
        for (int l = 0; l < LANES; ++l) sigma_[l] = growth_[l] = 1;
    }

    void enter(int lane, const EpochItem<double>& item) {
        double b = 0, c = 0, e = 0;
        for (int i = 0; i < item.n; ++i) {
            const double g = item.y0[i] * item.G0[i];
            b += item.y[i] * g;
            c += g * g;
            e += item.y[i] * item.y0[i];
        }
        e = e > LEAST_COSINE ? e : LEAST_COSINE;
        const double apart = 1 - 2 * b * e + c * e * e;  // |y_s - e g|^2
        b_[lane] = b, c_[lane] = c, e_[lane] = sigma_[lane] = e;
        growth_[lane] = 1 + a_ * c;
        shift_[lane] = 2 * a_ * (b - c * e);
        pull_[lane] = apart > 0 ? a_ * apart : 0;
    }
    // All lanes take the steps; where they stood before the last one is kept for those that leave there.
    void advance(int64_t steps) {
        constexpr int L = Simd<double>::lanes, N = LANES / L;
        const Vec<double> largest = spread(1e100);
        Vec<double> sigma[N], before[N], growth[N], shift[N], pull[N];
        for (int v = 0; v < N; ++v) {
            sigma[v] = before[v] = load(sigma_ + v * L);
            growth[v] = load(growth_ + v * L);
            shift[v] = load(shift_ + v * L);
            pull[v] = load(pull_ + v * L);
        }
        for (; steps > 0; steps -= UNCHECKED) {
            const int64_t now = steps < UNCHECKED ? steps : UNCHECKED;
            for (int64_t t = 0; t < now; ++t)
                for (int v = 0; v < N; ++v) {
                    before[v] = sigma[v];
                    sigma[v] = growth[v] * sigma[v] + shift[v] + pull[v] / sigma[v];
                }
            for (int v = 0; v < N; ++v) {
                before[v] = before[v] < largest ? before[v] : largest;
                sigma[v] = sigma[v] < largest ? sigma[v] : largest;
            }
        }
        for (int v = 0; v < N; ++v) {
            store(before_ + v * L, before[v]);
            store(sigma_ + v * L, sigma[v]);
        }
    }
    // y = (y_s + rho g) / |y_s + rho g|
    void leave(int lane, EpochItem<double>& item) const { leave_at(sigma_[lane], lane, item); }
    void leave_before_last(int lane, EpochItem<double>& item) const { leave_at(before_[lane], lane, item); }

private:
    void leave_at(double sigma, int lane, EpochItem<double>& item) const {
        const double rho = sigma - e_[lane];
        const double scale = 1 / std::sqrt(1 + rho * (2 * b_[lane] + rho * c_[lane])), along = scale * rho;
        for (int i = 0; i < item.n; ++i) item.y[i] = scale * item.y[i] + along * item.y0[i] * item.G0[i];
    }

    const double a_;
    alignas(32) double sigma_[LANES], growth_[LANES], before_[LANES] = {}, shift_[LANES] = {}, pull_[LANES] = {};
    double b_[LANES] = {}, c_[LANES] = {}, e_[LANES] = {};
};

// The batches of one item that are drawn from its own nonzeros.
template <class T> class ItemSampler {
public:
    ItemSampler(const Csr& V, const Epoch& e, int64_t longest)
        : V_(V), e_(e), order_(longest), swaps_(longest), weight_(e.scheme == Scheme::weighted ? longest : 0),
          upto_(e.scheme == Scheme::weighted ? longest : 0) {
        for (int64_t i = 0; i < longest; ++i) order_[i] = static_cast<int32_t>(i);
    }

    void enter(int64_t item) {
        item_ = item;
        n_ = V_.terms(item);
        if (e_.scheme != Scheme::weighted) return;
        double sum = 0;
        T one;
        for (int64_t i = 0; i < n_; ++i) {
            weight_[i] = static_cast<double>(*read_values(V_.values, V_.start(item) + i, 1, &one));
            upto_[i] = sum += weight_[i];
        }
    }

    // Returns how many were drawn, at most as many as the item has nonzeros.
    int64_t draw(int64_t inner, int32_t* at, double* factor) {
        const int64_t s = batch_size(e_.batch, n_);
        Random random(e_.key, {e_.round, e_.side, static_cast<uint64_t>(item_), static_cast<uint64_t>(inner)});
        if (e_.scheme == Scheme::weighted) {
            if (!e_.replace) return draw_systematic(random, weight_.get(), upto_[n_ - 1], n_, s, at, factor);
            draw_weighted(random, weight_.get(), upto_.get(), n_, s, at, factor);
            return s;
        }
        if (e_.replace) draw_repeated(random, n_, s, at);
        else draw_distinct(random, n_, s, order_.get(), swaps_.get(), at);
        for (int64_t t = 0; t < s; ++t) factor[t] = static_cast<double>(n_) / static_cast<double>(s);
        return s;
    }

private:
    const Csr& V_;
    const Epoch& e_;
    Buffer<int32_t> order_, swaps_;
    Buffer<double> weight_, upto_;
    int64_t item_ = 0, n_ = 0;
};

// Some nonzeros of an item: columns, values, and quotients v / z0 at the anchor, both times their factor.
template <class T> class Batch {
public:
    void resize(int64_t s) {
        index.resize(static_cast<size_t>(s));
        v.resize(index.size());
        q0.resize(index.size());
    }
    void take(int64_t i, const Csr& V, int64_t nonzero, T quotient, double factor) {
        const size_t to = static_cast<size_t>(i);
        T one;
        index[to] = *V.columns(nonzero, 1);
        v[to] = *read_values(V.values, nonzero, 1, &one) * static_cast<T>(factor);
        q0[to] = quotient * static_cast<T>(factor);
    }
    std::vector<int32_t> index;
    std::vector<T> v, q0;
};

// The elements of one item in an epoch, in the order of the steps that drew them.
template <class T> struct ItemElements {
    Batch<T> elements;
    const int32_t *step = nullptr, *end = nullptr;  // those that are left
    int64_t used = 0;

    int32_t next_step_or(int32_t otherwise) const { return step == end ? otherwise : *step; }
    // How many the next step has drawn.
    int64_t next_batch_size() const {
        const int32_t* last = step;
        while (last != end && *last == *step) ++last;
        return last - step;
    }
};

// One epoch on the items of a block. Items with fewer terms than e.shortest take one full step.
template <class T> class SparseEpoch {
public:
    SparseEpoch(const Csr& V, const Basis<T>& B, const Items<T>& items, const Epoch& e)
        : V_(V), B_(B), items_(items), e_(e), pass_(V, B), batch_sums_(B), longest_(longest()), u_(B.width), g_(B.width),
          GS_(B.width), GS0_(B.width), points_(3 * Waiting::LANES * B.width), h_(B.width), q0_(longest_) {}

    void run() {
        if (e_.scheme != Scheme::elements) run_with_own_batches();
        else if (e_.step < 1 && e_.step <= 1 - e_.threshold) run_side_by_side();
        else run_step_by_step();
    }

private:
    // Every item draws a batch of its own in every step.
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

    // Elements of all items together, where the threshold may bind: an item takes every step.
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

    // Elements of all items together, where it cannot: items wait side by side.
    void run_side_by_side() {
        constexpr int LANES = Waiting::LANES;
        Waiting waiting(e_.step);
        int64_t who[LANES];
        EpochItem<double> item[LANES];
        ItemElements<T> left[LANES];
        for (int lane = 0; lane < LANES; ++lane) item[lane] = point(lane);
        for (int64_t j = items_.begin; j < items_.end;) {
            int count = 0;
            for (; j < items_.end && count < LANES; ++j) {
                if (!start(j, item[count])) continue;
                list_elements(j, left[count]);
                waiting.enter(count, item[count]);
                who[count++] = j;
            }
            run_lanes(waiting, count, who, item, left);
        }
    }
    // From element to element until the end of the epoch.
    void run_lanes(Waiting& waiting, int count, const int64_t* who, EpochItem<double>* item, ItemElements<T>* left) {
        const int32_t length = static_cast<int32_t>(e_.length);
        int32_t next_step[Waiting::LANES];  // the step of the item's next element
        for (int lane = 0; lane < Waiting::LANES; ++lane)
            next_step[lane] = lane < count ? left[lane].next_step_or(length) : length;
        for (int32_t now = 0;;) {
            int32_t next = length;
            for (int lane = 0; lane < Waiting::LANES; ++lane) next = next_step[lane] < next ? next_step[lane] : next;
            waiting.advance(next < length ? next + 1 - now : length - now);
            if (next == length) break;
            now = next + 1;
            for (int lane = 0; lane < count; ++lane) {
                if (next_step[lane] != next) continue;
                waiting.leave_before_last(lane, item[lane]);
                take_batch(who[lane], item[lane], left[lane]);
                waiting.enter(lane, item[lane]);
                next_step[lane] = left[lane].next_step_or(length);
            }
        }
        for (int lane = 0; lane < count; ++lane) {
            waiting.leave(lane, item[lane]);
            finish(who[lane], item[lane]);
        }
    }

    int64_t longest() const {
        int64_t most = 0;
        for (int64_t j = items_.begin; j < items_.end; ++j) most = most < V_.terms(j) ? V_.terms(j) : most;
        return most;
    }
    EpochItem<double> point(int lane) {
        double* first = points_.get() + 3 * lane * B_.width;
        return {first, first + B_.width, first + 2 * B_.width, whole_vectors(B_.width)};
    }

    // The anchor and its full gradient; false where that was all: an item with few terms takes the full
    // step.
    bool start(int64_t j, EpochItem<double>& item) {
        const double c = items_.c[j];
        if (!(c > 0)) return false;
        scale_to_mass(B_, items_.h + j * B_.k, c, u_.get());
        for (int i = 0; i < B_.k; ++i) h_[i] = static_cast<T>(u_[i]);
        const bool sampled = V_.terms(j) >= e_.shortest;
        pass_.ratio_sums(j, h_.get(), g_.get(), sampled ? q0_.get() : nullptr);
        if (sampled) {
            start_epoch(B_, u_.get(), c, item);
            multiplier(B_, g_.get(), item.G0);
        } else {
            PowerRule{e_.full_step}(B_, c, g_.get(), u_.get());
            put(B_, u_.get(), items_.h + j * B_.k, c, items_.out + j * B_.k);
        }
        return sampled;
    }
    void finish(int64_t j, const EpochItem<double>& item) {
        factor(B_, item, items_.c[j], u_.get());
        put(B_, u_.get(), items_.h + j * B_.k, items_.c[j], items_.out + j * B_.k);
    }

    // The item's elements, each counting nnz / s; they are gathered while the item is in cache.
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
    // The step that drew the item's next elements.
    void take_batch(int64_t j, EpochItem<double>& item, ItemElements<T>& left) {
        const int64_t s = left.next_batch_size();
        sampled_step(j, item, left.elements, left.used, s);
        left.step += s;
        left.used += s;
    }
    void sampled_step(int64_t j, EpochItem<double>& item, const Batch<T>& batch, int64_t from, int64_t s) {
        factor(B_, item, items_.c[j], batch_sums_.point());
        batch_sums_(batch.index.data() + from, batch.v.data() + from, batch.q0.data() + from, s, GS_.get(), GS0_.get());
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
