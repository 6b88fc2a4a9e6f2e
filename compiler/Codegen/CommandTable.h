// The command lists of a program's functions.
#pragma once

#include "compiler/Codegen/CollectiveTable.h"
#include "compiler/Codegen/KernelTable.h"
#include "compiler/Memory/Plan.h"
#include "runtime/program/Recipe.h"

namespace titan::codegen {

/// The function as the executor walks it; kernels go to `table`, collectives to `collectives`.
/// `recipe` says how many ranks share the microbatches of a step. Fails with a diagnostic on the op
/// that has no place in the table.
mlir::FailureOr<Function> buildFunction(const memory::FunctionPlan& plan, const Recipe& recipe,
                                        KernelTable& table, CollectiveTable& collectives);

/// What Function::modelFlops of `function` is: 0 where the stage *shard* has not counted.
int64_t modelFlopsOf(mlir::func::FuncOp function);

/// The program's name of an element type; nothing where it has none.
std::optional<DType> dtypeOf(mlir::Type element);
Shape shapeOf(mlir::ShapedType type);

} // namespace titan::codegen
