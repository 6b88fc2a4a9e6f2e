// Who may read what ranks hold behind their elements of a tensor.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace titan {

/// Checks `function`, the program of a rank, as long as collectives are whole ops. The parts of a
/// tensor whose extent does not divide among ranks have padding: what a state holds there may be
/// any bits, what is padded with zeros before a sum over ranks stays zero through sums and
/// products.
///
/// - What is computed element by element takes padding to padding. So do sums along other
///   dimensions, and transposes.
/// - A sum along the dimension reads padding, which must be zero.
/// - A tensor that is joined of parts is cut to its own extent before anything else reads it.
/// - All other ops read padding, which is an error; so is a result that has some and is no state.
llvm::LogicalResult verifyPadding(mlir::func::FuncOp function);

} // namespace titan
