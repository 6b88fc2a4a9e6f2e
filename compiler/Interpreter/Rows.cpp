#include "compiler/Interpreter/Rows.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>

using namespace mlir;

namespace titan::interpreter {

Rows::Rows(const Tensor& source, ArrayRef<int64_t> dims) : count(1), length(1) {
  SmallVector<int64_t> order, shape;
  for (int64_t d = 0; d < source.rank(); ++d)
    if (!llvm::is_contained(dims, d)) {
      order.push_back(d);
      count *= source.extent(d);
    }
  for (int64_t d : dims) {
    order.push_back(d);
    length *= source.extent(d);
  }
  if (llvm::is_sorted(order)) {
    tensor = source;
    return;
  }
  Walk from;
  for (int64_t d : order) {
    from.strides.push_back(source.strides()[d]);
    shape.push_back(source.extent(d));
  }
  tensor = Tensor(shape, source.element());
  copyElements(shape, source, from, tensor, wholeWalk(tensor));
}

namespace {

template <typename T> T identity(Reduction kind) {
  using Limits = std::numeric_limits<T>;
  T highest = Limits::has_infinity ? Limits::infinity() : Limits::max();
  switch (kind) {
  case Reduction::Sum:
    return 0;
  case Reduction::Product:
    return 1;
  case Reduction::Max:
    return Limits::has_infinity ? -highest : Limits::lowest();
  case Reduction::Min:
    return highest;
  }
  return 0;
}

template <typename T> T combine(Reduction kind, T a, T b) {
  switch (kind) {
  case Reduction::Sum:
    return a + b;
  case Reduction::Product:
    return a * b;
  case Reduction::Max:
    return a > b || a != a ? a : b;
  case Reduction::Min:
    return a < b || a != a ? a : b;
  }
  return a;
}

template <typename T, typename Row>
void reduceEach(Reduction kind, Row row, MutableArrayRef<T> results) {
  for (auto [i, result] : llvm::enumerate(results)) {
    T value = identity<T>(kind);
    for (T x : row(i))
      value = combine(kind, value, x);
    result = value;
  }
}

} // namespace

void reduceRows(const Rows& rows, Reduction kind, MutableArrayRef<double> results) {
  reduceEach<double>(kind, [&](int64_t i) { return rows.floats(i); }, results);
}

void reduceRows(const Rows& rows, Reduction kind, MutableArrayRef<int64_t> results) {
  reduceEach<int64_t>(kind, [&](int64_t i) { return rows.integers(i); }, results);
}

} // namespace titan::interpreter
