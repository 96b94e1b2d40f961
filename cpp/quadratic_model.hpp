// SPDX-License-Identifier: BSD-3-Clause
// `QuadraticModel`: the model of a Newton step over non-negative coordinates, and its solution.
#pragma once
#include <cmath>

#include "buffer.hpp"

namespace sipower {
namespace {

// x <- H^-1 x for the lower half of H, which is overwritten. Returns false if H is not positive definite.
inline bool cholesky_solve(double* H, int n, double* x) {
    for (int a = 0; a < n; ++a) {
        const double whole = H[a * n + a];
        for (int b = 0; b <= a; ++b) {
            double left = H[a * n + b];
            for (int c = 0; c < b; ++c) left -= H[a * n + c] * H[b * n + c];
            if (b < a) H[a * n + b] = left / H[b * n + b];
            else if (!(left > 1e-15 * whole)) return false;
            else H[a * n + a] = std::sqrt(left);
        }
    }
    for (int a = 0; a < n; ++a) {
        for (int c = 0; c < a; ++c) x[a] -= H[a * n + c] * x[c];
        x[a] /= H[a * n + a];
    }
    for (int a = n - 1; a >= 0; --a) {
        for (int c = a + 1; c < n; ++c) x[a] -= H[c * n + a] * x[c];
        x[a] /= H[a * n + a];
    }
    return true;
}

// The accuracy of a model's solution: at most `sweeps` of coordinate descent, until no coordinate moves by more
// than `tol` of itself; with `polish`, exact solutions on the active set follow. `nonzeros` is the number
// per coordinate that the Hessian is formed from (0: all).
struct ModelAccuracy {
    int sweeps;
    double tol;
    bool polish;
    int64_t nonzeros;
};
constexpr ModelAccuracy EXACT_SOLUTION{60, 1e-14, true, 0}, ROUGH_SOLUTION{8, 1e-2, false, 50};

// The model min r.p + p.Hp/2 over h + p >= 0 of a Newton step, on `size` free coordinates.
class QuadraticModel {
public:
    explicit QuadraticModel(int k)
        : H(static_cast<int64_t>(k) * k), blocks(8 * static_cast<int64_t>((k + 3) / 4) * ((k + 1) / 2)), r(k), h(k), p(k), index(k),
          factor_(static_cast<int64_t>(k) * k), q_(k), slope_(k), inverse_(k), free_(k) {}

    // H arrives in blocks of four rows by two columns, row block by row block up to the diagonal.
    void clear_blocks(int size) {
        const int64_t room = 8 * static_cast<int64_t>((size + 3) / 4) * ((size + 1) / 2);
        for (int64_t i = 0; i < room; ++i) blocks[i] = 0;
    }
    void take_blocks(int size) {
        const double* block = blocks.get();
        for (int a = 0; a < size; a += 4)
            for (int b = 0; b < a + 4 && b < size; b += 2, block += 8)
                for (int i = 0; i < 4 && a + i < size; ++i)
                    for (int j = 0; j < 2 && b + j <= a + i; ++j)
                        H[static_cast<int64_t>(a + i) * size + b + j] = block[2 * i + j];
    }

    // H <- the free coordinates of a matrix (k, k).
    void copy(int size, const double* matrix, int k) {
        for (int a = 0; a < size; ++a)
            for (int b = 0; b <= a; ++b) H[static_cast<int64_t>(a) * size + b] = matrix[static_cast<int64_t>(index[a]) * k + index[b]];
    }

    // Coordinate descent finds the zeros; exact solutions on the active set give the rest.
    void solve(int size, const ModelAccuracy& accuracy) {
        double trace = 0;
        for (int a = 0; a < size; ++a) trace += H[a * size + a];
        for (int a = 0; a < size; ++a) {
            H[a * size + a] += 1e-13 * trace;
            for (int b = 0; b < a; ++b) H[b * size + a] = H[a * size + b];
            p[a] = 0;
        }
        for (int a = 0; a < size; ++a) {
            slope_[a] = r[a];
            inverse_[a] = 1 / H[static_cast<int64_t>(a) * size + a];
        }
        for (int sweep = 0; sweep < accuracy.sweeps; ++sweep) {
            bool moved = false;
            for (int a = 0; a < size; ++a) moved |= coordinate(a, size, accuracy.tol);
            if (!moved) break;
        }
        if (!accuracy.polish) return;
        int count = 0;
        for (int a = 0; a < size; ++a)
            if (h[a] + p[a] > 0) free_[count++] = a;
        while (count > 0 && exact_step(size, count)) {
        }
    }

    // H <- S H S with the diagonal S that makes H_aa = diagonal[index[a]]; it stays positive semidefinite.
    void fit_diagonal(int size, const double* diagonal) {
        for (int a = 0; a < size; ++a) {
            const double current = H[static_cast<int64_t>(a) * size + a];
            inverse_[a] = current > 0 ? std::sqrt(diagonal[index[a]] / current) : 0;
        }
        for (int a = 0; a < size; ++a) {
            for (int b = 0; b < a; ++b) H[static_cast<int64_t>(a) * size + b] *= inverse_[a] * inverse_[b];
            H[static_cast<int64_t>(a) * size + a] = diagonal[index[a]];
        }
    }

    Buffer<double> H, blocks, r, h, p;
    Buffer<int> index;

private:
    double slope(int a, int size) const {
        double sum = r.get()[a];
        const double* row = H.get() + static_cast<int64_t>(a) * size;
        for (int b = 0; b < size; ++b) sum += row[b] * p.get()[b];
        return sum;
    }
    // Move to the minimum along one coordinate and update all slopes; returns whether it moved by more than tol.
    bool coordinate(int a, int size, double tol) {
        const double target = p[a] - slope_[a] * inverse_[a];
        const double next = target > -h[a] ? target : -h[a], change = next - p[a];
        if (change == 0) return false;
        p[a] = next;
        const double* row = H.get() + static_cast<int64_t>(a) * size;
        double* slopes = slope_.get();
        for (int b = 0; b < size; ++b) slopes[b] += change * row[b];
        return std::fabs(change) > tol * (h[a] + std::fabs(next));
    }
    // Take a Newton step on the free coordinates, up to the first that reaches zero and is then fixed;
    // returns whether one was fixed.
    bool exact_step(int size, int& count) {
        for (int i = 0; i < count; ++i) {
            for (int j = 0; j <= i; ++j) factor_[i * count + j] = H[static_cast<int64_t>(free_[i]) * size + free_[j]];
            q_[i] = -slope(free_[i], size);
        }
        if (!cholesky_solve(factor_.get(), count, q_.get())) return false;
        double length = 1;
        int blocking = -1;
        for (int i = 0; i < count; ++i) {
            const double room = h[free_[i]] + p[free_[i]];
            if (q_[i] < 0 && room + length * q_[i] < 0) {
                length = room / -q_[i];
                blocking = i;
            }
        }
        for (int i = 0; i < count; ++i) p[free_[i]] += length * q_[i];
        if (blocking < 0) return false;
        p[free_[blocking]] = -h[free_[blocking]];
        for (int i = blocking; i + 1 < count; ++i) free_[i] = free_[i + 1];
        --count;
        return true;
    }

    Buffer<double> factor_, q_, slope_, inverse_;
    Buffer<int> free_;
};

}  // namespace
}  // namespace sipower
