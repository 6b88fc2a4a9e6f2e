// What integers of a model can be, as far as its ops tell.
#pragma once

#include "dialects/Titan/Titan.h"

#include <limits>

namespace titan::frontend {

/// All numbers from `low` to `high`.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};

/// The ranges of values of a function of one block, whose ops are `visit`ed in their order.
class IndexRanges {
public:
  void visit(mlir::Operation* op);
  /// Unbounded where nothing is known.
  Range of(mlir::Value value) const { return known_.lookup(value); }
  /// Is `value` an input, moved and counted from the front? A job refuses data that is outside of
  /// what it looks up.
  bool isData(mlir::Value value) const;

private:
  Range rangeOf(mlir::Operation* op) const;

  llvm::DenseMap<mlir::Value, Range> known_;
};

} // namespace titan::frontend
