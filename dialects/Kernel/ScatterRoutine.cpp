// #kernel.scatter: what it takes and touches.
#include "dialects/Kernel/Kernel.h"

using namespace mlir;

namespace titan::kernel {

bool ScatterAttr::readsOut(unsigned) const { return true; }

int64_t ScatterAttr::getUnits() const { return getOuter() * getInner() * getBlocks(); }

LogicalResult ScatterAttr::verifyCall(Operation* op) const {
  auto call = cast<CallOp>(op);
  if (call.getIns().size() != 2 || call.getOuts().size() != 1 || !call.getScalars().empty())
    return call.emitOpError("(C1) takes indices, updates and one out");
  for (int64_t extent : {getOuter(), getEntries(), getInner(), getRows(), getWidth(), getColumns()})
    if (extent < 1)
      return call.emitOpError("(C3) extents are positive, found ") << extent;
  auto typeOf = [](Value value) { return cast<ShapedType>(value.getType()); };
  ShapedType indices = typeOf(call.getIns()[0]), updates = typeOf(call.getIns()[1]),
             out = typeOf(call.getOuts()[0]);
  if (!isa<IntegerType>(indices.getElementType()))
    return call.emitOpError("(C1) indices are integers, found ") << indices;
  Type element = out.getElementType();
  if (updates.getElementType() != element)
    return call.emitOpError("(C1) updates and result have one element type, found ")
           << updates << " and " << out;
  const bool isNarrow = isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32;
  if (getKind() != ir::ScatterKind::None && (element.isInteger(1) || isNarrow))
    return call.emitOpError("(C1) cannot combine elements of type ") << element;
  const int64_t places = getOuter() * getRows() * getInner();
  for (auto [type, touched] : {std::pair(indices, places),
                               {updates, places * getWidth()},
                               {out, getOuter() * getEntries() * getInner() * getWidth()}})
    if (type.getNumElements() < touched)
      return call.emitOpError("(C1) touches ") << touched << " elements of " << type;
  return success();
}

} // namespace titan::kernel
