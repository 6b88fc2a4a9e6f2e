// The body of a kernel that two are merged into.
#pragma once

#include "compiler/Lower/MergedSpace.h"
#include "dialects/Kernel/Kernel.h"
#include "mlir/IR/IRMapping.h"

#include <string>

namespace titan::lower {

/// One of the two kernels, and which operands of the merged one are its own.
struct MergedPart {
  kernel::FusedOp op;
  mlir::Block& block;    ///< what it computes: an equal kernel's where it has no body
  mlir::AffineMap toOwn; ///< from the merged space to its own
  bool isConsumer = false;
  llvm::SmallVector<unsigned> ins = {}, scalars = {};
  mlir::IRMapping body = {}; ///< from `block` to the merged body

  llvm::ArrayRef<int64_t> space() const { return kernel::FusedOp(op).getSpace(); }
};

/// Clones the bodies of two kernels into one.
class BodyMerger {
public:
  /// Ops are created where `builder` stands. `space` outlives the object.
  BodyMerger(mlir::OpBuilder& builder, const MergedSpace& space) : builder(builder), space(space) {}

  /// Has each reduction of `from` a counterpart in the merged space, in its own order? If not,
  /// `why` is set.
  bool keepsReductions(const MergedPart& from, std::string& why) const;
  /// Of a body that keeps its reductions; `from.body` maps its arguments.
  void clone(MergedPart& from);

private:
  /// The dimensions of the merged space that `reduce` combines; none if they are not its own.
  std::optional<llvm::SmallVector<int64_t>> reducedDims(kernel::ReduceOp reduce,
                                                        const MergedPart& from) const;
  mlir::Value materialize(mlir::AffineExpr expr, mlir::Location loc);

  mlir::OpBuilder& builder;
  const MergedSpace& space;
};

} // namespace titan::lower
