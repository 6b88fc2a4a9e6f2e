// Scalar arithmetic for the bodies of kernels.
#pragma once

#include "dialects/Kernel/Kernel.h"
#include "dialects/Titan/Titan.h"

namespace titan::lower {

/// Builds the body of one `kernel.fused`. Values are scalars that stand for arrays over the space.
/// Floats narrower than f32 are computed in f32 and rounded once per titan op (`widen` what is
/// read, `narrow` what is yielded): for + - * / and sqrt that equals rounding the exact result.
class Body {
public:
  Body(mlir::OpBuilder& builder, mlir::Location loc) : builder(builder), loc(loc) {}

  mlir::OpBuilder& builder;
  mlir::Location loc;

  template <typename OpTy, typename... Args> mlir::Value create(Args&&... args) {
    return OpTy::create(builder, loc, std::forward<Args>(args)...)->getResult(0);
  }

  /// f64 stays; every other float is computed in f32.
  static mlir::Type computeType(mlir::Type element);
  mlir::Value widen(mlir::Value value);
  mlir::Value narrow(mlir::Value value, mlir::Type element);

  /// Equal ones are one op.
  mlir::Value constant(mlir::TypedAttr value);

  // Floats.
  mlir::Value constant(mlir::Type type, double value);
  mlir::Value constantLike(mlir::Value like, double value) {
    return constant(like.getType(), value);
  }
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value div(mlir::Value a, mlir::Value b);
  /// 1 / a. What divides each element of a row is better a factor: one division for the row.
  mlir::Value reciprocal(mlir::Value a);
  mlir::Value neg(mlir::Value a);
  mlir::Value abs(mlir::Value a);
  mlir::Value exp(mlir::Value a);
  mlir::Value log1p(mlir::Value a);
  mlir::Value sqrt(mlir::Value a);
  /// Larger or smaller; NaN wins.
  mlir::Value maximum(mlir::Value a, mlir::Value b);
  mlir::Value minimum(mlir::Value a, mlir::Value b);
  mlir::Value compare(mlir::arith::CmpFPredicate predicate, mlir::Value a, mlir::Value b);
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value a, mlir::Value b);
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b);

  // Integers.
  mlir::Value integer(mlir::Type type, int64_t value);
  mlir::Value indexConstant(int64_t value) { return constant(builder.getIndexAttr(value)); }
  /// `value`, of the given signedness, in `type`: extended or truncated.
  mlir::Value resize(mlir::Value value, mlir::Type type, bool isUnsigned);

  // Body ops of the kernel dialect.
  mlir::Value reduce(kernel::ReduceKind kind, mlir::Value value, llvm::ArrayRef<int64_t> dims);
  mlir::Value index(int64_t dim);
};

/// Combines as `kind` does over `dims` in the widest type that it needs, and comes back to the type
/// of `value`.
mlir::Value reduceElements(Body& body, ir::ReduceKind kind, mlir::Value value,
                           llvm::ArrayRef<int64_t> dims, bool isUnsigned);

} // namespace titan::lower
