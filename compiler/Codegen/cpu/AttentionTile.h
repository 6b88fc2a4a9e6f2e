// The functions that all attention kernels of a module share: products of a block, and the packed
// forms of blocks that products take.
//
// A product is C[row][column] += sum over k of A[row][k] B[k][column], with A's elements broadcast
// and B and C in rows of whole vectors. Where the target multiplies pairs of bf16 (AVX-512 BF16), k
// counts pairs: B's rows hold B[2k][column], B[2k + 1][column] side by side, and A's pairs are
// contiguous. On a matrix unit (MatrixUnit.h) the same operands are multiplied by tiles of 16 rows
// and 32 elements along k.
#pragma once

#include "compiler/Codegen/cpu/FloatBuilder.h"
#include "dialects/Kernel/Kernel.h"

#include <array>

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
  /// Of products. Not None only where all blocks are whole tiles: sequences and widths are
  /// multiples of 32.
  MatrixUnitKind unit = MatrixUnitKind::None;

  /// Are elements in memory what products take, so that A may be read in place?
  bool readsInPlace() const { return element == packed; }
  int64_t stripColumns() const { return vectors * width; }
};

/// A product of `rows` rows and `depth` elements along k.
struct ProductArguments {
  mlir::Value a, aRow, aStep; ///< strides in packed elements, along k for each step
  mlir::Value b, bStep;       ///< in packed elements
  mlir::Value c, cRow;        ///< in elements
  mlir::Value rows, depth;
  /// For row r only k from r - lowSkew to r + highSkew counts: the others of A are known to be 0.
  mlir::Value lowSkew, highSkew;
  mlir::Value continues;      ///< i1: C starts from itself, not from 0,
  mlir::Value scaled, scales; ///< if the i1 holds times scales[row]
  mlir::Value ahead;          ///< of row r the first `types.aheadBytes` are fetched meanwhile
  mlir::Value aheadRow;       ///< in elements of memory

  auto slots() {
    return std::array{&a,     &aRow,    &aStep,    &b,         &bStep,  &c,      &cRow,  &rows,
                      &depth, &lowSkew, &highSkew, &continues, &scaled, &scales, &ahead, &aheadRow};
  }
};
/// The function of ProductArguments for a strip of `vectors` vectors of C. `hasLeftInColumns`: aRow
/// is one step, so that neighbouring rows of A lie side by side.
mlir::func::FuncOp getAttentionProduct(FloatBuilder& builder, const AttentionTypes& types,
                                       int64_t vectors, bool hasLeftInColumns);
/// Large enough a skew to count every k.
inline constexpr int64_t everySkew = int64_t{1} << 30;

/// Fetches the first `types.aheadBytes` from `row` on.
void prefetchRow(FloatBuilder& builder, const AttentionTypes& types, mlir::Value row);

struct TransposeArguments {
  mlir::Value source, sourceRow, rows, columns; ///< the stride of rows in elements
  mlir::Value target, targetRows;
  auto slots() { return std::array{&source, &sourceRow, &rows, &columns, &target, &targetRows}; }
};
/// target[column / pair][row][pair] = source[row][column] for all `targetRows` rows; those from
/// `rows` on repeat the last one. Columns are filled with 0 to whole vectors. `source` elements are
/// of type `from`; i1 are bytes and become 0 where true, -inf where false.
mlir::func::FuncOp getAttentionTranspose(FloatBuilder& builder, const AttentionTypes& types,
                                         mlir::Type from, mlir::FloatType to);

struct RowsArguments {
  mlir::Value source, sourceRow, rows, columns; ///< the stride of rows in elements
  mlir::Value target, targetStep;               ///< in packed elements
  auto slots() { return std::array{&source, &sourceRow, &rows, &columns, &target, &targetStep}; }
};
/// target[row / pair][column][pair] = source[row][column], 0 beyond `rows` and beyond `columns`, to
/// whole vectors.
mlir::func::FuncOp getAttentionRows(FloatBuilder& builder, const AttentionTypes& types);

} // namespace titan::codegen
