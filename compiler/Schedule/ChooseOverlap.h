// How much of collectives is on its way, and less of it where memory is short.
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace titan::schedule {

/// Bytes of a bucket, and buckets on their way beside those in use: mesh.bucket and mesh.prefetch.
struct Overlap {
  int64_t bucket = 0, prefetch = 0;
  bool operator==(const Overlap&) const = default;
};

/// Which of the passes on collectives run.
struct OverlapPasses {
  bool bucket = true, split = true, prefetch = true, overlap = true;

  static OverlapPasses without(llvm::ArrayRef<std::string> disabled);
};

/// Less than `asked`, which `module` has, each with less on its way than the one before: fewer
/// buckets, then a quarter of the largest and so on, at last each tensor by itself. Only what
/// `passes` make a difference by.
llvm::SmallVector<Overlap> lesserOverlaps(mlir::ModuleOp module, Overlap asked,
                                          const OverlapPasses& passes);

/// Joins the halves of collectives of `module`, and runs `passes` on them again.
void scheduleAnew(mlir::ModuleOp module, const Overlap& overlap, const OverlapPasses& passes);

/// Says that `memory.limit` takes `chosen` instead of `asked`.
void reportLowering(mlir::ModuleOp module, const Overlap& asked, const Overlap& chosen);

} // namespace titan::schedule
