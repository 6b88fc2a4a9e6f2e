// A row's operands in shared memory, so that several passes over the row read them from the card's
// memory once. A thread keeps its own chunks and reads nobody else's: no barrier is needed.
#pragma once

#include "compiler/Codegen/cuda/ThreadMemory.h"

#include <memory>

namespace titan::codegen::cuda {

/// Shared memory that a block may have on every card from capability 8.0 on.
inline constexpr int64_t mostSharedBytes = int64_t{99} << 10;

class KeptRow {
public:
  KeptRow(BodyEmitter& body, ThreadMemory& access) : body(body), access(access) {}

  /// Chooses the ins that vary along the innermost of `inner` and of which more than one of
  /// `passes` (the values that each evaluates) reads the row, as far as they fit into `most` bytes.
  /// The row has `chunks` chunks.
  void choose(llvm::ArrayRef<llvm::SmallVector<mlir::Value>> passes, llvm::ArrayRef<unsigned> inner,
              int64_t chunks, int64_t most);
  /// Of the row; a multiple of 16.
  int64_t bytes() const { return bytes_; }
  /// `base` is the address of so many bytes of shared memory, a multiple of 16.
  void place(mlir::Value base);

  /// In the lanes of a chunk: keeps what a pass that evaluates `roots` is the first one to read.
  void keep(llvm::ArrayRef<mlir::Value> roots);
  /// Behind that pass: from here on the body reads what it has kept.
  void passed(llvm::ArrayRef<mlir::Value> roots);
  /// Behind the row: the body reads the ins.
  void end();

private:
  struct Kept {
    mlir::BlockArgument in;
    int64_t offset = 0; ///< bytes
    Memory memory;
    bool isKept = false;
  };
  bool isFirstRead(const Kept& kept, const llvm::DenseSet<mlir::Value>& sources) const;

  BodyEmitter& body;
  ThreadMemory& access;
  llvm::SmallVector<std::unique_ptr<Kept>> kept_;
  int64_t bytes_ = 0;
};

} // namespace titan::codegen::cuda
