// The reference interpreter: what a module means, one op after the other on host tensors. It is the
// oracle of the tests and the engine `reference` of eager runs.
#pragma once

#include "compiler/Interpreter/Frame.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <map>
#include <string>

namespace titan::interpreter {

/// Attaches InterpretableOpInterface to the ops of titan, accum, dist and kernel, and to those of
/// arith and math that occur in kernels.
void registerInterpreterModels(mlir::DialectRegistry& registry);

using NamedTensors = std::map<std::string, Tensor>;

/// By the names in the tags of a titan function (titan.state, titan.input, titan.control).
struct Arguments {
  NamedTensors states, inputs, controls;
};

/// By the names in the tags of its results (titan.state, titan.gradient, titan.metric,
/// titan.output).
struct Results {
  NamedTensors states, gradients, metrics, outputs;
};

/// Runs `function` with its arguments in order, on one rank: `rank` where others run beside it.
/// Emits an error where an op has no meaning.
mlir::FailureOr<llvm::SmallVector<Tensor>> run(mlir::func::FuncOp function,
                                               llvm::ArrayRef<Tensor> arguments, Engine engine,
                                               Rank* rank = nullptr);

/// Runs a tagged function. Emits an error that names an argument that is missing or of another
/// shape; arguments that the function does not take are ignored.
mlir::FailureOr<Results> run(mlir::func::FuncOp function, const Arguments& arguments,
                             Engine engine);

} // namespace titan::interpreter
