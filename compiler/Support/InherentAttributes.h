// The attributes of an op, one by one.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace titan {

/// Visits the inherent attributes that `op` has, in an order that its name decides.
/// `Operation::getAttrDictionary` has the same ones, but makes a dictionary, which costs several
/// times as much.
void forEachInherentAttribute(mlir::Operation* op,
                              llvm::function_ref<void(mlir::StringAttr, mlir::Attribute)> visit);

/// Visits all attributes but `path` and `phase`, which say where in the model an op is, not what it
/// computes.
void forEachMeaningAttribute(mlir::Operation* op,
                             llvm::function_ref<void(mlir::StringAttr, mlir::Attribute)> visit);

} // namespace titan
