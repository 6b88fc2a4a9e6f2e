#include "compiler/Codegen/CostModel.h"

#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace titan::codegen {
namespace {

// One core of a current server CPU: what a kernel out of cache sees, and 16 lanes.
constexpr double bytesPerNanosecond = 20, laneOperationsPerNanosecond = 60;
constexpr double gemmFlopsPerNanosecond = 150;
constexpr double nanosecondsPerThread = 2000;
// A function as a polynomial; a Philox block a lane.
constexpr double functionOperations = 20, randomOperations = 30;

int64_t pointsOf(const LoopNest& nest, DimSet dims) {
  int64_t points = 1;
  for (unsigned dim : listOf(dims))
    points *= nest.extents[dim];
  return points;
}

bool isFloat(Value value) { return isa<FloatType>(value.getType()); }

} // namespace

Cost costOf(const LoopNest& nest) {
  Cost cost;
  double operations = 0;
  for (Operation& op : kernel::FusedOp(nest.op).getBlock().without_terminator()) {
    if (isa<arith::ConstantOp, kernel::IndexOp>(op))
      continue;
    auto reduce = dyn_cast<kernel::ReduceOp>(op);
    DimSet dims = reduce ? nest.reductionOf(reduce).space : nest.dependence(op.getResult(0));
    int64_t points = pointsOf(nest, dims);
    if (isFloat(op.getResult(0)) || (op.getNumOperands() > 0 && isFloat(op.getOperand(0))))
      cost.flops += points;
    bool isFunction =
        isa<math::MathDialect>(op.getDialect()) && !isa<math::AbsFOp, math::FmaOp>(op);
    operations += static_cast<double>(points) * (isFunction ? functionOperations
                                                 : isa<kernel::RandomHalfOp>(op) ? randomOperations
                                                                                 : 1);
  }
  auto addBytes = [&](const Access& access) {
    int64_t elementBytes = (access.element.getIntOrFloatBitWidth() + 7) / 8;
    cost.bytes += pointsOf(nest, access.dims()) * elementBytes;
  };
  for (const Access& access : nest.ins)
    addBytes(access);
  for (const Access& access : nest.outs)
    addBytes(access);
  cost.nanoseconds = std::max(static_cast<double>(cost.bytes) / bytesPerNanosecond,
                              operations / laneOperationsPerNanosecond);
  return cost;
}

Cost costOf(const Gemm& gemm) {
  Cost cost;
  cost.flops = 2 * gemm.batch * gemm.m * gemm.n * gemm.k;
  cost.bytes =
      gemm.batch * (byteSize(gemm.a) * gemm.m * gemm.k + byteSize(gemm.b) * gemm.k * gemm.n +
                    byteSize(gemm.c) * gemm.m * gemm.n * (gemm.accumulate ? 2 : 1)) +
      (gemm.bias ? 4 * gemm.n : 0);
  cost.nanoseconds =
      static_cast<double>(cost.flops) / (gemm.a == DType::BF16 ? 2 : 1) / gemmFlopsPerNanosecond;
  return cost;
}

Cost costOf(kernel::AttentionAttr attention) {
  int64_t queries = attention.getQueries(), keys = attention.getKeys();
  int64_t heads = attention.getBatch() * attention.getHeads();
  int64_t keyHeads = attention.getBatch() * attention.getKeyHeads();
  int64_t width = attention.getWidth(), valueWidth = attention.getValueWidth();
  // Pairs of a query and a key that it attends to.
  int64_t pairs = queries * keys;
  if (attention.getCausal()) {
    int64_t rising = std::min(queries, keys);
    pairs = rising * (rising + 1) / 2 + (queries - rising) * keys;
  }
  bool backward = static_cast<bool>(attention.getGradient());
  int64_t elementBytes = attention.getElement().getIntOrFloatBitWidth() / 8;
  int64_t queryElements = heads * queries * (width + valueWidth);
  int64_t keyElements = keyHeads * keys * (width + valueWidth);
  Cost cost;
  // Products, and the row sums and exponentials of the scores.
  cost.flops = heads * pairs * 2 * (backward ? 3 * width + 2 * valueWidth : width + valueWidth) +
               heads * pairs * 4;
  // Backward reads the result and its adjoint besides, and writes as much as it reads of the rest.
  cost.bytes = elementBytes * (queryElements + keyElements) * (backward ? 2 : 1) +
               (backward ? elementBytes * heads * queries * valueWidth : 0) + heads * queries * 4;
  cost.nanoseconds = static_cast<double>(cost.flops) / gemmFlopsPerNanosecond;
  return cost;
}

Cost costOf(kernel::CallOp op) {
  if (auto attention = dyn_cast<kernel::AttentionAttr>(op.getRoutine()))
    return costOf(attention);
  auto elementBytes = [](Value buffer) {
    Type element = cast<ShapedType>(buffer.getType()).getElementType();
    return static_cast<int64_t>(element.getIntOrFloatBitWidth() + 7) / 8;
  };
  int64_t in = elementBytes(op.getIns()[0]), index = elementBytes(op.getIns()[1]),
          out = elementBytes(op.getOuts()[0]);
  Cost cost;
  llvm::TypeSwitch<kernel::RoutineAttrInterface>(op.getRoutine())
      .Case([&](kernel::EmbeddingAttr routine) {
        cost.bytes = routine.getRows() * (routine.getWidth() * (in + out) + index);
      })
      .Case([&](kernel::EmbeddingGradAttr routine) {
        // Every row is read, and its entry read and written; the start is a pass over the table.
        cost.flops = routine.getRows() * routine.getWidth();
        cost.bytes =
            routine.getRows() * (routine.getWidth() * (in + 2 * out) + index) +
            (routine.getAccumulate() ? 0 : routine.getEntries() * routine.getWidth() * out);
      });
  cost.nanoseconds = static_cast<double>(cost.bytes) / bytesPerNanosecond;
  return cost;
}

bool prefersGenerated(const Gemm& gemm) {
  // The library gives f32, of operands of one type.
  if (gemm.c == DType::BF16 || gemm.a != gemm.b)
    return true;
  // Faster on every shape measured: bf16, and y = x W^T.
  if (gemm.a == DType::BF16 || (gemm.transposeB && !gemm.transposeA))
    return true;
  // Each operand is copied once for the other's extent of C: narrow ones pay too little for it.
  constexpr int64_t fewRows = 256, fewColumns = 512;
  if (gemm.m > fewRows && gemm.n > fewColumns)
    return true;
  // Below this the library's packing and dispatch cost more than its kernel gains.
  constexpr int64_t largestSmallProduct = int64_t{1} << 23;
  return gemm.m * gemm.n * gemm.k <= largestSmallProduct;
}

int64_t grainOf(const Cost& cost, int64_t units) {
  if (units <= 1)
    return 1;
  double perUnit = std::max(cost.nanoseconds / static_cast<double>(units), 1e-3);
  return std::clamp<int64_t>(static_cast<int64_t>(std::ceil(nanosecondsPerThread / perUnit)), 1,
                             units);
}

} // namespace titan::codegen
