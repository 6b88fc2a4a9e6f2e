// Replacing two kernels by one: who else reads them, and what has to move.
#pragma once

#include "compiler/Lower/KernelMerge.h"

namespace titan::lower {

/// Does anybody read remarks? Most of one's time goes into its text.
bool areRemarksRead(mlir::Operation* op);

/// The kernel whose result `in` is, perhaps in another shape; null if it is none.
kernel::FusedOp producerOf(mlir::Value in);

/// Does anything but `readers` read `value`, directly or in another shape?
bool isReadBesides(mlir::Value value, llvm::ArrayRef<mlir::Operation*> readers);

/// The ops between producer and consumer that need the producer, in their order; none, if the
/// consumer needs one of them or `mayMove` is false of one. What shows the producer's results to
/// the consumer in another shape goes away with it.
std::optional<llvm::SmallVector<mlir::Operation*>>
findOpsToMove(BlockOrder& order, kernel::FusedOp producer, kernel::FusedOp consumer,
              llvm::function_ref<bool(mlir::Operation*)> mayMove);

/// Moves `second` up to `first`, if all that it needs is there by then and no collective starts or
/// is awaited in between. (Empty tensors and other shapes of what is there come along.)
bool moveBehind(PairRewriter& rewriter, kernel::FusedOp first, kernel::FusedOp second);

/// One kernel of the two over `space` in the consumer's place, which also writes the producer's
/// results `kept`; `pair` is theirs; `keepProducer` leaves the producer to its other readers. Null,
/// with `why` set, if it cannot be: among others where a collective starts or is awaited between
/// the two.
kernel::FusedOp replacePair(PairRewriter& rewriter, KernelPair& pair, kernel::FusedOp producer,
                            kernel::FusedOp consumer, const MergedSpace& space,
                            llvm::ArrayRef<unsigned> kept, bool keepProducer, std::string& why);

/// One kernel in the place of `second` for two that are not producer and consumer in the first
/// place, but read one value or are small. Null where a point of either is left out, or where
/// `second` reads what `first` writes at another point.
kernel::FusedOp fuseIndependent(PairRewriter& rewriter, kernel::FusedOp first,
                                kernel::FusedOp second, const MergedSpace& space);

} // namespace titan::lower
