// The functions that all attention kernels of a module share: products of a block, and the packed
// forms of blocks that products take.
//
// A product is C[row][column] += sum over k of A[row][k] B[k][column], with A's elements broadcast
// and B and C in rows of whole vectors. Where the target multiplies pairs of bf16 (AVX-512 BF16), k
// counts pairs: B's rows hold B[2k][column], B[2k + 1][column] side by side, and A's pairs are
// contiguous.
#pragma once

#include "compiler/Codegen/cpu/AttentionBuilder.h"
#include "dialects/Kernel/Kernel.h"

namespace titan::codegen {

/// How blocks are held between loading and multiplying.
struct AttentionTypes {
  AttentionTypes(kernel::AttentionAttr attention, const VectorShape& shape);

  mlir::Type element;     ///< of operands in memory; i16 for bf16 that the target cannot convert
  mlir::FloatType scalar; ///< of scores and sums
  mlir::FloatType packed; ///< of the factors of products: bf16 in pairs, or `scalar`
  int64_t pair;           ///< elements along k in one step: 2 or 1
  int64_t width;          ///< lanes of `scalar`
  int64_t vectors;        ///< of `scalar`, beside each other in a register tile
  int64_t aheadBytes;     ///< of a row that a product fetches for later

  /// Are elements in memory what products take, so that A may be read in place?
  bool readsInPlace() const { return element == packed; }
  int64_t stripColumns() const { return vectors * width; }
};

/// void(ptr a, index aRow, index aStep, ptr b, index bStep, ptr c, index cRow, index rows, index
/// depth, index lowSkew, index highSkew, i1 continues, i1 scaled, ptr scales, ptr ahead, index
/// aheadRow): a strip of `vectors` vectors of C. Strides count elements (aRow, cRow) and steps
/// along k (aStep: packed elements, bStep: packed elements). For row r only k (in elements) from r
/// - lowSkew to r + highSkew counts: the others of A are known to be 0. C starts from 0, or from
/// itself, times scales[row] if `scaled`. The first `types.aheadBytes` of row r of `ahead`
/// (aheadRow counts elements of memory) are fetched meanwhile.
mlir::func::FuncOp getAttentionProduct(AttentionBuilder& builder, const AttentionTypes& types,
                                       int64_t vectors);
/// Large enough a skew to count every k.
inline constexpr int64_t everySkew = int64_t{1} << 30;

/// Fetches the first `types.aheadBytes` from `row` on.
void prefetchRow(AttentionBuilder& builder, const AttentionTypes& types, mlir::Value row);

/// void(ptr source, index sourceRow, index rows, index columns, ptr target, index targetRows):
/// target[column / pair][row][pair] = source[row][column] for all `targetRows` rows; those from
/// `rows` on repeat the last one. Columns are filled with 0 to whole vectors. `source` elements are
/// of type `from`; i1 are bytes and become 0 where true, -inf where false.
mlir::func::FuncOp getAttentionTranspose(AttentionBuilder& builder, const AttentionTypes& types,
                                         mlir::Type from, mlir::FloatType to);

/// void(ptr source, index sourceRow, index rows, index columns, ptr target, index targetStep):
/// target[row / pair][column][pair] = source[row][column], 0 beyond `rows` and beyond `columns`, to
/// whole vectors.
mlir::func::FuncOp getAttentionRows(AttentionBuilder& builder, const AttentionTypes& types);

} // namespace titan::codegen
