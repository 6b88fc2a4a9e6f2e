// The matrix product under titan.contract and kernel.call.
#pragma once

#include <cstdint>

namespace titan::interpreter {

/// c[m, n] += a[m, k] b[k, n], row-major, in f64; `a` is walked by (rowStride, columnStride), the
/// rows of `b` and `c` are contiguous. Each element's sum runs over k in order.
void multiplyAdd(int64_t m, int64_t n, int64_t k, const double* a, int64_t rowStride,
                 int64_t columnStride, const double* b, int64_t ldb, double* c, int64_t ldc);

} // namespace titan::interpreter
