#include "frontend/raise/Passes.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace titan::frontend {

#define GEN_PASS_DEF_VERIFYIMPORT
#include "frontend/raise/Passes.h.inc"

namespace {

struct VerifyImport : impl::VerifyImportBase<VerifyImport> {
  void runOnOperation() override {
    auto functions = llvm::to_vector(getOperation().getOps<func::FuncOp>());
    if (functions.size() != 1 || functions.front().getSymName() != ir::function::model ||
        !functions.front().getBody().hasOneBlock()) {
      Operation* where = functions.empty() ? getOperation() : functions.front().getOperation();
      where->emitError("import: the module must hold one function, @model, of one block");
      return signalPassFailure();
    }
    if (failed(verifyArguments(functions.front())) || failed(verifyResults(functions.front())) ||
        failed(verifyBody(functions.front())))
      signalPassFailure();
  }

private:
  LogicalResult verifyArguments(func::FuncOp function) {
    const SymbolTable symbols(getOperation());
    llvm::StringSet<> states, inputs;
    for (BlockArgument argument : function.getArguments()) {
      unsigned i = argument.getArgNumber();
      auto state = function.getArgAttrOfType<FlatSymbolRefAttr>(i, ir::tag::state);
      auto input = function.getArgAttrOfType<StringAttr>(i, ir::tag::input);
      if (!state == !input)
        return function.emitError("import: argument ") << i << " is neither a state nor an input";
      if (input) {
        if (!inputs.insert(input.getValue()).second)
          return function.emitError("import: input '") << input.getValue() << "' appears twice";
        continue;
      }
      if (!inputs.empty())
        return function.emitError("import: state ") << state << " comes after an input";
      if (!states.insert(state.getValue()).second)
        return function.emitError("import: state ") << state << " appears twice";
      auto symbol = symbols.lookup<ir::StateOp>(state.getValue());
      if (!symbol || symbol.getTensorType() != argument.getType())
        return function.emitError("import: argument ") << i << " of type " << argument.getType()
                                                       << " is not of the type of state " << state;
    }
    for (auto state : getOperation().getOps<ir::StateOp>())
      if (!states.contains(state.getSymName()))
        return state.emitError("import: the state is not an argument of @model");
    return success();
  }

  LogicalResult verifyResults(func::FuncOp function) {
    llvm::StringSet<> outputs;
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      auto output = function.getResultAttrOfType<StringAttr>(i, ir::tag::output);
      if (!output || !outputs.insert(output.getValue()).second)
        return function.emitError("import: result ") << i << " has no output name of its own";
    }
    return success();
  }

  LogicalResult verifyBody(func::FuncOp function) {
    for (Operation& op : function.getBody().front().without_terminator())
      if (!(isa<ir::TitanDialect>(op.getDialect()) || isa<ir::LowerableOpInterface>(op)) ||
          !isPure(&op))
        return op.emitError("import: is not a pure titan op");
    return success();
  }
};

} // namespace
} // namespace titan::frontend
