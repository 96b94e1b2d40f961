// SPDX-License-Identifier: BSD-3-Clause
// `EntryLines`: the lines of a text file of counts, "row column value" or some of them, parsed without tolerance.
//
// A line is valid if it consists of exactly the expected numbers between blanks, or of blanks only. Whole numbers have
// at most 18 digits. Decimal numbers are those of Python's float() without "nan", "inf" and underscores, and are
// rounded alike.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

namespace sipower {
namespace {

// A decimal number m·10^exponent.
struct Decimal {
    uint64_t m = 0;            // modulo 2^64 if there are more than 19 digits
    int64_t digits = 0;        // number of digits, leading zeros included
    int64_t exponent = 0;
    bool zero = true;          // whether all digits are zero
    bool negative = false;
};

// 5^n, and 10^n as far as doubles represent it.
constexpr int MAX_POWER = 27, MAX_EXACT = 22;
constexpr uint64_t power_of_5(int n) { return n == 0 ? 1 : 5 * power_of_5(n - 1); }
constexpr double EXACT_POWERS[MAX_EXACT + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                                1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// 10^n ≈ mantissa·2^exponent, rounded down to 64 bits of which the first is set.
struct Power {
    uint64_t mantissa;
    int exponent;
};
constexpr Power power_of_10(int n) {
    const uint64_t power = power_of_5(n < 0 ? -n : n);
    int shift = 0;
    while (!(power << shift >> 63)) ++shift;
    if (n >= 0) return {power << shift, n - shift};
    // 2^(127 - shift) / 5^|n| has 64 or, if 5^|n| is a power of 2, 65 bits; 5^|n| is none.
    const unsigned __int128 numerator = static_cast<unsigned __int128>(1) << (127 - shift);
    return {static_cast<uint64_t>(numerator / power), n - 127 + shift};
}
constexpr std::array<Power, 2 * MAX_POWER + 1> powers_of_10() {
    std::array<Power, 2 * MAX_POWER + 1> powers{};
    for (int n = -MAX_POWER; n <= MAX_POWER; ++n) powers[static_cast<size_t>(n + MAX_POWER)] = power_of_10(n);
    return powers;
}
constexpr std::array<Power, 2 * MAX_POWER + 1> POWERS = powers_of_10();

// 2^n as a double, for |n| < 1023.
inline double power_of_2(int n) {
    const uint64_t bits = static_cast<uint64_t>(1023 + n) << 52;
    double power;
    std::memcpy(&power, &bits, sizeof power);
    return power;
}

// Round a decimal number to the nearest double. Returns false, in rare cases, if 64 bits of the power of 10 do not
// decide which one that is.
inline bool round_decimal(const Decimal& x, double& out) {
    if (x.zero) return out = 0, true;
    if (x.digits > 19 || x.exponent < -MAX_POWER || x.exponent > MAX_POWER) return false;
    const int n = static_cast<int>(x.exponent);
    if (x.m >> 53 == 0 && -MAX_EXACT <= n && n <= MAX_EXACT) {  // one operation on two exact numbers
        const double m = static_cast<double>(x.m);
        return out = n < 0 ? m / EXACT_POWERS[-n] : m * EXACT_POWERS[n], true;
    }
    const int shift = __builtin_clzll(x.m);
    const Power& power = POWERS[static_cast<size_t>(n + MAX_POWER)];
    const auto product = static_cast<unsigned __int128>(x.m << shift) * power.mantissa;
    // The exact product lies between high and high + 2, in units of 2^64.
    const uint64_t high = static_cast<uint64_t>(product >> 64);
    const int spare = high >> 63 ? 11 : 10;  // bits beyond the 53 of a double
    const uint64_t rest = high & ((uint64_t{1} << spare) - 1), half = uint64_t{1} << (spare - 1);
    if (rest + 2 > half && rest <= half) return false;
    const auto rounded = static_cast<double>((high >> spare) + (rest > half));
    return out = rounded * power_of_2(power.exponent + 64 - shift + spare), true;
}

// A number that `round_decimal` did not round: the index of its entry, its line and its place in the text.
struct HardNumber {
    size_t entry;
    int64_t line, begin, end;
};

class EntryLines {
  public:
    // What a line holds, whether values are whole, and the largest row and column.
    bool has_indices, has_values, whole;
    int64_t rows, columns;

    std::vector<int32_t> row, column;
    std::vector<int64_t> wholes;
    std::vector<double> decimals;
    std::vector<HardNumber> hard;
    int64_t bad_line = -1;  // the first line that is not valid, counted from 0, or -1

    // Parse a text, which must be followed by a zero byte, up to the first line that is not valid.
    void parse(const char* text, int64_t length) {
        const char *const end = text + length, *at = text;
        reserve(text, length);
        for (int64_t line = 0; at < end; ++line) {
            skip_blanks(at);
            if (*at != '\n' && at < end && !read_entry(text, at, line)) {
                bad_line = line;
                return;
            }
            if (at < end && *at != '\n') {
                bad_line = line;
                return;
            }
            ++at;
        }
    }

  private:
    static bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
    static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }
    static void skip_blanks(const char*& at) {
        while (is_blank(*at)) ++at;
    }
    // Skip the blanks behind a number; false if it is followed by anything else within its line.
    static bool end_number(const char*& at) {
        const char* const from = at;
        skip_blanks(at);
        return at > from || *at == '\n' || *at == '\0';
    }

    // Allocate for as many lines as there are if all are as long as the first ones.
    void reserve(const char* text, int64_t length) {
        const int64_t first = std::min<int64_t>(length, 4096), count = std::count(text, text + first, '\n') + 1;
        const auto lines = static_cast<size_t>(count * (length / 4096 + 1));
        if (has_indices) row.reserve(lines), column.reserve(lines);
        if (has_values && whole) wholes.reserve(lines);
        if (has_values && !whole) decimals.reserve(lines);
    }

    bool read_entry(const char* text, const char*& at, int64_t line) {
        int64_t i = 1, j = 1, count = 1;
        double value = 1;
        if (has_indices) {
            if (!read_whole(at, i) || !read_whole(at, j)) return false;
            if (i < 1 || i > rows || i > INT32_MAX || j < 1 || j > columns || j > INT32_MAX) return false;
        }
        if (has_values && whole && (!read_whole(at, count) || count < 0)) return false;
        if (has_values && !whole && !read_decimal(text, at, line, value)) return false;
        if (has_indices) row.push_back(static_cast<int32_t>(i - 1)), column.push_back(static_cast<int32_t>(j - 1));
        if (has_values && whole) wholes.push_back(count);
        if (has_values && !whole) decimals.push_back(value);
        return true;
    }

    static bool read_whole(const char*& at, int64_t& out) {
        const bool negative = *at == '-';
        if (negative || *at == '+') ++at;
        const char* const first = at;
        uint64_t number = 0;
        for (; is_digit(*at); ++at) number = 10 * number + static_cast<uint64_t>(*at - '0');
        if (at == first || at - first > 18) return false;
        out = negative ? -static_cast<int64_t>(number) : static_cast<int64_t>(number);
        return end_number(at);
    }

    bool read_decimal(const char* text, const char*& at, int64_t line, double& out) {
        const char* const first = at;
        Decimal x;
        x.negative = *at == '-';
        if (x.negative || *at == '+') ++at;
        read_digits(at, x);
        if (*at == '.') {
            const int64_t before = x.digits;
            read_digits(++at, x);
            x.exponent = before - x.digits;
        }
        if (x.digits == 0) return false;
        if ((*at == 'e' || *at == 'E') && !read_exponent(++at, x)) return false;
        const char* const last = at;
        if (!end_number(at) || (x.negative && !x.zero)) return false;
        if (!round_decimal(x, out)) hard.push_back({decimals.size(), line, first - text, last - text});
        return true;
    }

    static void read_digits(const char*& at, Decimal& x) {
        const char* const first = at;
        uint64_t any = 0;
        for (; is_digit(*at); ++at) {
            const auto digit = static_cast<uint64_t>(*at - '0');
            x.m = 10 * x.m + digit;
            any |= digit;
        }
        x.digits += at - first;
        x.zero = x.zero && any == 0;
    }

    static bool read_exponent(const char*& at, Decimal& x) {
        const bool negative = *at == '-';
        if (negative || *at == '+') ++at;
        if (!is_digit(*at)) return false;
        int64_t number = 0;
        for (; is_digit(*at); ++at) number = std::min<int64_t>(10 * number + (*at - '0'), 1 << 20);
        x.exponent += negative ? -number : number;
        return true;
    }
};

}  // namespace
}  // namespace sipower
