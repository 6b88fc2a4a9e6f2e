// Reductions walk a tensor as rows: the reduced dimensions last.
#pragma once

#include "compiler/Interpreter/Tensor.h"

namespace titan::interpreter {

/// `tensor` transposed so that `dims` come last, in order; a row has `length` elements.
struct Rows {
  Tensor tensor;
  int64_t count, length;
  Rows(const Tensor& source, llvm::ArrayRef<int64_t> dims);
  llvm::ArrayRef<double> floats(int64_t row) const {
    return tensor.floats().slice(row * length, length);
  }
  llvm::ArrayRef<int64_t> integers(int64_t row) const {
    return tensor.integers().slice(row * length, length);
  }
};

enum class Reduction { Sum, Product, Max, Min };

/// The combination of each row. Floats combine in f64: the caller rounds the result once. Maxima
/// and minima are NaN if an element is. An empty row gives 0, 1, the lowest and the highest value.
void reduceRows(const Rows& rows, Reduction kind, llvm::MutableArrayRef<double> results);
void reduceRows(const Rows& rows, Reduction kind, llvm::MutableArrayRef<int64_t> results);

} // namespace titan::interpreter
