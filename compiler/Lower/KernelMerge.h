// Merging of two fused kernels into one, once a space for both is found. FuseKernels decides what
// should be merged.
#pragma once

#include "compiler/Lower/KnownKernels.h"
#include "compiler/Lower/MergedSpace.h"
#include "compiler/Support/BlockOrder.h"

namespace titan::lower {

/// What came of a pair of kernels: of an equal pair, in another layer of the model, the same comes.
struct MergeResult {
  /// An operand of the merged kernel: input or scalar `number` of one of the two.
  struct Operand {
    bool isConsumers = false;
    unsigned number = 0;
    bool isSource = false; ///< in the shape that it was written in
  };
  llvm::SmallVector<Operand> ins, scalars;
  mlir::ArrayAttr maps;
  kernel::KernelClass kernelClass = kernel::KernelClass::Flat;
  std::optional<unsigned> kernel; ///< its number; none: they cannot be merged
  std::string why;                ///< not
};

/// A space for a pair of kernels, and what follows from it.
struct KnownSpace {
  MergedSpace space;
  bool repeatsWork, repeatsAlongShortRows, visitsWholeSpace; ///< of the producer
};

/// What is known of two kernels, of which the second may read the first: equal pairs share it. They
/// compute the same and read each other alike; what else they read may differ.
struct KernelPair {
  std::optional<llvm::SmallVector<KnownSpace>> spaces; ///< that serve both; none: nobody asked yet
  std::string why;                                     ///< there is none
  llvm::StringMap<std::string> reasonsApart;           ///< by space
  /// By space, results that are kept, and which operands are one value.
  llvm::StringMap<MergeResult> merges;
};

/// Changes a block whose order of ops stays known, and knows what it found of pairs before.
struct PairRewriter : mlir::IRRewriter {
  explicit PairRewriter(mlir::MLIRContext* context) : IRRewriter(context, &kernels) {}
  BlockOrder order;
  KnownKernels kernels{&order};
  llvm::StringMap<KernelPair> pairs; ///< by all that decides what is known of them
  KernelPair& pairOf(kernel::FusedOp producer, kernel::FusedOp consumer);
};

/// `findMergedSpaces`, which is asked once for equal pairs. `pair` is that of the two, here and
/// below.
llvm::ArrayRef<KnownSpace> findKnownSpaces(KernelPair& pair, kernel::FusedOp producer,
                                           kernel::FusedOp consumer, std::string& why);

/// What keeps the two apart over `space`, whatever else they read; empty: nothing.
llvm::StringRef findReasonApart(PairRewriter& rewriter, KernelPair& pair, kernel::FusedOp producer,
                                kernel::FusedOp consumer, const MergedSpace& space);

/// Builds the merged kernel before `consumer` and returns it: its results are the consumer's, then
/// those of the producer that `kept` lists. Nothing keeps the two apart (`findReasonApart`). Fails,
/// leaving everything as it was, with `why` set, where the result fits no class. Where an equal
/// pair was merged before, the kernel has no body yet (`KnownKernels`).
mlir::FailureOr<kernel::FusedOp> buildMerged(PairRewriter& rewriter, KernelPair& pair,
                                             kernel::FusedOp producer, kernel::FusedOp consumer,
                                             const MergedSpace& space,
                                             llvm::ArrayRef<unsigned> kept, std::string& why);

/// Rebuilds `op` without the results that nobody reads; erases it if none is left. Returns the op
/// that is there now, or null.
kernel::FusedOp dropUnusedResults(mlir::RewriterBase& rewriter, kernel::FusedOp op);

} // namespace titan::lower
