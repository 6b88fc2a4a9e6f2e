// How far ahead in its block an op can stand.
#pragma once

#include "dialects/Titan/Titan.h"

namespace titan::schedule {

/// What an op needs to stand further ahead.
struct Lead {
  /// The op that it, or what moves along, has to stand behind; null: none of the block.
  mlir::Operation* behind = nullptr;
  /// Views, casts, transpositions, pads and empty tensors that it reads, in the order of the block.
  llvm::SmallVector<mlir::Operation*> along;

  bool mayStandBefore(mlir::Operation* place) const {
    return !behind || behind->isBeforeInBlock(place);
  }
};

/// `ownOnly`: along comes only what nobody but collectives and what comes along reads.
Lead leadOf(mlir::Operation* op, bool ownOnly);

/// Moves `op`, and what comes along and is not there yet, to before `place`, an op of its block.
/// Nothing moves back.
void moveAhead(mlir::Operation* op, const Lead& lead, mlir::Operation* place);

} // namespace titan::schedule
