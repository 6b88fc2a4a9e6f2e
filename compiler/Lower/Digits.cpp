#include "compiler/Lower/Digits.h"

#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;

namespace titan::lower {

SmallVector<Digit> digitsOf(const Linear& linear, ArrayRef<int64_t> space) {
  SmallVector<Digit> digits;
  for (auto [d, stride] : llvm::enumerate(linear.strides))
    if (stride != 0 && space[d] != 1)
      digits.push_back({stride, space[d], static_cast<unsigned>(d)});
  llvm::sort(digits, [](const Digit& a, const Digit& b) {
    return std::pair(a.stride, b.dim) > std::pair(b.stride, a.dim);
  });
  return digits;
}

/// The digits' values are exactly 0 ... extent - 1, each once.
static bool covers(AffineExpr expr, ArrayRef<int64_t> space, int64_t extent) {
  auto linear = toLinear(expr, space.size());
  if (!linear || linear->constant != 0)
    return false;
  int64_t expected = 1;
  const auto digits = digitsOf(*linear, space);
  for (const Digit& digit : llvm::reverse(digits)) {
    if (digit.stride != expected)
      return false;
    expected *= digit.extent;
  }
  return expected == extent;
}

bool coversAll(AffineMap map, ArrayRef<int64_t> space, ArrayRef<int64_t> shape) {
  llvm::SmallBitVector used(space.size());
  for (auto [expr, extent] : llvm::zip_equal(map.getResults(), shape)) {
    if (!covers(expr, space, extent))
      return false;
    for (unsigned d = 0; d < space.size(); ++d)
      if (expr.isFunctionOfDim(d)) {
        if (used.test(d))
          return false;
        used.set(d);
      }
  }
  return true;
}

bool areDisjoint(const Linear& address, ArrayRef<Digit> digits) {
  if (address.constant != 0)
    return false;
  int64_t free = 1; // the smallest stride that does not run into the digits so far
  for (const Digit& digit : llvm::reverse(digits)) {
    if (digit.stride < free)
      return false;
    free = digit.stride * digit.extent;
  }
  return true;
}

} // namespace titan::lower
