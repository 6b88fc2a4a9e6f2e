// Where the batch is in each value of one microbatch.
#pragma once

#include "dialects/Titan/Titan.h"

#include "llvm/ADT/DenseMap.h"

namespace titan {

/// Follows the first dimension of a microbatch's tensors through a block by the ops' factors.
class BatchDimension {
public:
  /// `batched`: arguments of `block` that hold samples. The terminator is not visited.
  BatchDimension(mlir::Block& block, mlir::ValueRange batched);

  enum class Kind {
    None,    ///< the value does not depend on the batch
    Dim,     ///< `dim` is the batch, outermost in that dimension
    Inner,   ///< `dim` has the batch inside of another factor: its rows are not sample by sample
    Summed,  ///< a sum over the microbatch: a term of the global sum
    Unknown, ///< depends on the batch in a way that the factors do not follow
  };
  struct Place {
    Kind kind = Kind::None;
    int64_t dim = -1;
    bool operator==(const Place&) const = default;
  };

  Place of(mlir::Value value) const { return places_.lookup(value); }

  /// Does a sample's part of the value depend on other samples, as far as the factors tell: by a
  /// sum over the batch or its statistics?
  bool joinsSamples(mlir::Value value) const { return joined_.contains(value); }

private:
  void visit(mlir::Operation* op);
  void follow(mlir::Operation* op);
  /// The outermost of a dimension's factors that a batch of several samples can be, or -1.
  int64_t outermost(const ir::ShardingRule& rule, llvm::ArrayRef<int64_t> factors) const;
  Place find(const ir::ShardingRule& rule, const ir::ShardingRule::Dims& dims,
             int64_t factor) const;

  int64_t samples_ = 0;
  llvm::DenseMap<mlir::Value, Place> places_;
  llvm::DenseSet<mlir::Value> joined_;
};

} // namespace titan
