// The command lists of a program's functions.
#pragma once

#include "compiler/Codegen/KernelTable.h"
#include "compiler/Memory/Plan.h"

namespace titan::codegen {

/// The function as the executor walks it; kernels go to `table`. Fails with a diagnostic on the op
/// that has no place in the table.
mlir::FailureOr<Function> buildFunction(const memory::FunctionPlan& plan, KernelTable& table);

/// What Function::modelFlops of `function` is: 0 where the stage *shard* has not counted.
int64_t modelFlopsOf(mlir::func::FuncOp function);

/// The program's name of an element type; nothing where it has none.
std::optional<DType> dtypeOf(mlir::Type element);
Shape shapeOf(mlir::ShapedType type);

} // namespace titan::codegen
