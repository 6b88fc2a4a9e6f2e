#include "compiler/Schedule/OpCosts.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace titan::schedule {

int64_t bytesOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.getNumElements() * llvm::divideCeil(tensor.getElementTypeBitWidth(), 8);
}

bool isView(Operation* op) { return isa<ir::ReshapeOp, ir::BarrierOp>(op); }

bool isPointwise(Operation* op) {
  return isa<ir::BroadcastOp, ir::DropoutOp, ir::IotaOp, ir::BceWithLogitsOp>(op) ||
         (op->hasTrait<OpTrait::SameOperandsAndResultShape>() && op->getNumResults() == 1 &&
          isPure(op) && !isa<ir::SoftmaxOp, ir::LogSoftmaxOp>(op));
}

int64_t flopsOf(Operation* op) {
  if (isView(op) || isa<ir::ConstantOp>(op))
    return 0;
  if (auto contract = dyn_cast<ir::ContractOp>(op)) {
    int64_t depth = 1;
    for (int64_t d : contract.getLhsContracting())
      depth *= cast<RankedTensorType>(contract.getLhs().getType()).getDimSize(d);
    return 2 * depth * cast<RankedTensorType>(contract.getType()).getNumElements();
  }
  if (isa<ir::AttentionOp, ir::AttentionGradOp>(op)) {
    auto shapeOf = [&](unsigned i) {
      return cast<RankedTensorType>(op->getOperand(i).getType()).getShape();
    };
    // query [B, T, H, D], key [B, S, G, D], value [B, S, G, E]; causal attention skips half.
    ArrayRef<int64_t> query = shapeOf(0), value = shapeOf(2);
    int64_t scores = query[0] * query[2] * query[1] * value[1];
    int64_t flops = 2 * scores * (query[3] + value[3]);
    if (op->hasAttr("causal"))
      flops /= 2;
    return isa<ir::AttentionOp>(op) ? flops : flops * 5 / 2;
  }
  int64_t elements = 0;
  for (Value value : op->getResults())
    elements = std::max(elements, cast<RankedTensorType>(value.getType()).getNumElements());
  for (Value value : op->getOperands())
    if (auto tensor = dyn_cast<RankedTensorType>(value.getType()))
      elements = std::max(elements, tensor.getNumElements());
  return elements;
}

int64_t costOf(Operation* op) {
  constexpr int64_t flopsPerByte = 10;
  if (isView(op) || isa<ir::ConstantOp>(op))
    return 0;
  int64_t bytes = 0;
  for (Value value : op->getOperands())
    if (isa<RankedTensorType>(value.getType()))
      bytes += bytesOf(value.getType());
  for (Value value : op->getResults())
    bytes += bytesOf(value.getType());
  return std::max(flopsOf(op), flopsPerByte * bytes);
}

} // namespace titan::schedule
