// A tile of attention as the threads of a block have it in registers: scores of 64 queries and 64
// keys, what masks and dropout make of them, and statistics of the thread's four queries.
#pragma once

#include "compiler/Codegen/cuda/TileProduct.h"
#include "dialects/Kernel/Kernel.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace titan::codegen::cuda {

/// Where a tile begins; all are indices.
struct AttentionPlace {
  mlir::Value batch, head, query, key;
};

class AttentionScores {
public:
  using Rows =
      llvm::SmallVector<mlir::Value>; ///< of each of the thread's queries a number or a run

  AttentionScores(ThreadBuilder& builder, TileProduct& product, kernel::CallOp call,
                  mlir::func::FuncOp function);

  /// Lines [row, width] of `view`, for `product.multiply`: from row `first` on.
  Lines rows(kernel::ViewAttr view, mlir::Value batch, mlir::Value head, mlir::Value first,
             int64_t rows);
  /// Columns of a part of its width, for `product.accumulate`, which sums over rows from `first`
  /// on.
  Lines columns(kernel::ViewAttr view, mlir::Value batch, mlir::Value head, mlir::Value first,
                int64_t rows, int64_t firstColumn, int64_t width);
  mlir::Value pointer(kernel::ViewAttr view, bool isOut, mlir::Value batch, mlir::Value head) const;
  /// What divides the address of a row of `view`, which lies in `operand` of the call: bytes, up to
  /// `widestAccess`.
  int64_t alignmentOf(kernel::ViewAttr view, mlir::Value operand) const;
  mlir::Value keyHead(mlir::Value head);

  struct Tile {
    Rows scores;   ///< -inf where a query does not attend
    Rows allowed;  ///< with a fill: where the mask is true
    Rows attended; ///< not where a key lies behind the last one or the causal limit; else empty
  };
  /// `limitsQueries`: queries behind the last one attend to nothing.
  Tile scores(const AttentionPlace& place, bool limitsQueries);
  /// 0 or 1 / (1 - p) for each score.
  Rows dropoutFactors(const AttentionPlace& place);
  bool drops() const { return static_cast<bool>(attention.getDropout()); }
  /// Rounded to the operands' type, as what is multiplied is.
  mlir::Value rounded(mlir::Value value);
  mlir::Value exponential(mlir::Value value);

  /// The thread's query number i, and whether there is one: null where there always is.
  mlir::Value queryOf(const AttentionPlace& place, int64_t i);
  mlir::Value queryExists(const AttentionPlace& place, int64_t i);
  /// Element of a statistic [batch, heads, queries].
  mlir::Value statistic(const AttentionPlace& place, mlir::Value query);
  Rows readStatistic(int64_t in, const AttentionPlace& place);
  /// The sums of dresult * result over the width: in chains of every 64th product, or of every 16th
  /// where the width has no whole runs of four, which are added by halves.
  Rows rowSums(const AttentionPlace& place);

  mlir::Value in(int64_t i) const { return operands[i]; }
  mlir::Value out(int64_t i) const { return operands[ins + i]; }

  kernel::AttentionAttr attention;

private:
  Rows maskRow(const AttentionPlace& place, int64_t i);
  mlir::Value limit(const AttentionPlace& place, int64_t i, bool limitsQueries);

  ThreadBuilder& b;
  TileProduct& product;
  kernel::CallOp call;
  mlir::ValueRange operands;
  int64_t ins;
  mlir::Value randomKey, randomStep, windowBase;
};

} // namespace titan::codegen::cuda
