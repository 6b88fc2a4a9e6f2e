#include "compiler/Autodiff/Passes.h"
#include "compiler/Autodiff/ReverseMode.h"
#include "compiler/Support/VerifyTags.h"

#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace titan::ir;

namespace titan {

#define GEN_PASS_DEF_BUILDGRADIENTS
#include "compiler/Autodiff/Passes.h.inc"

namespace {

/// `loop` with `terms` yielded and returned behind its sums.
accum::LoopOp appendTerms(accum::LoopOp loop, ArrayRef<Value> terms) {
  const auto sums = static_cast<unsigned>(loop.getSums().size());
  loop.getBlock().getTerminator()->insertOperands(sums, terms);
  SmallVector<Type> types(loop.getSums().getTypes());
  llvm::append_range(types, ValueRange(terms).getTypes());
  llvm::append_range(types, loop.getStacks().getTypes());
  OpBuilder builder(loop);
  auto extended =
      accum::LoopOp::create(builder, loop.getLoc(), types, loop.getBatches(), loop.getInits(),
                            loop.getCount(), loop.getOrder(), loop.getStacked());
  extended.getBody().takeBody(loop.getBody());
  SmallVector<Value> results(extended.getResults().take_front(sums));
  llvm::append_range(results, extended.getStacks());
  loop.replaceAllUsesWith(results);
  loop.erase();
  return extended;
}

/// The gradients are there: nothing is left for these to stop.
void removeDetaches(Block& block) {
  for (auto detach : llvm::make_early_inc_range(block.getOps<DetachOp>())) {
    detach.replaceAllUsesWith(detach.getOperand());
    detach.erase();
  }
}

struct BuildGradientsPass : impl::BuildGradientsBase<BuildGradientsPass> {
  void runOnOperation() override {
    if (failed(build()))
      signalPassFailure();
  }

  LogicalResult build() {
    ModuleOp module = getOperation();
    func::FuncOp step = getFunction(module, ir::function::step);
    if (!step)
      return failure();
    TaggedFunction tagged(step);
    auto loop = getOnly<accum::LoopOp>(step);
    if (!loop)
      return failure();
    auto loss = dyn_cast_if_present<OpResult>(tagged.findResult(tag::metric, "loss_sum"));
    if (!loss || loss.getOwner() != loop)
      return step.emitError() << "@step returns no loss_sum from its loop";

    const SymbolTable symbols(module);
    SmallVector<StateOp> parameters;
    SmallVector<Value> values;
    for (unsigned i = 0; i < step.getNumArguments(); ++i)
      if (auto state = symbols.lookup<StateOp>(tagged.argumentTag(i, tag::state));
          state && state.getTrainable()) {
        parameters.push_back(state);
        values.push_back(step.getArgument(i));
      }
    Value lossTerm = loop.getBlock().getTerminator()->getOperand(loss.getResultNumber());
    FailureOr<SmallVector<Value>> gradients = autodiff::buildGradients(lossTerm, values);
    if (failed(gradients))
      return failure();
    removeDetaches(loop.getBlock());

    SmallVector<Value> terms;
    SmallVector<StringRef> names;
    for (auto [state, gradient] : llvm::zip_equal(parameters, *gradients)) {
      if (!gradient) {
        remark::missed(state.getLoc(),
                       remark::RemarkOpts::name("no-gradient").category("differentiate"))
            << (state.getName() + " does not reach the loss: it is not trained").str();
        continue;
      }
      terms.push_back(gradient);
      names.push_back(state.getSymName());
    }
    if (terms.empty())
      return step.emitError() << "no trainable parameter reaches the loss";
    const auto first = static_cast<unsigned>(loop.getSums().size());
    loop = appendTerms(loop, terms);
    SmallVector<TaggedFunction::TaggedValue> results;
    for (auto [i, name] : llvm::enumerate(names))
      results.push_back({loop.getResult(first + i), tag::gradient,
                         FlatSymbolRefAttr::get(module.getContext(), name)});
    tagged.addResults(results);
    return success();
  }
};

} // namespace
} // namespace titan
