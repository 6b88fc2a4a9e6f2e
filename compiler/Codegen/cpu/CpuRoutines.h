// The routines that have kernels on a CPU, each as an entry of a table that its dialect holds: a
// dialect with routines of its own brings its own table.
#pragma once

#include "compiler/Codegen/Target.h"
#include "compiler/Codegen/cpu/FusedKernel.h"

#include "mlir/IR/DialectInterface.h"

namespace titan::codegen {

struct CpuRoutine : RoutineEmitter {
  /// Emits the kernel `symbol` at the builder's insertion point (a module).
  mlir::LogicalResult (*emit)(mlir::OpBuilder& builder, kernel::CallOp call, llvm::StringRef symbol,
                              const VectorShape& shape);
};

/// What a dialect adds to be run on a CPU.
class CpuRoutineTable : public mlir::DialectInterface::Base<CpuRoutineTable> {
public:
  explicit CpuRoutineTable(mlir::Dialect* dialect) : Base(dialect) {}
  /// The entry for a routine of this dialect, or null.
  virtual const CpuRoutine* find(mlir::Attribute routine) const = 0;
};

/// Adds the kernel dialect's table, when that dialect is loaded.
void registerCpuRoutines(mlir::DialectRegistry& registry);

} // namespace titan::codegen
