// Which values of a row are kept from one pass over it to the next.
#pragma once

#include "compiler/Codegen/kernel/LoopNest.h"
#include "compiler/Support/MachineModel.h"

namespace titan::codegen {

/// One pass over a row: the values that it asks for at every point.
struct RowPass {
  DimSet dims = 0; ///< the dimensions that it runs over
  llvm::SmallVector<mlir::Value> roots;
};

struct KeptValue {
  mlir::Value value;
  unsigned pass = 0; ///< that computes it; later ones load it
};

/// Values that several passes need and that cost more than to be written and read again: sums of
/// several operands, functions, random numbers. They are as long as a row, so that they stay in
/// cache; values that together exceed `machine.keptBytes` are computed again instead.
llvm::SmallVector<KeptValue> chooseKeptValues(const LoopNest& nest, llvm::ArrayRef<RowPass> passes,
                                              DimSet row, const MachineModel& machine);

} // namespace titan::codegen
