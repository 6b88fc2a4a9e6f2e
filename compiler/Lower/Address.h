// Where the points of a kernel's space find their elements.
#pragma once

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Value.h"

namespace titan::lower {

/// constant + sum(strides[d] * x[d]) for the point x of a space.
struct Linear {
  int64_t constant = 0;
  llvm::SmallVector<int64_t> strides;

  friend bool operator==(const Linear&, const Linear&) = default;
};

/// None where `expr`, over `rank` dimensions, is not linear.
std::optional<Linear> toLinear(mlir::AffineExpr expr, unsigned rank);
mlir::AffineExpr toExpr(const Linear& linear, mlir::MLIRContext* context);

/// The element that `map` leads to in a row-major tensor of `shape`, counted from its first.
std::optional<Linear> addressOf(mlir::AffineMap map, llvm::ArrayRef<int64_t> shape);

/// The map from `space` to a row-major tensor of `shape` with the given addresses; none where one
/// dimension of the space runs over a part of several dimensions of the tensor.
std::optional<mlir::AffineMap> mapOf(const Linear& address, llvm::ArrayRef<int64_t> space,
                                     llvm::ArrayRef<int64_t> shape, mlir::MLIRContext* context);

/// The value whose elements `view` shows: through every kernel.cast_shape.
mlir::Value sourceOf(mlir::Value view);

} // namespace titan::lower
