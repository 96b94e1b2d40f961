// SPDX-License-Identifier: BSD-3-Clause
// `GatheredRows`: the values of one item and its basis rows, copied into tiles (K, TILE), so that inner loops run over
// the nonzeros of the item in contiguous memory.
#pragma once
#include <cstring>
#include <vector>

#include "buffer.hpp"
#include "kernels.hpp"
#include "simd.hpp"
#include "values.hpp"

namespace sipower {
namespace {

// One item: its values v > 0, its tiles and the terms of its objective.
template <class T> class GatheredRows {
protected:
    static constexpr int L = Simd<T>::lanes;

public:
    GatheredRows(const Basis<T>& B, int64_t longest)
        : room_(padded(longest + (B.prior ? B.k : 0))), v_(room_), bases_(B), tiles_(room_ * B.k),
          units_(B.prior ? static_cast<int64_t>(B.k) * B.width : 0) {
        for (int k = 0; B.prior && k < B.k; ++k) units_[static_cast<int64_t>(k) * B.width + k] = T(1);
    }

    // Read an item. Its prior counts become additional nonzeros a_k whose basis row is the unit vector of component k.
    void enter(const Csr& V, int64_t item) {
        const int64_t from = V.start(item);
        bases_.at(item);
        data_ = n_ = V.nonzeros(item);
        from_ = tiles_.get();
        for (int64_t t = 0; t < n_; t += TILE) {
            T buffer[TILE];
            const int n = static_cast<int>(n_ - t < TILE ? n_ - t : TILE);
            std::memcpy(v_.get() + t, read_values(V.values, from + t, n, buffer), static_cast<size_t>(n) * sizeof(T));
        }
        rows_ = V.columns(from, n_);
        append_prior();
        fill_tiles();
    }

    // Skip the zeros of a dense item, which enter the objective through d alone. An item without zeros
    // uses the tiles of the basis.
    void enter(const Dense& V, int64_t item) {
        bool positive = !bases_.current().prior;
        bases_.at(item);
        for (int64_t i = 0; i < V.n_columns; i += TILE) {
            const int n = static_cast<int>(V.n_columns - i < TILE ? V.n_columns - i : TILE);
            T buffer[TILE];
            const T* v = read_values(V.values, item * V.n_columns + i, n, buffer);
            for (int t = 0; t < TILE; ++t) v_[i + t] = t < n ? v[t] : T(0);
            for (int t = 0; t < n; ++t) positive = positive && v[t] > 0;
        }
        data_ = n_ = V.n_columns;
        rows_ = nullptr;
        from_ = positive ? basis().tiles : tiles_.get();
        if (positive) return;
        positive_rows_.resize(static_cast<size_t>(V.n_columns));
        gather_positive(V.n_columns);
    }

    const Basis<T>& basis() const { return bases_.current(); }  // with the terms of the item
    int64_t nonzeros() const { return n_; }  // prior counts included
    int32_t row(int64_t t) const { return rows_ ? rows_[t] : static_cast<int32_t>(t); }
    T value(int64_t t) const { return v_.get()[t]; }

    // Call visit(tile, first nonzero, length) for each tile. Lengths are multiples of the vector width;
    // beyond the last nonzero v = 0.
    template <class Visit> void for_tiles(Visit visit) {
        for (int64_t at = 0; at < n_; at += TILE) {
            const int64_t left = (n_ - at + L - 1) / L * L;
            visit(from_ + at * basis().k, at, static_cast<int>(left < TILE ? left : TILE));
        }
    }
    // Return the address of the first component of nonzero t in its tile; the next component is TILE elements away.
    const T* tile_at(int64_t t) const { return from_ + t / TILE * TILE * basis().k + t % TILE; }
    Vec<T> values(int64_t t) const { return load(v_.get() + t); }

protected:
    static int64_t padded(int64_t n) { return (n + TILE - 1) / TILE * TILE; }

    const int64_t room_;
    Buffer<T> v_;
    int64_t n_ = 0;  // number of nonzeros, prior counts included

private:
    void gather_positive(int64_t n_columns) {
        n_ = 0;
        for (int64_t i = 0; i < n_columns; ++i) {
            if (!(v_[i] > 0)) continue;
            v_[n_] = v_[i];
            positive_rows_[static_cast<size_t>(n_++)] = static_cast<int32_t>(i);
        }
        data_ = n_;
        rows_ = positive_rows_.data();
        append_prior();
        fill_tiles();
    }
    void append_prior() {
        prior_.clear();
        for (int k = 0; basis().prior && k < basis().k; ++k) {
            if (!(basis().prior[k] > 0)) continue;
            v_[n_++] = static_cast<T>(basis().prior[k]);
            prior_.push_back(k);
        }
    }
    // Return the unit vector of the component that prior count t - data_ belongs to.
    const T* unit_row(int64_t t) const {
        return units_.get() + static_cast<int64_t>(prior_[static_cast<size_t>(t - data_)]) * basis().width;
    }
    // Write `count` rows, at most a vector of them, as columns of a tile; columns beyond the last row are zero.
    static void transpose_into(T* tile, int k_count, const T* const* from, int64_t count) {
        static const T zeros[L] = {};
        for (int k = 0; k < k_count; k += L) {
            Vec<T> square[L];
            for (int l = 0; l < L; ++l) square[l] = load(l < count ? from[l] + k : zeros);
            transpose(square);
            const int last = k_count - k < L ? k_count - k : L;
            for (int l = 0; l < last; ++l) store(tile + (k + l) * TILE, square[l]);
        }
    }
    // Transpose the basis rows of all nonzeros into tiles, as many rows at a time as a vector has lanes.
    // The last vector is padded with v = 0 and zero rows.
    void fill_tiles() {
        const Basis<T>& B = basis();
        const T* from[L];
        int64_t t = 0;
        for (; t + L <= data_; t += L) {
            for (int l = 0; l < L; ++l) from[l] = B.row(rows_[t + l]);
            transpose_into(tiles_.get() + t / TILE * TILE * B.k + t % TILE, B.k, from, L);
        }
        for (; t < n_; t += L) {
            for (int l = 0; l < L; ++l) from[l] = t + l < data_ ? B.row(rows_[t + l]) : t + l < n_ ? unit_row(t + l) : nullptr;
            transpose_into(tiles_.get() + t / TILE * TILE * B.k + t % TILE, B.k, from, n_ - t);
        }
        for (int64_t t = n_; t < (n_ + L - 1) / L * L; ++t) v_[t] = 0;
    }

    ItemBasis<T> bases_;
    Buffer<T> tiles_, units_;
    std::vector<int> prior_;  // components of the prior counts
    std::vector<int32_t> positive_rows_;  // basis rows of the positive values of a dense item
    const T* from_ = nullptr;  // the tiles in use: `tiles_`, or those of the basis
    const int32_t* rows_ = nullptr;  // basis row of each nonzero; null: all rows in order
    int64_t data_ = 0;  // number of nonzeros without prior counts
};

}  // namespace
}  // namespace sipower
