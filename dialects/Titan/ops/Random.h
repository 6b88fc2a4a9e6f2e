// What all ops that draw random decisions share.
#pragma once

#include "dialects/Titan/ResultTypes.h"

namespace titan::ir {

/// The largest number that divides `index`, a sum of products with constants, whatever its other
/// factors are; 0 for the constant 0.
int64_t divisorOf(mlir::Value index);

/// C1 of titan.dropout.
template <typename OpTy> llvm::LogicalResult verifyProbability(OpTy op) {
  double p = op.getP().convertToDouble();
  if (!(p >= 0 && p < 1))
    return op.emitOpError("(C1) p = ") << p << " is outside [0, 1)";
  return llvm::success();
}

/// What all random ops share (C2 to C4 of titan.dropout): `shape` is that of the decisions.
template <typename OpTy> llvm::LogicalResult verifyRandom(OpTy op, llvm::ArrayRef<int64_t> shape) {
  if (!op.getSeed() != !op.getStep())
    return op.emitOpError("(C2) seed and step come together");
  std::optional<WindowAttr> window = op.getWindow();
  if (op.getBase() && !window)
    return op.emitOpError("(C2) base needs a window");
  if (!window)
    return llvm::success();
  llvm::ArrayRef<int64_t> global = window->getGlobal();
  if (global.size() != shape.size() || !llvm::all_of(llvm::zip_equal(global, shape), [](auto pair) {
        return std::get<0>(pair) >= std::get<1>(pair);
      }))
    return op.emitOpError("(C3) [") << shape << "] is no window of " << *window;
  if (window->getMultiple() < 1)
    return op.emitOpError("(C4) the window's multiple is ") << window->getMultiple();
  if (op.getBase() && divisorOf(op.getBase()) % window->getMultiple() != 0)
    return op.emitOpError("(C4) base is a multiple of ")
           << divisorOf(op.getBase()) << ", the window says " << window->getMultiple();
  return llvm::success();
}

} // namespace titan::ir
