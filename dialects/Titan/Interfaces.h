// The op interfaces of the titan dialect, and what they exchange. Include Titan.h for them.
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"

namespace titan::interpreter {
class Frame;
} // namespace titan::interpreter
namespace titan::lower {
class LoweringBuilder;
} // namespace titan::lower

namespace titan::ir {
class AdjointBuilder;

/// What happens to the results when the operands are split along a factor.
enum class FactorKind {
  Parallel,  ///< appears in operands and results: pieces of the results are concatenated
  Reduction, ///< appears in operands only: the pieces' results are summed
  Joint,     ///< has any extent, but the results are those of all of it together: the statistics of
             ///< a batch
  Whole,     ///< cannot be split (a softmax row, a maximum, a reshaped dimension that is not the
             ///< outermost)
};

/// Can an op run on the pieces of such a factor?
inline bool isSplittable(FactorKind kind) {
  return kind == FactorKind::Parallel || kind == FactorKind::Reduction;
}

struct Factor {
  int64_t size;
  FactorKind kind;
};

/// `operands[i][d]` lists the factors of dimension d of operand i, outermost first (usually one;
/// several after a reshape merged dimensions; none for a dimension of extent 1 that is broadcast).
/// Results likewise. A factor that does not appear in an operand leaves that operand whole in every
/// piece.
struct ShardingRule {
  using Dims = llvm::SmallVector<llvm::SmallVector<int64_t, 1>, 4>;
  llvm::SmallVector<Factor> factors;
  llvm::SmallVector<Dims> operands, results;

  int64_t addFactor(int64_t size, FactorKind kind) {
    factors.push_back({size, kind});
    return static_cast<int64_t>(factors.size()) - 1;
  }
  /// The dimension of `dims` whose outermost factor is `factor`, or -1.
  static int64_t findDim(const Dims& dims, int64_t factor) {
    for (auto [d, list] : llvm::enumerate(dims))
      if (!list.empty() && list.front() == factor)
        return d;
    return -1;
  }
};

/// What bf16 arithmetic makes of a result (ComputesNarrowOpInterface).
enum class ResultRounding {
  EndOfLayer, ///< stays f32, and is rounded where its layer ends (behind bias and activation); the
              ///< gradient of a weight is a sum over microbatches and is not
  Narrow,     ///< is bf16
  None,       ///< a sum that stays f32
};

/// What *lower* makes of an op (CostedOpInterface).
enum class Work {
  View,      ///< nothing: another value's elements, or a constant
  Pointwise, ///< each element by itself: it can be computed inside of the kernel that reads it
  Copied,    ///< pointwise, and so cheap that each reader computes it for itself
  Kernel,    ///< a kernel of its own, or several
};

/// Elements of the largest tensor that `op` reads or writes.
int64_t largestExtent(mlir::Operation* op);

} // namespace titan::ir

#include "dialects/Titan/TitanInterfaces.h.inc"
