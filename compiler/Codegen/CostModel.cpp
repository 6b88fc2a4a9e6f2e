#include "compiler/Codegen/CostModel.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace titan::codegen {
namespace {

bool isFloat(Value value) { return isa<FloatType>(value.getType()); }

} // namespace

Cost costOf(const LoopNest& nest, const MachineModel& machine) {
  Cost cost;
  double operations = 0;
  for (Operation& op : kernel::FusedOp(nest.op).getBlock().without_terminator()) {
    if (isa<arith::ConstantOp, kernel::IndexOp>(op))
      continue;
    auto reduce = dyn_cast<kernel::ReduceOp>(op);
    DimSet dims = reduce ? nest.reductionOf(reduce).space : nest.dependence(op.getResult(0));
    int64_t points = nest.pointsOf(dims);
    if (isFloat(op.getResult(0)) || (op.getNumOperands() > 0 && isFloat(op.getOperand(0))))
      cost.flops += points;
    bool isFunction = isa<arith::RemFOp>(op) || (isa<math::MathDialect>(op.getDialect()) &&
                                                 !isa<math::AbsFOp, math::FmaOp>(op));
    operations += static_cast<double>(points) * (isFunction ? machine.functionOps
                                                 : isa<kernel::RandomHalfOp>(op) ? machine.randomOps
                                                                                 : 1);
  }
  for (const Access& access : nest.ins)
    cost.bytes += nest.bytesOf(access);
  for (const Access& access : nest.outs)
    cost.bytes += nest.bytesOf(access);
  cost.nanoseconds = std::max(static_cast<double>(cost.bytes) / machine.memoryBytesPerNs,
                              operations / machine.laneOpsPerNs);
  return cost;
}

Cost costOf(const Gemm& gemm, const MachineModel& machine) {
  Cost cost;
  cost.flops = 2 * gemm.batch * gemm.m * gemm.n * gemm.k;
  cost.bytes =
      gemm.batch * (byteSize(gemm.a) * gemm.m * gemm.k + byteSize(gemm.b) * gemm.k * gemm.n +
                    byteSize(gemm.c) * gemm.m * gemm.n * (gemm.accumulate ? 2 : 1)) +
      (gemm.bias ? byteSize(gemm.c) * gemm.n : 0);
  cost.nanoseconds =
      static_cast<double>(cost.flops) /
      (gemm.a == DType::BF16 ? machine.productFlopsPerNsBf16 : machine.productFlopsPerNsF32);
  return cost;
}

Cost costOfAttention(kernel::CallOp call, const MachineModel& machine) {
  auto attention = cast<kernel::AttentionAttr>(call.getRoutine());
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
  cost.nanoseconds = static_cast<double>(cost.flops) / machine.productFlopsPerNsF32;
  return cost;
}

namespace {

/// Bytes of an element of `buffer`.
int64_t elementBytes(Value buffer) {
  Type element = cast<ShapedType>(buffer.getType()).getElementType();
  return static_cast<int64_t>(element.getIntOrFloatBitWidth() + 7) / 8;
}

/// Of a routine that does little but move `bytes`.
Cost costOfMoving(int64_t flops, int64_t bytes, const MachineModel& machine) {
  return {flops, bytes, static_cast<double>(bytes) / machine.memoryBytesPerNs};
}

} // namespace

Cost costOfEmbedding(kernel::CallOp call, const MachineModel& machine) {
  auto routine = cast<kernel::EmbeddingAttr>(call.getRoutine());
  int64_t in = elementBytes(call.getIns()[0]), index = elementBytes(call.getIns()[1]),
          out = elementBytes(call.getOuts()[0]);
  return costOfMoving(0, routine.getAllRows() * (routine.getWidth() * (in + out) + index), machine);
}

Cost costOfEmbeddingGrad(kernel::CallOp call, const MachineModel& machine) {
  auto routine = cast<kernel::EmbeddingGradAttr>(call.getRoutine());
  int64_t in = elementBytes(call.getIns()[0]), index = elementBytes(call.getIns()[1]),
          out = elementBytes(call.getOuts()[0]);
  // Every row is read, and its entry read and written: for each row, or once where all rows of an
  // entry meet. The start is a pass over the table.
  const int64_t rows = routine.getAllRows(), entries = routine.getTableRows(),
                updates = routine.getSorted() ? std::min(rows, entries) : rows;
  int64_t bytes = rows * (routine.getWidth() * in + index) +
                  updates * routine.getWidth() * 2 * out +
                  (routine.getAccumulate() ? 0 : entries * routine.getWidth() * out);
  return costOfMoving(rows * routine.getWidth(), bytes, machine);
}

Cost costOfRecurrence(kernel::CallOp call, const MachineModel& machine) {
  auto routine = cast<kernel::RecurrenceAttr>(call.getRoutine());
  Cost cost;
  cost.flops = routine.getShape().flops();
  for (Value operand : call->getOperands())
    cost.bytes += elementBytes(operand) * cast<ShapedType>(operand.getType()).getNumElements();
  cost.nanoseconds = static_cast<double>(cost.flops) / machine.productFlopsPerNsF32;
  return cost;
}

Cost costOfScatter(kernel::CallOp call, const MachineModel& machine) {
  auto routine = cast<kernel::ScatterAttr>(call.getRoutine());
  const int64_t places = routine.getOuter() * routine.getRows() * routine.getInner(),
                updates = places * routine.getWidth();
  const bool isRead = routine.getKind() != ir::ScatterKind::None;
  int64_t bytes = places * elementBytes(call.getIns()[0]) +
                  updates * elementBytes(call.getOuts()[0]) * (isRead ? 3 : 2);
  return costOfMoving(isRead ? updates : 0, bytes, machine);
}

Cost costOfTopK(kernel::CallOp call, const MachineModel& machine) {
  auto routine = cast<kernel::TopKAttr>(call.getRoutine());
  const int64_t elements = routine.getRows() * routine.getLength();
  Cost cost = costOfMoving(elements * static_cast<int64_t>(llvm::Log2_64_Ceil(routine.getLength())),
                           elements * elementBytes(call.getIns()[0]), machine);
  // A step of a merge waits for the one before it.
  constexpr double nanosecondsPerStep = 4;
  cost.nanoseconds += nanosecondsPerStep * static_cast<double>(cost.flops);
  return cost;
}

int64_t grainOf(const Cost& cost, int64_t units, const MachineModel& machine) {
  if (units <= 1)
    return 1;
  double perUnit = std::max(cost.nanoseconds / static_cast<double>(units), 1e-3);
  return std::clamp<int64_t>(static_cast<int64_t>(std::ceil(machine.threadNs / perUnit)), 1, units);
}

} // namespace titan::codegen
