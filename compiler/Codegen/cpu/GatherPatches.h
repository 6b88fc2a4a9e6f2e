// Lines of a matrix of patches, brought together for a generated product.
#pragma once

#include "compiler/Codegen/cpu/GemmUnits.h"

namespace titan::codegen {

/// Copies the elements `columns` of line `line` of the matrix that `patches` describes, whose
/// tensor begins at `base`, to `to`, one behind the other.
void gatherPatches(KernelBuilder& builder, kernel::PatchesAttr patches, mlir::Type element,
                   mlir::Value base, mlir::Value line, GemmRange columns, mlir::Value to);

} // namespace titan::codegen
