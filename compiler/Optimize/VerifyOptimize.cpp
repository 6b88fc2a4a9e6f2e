#include "compiler/Optimize/Passes.h"
#include "compiler/Support/TaggedFunction.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_VERIFYOPTIMIZE
#include "compiler/Optimize/Passes.h.inc"

namespace {

LogicalResult verifyStates(TaggedFunction step) {
  func::FuncOp function = step.function();
  llvm::StringSet<> returned;
  for (unsigned i = 0; i < step.terminator().getNumOperands(); ++i) {
    if (function.getResultAttr(i, ir::tag::gradient))
      return function.emitError("result ") << i << " is still a gradient";
    StringRef symbol = step.resultTag(i, ir::tag::state);
    if (symbol.empty())
      continue;
    Value value = step.terminator().getOperand(i);
    BlockArgument argument = step.findArgument(ir::tag::state, symbol);
    if (!argument || argument.getType() != value.getType())
      return function.emitError("returns state '")
             << symbol << "' as " << value.getType() << ", which is not its argument's type";
    if (!returned.insert(symbol).second)
      return function.emitError("returns state '") << symbol << "' twice";
    Operation* writer = value.getDefiningOp();
    if (value != argument && !(writer && ir::getPhase(writer) == ir::Phase::Update))
      return function.emitError("state '") << symbol << "' changes outside of phase update";
  }
  auto module = function->getParentOfType<ModuleOp>();
  for (auto state : module.getOps<ir::StateOp>())
    if (!returned.contains(state.getSymName()))
      return state.emitError("state '") << state.getName() << "' is not returned by @step";
  return success();
}

struct VerifyOptimize : impl::VerifyOptimizeBase<VerifyOptimize> {
  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>(ir::function::step);
    if (!function) {
      getOperation().emitError("the module has no @step");
      return signalPassFailure();
    }
    TaggedFunction step(function);
    if (failed(verifyStates(step)))
      return signalPassFailure();
    for (StringRef name : {"loss", "grad_norm", "lr", "count", "applied"})
      if (!step.findResult(ir::tag::metric, name)) {
        function.emitError("metric '") << name << "' is not returned";
        return signalPassFailure();
      }
  }
};

} // namespace

} // namespace titan
