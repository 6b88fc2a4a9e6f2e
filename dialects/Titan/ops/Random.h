// What all ops that draw random decisions share.
#pragma once

#include "dialects/Titan/ResultTypes.h"

namespace titan::ir {

/// What all random ops share (C1 to C3 of titan.dropout): `shape` is that of the decisions.
template <typename OpTy> llvm::LogicalResult verifyRandom(OpTy op, llvm::ArrayRef<int64_t> shape) {
  double p = op.getP().convertToDouble();
  if (!(p >= 0 && p < 1))
    return op.emitOpError("(C1) p = ") << p << " is outside [0, 1)";
  if (!op.getSeed() != !op.getStep())
    return op.emitOpError("(C2) seed and step come together");
  if (op.getMicrobatch() && !op.getWindow())
    return op.emitOpError("(C2) microbatch needs a window");
  if (auto window = op.getWindow()) {
    llvm::ArrayRef<int64_t> global = window->getGlobal();
    int64_t dim = window->getDim(), rank = shape.size();
    bool fits = static_cast<int64_t>(global.size()) == rank && dim >= 0 && dim < rank;
    for (int64_t d = 0; fits && d < rank; ++d)
      fits = d == dim ? global[d] >= shape[d] : global[d] == shape[d];
    if (!fits)
      return op.emitOpError("(C3) [") << shape << "] is no window of " << *window;
  }
  return llvm::success();
}

} // namespace titan::ir
