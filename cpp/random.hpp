// SPDX-License-Identifier: BSD-3-Clause
// Counter-based random numbers (Philox4x64-10; Salmon, Moraes, Dror, Shaw 2011). A number is a pure
// function of key = (seed, stream) and counter, so any thread may draw the batch of any item and two
// runs agree bit for bit.
#pragma once
#include <cstdint>

namespace sipower {

struct Key {
    uint64_t seed, stream;
};

// The round, side, item and inner step of a draw, which fill three words of Philox's counter. The first word of the
// counter numbers the blocks of four random numbers.
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

}  // namespace sipower
