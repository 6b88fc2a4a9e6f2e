// The order of commands of a planned function, and when its buffers are live.
#pragma once

#include "dialects/Accum/Accum.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Kernel/Kernel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace titan::memory {

/// One entry of the command table: a kernel, a call, a copy, or the begin or end of a loop.
struct Command {
  enum class Kind { Run, Repeat, EndRepeat };
  Kind kind;
  mlir::Operation* op;
};

/// The commands of `function` in the order in which the table lists them; a command's position is
/// its number in live ranges.
llvm::SmallVector<Command> listCommands(mlir::func::FuncOp function);

/// Does `op` show elements of its first operand, a buffer: kernel.cast_shape, kernel.slice,
/// kernel.rows?
bool isView(mlir::Operation* op);

/// The buffer that `value` is a view of, or `value`.
mlir::Value rootOf(mlir::Value value);

/// The roots that a command reads and writes.
llvm::SmallVector<mlir::Value> readsOf(mlir::Operation* command);
llvm::SmallVector<mlir::Value> writesOf(mlir::Operation* command);

/// Is `buffer`, or a view of it, a source of a collective? Then other ranks read it.
bool isSource(kernel::BufferOp buffer);

struct LiveRange {
  uint32_t first = 0, last = 0; ///< both included
};

/// The live range of every kernel.buffer, in program order: from its first use to its last. A
/// buffer that a loop uses and that is declared outside of it is live in the whole loop: its value
/// passes from one iteration to the next.
llvm::MapVector<kernel::BufferOp, LiveRange> computeLiveRanges(mlir::func::FuncOp function);

int64_t bytesOf(mlir::ShapedType type);
/// From one element along the first dimension of `buffer` to the next.
int64_t rowBytesOf(mlir::Value buffer);

} // namespace titan::memory
