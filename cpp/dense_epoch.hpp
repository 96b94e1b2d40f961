// SPDX-License-Identifier: BSD-3-Clause
// An epoch of S-SCI-PI over dense data: every inner step draws rows of the basis, the same for all
// items, and meets the items in groups.
#pragma once
#include "dense.hpp"
#include "epoch.hpp"

namespace sipower {
namespace {

// The rows of the basis that one inner step draws, shared by all items, packed as a panel.
template <class T> class Sample {
public:
    Sample(const Basis<T>& B, const Epoch& e)
        : s(batch_size(e.batch, B.n)), tiles((s + TILE - 1) / TILE), index(s), B_(B), e_(e), order_(B.n),
          swaps_(s), rows_(tiles * TILE * B.width), tiles_(tiles * TILE * B.k) {
        for (int64_t i = 0; i < B.n; ++i) order_[i] = static_cast<int32_t>(i);
    }
    void draw(int64_t t) {
        Random random(e_.key, {e_.round, e_.side, 0, static_cast<uint64_t>(t)});
        if (e_.replace) draw_repeated(random, B_.n, s, index.get());
        else draw_distinct(random, B_.n, s, order_.get(), swaps_.get(), index.get());
        for (int64_t i = 0; i < s; ++i) {
            const T* from = B_.row(index[i]);
            T* tile = tiles_.get() + i / TILE * TILE * B_.k;
            std::memcpy(rows_.get() + i * B_.width, from, static_cast<size_t>(B_.width) * sizeof(T));
            for (int a = 0; a < B_.k; ++a) tile[a * TILE + i % TILE] = from[a];
        }
    }
    const T* rows(int64_t tile) { return rows_.get() + tile * TILE * B_.width; }
    const T* columns(int64_t tile) { return tiles_.get() + tile * TILE * B_.k; }

    const int64_t s, tiles;
    Buffer<int32_t> index;

private:
    const Basis<T>& B_;
    const Epoch& e_;
    Buffer<int32_t> order_, swaps_;
    Buffer<T> rows_, tiles_;
};

// One epoch on the items of a block: full gradient, then the inner steps, all items together.
template <class T> class BlockEpoch {
public:
    BlockEpoch(const Dense& V, const Basis<T>& B, const Items<T>& items, const Epoch& e)
        : V_(V), B_(B), items_(items), e_(e), pass_(V, B), groups_(items.begin, items.end, B.width),
          sample_(B, e), u_(room()), y_(room()), y0_(room()), G0_(room()), GS_(GROUP * B.width),
          GS0_(GROUP * B.width), inverse_(B.width), weight_(B.width), q0_(groups_.count * GROUP * V.others) {
        const double factor = static_cast<double>(B.n) / static_cast<double>(sample_.s);
        for (int i = 0; i < B.k; ++i) {
            inverse_[i] = static_cast<T>(B.inverse[i]);
            weight_[i] = static_cast<T>(factor * B.inverse[i]);
        }
    }

    void run() {
        start();
        for (int64_t t = 1; t < e_.length; ++t) {
            sample_.draw(t);
            for (int64_t a = 0; a < groups_.count; ++a) inner_steps(a);
        }
        for (int64_t j = items_.begin; j < items_.end; ++j) {
            if (!(items_.c[j] > 0)) continue;
            double* u = u_.get() + (j - items_.begin) * B_.width;
            item(j - items_.begin).factor(inverse_.get(), items_.c[j], u, B_.width);
            put(B_, u, items_.h + j * B_.k, items_.c[j], items_.out + j * B_.k);
        }
    }

private:
    int64_t room() const { return groups_.count * GROUP * B_.width; }
    EpochItem<T> item(int64_t i) {
        return {y_.get() + i * B_.width, y0_.get() + i * B_.width, G0_.get() + i * B_.width};
    }
    // Anchor, its full gradient, and the first step: at t = 0 the batch cancels (y = y0).
    void start() {
        for (int64_t i = 0; i < items_.end - items_.begin; ++i) {
            double* u = u_.get() + i * B_.width;
            scale_to_mass(B_, items_.h + (items_.begin + i) * B_.k, items_.c[items_.begin + i], u);
            for (int k = 0; k < B_.k; ++k) groups_.u[i * B_.width + k] = static_cast<T>(u[k]);
        }
        Buffer<double> sums(room());
        for_groups(V_, B_, groups_, [&](int64_t a, int64_t first, int count, int64_t from) {
            const int64_t at = a * GROUP * B_.width;
            pass_.ratio_sums(first, count, from, groups_.u.get() + at, sums.get() + at, q0_.get() + a * GROUP * V_.others);
        });
        for (int64_t i = 0; i < items_.end - items_.begin; ++i) {
            if (!(items_.c[items_.begin + i] > 0)) continue;
            item(i).start(B_, u_.get() + i * B_.width, items_.c[items_.begin + i]);
            multiplier(B_, sums.get() + i * B_.width, item(i).G0);
            item(i).wait(1, e_, B_.width);
        }
    }
    void inner_steps(int64_t a) {
        const int64_t first = a * GROUP;
        const int count = pass_.members(items_.begin + first, items_.end);
        const double* c = items_.c + items_.begin + first;
        for (int j = 0; j < count; ++j)
            item(first + j).factor(inverse_.get(), c[j], groups_.u.get() + (first + j) * B_.width, B_.width);
        sum_sample(first, count);
        for (int j = 0; j < count; ++j)
            if (c[j] > 0) item(first + j).inner_step(GS_.get() + j * B_.width, GS0_.get() + j * B_.width, e_, B_.width);
    }
    // GS = weight sum v b / z at the point and GS0 = weight sum q0 b over the sample, weight = (n / s) / d
    void sum_sample(int64_t first, int count) {
        for (int i = 0; i < GROUP * B_.width; ++i) GS_[i] = GS0_[i] = 0;
        for (int64_t tile = 0; tile < sample_.tiles; ++tile) {
            const int64_t left = sample_.s - tile * TILE;
            const int n = static_cast<int>(left < TILE ? left : TILE);
            const int32_t* index = sample_.index.get() + tile * TILE;
            T v[GROUP * TILE], q0[GROUP * TILE];
            for (int j = 0; j < GROUP; ++j) {
                const int64_t i = first + (j < count ? j : count - 1);  // places without an item repeat the last
                pick_values(V_.values, (items_.begin + i) * V_.others, index, n, v + j * TILE);
                picked(q0_.get() + i * V_.others, index, n, q0 + j * TILE);
            }
            pass_.sample_sums(sample_.rows(tile), sample_.columns(tile), v, q0, n, groups_.u.get() + first * B_.width,
                              GS_.get(), GS0_.get());
        }
        for (int j = 0; j < count; ++j)
            for (int i = 0; i < whole_vectors(B_.width); ++i) {
                GS_[j * B_.width + i] *= weight_[i];
                GS0_[j * B_.width + i] *= weight_[i];
            }
    }

    const Dense& V_;
    const Basis<T>& B_;
    const Items<T>& items_;
    const Epoch& e_;
    DensePass<T> pass_;
    Groups<T> groups_;
    Sample<T> sample_;
    Buffer<double> u_;
    Buffer<T> y_, y0_, G0_, GS_, GS0_, inverse_, weight_, q0_;
};

template <class T>
void epoch_dense(const Dense& V, const Basis<T>& B, const Items<T>& items, const Epoch& e) {
    BlockEpoch<T>(V, B, items, e).run();
}

}  // namespace
}  // namespace sipower
