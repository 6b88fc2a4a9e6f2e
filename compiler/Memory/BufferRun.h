// Runs a function on buffers on a simulated arena: bytes, poisoned, with every command reading and
// writing where its buffers lie. Several ranks have an arena each. What checks of the stage *plan*
// compare with the function on tensors.
#pragma once

#include "compiler/Interpreter/RandomArguments.h"
#include "compiler/Interpreter/Ranks.h"
#include "compiler/Memory/Liveness.h"

namespace titan::memory {

class BufferRun {
public:
  /// Buffers lie at the offsets of the plan; before these are assigned, each in a place of its own.
  /// Every byte starts as 0xA5, but for those of constants. Fails with a diagnostic where a module
  /// with a plan has a buffer without an offset. `rank`: whose arena this is, where several meet.
  static mlir::FailureOr<BufferRun> create(mlir::func::FuncOp function,
                                           interpreter::Rank* rank = nullptr);

  void write(mlir::Value argument, const interpreter::Tensor& tensor);
  interpreter::Tensor read(mlir::Value argument) const;
  /// Runs the commands in order, in the declared types (the engine F32). Between a dist.start and
  /// its wait the bytes of the results are poisoned, and a command that writes to them, or to those
  /// of the sources, is an error.
  mlir::LogicalResult run();

private:
  mlir::func::FuncOp function_;
  std::vector<unsigned char> arena_;
  llvm::DenseMap<mlir::Value, int64_t> offsets_;  ///< of arguments, buffers and constants
  llvm::DenseMap<mlir::Value, int64_t> counters_; ///< of the loops being run
  /// Bytes that stay as they are until `start` is awaited.
  struct Held {
    mlir::Operation* start;
    int64_t address;
    std::vector<unsigned char> bytes;
  };
  std::vector<Held> held_;
  interpreter::Rank* rank_;

  BufferRun(mlir::func::FuncOp function, interpreter::Rank* rank)
      : function_(function), rank_(rank) {}
  mlir::LogicalResult place(mlir::Value root, bool isPlanned);
  int64_t addressOf(mlir::Value buffer) const;
  /// An index: a loop's counter, a coordinate, or sums and products of such and constants.
  int64_t indexOf(mlir::Value index) const;
  interpreter::Tensor load(int64_t address, mlir::ShapedType type) const;
  void store(int64_t address, const interpreter::Tensor& tensor);
  mlir::LogicalResult runRange(llvm::ArrayRef<Command> commands);
  mlir::LogicalResult runCommand(mlir::Operation* op);
  mlir::LogicalResult start(dist::StartOp op);
  mlir::LogicalResult wait(dist::WaitOp op);
  interpreter::Tensors loadAll(mlir::ValueRange buffers) const;
  /// Fails with an error on `command` if it has written to what is held.
  mlir::LogicalResult checkHeld(mlir::Operation* command) const;
};

/// Runs `after`, on buffers, and `before`, the same function on tensors, on the same random
/// arguments, on all ranks where they are the program of one: the results have the same bits,
/// whatever the padding of states holds, and what is no state, metric or output is left as it was.
/// Emits an error on `after` with the first element that differs.
mlir::LogicalResult checkEquivalent(mlir::func::FuncOp before, mlir::func::FuncOp after,
                                    const interpreter::RandomOptions& random = {});

} // namespace titan::memory
