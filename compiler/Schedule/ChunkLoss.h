// The head of a language model in pieces: logits of a few rows at a time.
#pragma once

#include "dialects/Titan/Titan.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>

namespace titan::schedule {

/// The ops of one block that handle the logits of a `titan.cross_entropy`: the product that makes
/// them, and all that reads them or what follows from them in their size, up to the products of
/// their gradient.
class LossRegion {
public:
  /// Along the first dimension of the product that can be cut into `chunks`, or as many of them as
  /// have a factor in common with its extent; 0: into any number. Fails with the reason in `why`.
  static mlir::FailureOr<LossRegion> find(ir::CrossEntropyOp loss, int64_t chunks,
                                          std::string& why);

  /// The extent along which the logits can be cut: chunk counts are its divisors.
  int64_t rows() const { return rows_; }
  /// The product that makes the logits.
  mlir::Operation* head() const;

  /// Runs the region `chunks` times, each on rows() / chunks rows; what sums over the rows (weight
  /// and bias gradients) continues from piece to piece in order, what keeps them is put together
  /// again. Erases the ops of the region. `chunks` divides rows().
  void cut(int64_t chunks);

private:
  struct Role {
    int64_t factor = -1;
    bool isSum = false; ///< the rows are summed over
  };
  llvm::MapVector<mlir::Operation*, Role> ops_; ///< in program order
  llvm::DenseMap<mlir::Value, int64_t> rowDim_; ///< of every value with rows: the dimension
  llvm::DenseSet<mlir::Value> large_;           ///< whose readers belong to the region
  int64_t rows_ = 0;                            ///< the common divisor of their extents

  mlir::LogicalResult grow(mlir::Operation* head, int64_t dim, int64_t chunks, std::string& why);
  mlir::LogicalResult add(mlir::Operation* op, std::string& why);
  mlir::LogicalResult hoistOperands(std::string& why);
};

/// A loss that is not in as many pieces as it was to be.
struct WholeLoss {
  mlir::Location loc;
  std::string place, why;
};

/// Cuts every cross-entropy of `step` into up to `chunks` pieces: along one dimension as far as
/// that goes, then each piece along the next. One remark a loss, if asked for: passed or missed.
/// Returns those in fewer pieces.
llvm::SmallVector<WholeLoss> chunkLosses(mlir::func::FuncOp step, int64_t chunks, bool withRemarks);

} // namespace titan::schedule
