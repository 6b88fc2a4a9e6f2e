// Builds titan ops that share a location, module paths and a phase; with short forms for the
// arithmetic of rules.
#pragma once

#include "dialects/Titan/Titan.h"

namespace titan::ir {

class TensorBuilder {
public:
  TensorBuilder(mlir::OpBuilder& builder, mlir::Location loc, mlir::ArrayAttr path = {},
                PhaseAttr phase = {})
      : builder(builder), loc(loc), path(path), phase(phase) {}
  /// Location and paths of `op`; phase as given, or the op's own.
  TensorBuilder(mlir::OpBuilder& builder, mlir::Operation* op, std::optional<Phase> phase = {});

  mlir::OpBuilder& builder;
  mlir::Location loc;
  mlir::ArrayAttr path;
  PhaseAttr phase;

  /// `OpTy::create` with path and phase appended.
  template <typename OpTy, typename... Args> OpTy create(Args&&... args) const {
    return OpTy::create(builder, loc, std::forward<Args>(args)..., path, phase);
  }

  // Elementwise, on values of equal type.
  mlir::Value add(mlir::Value a, mlir::Value b) const { return create<AddOp>(a, b); }
  mlir::Value sub(mlir::Value a, mlir::Value b) const { return create<SubOp>(a, b); }
  mlir::Value mul(mlir::Value a, mlir::Value b) const { return create<MulOp>(a, b); }
  mlir::Value div(mlir::Value a, mlir::Value b) const { return create<DivOp>(a, b); }
  mlir::Value neg(mlir::Value a) const { return create<NegOp>(a); }
  mlir::Value exp(mlir::Value a) const { return create<ExpOp>(a); }
  mlir::Value compare(ComparePredicate predicate, mlir::Value a, mlir::Value b) const {
    return create<CompareOp>(predicate, a, b);
  }
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b) const {
    return create<SelectOp>(condition, a, b);
  }
  /// a * constant, a + constant.
  mlir::Value scale(mlir::Value a, double factor) const { return mul(a, splatLike(a, factor)); }
  mlir::Value shift(mlir::Value a, double term) const { return add(a, splatLike(a, term)); }

  /// A constant of `type` with every element `value`.
  mlir::Value splat(mlir::Type type, double value) const;
  mlir::Value splatLike(mlir::Value like, double value) const {
    return splat(like.getType(), value);
  }

  /// A constant of a floating `type`: `values` in row-major order, each rounded to the type.
  mlir::Value constant(mlir::RankedTensorType type, llvm::ArrayRef<double> values) const;

  mlir::Value convert(mlir::Value a, mlir::Type element) const; ///< `a` itself if it has the type
  mlir::Value reduce(ReduceKind kind, mlir::Value a, llvm::ArrayRef<int64_t> dims) const;
  mlir::Value reduceAll(ReduceKind kind, mlir::Value a) const;
  /// Operand dimension i becomes dimension dims[i] of `shape`.
  mlir::Value broadcast(mlir::Value a, llvm::ArrayRef<int64_t> shape,
                        llvm::ArrayRef<int64_t> dims) const;
  /// Puts back the dimensions `dims` that a reduction of a tensor of `shape` dropped.
  mlir::Value unreduce(mlir::Value a, llvm::ArrayRef<int64_t> shape,
                       llvm::ArrayRef<int64_t> dims) const;
  mlir::Value reshape(mlir::Value a, llvm::ArrayRef<int64_t> shape) const;
  mlir::Value transpose(mlir::Value a, llvm::ArrayRef<int64_t> permutation) const;
};

/// `values` in row-major order, rounded to the floating element type of `type`.
mlir::DenseElementsAttr denseFloats(mlir::RankedTensorType type, llvm::ArrayRef<double> values);

inline mlir::RankedTensorType tensorType(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}

} // namespace titan::ir
