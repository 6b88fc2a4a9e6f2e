#include "compiler/Shard/CutDimension.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <functional>
#include <numeric>

using namespace mlir;

namespace titan {

std::optional<CutDimension> cutDimension(ArrayRef<int64_t> shape, int64_t ranks, bool isTree) {
  const int64_t elements =
      std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  if (shape.empty() || elements < ranks)
    return std::nullopt;
  std::optional<CutDimension> best;
  for (auto [dim, extent] : llvm::enumerate(shape)) {
    const int64_t padding = elements / extent * (llvm::divideCeil(extent, ranks) * ranks - extent);
    if (!best || padding < best->padding)
      best = {static_cast<int64_t>(dim), padding};
    if (dim == 0 && (isTree || padding <= elements / 16))
      break;
  }
  return best;
}

} // namespace titan
