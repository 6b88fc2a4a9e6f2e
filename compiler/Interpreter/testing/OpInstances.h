// Instances of every titan op, with arguments and PyTorch's results: what the tests of meanings,
// gradients and sharding rules share. Read from test/dialects/titan-ops.mlir and
// test/interpreter/references.json.
#pragma once

#include "compiler/Interpreter/Interpreter.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace titan::interpreter::testing {

struct Run {
  std::vector<Tensor> arguments, results;
};

/// One function around one op.
struct Instance {
  std::string name;
  mlir::func::FuncOp function;
  mlir::Operation* op;
  std::vector<Run> runs; ///< empty for an op that PyTorch has no counterpart of
};

class OpInstances {
public:
  /// Ends the process with a message if a file is missing or malformed. `registry` must hold the
  /// titan dialect with the interfaces that the test needs.
  explicit OpInstances(const mlir::DialectRegistry& registry);

  mlir::MLIRContext& context() { return context_; }
  const std::vector<Instance>& all() const { return instances_; }
  /// Names of the titan ops that have an interface but no instance in the file.
  template <typename Interface> std::vector<std::string> findWithout() {
    std::vector<std::string> missing;
    for (mlir::RegisteredOperationName op : context_.getRegisteredOperations())
      if (op.getDialectNamespace() == "titan" && op.hasInterface<Interface>() &&
          llvm::none_of(instances_, [&](const Instance& i) { return i.op->getName() == op; }))
        missing.push_back(op.getStringRef().str());
    return missing;
  }

private:
  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  std::vector<Instance> instances_;
};

} // namespace titan::interpreter::testing
