// SPDX-License-Identifier: BSD-3-Clause
// Counter-based random numbers (Philox4x64-10; Salmon, Moraes, Dror, Shaw 2011) and the draws of a
// batch. A number is a pure function of key = (seed, stream) and counter, so any thread may draw
// the batch of any item and two runs agree bit for bit.
#pragma once
#include <cstdint>
#include <vector>

namespace sipower {

struct Key {
    uint64_t seed, stream;
};

// Where a draw belongs: Philox's counter, its first word counts the blocks of four numbers.
struct Place {
    uint64_t round, side, item, inner;
};

struct Block {
    uint64_t word[4];
};

static inline uint64_t multiply_high(uint64_t a, uint64_t b) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(a) * b) >> 64);
}

static inline Block philox(Block c, Key key) {
    constexpr uint64_t m0 = 0xD2E7470EE14C6C93ull, m1 = 0xCA5A826395121157ull;
    uint64_t k0 = key.seed, k1 = key.stream;
    for (int round = 0; round < 10; ++round) {
        const uint64_t h0 = multiply_high(m0, c.word[0]), l0 = m0 * c.word[0];
        const uint64_t h1 = multiply_high(m1, c.word[2]), l1 = m1 * c.word[2];
        c = {{h1 ^ c.word[1] ^ k0, l1, h0 ^ c.word[3] ^ k1, l0}};
        k0 += 0x9E3779B97F4A7C15ull;
        k1 += 0xBB67AE8584CAA73Bull;
    }
    return c;
}

namespace {  // one copy per translation unit, so per instruction-set level

class Random {
public:
    Random(Key key, Place place) : key_(key), place_(place) {}

    uint64_t bits() {
        if (used_ == 4) {
            block_ = philox({{counter_++, place_.item, place_.round,
                              (place_.side << 32) | place_.inner}}, key_);
            used_ = 0;
        }
        return block_.word[used_++];
    }
    // Uniform on {0, ..., n-1}; the bias of multiply-and-shift is below n / 2^64.
    int64_t below(int64_t n) { return static_cast<int64_t>(multiply_high(bits(), static_cast<uint64_t>(n))); }
    // Uniform on the open interval (0, 1).
    double uniform() { return (static_cast<double>(bits() >> 11) + 0.5) * 0x1p-53; }

private:
    Key key_;
    Place place_;
    Block block_{};
    uint64_t counter_ = 0;
    int used_ = 4;
};

}  // namespace

// s of n without replacement: the first s entries of a Fisher-Yates shuffle. `order` must hold
// 0, 1, ..., n-1 and holds it again afterwards, so a draw costs O(s) and leaves no memory.
static inline void draw_distinct(Random random, int64_t n, int64_t s, int32_t* order,
                                 int32_t* swaps, int32_t* out) {
    for (int64_t t = 0; t < s; ++t) {
        const int64_t other = t + random.below(n - t);
        swaps[t] = static_cast<int32_t>(other);
        const int32_t taken = order[other];
        order[other] = order[t];
        order[t] = taken;
        out[t] = taken;
    }
    for (int64_t t = s - 1; t >= 0; --t) {
        const int32_t back = order[swaps[t]];
        order[swaps[t]] = order[t];
        order[t] = back;
    }
}

// The same numbers for s far below n: of the shuffled order only the entries that were touched are held,
// in a hash table, so a draw takes O(s) time and memory.
class SparseShuffle {
public:
    explicit SparseShuffle(int64_t most) {
        while ((int64_t{1} << bits_) < 2 * most) ++bits_;
        slots_.resize(size_t{1} << bits_);
    }
    void draw(Random random, int64_t n, int64_t s, int32_t* out) {
        ++draw_;
        for (int64_t t = 0; t < s; ++t) {
            const int64_t other = t + random.below(n - t);
            Slot& place = find(static_cast<int32_t>(other));
            const Slot& front = find(static_cast<int32_t>(t));
            out[t] = place.draw == draw_ ? place.value : static_cast<int32_t>(other);
            const int32_t moved = front.draw == draw_ ? front.value : static_cast<int32_t>(t);
            place = {draw_, static_cast<int32_t>(other), moved};
        }
    }

private:
    struct Slot {
        uint32_t draw = 0;  // 0 or of an earlier draw: free
        int32_t key = 0, value = 0;
    };
    // The slot of a key, or the free one where it belongs.
    Slot& find(int32_t key) {
        size_t at = (static_cast<uint32_t>(key) * 2654435769u) >> (32 - bits_);
        while (slots_[at].draw == draw_ && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
        return slots_[at];
    }
    int bits_ = 1;
    uint32_t draw_ = 0;
    std::vector<Slot> slots_;
};

static inline void draw_repeated(Random random, int64_t n, int64_t s, int32_t* out) {
    for (int64_t t = 0; t < s; ++t) out[t] = static_cast<int32_t>(random.below(n));
}

// s draws with replacement, position i with probability w_i / sum(w): unbiased factor
// sum(w) / (s w_i). `upto` holds the running sums of w > 0.
static inline void draw_weighted(Random random, const double* w, const double* upto, int64_t n,
                                 int64_t s, int32_t* out, double* factor) {
    for (int64_t t = 0; t < s; ++t) {
        const double mark = random.uniform() * upto[n - 1];
        int64_t low = 0, high = n - 1;
        while (low < high) {
            const int64_t middle = (low + high) / 2;
            if (upto[middle] <= mark) low = middle + 1; else high = middle;
        }
        out[t] = static_cast<int32_t>(low);
        factor[t] = upto[n - 1] / (static_cast<double>(s) * w[low]);
    }
}

// About s distinct positions, i with inclusion probability pi_i = min(1, tau w_i), sum(pi) = s:
// systematic sampling, unbiased factor 1 / pi_i. Returns how many were drawn (s or s +- 1).
static inline int64_t draw_systematic(Random random, const double* w, double total, int64_t n,
                                      int64_t s, int32_t* out, double* factor) {
    // tau by fixed point: positions with tau w_i >= 1 are certain, the rest share what is left.
    double tau = static_cast<double>(s) / total;
    for (int pass = 0; pass < 64; ++pass) {
        double certain = 0, mass = 0;
        for (int64_t i = 0; i < n; ++i) {
            if (tau * w[i] >= 1) certain += 1; else mass += w[i];
        }
        const double next = mass > 0 ? (static_cast<double>(s) - certain) / mass : tau;
        if (!(next > tau)) break;
        tau = next;
    }
    double sum = 0, mark = random.uniform();
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) {
        const double pi = tau * w[i] < 1 ? tau * w[i] : 1.0;
        sum += pi;
        if (mark < sum && count < n) {
            out[count] = static_cast<int32_t>(i);
            factor[count++] = 1 / pi;
            mark += 1;
        }
    }
    return count;
}

}  // namespace sipower
