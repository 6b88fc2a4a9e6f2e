// What a lowering rule reads and writes (LowerableOpInterface).
#pragma once

#include "compiler/Lower/Body.h"
#include "compiler/Support/MachineModel.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/Titan/Titan.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/StringMap.h"

namespace titan::lower {

inline mlir::RankedTensorType tensorType(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}

/// Results of kernels that ops of one function share, by block and all that decides them.
using SharedKernels = llvm::StringMap<llvm::SmallVector<mlir::Value>>;

/// Builds the kernels of one titan op: they take its place, its location, paths and phase.
class LoweringBuilder {
public:
  LoweringBuilder(mlir::RewriterBase& rewriter, mlir::Operation* op, const MachineModel& machine,
                  SharedKernels& sharedKernels);

  mlir::RewriterBase& builder;
  const MachineModel& machine;
  SharedKernels& sharedKernels;
  mlir::Operation* op;
  mlir::Location loc;
  mlir::MLIRContext* context;

  struct Read {
    mlir::Value tensor;
    mlir::AffineMap map;
  };
  /// A result of `type`, written through `map`; into the given tensor where a kernel writes a part
  /// of it.
  struct Write {
    mlir::RankedTensorType type;
    mlir::AffineMap map;
    mlir::Value into = {};
  };
  /// Gets the values read (floats narrower than f32 widened), then the scalars; returns the values
  /// to yield (narrowed to the writes' element types).
  using BodyFunction = llvm::function_ref<llvm::SmallVector<mlir::Value>(Body&, mlir::ValueRange)>;

  /// One kernel.fused over `space`.
  mlir::ValueRange fused(llvm::ArrayRef<int64_t> space, llvm::ArrayRef<Read> reads,
                         llvm::ArrayRef<Write> writes, BodyFunction body,
                         mlir::ValueRange scalars = {});
  /// The results of kernels that a LoweringBuilder without paths gives, for each op of a block and
  /// a phase that has them with the same `key` (KernelKey.h) and `inputs`, which are operands.
  mlir::ValueRange
  shared(mlir::ValueRange inputs, llvm::StringRef key,
         llvm::function_ref<llvm::SmallVector<mlir::Value>(LoweringBuilder&)> build);
  /// One kernel.fused that computes every element of `type` from the same elements of `operands`,
  /// all of its shape; at a `point` the element there.
  mlir::Value elementwise(mlir::RankedTensorType type, mlir::ValueRange operands,
                          llvm::function_ref<mlir::Value(Body&, mlir::ValueRange)> body);
  /// One kernel.fused that copies `source`, read through `map`, to every element of `type`.
  mlir::Value move(mlir::RankedTensorType type, mlir::Value source, mlir::AffineMap map);
  /// Element i of dimension d of `source` at low[d] + i * (1 + interior[d]) of `type`, and what
  /// `padding` builds everywhere else: the padding everywhere, then the source over it. The source
  /// itself where nothing is padded.
  mlir::Value pad(mlir::RankedTensorType type, mlir::Value source, llvm::ArrayRef<int64_t> low,
                  llvm::ArrayRef<int64_t> interior, llvm::function_ref<mlir::Value(Body&)> padding);
  mlir::Value transpose(mlir::Value source, llvm::ArrayRef<int64_t> permutation);
  mlir::Value castShape(mlir::Value source, llvm::ArrayRef<int64_t> shape);
  mlir::Value empty(mlir::RankedTensorType type);

  mlir::AffineMap identity(unsigned rank) const {
    return mlir::AffineMap::getMultiDimIdentityMap(rank, context);
  }
  /// From `rank` dimensions to those listed.
  mlir::AffineMap project(unsigned rank, llvm::ArrayRef<int64_t> dims) const;
  mlir::AffineMap map(unsigned rank, llvm::ArrayRef<mlir::AffineExpr> results) const {
    return mlir::AffineMap::get(rank, 0, results, context);
  }
  mlir::AffineExpr dim(unsigned d) const { return mlir::getAffineDimExpr(d, context); }

  void replace(mlir::ValueRange values) {
    if (point)
      point->map(op->getResults(), values);
    else
      builder.replaceOp(op, values);
  }
  mlir::LogicalResult refuse(const llvm::Twine& reason) {
    return op->emitOpError() << "has no kernel: " << reason;
  }

  mlir::ArrayAttr path;
  ir::PhaseAttr phase;

  /// Where `op`, an elementwise one, is computed in the body of a kernel: what tensors are at one
  /// point, floats narrower than f32 widened.
  mlir::IRMapping* point = nullptr;

  /// Do the op, the types of its operands and the machine decide what a rule gives, but for what it
  /// shares? Not where it looks at other ops, or is the first to share: such an op is lowered by
  /// itself.
  bool isDecidedByOp = true;
  llvm::SmallVector<mlir::Value> sharedInputs, sharedResults; ///< of `shared`
};

} // namespace titan::lower
