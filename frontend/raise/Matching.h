// What the patterns of this folder look through: splats, broadcasts, products.
#pragma once

#include "dialects/Titan/Titan.h"

namespace titan::frontend {

/// The value of a constant all of whose elements are equal, also when it was broadcast or reshaped.
std::optional<double> splatOf(mlir::Value value);
/// Equal to a relative 1e-5: constants of formulas are written as floats of various precision.
bool isClose(double value, double expected);

/// A product: `constant` times the factors, flattened through multiplications and divisions by
/// constants whose results have one use (the root may have several), up to 64 factors.
struct Product {
  double constant = 1;
  llvm::SmallVector<mlir::Value> factors;
};
Product productOf(mlir::Value root);

/// `value` without the reshapes and broadcasts below it.
mlir::Value throughBroadcast(mlir::Value value);

} // namespace titan::frontend
