// What the kernels of look-ups and of their gradients have in common: indices, memory, and a row of
// the table cut into chunks.
#pragma once

#include "compiler/Codegen/cuda/KernelModule.h"
#include "compiler/Codegen/kernel/Loops.h"
#include "dialects/Kernel/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace titan::codegen::cuda {

mlir::Type elementOf(mlir::Value buffer);
int64_t bytesOf(mlir::Type element);

/// The chunks of a row that threads own, the same of each row: a block has some of its columns.
struct RowPlan {
  int64_t chunk = 1;   ///< elements
  int64_t chunks = 1;  ///< of a row
  int64_t threads = 1; ///< of a block: whole warps
  int64_t blocks = 1;  ///< that share a row
};
/// Chunks of up to 16 bytes of `element` that cut a row into equal parts.
RowPlan planRow(int64_t width, mlir::Type element);

/// The entry points of a call that takes several launches: `symbol`_0, `symbol`_1, ...
class LaunchSeries {
public:
  LaunchSeries(KernelModule& kernels, mlir::OpBuilder& builder, kernel::CallOp call,
               llvm::StringRef symbol)
      : kernels(kernels), builder(builder), call(call), symbol(symbol) {}

  /// Adds an entry point that `emit` fills, and that does `use` with the first out.
  void add(int64_t blocks, int64_t threads, EntryOperand::Use use,
           llvm::function_ref<void(mlir::func::FuncOp)> emit);

  KernelModule& kernels;
  mlir::OpBuilder& builder;
  kernel::CallOp call;

private:
  std::string symbol;
  int64_t count = 0;
};

class EmbeddingBuilder {
public:
  EmbeddingBuilder(mlir::OpBuilder& builder, kernel::CallOp call, mlir::func::FuncOp function)
      : builder(builder), loc(call.getLoc()), call(call), operands(function.getArguments()) {}

protected:
  template <typename Op, typename... Arguments> mlir::Value create(Arguments&&... arguments) {
    return Op::create(builder, loc, std::forward<Arguments>(arguments)...);
  }

  mlir::Value index(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(builder, loc, value);
  }
  mlir::Value word(int64_t value); ///< an i32
  mlir::Value zero(mlir::Type type);
  mlir::Value add(mlir::Value a, mlir::Value b) { return create<mlir::arith::AddIOp>(a, b); }
  mlir::Value add(mlir::Value a, int64_t b) { return b == 0 ? a : add(a, index(b)); }
  mlir::Value mul(mlir::Value a, int64_t b) { return create<mlir::arith::MulIOp>(a, index(b)); }
  mlir::Value sum(mlir::Value a, mlir::Value b) { return create<mlir::arith::AddFOp>(a, b); }
  mlir::Value isSame(mlir::Value a, mlir::Value b);
  mlir::Value isBelow(mlir::Value a, mlir::Value b); ///< of numbers that are not negative
  mlir::Value both(mlir::Value a, mlir::Value b) { return create<mlir::arith::AndIOp>(a, b); }
  mlir::Value either(mlir::Value a, mlir::Value b) { return create<mlir::arith::OrIOp>(a, b); }
  mlir::Value inverse(mlir::Value flag);
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b) {
    return create<mlir::arith::SelectOp>(condition, a, b);
  }
  mlir::Value toIndex(mlir::Value number); ///< of i32
  mlir::Value toWord(mlir::Value number);  ///< of index

  void when(mlir::Value condition, llvm::function_ref<void()> then);

  /// The address `offset` elements behind `pointer`.
  mlir::Value at(mlir::Value pointer, mlir::Type element, mlir::Value offset);
  /// Alignment in bytes; 0: that of `type`.
  mlir::Value load(mlir::Type type, mlir::Value pointer, int64_t alignment = 0);
  void store(mlir::Value value, mlir::Value pointer, int64_t alignment = 0);

  /// The row of the table that index `i` names.
  mlir::Value entryAt(mlir::Value i);

  mlir::OpBuilder& builder;
  mlir::Location loc;
  kernel::CallOp call;
  mlir::ValueRange operands; ///< addresses of ins and outs
};

} // namespace titan::codegen::cuda
