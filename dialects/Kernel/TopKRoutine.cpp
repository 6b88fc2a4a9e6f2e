// #kernel.top_k: what it takes and touches.
#include "dialects/Kernel/Kernel.h"

using namespace mlir;

namespace titan::kernel {

bool TopKAttr::readsOut(unsigned) const { return false; }

int64_t TopKAttr::getUnits() const { return getRows(); }

LogicalResult TopKAttr::verifyCall(Operation* op) const {
  auto call = cast<CallOp>(op);
  if (call.getIns().size() != 1 || call.getOuts().size() != 2 || !call.getScalars().empty())
    return call.emitOpError("(C1) takes one in, and outs for values and indices");
  if (getRows() < 1 || getCount() < 1 || getCount() > getLength() || getLength() > mostLength)
    return call.emitOpError("(C3) takes ")
           << getCount() << " of " << getLength() << " elements of " << getRows() << " rows";
  auto typeOf = [](Value value) { return cast<ShapedType>(value.getType()); };
  ShapedType in = typeOf(call.getIns()[0]), values = typeOf(call.getOuts()[0]),
             indices = typeOf(call.getOuts()[1]);
  if (values.getElementType() != in.getElementType() || in.getElementType().isInteger(1))
    return call.emitOpError("(C1) orders numbers of one type, found ") << in << " and " << values;
  if (!indices.getElementType().isSignlessInteger(64))
    return call.emitOpError("(C1) indices are i64, found ") << indices;
  for (auto [type, touched] : {std::pair(in, getRows() * getLength()),
                               {values, getRows() * getCount()},
                               {indices, getRows() * getCount()}})
    if (type.getNumElements() < touched)
      return call.emitOpError("(C1) touches ") << touched << " elements of " << type;
  return success();
}

} // namespace titan::kernel
