#include "compiler/Schedule/OpCosts.h"

using namespace mlir;

namespace titan::schedule {

int64_t bytesOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.getNumElements() * llvm::divideCeil(tensor.getElementTypeBitWidth(), 8);
}

ir::Work workOf(Operation* op) {
  auto costed = dyn_cast<ir::CostedOpInterface>(op);
  return costed ? costed.getWork() : ir::Work::Kernel;
}

bool isView(Operation* op) { return workOf(op) == ir::Work::View; }

bool isPointwise(Operation* op) {
  ir::Work work = workOf(op);
  return work == ir::Work::Pointwise || work == ir::Work::Copied;
}

int64_t flopsOf(Operation* op) {
  if (isView(op))
    return 0;
  auto costed = dyn_cast<ir::CostedOpInterface>(op);
  return costed ? costed.getFlops() : ir::largestExtent(op);
}

int64_t costOf(Operation* op, const MachineModel& machine) {
  if (isView(op))
    return 0;
  int64_t bytes = 0;
  for (Value value : op->getOperands())
    if (isa<RankedTensorType>(value.getType()))
      bytes += bytesOf(value.getType());
  for (Value value : op->getResults())
    if (isa<RankedTensorType>(value.getType())) // a start gives a token
      bytes += bytesOf(value.getType());
  return std::max(flopsOf(op), machine.flopsPerByte * bytes);
}

} // namespace titan::schedule
