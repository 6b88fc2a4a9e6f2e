// Registration of the kernel dialect, effects of its kernels, and its smaller ops.
#include "dialects/Kernel/Kernel.h"

#include "dialects/Titan/ops/OpSupport.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include "dialects/Kernel/KernelDialect.cpp.inc"
#include "dialects/Kernel/KernelEnums.cpp.inc"
#include "dialects/Kernel/KernelInterfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Kernel/KernelAttrs.cpp.inc"

using namespace mlir;

namespace titan::kernel {

void KernelDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Kernel/KernelAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Kernel/KernelOps.cpp.inc"
      >();
}

LogicalResult KernelDialect::verifyRegionArgAttribute(Operation* op, unsigned, unsigned,
                                                      NamedAttribute attribute) {
  if (attribute.getName() == offsetTag && isa<IntegerAttr>(attribute.getValue()))
    return success();
  return op->emitOpError() << "'" << attribute.getName() << "' is not a tag of an argument";
}

namespace {

/// On buffers; on tensors there are none.
void addEffects(CommandLikeOpInterface command,
                SmallVectorImpl<MemoryEffects::EffectInstance>& effects) {
  for (OpOperand* read : command.getReads())
    if (isa<MemRefType>(read->get().getType()))
      effects.emplace_back(MemoryEffects::Read::get(), read);
  for (OpOperand* write : command.getWrites())
    if (isa<MemRefType>(write->get().getType()))
      effects.emplace_back(MemoryEffects::Write::get(), write);
}

SmallVector<OpOperand*> pointers(MutableOperandRange operands) {
  return llvm::map_to_vector(operands, [](OpOperand& operand) { return &operand; });
}

} // namespace

//===----------------------------------------------------------------------===//
// Kernels (kernel.fused is in FusedOp.cpp)
//===----------------------------------------------------------------------===//

void FusedOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance>& effects) {
  addEffects(*this, effects);
}

SmallVector<OpOperand*> FusedOp::getReads() { return pointers(getInsMutable()); }

SmallVector<OpOperand*> FusedOp::getWrites() { return pointers(getOutsMutable()); }

void CallOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance>& effects) {
  addEffects(*this, effects);
}

SmallVector<OpOperand*> CallOp::getReads() {
  SmallVector<OpOperand*> reads = pointers(getInsMutable());
  for (auto [i, out] : llvm::enumerate(getWrites()))
    if (getRoutine().readsOut(i))
      reads.push_back(out);
  return reads;
}

SmallVector<OpOperand*> CallOp::getWrites() { return pointers(getOutsMutable()); }

LogicalResult CallOp::verify() {
  if (getNumResults() != 0 && getResultTypes() != getOuts().getTypes())
    return emitOpError("(C2) results have the types of outs");
  return getRoutine().verifyCall(*this);
}

//===----------------------------------------------------------------------===//
// Body ops and buffers
//===----------------------------------------------------------------------===//

LogicalResult ReduceOp::verify() {
  int64_t rank = cast<FusedOp>((*this)->getParentOp()).getSpace().size();
  if (!ir::isIncreasingWithin(getDims(), rank))
    return emitOpError("(C1) dims [")
           << getDims() << "] are not increasing within the space of rank " << rank;
  return success();
}

LogicalResult IndexOp::verify() {
  int64_t rank = cast<FusedOp>((*this)->getParentOp()).getSpace().size();
  if (static_cast<int64_t>(getDim()) >= rank || static_cast<int64_t>(getDim()) < 0)
    return emitOpError("(C1) dim ") << getDim() << " is outside the space of rank " << rank;
  return success();
}

LogicalResult ConstantOp::verify() {
  auto held = getValue().getShapedType(), type = cast<ShapedType>(getType());
  if (held.getShape() != type.getShape() || held.getElementType() != type.getElementType())
    return emitOpError("(C1) holds ") << held << " as " << type;
  return success();
}

LogicalResult CopyOp::verify() {
  MemRefType from = getSource().getType(), to = getTarget().getType();
  if (from.getNumElements() != to.getNumElements() || from.getElementType() != to.getElementType())
    return emitOpError("(C1) copies ") << from << " to " << to;
  return success();
}

LogicalResult SliceOp::verify() {
  MemRefType from = cast<MemRefType>(getSource().getType()),
             to = cast<MemRefType>(getResult().getType());
  if (from.getRank() < 1 || from.getShape().drop_front() != to.getShape() ||
      from.getElementType() != to.getElementType())
    return emitOpError("(C1) ") << to << " is no slice of " << from;
  return success();
}

LogicalResult RowsOp::verify() {
  auto from = cast<ShapedType>(getSource().getType()), to = cast<ShapedType>(getResult().getType());
  if (from.getRank() < 1 || from.getRank() != to.getRank() ||
      from.getShape().drop_front() != to.getShape().drop_front() ||
      to.getDimSize(0) > from.getDimSize(0) || from.getElementType() != to.getElementType() ||
      isa<MemRefType>(from) != isa<MemRefType>(to))
    return emitOpError("(C1) ") << to << " is no rows of " << from;
  return success();
}

LogicalResult CastShapeOp::verify() {
  auto from = cast<ShapedType>(getSource().getType()), to = cast<ShapedType>(getResult().getType());
  if (from.getNumElements() != to.getNumElements() ||
      from.getElementType() != to.getElementType() || isa<MemRefType>(from) != isa<MemRefType>(to))
    return emitOpError("(C1) casts ") << from << " to " << to;
  return success();
}

OpFoldResult CastShapeOp::fold(FoldAdaptor) {
  if (getSource().getType() == getType())
    return getSource();
  if (auto inner = getSource().getDefiningOp<CastShapeOp>()) {
    getSourceMutable().assign(inner.getSource());
    return getResult();
  }
  return {};
}

} // namespace titan::kernel

#define GET_OP_CLASSES
#include "dialects/Kernel/KernelOps.cpp.inc"
