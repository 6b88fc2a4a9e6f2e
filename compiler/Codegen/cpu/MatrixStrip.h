// The innermost function of a product on the matrix unit: 32 rows of A times a panel of B.
#pragma once

#include "compiler/Codegen/cpu/GemmTile.h"
#include "compiler/Codegen/cpu/MatrixPack.h"

namespace titan::codegen {

struct MatrixStripArguments {
  mlir::Value a, b;          ///< packed (MatrixPack.h); `steps` of A, `panelSteps` to a block of B
  mlir::Value sums, sumsRow; ///< f32, and its elements from row to row
  mlir::Value c, cRow;       ///< the result, likewise
  mlir::Value bias;          ///< of c's type; any address without one
  mlir::Value steps, panelSteps;
  mlir::Value rows, columns;     ///< of C; at most 32 rows
  mlir::Value continues, isLast; ///< i1
  auto slots() {
    return std::array{&a,     &b,          &sums, &sumsRow, &c,         &cRow,  &bias,
                      &steps, &panelSteps, &rows, &columns, &continues, &isLast};
  }
};

/// Where sums lie between two panels along k, and what follows the last one.
struct MatrixStripKind {
  GemmEpilogue epilogue;
  bool hasPaddedSums = false; ///< whole blocks of sums may be written, whatever is left of C
  MatrixUnitKind unit;
};

/// sums = (continues ? sums : 0) + A * B; with isLast instead c = epilogue(...). Without an
/// epilogue `sums` is C. Blocks of 32 x 32 at a time; those at the edges of C are finished in a
/// scratch.
mlir::func::FuncOp getMatrixStrip(KernelBuilder& builder, const MatrixStripKind& kind);

} // namespace titan::codegen
