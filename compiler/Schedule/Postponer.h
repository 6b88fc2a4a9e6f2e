// Goes through a block in order, while results that somebody holds back are missing: what only
// follows them is put off until they are there.
#pragma once

#include "dialects/Titan/Titan.h"

#include "llvm/ADT/SetVector.h"

namespace titan::schedule {

/// Derived passes hold back results of ops that they take, and release them, the oldest first. At
/// the end of the block, and before the first op of phase update, nothing is held back.
class Postponer {
public:
  virtual ~Postponer() = default;
  void run(mlir::Block& block);

protected:
  /// `op`, whose operands are there, has its place before `next`. May hold back its results, and
  /// release others before `next`.
  virtual void take(mlir::Operation* op, mlir::Operation* next) = 0;
  /// Gives what has been held back longest, before `next`. False: nothing is held back.
  virtual bool release(mlir::Operation* next) = 0;

  void holdBack(mlir::ValueRange results);
  /// `results` are there, before `next`: takes what was put off for them alone, in its order.
  void give(mlir::ValueRange results, mlir::Operation* next);

private:
  llvm::DenseSet<mlir::Value> missing_;
  llvm::SetVector<mlir::Operation*> putOff_;
  bool gives_ = false;

  bool readsMissing(mlir::Operation* op) const;
};

} // namespace titan::schedule
