#include "compiler/Interpreter/Scatter.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace mlir;
using titan::ir::ScatterKind;

namespace titan::interpreter {

namespace {

bool isNaN(double x) { return std::isnan(x); }
bool isNaN(int64_t) { return false; }

/// Integers wrap; NaN wins max and min.
template <typename T> T combine(ScatterKind kind, T x, T update) {
  using Arithmetic = std::conditional_t<std::is_same_v<T, int64_t>, uint64_t, T>;
  const auto a = static_cast<Arithmetic>(x), b = static_cast<Arithmetic>(update);
  switch (kind) {
  case ScatterKind::None:
    return update;
  case ScatterKind::Add:
    return static_cast<T>(a + b);
  case ScatterKind::Mul:
    return static_cast<T>(a * b);
  case ScatterKind::Max:
    return x > update || isNaN(x) ? x : update;
  case ScatterKind::Min:
    return x < update || isNaN(x) ? x : update;
  }
  return update;
}

/// Calls `visit` with the row of the operand that each index names and that of the updates, which
/// is the index's own number, in order.
void forEachRow(const ir::ScatterShape& shape, const Tensor& indices,
                llvm::function_ref<void(int64_t entry, int64_t row)> visit) {
  int64_t number = 0;
  for (int64_t o = 0; o < shape.outer; ++o)
    for (int64_t row = 0; row < shape.rows; ++row)
      for (int64_t i = 0; i < shape.inner; ++i, ++number) {
        const int64_t entry = std::clamp<int64_t>(indices.integers()[number], 0, shape.entries - 1);
        visit((o * shape.entries + entry) * shape.inner + i, number);
      }
}

} // namespace

void scatterRows(ScatterKind kind, const ir::ScatterShape& shape, const Tensor& indices,
                 const Tensor& updates, Tensor& result, Type accumulation, const Frame& frame) {
  auto apply = [&](auto from, auto to, auto round) {
    forEachRow(shape, indices, [&](int64_t entry, int64_t row) {
      for (int64_t column = 0; column < shape.width; ++column) {
        auto& x = to[entry * shape.width + column];
        x = round(combine(kind, x, from[row * shape.width + column]));
      }
    });
  };
  if (!result.isFloat())
    return apply(updates.integers(), result.mutableIntegers(), [](int64_t x) { return x; });
  const bool rounds = kind == ScatterKind::Add || kind == ScatterKind::Mul;
  apply(updates.floats(), result.mutableFloats(),
        [&](double x) { return rounds ? frame.round(x, accumulation) : x; });
}

void gatherRows(const ir::ScatterShape& shape, const Tensor& operand, const Tensor& indices,
                Tensor& result) {
  auto copy = [&](auto from, auto to) {
    forEachRow(shape, indices, [&](int64_t entry, int64_t row) {
      std::copy_n(from.begin() + entry * shape.width, shape.width, to.begin() + row * shape.width);
    });
  };
  if (operand.isFloat())
    copy(operand.floats(), result.mutableFloats());
  else
    copy(operand.integers(), result.mutableIntegers());
}

void takeFirst(const Tensor& operand, int64_t rows, bool smallest, Tensor& values,
               Tensor& indices) {
  const int64_t length = operand.size() / rows, count = values.size() / rows;
  auto take = [&](auto from, auto to) {
    std::vector<int64_t> order(length);
    for (int64_t row = 0; row < rows; ++row) {
      auto x = from.slice(row * length, length);
      auto isLess = [&](int64_t a, int64_t b) { // NaN is the largest
        return x[a] < x[b] || (isNaN(x[b]) && !isNaN(x[a]));
      };
      std::iota(order.begin(), order.end(), 0);
      llvm::sort(order, [&](int64_t a, int64_t b) {
        const auto [low, high] = smallest ? std::pair(a, b) : std::pair(b, a);
        return isLess(low, high) || (a < b && !isLess(high, low));
      });
      for (int64_t i = 0; i < count; ++i) {
        indices.mutableIntegers()[row * count + i] = order[i];
        to[row * count + i] = x[order[i]];
      }
    }
  };
  if (operand.isFloat())
    take(operand.floats(), values.mutableFloats());
  else
    take(operand.integers(), values.mutableIntegers());
}

} // namespace titan::interpreter
