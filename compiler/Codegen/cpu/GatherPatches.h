// Lines of a matrix of patches, brought together for a generated product.
#pragma once

#include "compiler/Codegen/cpu/GemmUnits.h"

namespace titan::codegen {

/// Copies elements of the matrix that `patches` describes, whose tensor begins at `base`.
class PatchGatherer {
public:
  PatchGatherer(KernelBuilder& builder, kernel::PatchesAttr patches, mlir::Type element,
                mlir::Value base);

  /// Elements `columns` of line `line` to `to`, one behind the other.
  void gatherLine(mlir::Value line, GemmRange columns, mlir::Value to);

  /// Writes where each of `lines` begins, in elements behind `base`, to as many i64 at `places`.
  void locateLines(GemmRange lines, mlir::Value places);
  /// Elements `columns` of the first `count` lines that were located: a row of `width` elements at
  /// `to` for each. Where the columns are is asked once for all of these lines.
  void gatherLines(mlir::Value places, mlir::Value count, GemmRange columns, mlir::Value to,
                   int64_t width);
  /// Are `columns` neighbours in memory?
  mlir::Value areNeighbours(GemmRange columns);
  /// Where `column` is, in elements behind where its line begins.
  mlir::Value placeOfColumn(mlir::Value column);

private:
  mlir::Value placeOfLine(mlir::Value line);
  void copy(mlir::Value from, mlir::Value to, mlir::Value count);
  /// Neighbours in memory among some columns: they are `from` elements behind where the line begins
  /// and `behind` elements behind the first of the columns.
  struct Run {
    mlir::Value from, behind, count;
  };
  void forEachRun(GemmRange columns, llvm::function_ref<void(Run)> body);

  KernelBuilder& g;
  kernel::PatchesAttr patches;
  mlir::Type element; ///< bits of bf16
  mlir::Value base;
};

} // namespace titan::codegen
