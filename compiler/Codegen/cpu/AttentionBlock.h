// What the forward and the backward kernel do alike with a block of scores: queries in lanes, keys
// in rows. So a query's maximum and sum are vertical, and one product serves all.
#pragma once

#include "compiler/Codegen/cpu/AttentionTile.h"

namespace titan::codegen {

class AttentionBlock {
public:
  AttentionBlock(FloatBuilder& builder, kernel::AttentionAttr attention,
                 const AttentionTypes& types, mlir::func::FuncOp function);

  kernel::AttentionAttr attention;
  AttentionTypes types;
  /// Extents of a block: those of the attribute, or as small as the sequences allow.
  int64_t queryBlock, keyBlock;

  /// `width` elements of packed rows: whole vectors.
  int64_t wholeVectors(int64_t width) const;
  /// Address of [batch, row, head, 0]. Views count elements of `attention.element`.
  mlir::Value address(kernel::ViewAttr view, bool isOut, mlir::Value batch, mlir::Value row,
                      mlir::Value head);
  mlir::Value in(int64_t i) const { return ins[i]; }
  mlir::Value out(int64_t i) const { return outs[i]; }
  mlir::Value keyHead(mlir::Value head);

  /// Where a block begins and how much of it there is.
  struct Place {
    mlir::Value batch, head, query, queries, key, keys;
    mlir::Value skew; ///< query - key: query i attends to keys up to i + skew; everySkew
  };
  /// Calls `body` for the key blocks that the queries of `place` may attend to.
  void forKeyBlocks(Place place, llvm::function_ref<void(const Place&)> body);

  /// A factor of a product: a pointer, and its strides in packed elements.
  struct Factor {
    mlir::Value pointer;
    mlir::Value row, step;  ///< step is the stride of k (or of pairs along k)
    bool inColumns = false; ///< of a left factor: its rows lie side by side, element by element
  };
  struct Sums {
    mlir::Value pointer;
    mlir::Value row;
  };
  /// Rows in memory that are read later.
  struct Ahead {
    mlir::Value pointer;
    mlir::Value row;
  };
  /// Those of `view` for the block after `place`: along the queries or keys, else of the next head.
  Ahead aheadOfQueries(kernel::ViewAttr view, const Place& place);
  Ahead aheadOfKeys(kernel::ViewAttr view, const Place& place);
  void fetch(const Ahead& ahead, mlir::Value row);
  /// sums[rows, columns] += left[rows, depth] right[depth, columns]. `columns` are whole vectors.
  struct Product {
    Factor left, right;
    Sums sums;
    mlir::Value rows;
    int64_t columns;
    mlir::Value depth;
    mlir::Value lowSkew = {}, highSkew = {}; ///< null: every k counts
    mlir::Value continues = {};              ///< null: it does
    mlir::Value scales = {};                 ///< of the rows of `sums`; null: none
    Ahead ahead = {};                        ///< fetched meanwhile; null: nothing
  };
  void product(const Product& product);

  /// tile[key][query] = left[key] . right[query] over `width`; with a causal mask only what some
  /// query of a strip attends to.
  void scores(const Place& place, mlir::Value tile, const Factor& left, const Factor& right,
              int64_t width, const Ahead& ahead);
  /// Do scores() leave this to maskScores(): the scale, so that they are in nats?
  bool scalesScores() const;
  /// Is the largest score a statistic of its own, beside the logarithm of the sum?
  bool keepsLargest() const { return attention.keepsLargest(); }
  /// What the mask writes over scores, or null.
  mlir::FloatAttr fill() const;
  /// `adjoints` of the scores of `key` by queries from `query` on, 0 where a fill stands.
  mlir::Value withoutFilled(mlir::Value adjoints, mlir::Value key, mlir::Value query);
  /// Of row `query` in the statistics [batch, heads, queries] of operand `pointer`.
  mlir::Value statistic(mlir::Value pointer, const Place& place, mlir::Value query);
  /// What e^score takes from scores to powers of two.
  double exponentScale() const;
  /// Applies mask, scale (where scalesScores) and the causal limit to tile[key][query].
  void maskScores(const Place& place, mlir::Value tile);
  /// factors[key][query] = 0 or 1 / (1 - p).
  void dropoutFactors(const Place& place, mlir::Value factors);
  bool drops() const { return static_cast<bool>(attention.getDropout()); }

  /// Packs `rows` rows of `view` for use as a right factor over its columns, its transpose as a
  /// right factor over `queryBlock` queries.
  Factor packRows(mlir::Value source, int64_t sourceRow, mlir::Value rows, int64_t columns,
                  mlir::Value target);
  Factor packTransposed(mlir::Value source, int64_t sourceRow, mlir::Value rows, int64_t columns,
                        mlir::Value target);
  /// Packed elements that the two need.
  int64_t rowsElements(int64_t rows, int64_t columns) const;
  int64_t transposedElements(int64_t columns) const;
  /// A view as left factor: in place, or from `packed` (packRows) where elements are converted.
  Factor leftRows(mlir::Value source, int64_t sourceRow, const Factor& packed);

  /// 2^x, 0 for x <= -127 (f32). NaN stays.
  mlir::Value exponential(mlir::Value x);
  /// Rounds to the operands' type, as probabilities are before they are multiplied.
  mlir::Value rounded(mlir::Value value);
  /// Calls `body` with the offsets of up to four vectors of queries beside each other.
  void forQueryVectors(llvm::function_ref<void(mlir::Value first, int64_t vectors)> body);
  mlir::Value slot(mlir::Value tile, mlir::Value row, mlir::Value column);

private:
  mlir::Value isFilled(mlir::Value key, mlir::Value query);
  void maskTile(const Place& place);
  void limitCausally(const Place& place, mlir::Value tile);
  mlir::Value elementIndex(const Place& place);

  FloatBuilder& b;
  llvm::SmallVector<mlir::Value> ins, outs;
  mlir::Value maskValues, randomKey, randomStep, windowBase;
};

} // namespace titan::codegen
