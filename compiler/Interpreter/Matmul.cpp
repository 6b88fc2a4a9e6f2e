#include "compiler/Interpreter/Matmul.h"

namespace titan::interpreter {

void multiplyAdd(int64_t m, int64_t n, int64_t k, const double* a, int64_t rowStride,
                 int64_t columnStride, const double* b, int64_t ldb, double* c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i) {
    double* __restrict row = c + i * ldc;
    int64_t p = 0;
    // Four rows of b at a time, so that a row of c is read and written once for all four.
    for (; p + 4 <= k; p += 4) {
      const double* factors = a + i * rowStride + p * columnStride;
      const double a0 = factors[0], a1 = factors[columnStride], a2 = factors[2 * columnStride],
                   a3 = factors[3 * columnStride];
      const double *b0 = b + p * ldb, *b1 = b0 + ldb, *b2 = b1 + ldb, *b3 = b2 + ldb;
#pragma clang loop vectorize(enable)
      for (int64_t j = 0; j < n; ++j)
        row[j] = (((row[j] + a0 * b0[j]) + a1 * b1[j]) + a2 * b2[j]) + a3 * b3[j];
    }
    for (; p < k; ++p) {
      const double factor = a[i * rowStride + p * columnStride];
      for (int64_t j = 0; j < n; ++j)
        row[j] += factor * b[p * ldb + j];
    }
  }
}

} // namespace titan::interpreter
