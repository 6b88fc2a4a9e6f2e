// Checks that the Verify passes of several stages share.
#pragma once

#include "compiler/Support/TaggedFunction.h"

namespace titan {

/// The function `name` of `module`, or null and an error.
mlir::func::FuncOp getFunction(mlir::ModuleOp module, llvm::StringRef name);

/// The only op of type `OpTy` in `function`, or null and an error that says how many there are.
template <typename OpTy> OpTy getOnly(mlir::func::FuncOp function) {
  llvm::SmallVector<OpTy> found;
  function.walk([&](OpTy op) { found.push_back(op); });
  if (found.size() == 1)
    return found.front();
  function.emitError() << "@" << function.getName() << " has " << found.size() << " "
                       << OpTy::getOperationName() << " ops, not one";
  return nullptr;
}

/// Checks that every argument and result has a tag, that every state argument has a state of its
/// type and, with `returnsStates`, a result.
llvm::LogicalResult verifyTags(mlir::func::FuncOp function, bool returnsStates);

/// Checks that `function` returns a scalar of type `element` as metric `name`.
llvm::LogicalResult verifyMetric(mlir::func::FuncOp function, llvm::StringRef name,
                                 mlir::Type element);

} // namespace titan
