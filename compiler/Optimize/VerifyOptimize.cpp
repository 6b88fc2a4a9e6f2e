#include "compiler/Optimize/Passes.h"
#include "compiler/Support/TaggedFunction.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_VERIFYOPTIMIZE
#include "compiler/Optimize/Passes.h.inc"

namespace {

/// The states that `function` returns: each once, in the type of its argument, written in phase
/// update. Adds their symbols to `written`.
LogicalResult verifyStates(TaggedFunction tagged, llvm::StringSet<>& written) {
  func::FuncOp function = tagged.function();
  const llvm::StringMap<BlockArgument> arguments = tagged.argumentsBy(ir::tag::state);
  llvm::StringSet<> returned;
  for (unsigned i = 0; i < tagged.terminator().getNumOperands(); ++i) {
    if (function.getResultAttr(i, ir::tag::gradient))
      return function.emitError("result ") << i << " is still a gradient";
    StringRef symbol = tagged.resultTag(i, ir::tag::state);
    if (symbol.empty())
      continue;
    Value value = tagged.terminator().getOperand(i);
    BlockArgument argument = arguments.lookup(symbol);
    if (!argument || argument.getType() != value.getType())
      return function.emitError("returns state '")
             << symbol << "' as " << value.getType() << ", which is not its argument's type";
    if (!returned.insert(symbol).second)
      return function.emitError("returns state '") << symbol << "' twice";
    Operation* writer = value.getDefiningOp();
    if (value != argument && !(writer && ir::getPhase(writer) == ir::Phase::Update))
      return function.emitError("state '") << symbol << "' changes outside of phase update";
    written.insert(symbol);
  }
  return success();
}

struct VerifyOptimize : impl::VerifyOptimizeBase<VerifyOptimize> {
  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>(ir::function::step);
    if (!function) {
      getOperation().emitError("the module has no @step");
      return signalPassFailure();
    }
    llvm::StringSet<> written;
    for (auto each : getOperation().getOps<func::FuncOp>())
      if (failed(verifyStates(TaggedFunction(each), written)))
        return signalPassFailure();
    for (auto state : getOperation().getOps<ir::StateOp>())
      if (!written.contains(state.getSymName())) {
        state.emitError("no function returns state '") << state.getName() << "'";
        return signalPassFailure();
      }
    TaggedFunction step(function);
    for (StringRef name : {"loss", "grad_norm", "lr", "count", "applied"})
      if (!step.findResult(ir::tag::metric, name)) {
        function.emitError("metric '") << name << "' is not returned";
        return signalPassFailure();
      }
  }
};

} // namespace

} // namespace titan
