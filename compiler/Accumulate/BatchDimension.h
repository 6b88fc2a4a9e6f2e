// Where the batch is in each value of a microbatch loop's body.
#pragma once

#include "dialects/Accum/Accum.h"
#include "dialects/Titan/Titan.h"

#include "llvm/ADT/DenseMap.h"

namespace titan {

/// Follows the first dimension of the loop's slices through the body by the ops' factors.
class BatchDimension {
public:
  explicit BatchDimension(accum::LoopOp loop);

  enum class Kind {
    None,    ///< the value does not depend on the batch
    Dim,     ///< `dim` is the batch, outermost in that dimension
    Summed,  ///< a sum over the microbatch: a term of the global sum
    Unknown, ///< depends on the batch in a way that the factors do not follow
  };
  struct Place {
    Kind kind = Kind::None;
    int64_t dim = -1;
    bool operator==(const Place&) const = default;
  };

  Place of(mlir::Value value) const { return places_.lookup(value); }

private:
  void visit(mlir::Operation* op);
  llvm::DenseMap<mlir::Value, Place> places_;
};

} // namespace titan
