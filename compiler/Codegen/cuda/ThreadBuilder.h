// Arithmetic of one thread in few words, for kernels that are written by hand.
#pragma once

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace titan::codegen::cuda {

class ThreadBuilder {
public:
  ThreadBuilder(mlir::OpBuilder& builder, mlir::Location loc) : builder(builder), loc(loc) {}

  template <typename Op, typename... Args> mlir::Value create(Args&&... args) {
    return Op::create(builder, loc, std::forward<Args>(args)...);
  }

  mlir::Value index(int64_t value) { return create<mlir::arith::ConstantIndexOp>(value); }
  mlir::Value add(mlir::Value x, mlir::Value y) { return create<mlir::arith::AddIOp>(x, y); }
  /// `value` in the type of `x`: an index or another integer.
  mlir::Value like(mlir::Value x, int64_t value) {
    return create<mlir::arith::ConstantOp>(builder.getIntegerAttr(x.getType(), value));
  }
  mlir::Value add(mlir::Value x, int64_t y) { return y == 0 ? x : add(x, like(x, y)); }
  mlir::Value sub(mlir::Value x, mlir::Value y) { return create<mlir::arith::SubIOp>(x, y); }
  mlir::Value mul(mlir::Value x, int64_t factor) {
    return factor == 1 ? x : create<mlir::arith::MulIOp>(x, like(x, factor));
  }
  /// Of numbers that are not negative.
  mlir::Value div(mlir::Value x, int64_t y) {
    return y == 1 ? x : create<mlir::arith::DivUIOp>(x, like(x, y));
  }
  mlir::Value rem(mlir::Value x, int64_t y) { return create<mlir::arith::RemUIOp>(x, like(x, y)); }
  /// Of numbers that are not negative.
  mlir::Value smaller(mlir::Value x, int64_t y) {
    return create<mlir::arith::MinUIOp>(x, like(x, y));
  }
  mlir::Value isBelow(mlir::Value x, int64_t extent) {
    return create<mlir::arith::CmpIOp>(mlir::arith::CmpIPredicate::ult, x, like(x, extent));
  }
  mlir::Value select(mlir::Value condition, mlir::Value yes, mlir::Value no) {
    return create<mlir::arith::SelectOp>(condition, yes, no);
  }
  /// Null conditions hold.
  mlir::Value both(mlir::Value x, mlir::Value y) {
    return !x ? y : !y ? x : create<mlir::arith::AndIOp>(x, y);
  }

  /// A number of `type`: f32, i32 or i64, or a vector of them.
  mlir::Value number(mlir::Type type, double value);
  mlir::Value f32(double value) { return number(builder.getF32Type(), value); }
  mlir::Value fma(mlir::Value x, mlir::Value y, mlir::Value sum);
  mlir::Value times(mlir::Value x, mlir::Value y) { return create<mlir::arith::MulFOp>(x, y); }
  mlir::Value lane(mlir::Value vector, int64_t number);
  mlir::Value splat(mlir::Value scalar, int64_t lanes);
  mlir::Value join(llvm::ArrayRef<mlir::Value> lanes);
  /// bf16 becomes f32, exactly; f32 stays.
  mlir::Value widen(mlir::Value value);
  /// f32 rounded to `element`.
  mlir::Value narrow(mlir::Value value, mlir::Type element);

  /// Runs `then` where `condition` holds.
  void when(mlir::Value condition, llvm::function_ref<void()> then);

  /// Address of element `at` (an index or another integer) from `pointer` on.
  mlir::Value address(mlir::Value pointer, mlir::Type element, mlir::Value at);
  mlir::Value address(mlir::Value pointer, mlir::Type element, int64_t at);
  mlir::Value load(mlir::Type type, mlir::Value address, int64_t alignment);
  /// The same, or 0 where `condition` does not hold; null: it holds. Alignment 0: a scalar's own.
  mlir::Value loadIf(mlir::Value condition, mlir::Type type, mlir::Value address,
                     int64_t alignment = 0);
  void store(mlir::Value value, mlir::Value address, int64_t alignment);

  mlir::OpBuilder& builder;
  mlir::Location loc;
};

} // namespace titan::codegen::cuda
