// Registration of the kernel dialect, effects of its kernels, and its smaller ops.
#include "dialects/Kernel/Kernel.h"

#include "dialects/Titan/ops/OpSupport.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include "dialects/Kernel/KernelDialect.cpp.inc"
#include "dialects/Kernel/KernelEnums.cpp.inc"

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

void addBufferEffects(Operation* op, ValueRange ins, MutableOperandRange outs,
                      SmallVectorImpl<MemoryEffects::EffectInstance>& effects) {
  for (OpOperand& operand : op->getOpOperands())
    if (llvm::is_contained(ins, operand.get()) && isa<MemRefType>(operand.get().getType()))
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
  for (OpOperand& out : outs)
    if (isa<MemRefType>(out.get().getType()))
      effects.emplace_back(MemoryEffects::Write::get(), &out);
}

} // namespace

//===----------------------------------------------------------------------===//
// Kernels (kernel.fused is in FusedOp.cpp)
//===----------------------------------------------------------------------===//

void FusedOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance>& effects) {
  addBufferEffects(*this, getIns(), getOutsMutable(), effects);
}

void CallOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance>& effects) {
  addBufferEffects(*this, getIns(), getOutsMutable(), effects);
  for (auto [i, out] : llvm::enumerate(getOutsMutable()))
    if (getRoutine().readsOut(i) && isa<MemRefType>(out.get().getType()))
      effects.emplace_back(MemoryEffects::Read::get(), &out);
}

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
