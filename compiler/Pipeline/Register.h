// Registers every dialect, interface model and pass of the compiler: what titan-opt and the driver
// start with.
#pragma once

#include "mlir/IR/DialectRegistry.h"

namespace titan {

void registerAllDialects(mlir::DialectRegistry& registry);
void registerAllPasses();

} // namespace titan
