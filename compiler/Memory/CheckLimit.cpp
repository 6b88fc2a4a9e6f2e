// titan-plan-check-limit: does the plan fit?
#include "compiler/Memory/Passes.h"
#include "compiler/Memory/Plan.h"
#include "compiler/Support/RecipeAttribute.h"
#include "runtime/program/Text.h"

#include <map>

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_CHECKLIMIT
#include "compiler/Memory/Passes.h.inc"

namespace {

/// The parts of the device's memory, states by kind, from the largest on.
std::string describeParts(const memory::ModulePlan& plan) {
  std::map<std::string, int64_t> parts;
  for (const memory::StatePlan& state : plan.states)
    if (!state.isOnHost)
      parts[ir::stringifyStateKind(ir::StateOp(state.state).getKind()).str() + "s"] += state.bytes;
  parts["inputs and metrics"] = plan.bindingBytes;
  parts["staging"] = plan.stagingBytes;
  parts["temporaries and outputs"] = plan.temporaryBytes;
  parts["constants"] = plan.constantBytes;
  SmallVector<std::pair<int64_t, std::string>> sorted;
  for (const auto& [name, bytes] : parts)
    if (bytes > 0)
      sorted.push_back({bytes, name});
  llvm::sort(sorted, std::greater<>());
  std::string text;
  for (const auto& [bytes, name] : sorted)
    text += (text.empty() ? "" : ", ") + name + " " + readableBytes(bytes);
  return text;
}

struct CheckLimit : impl::CheckLimitBase<CheckLimit> {
  void runOnOperation() override {
    FailureOr<Recipe> recipe = getRecipe(getOperation());
    if (failed(recipe))
      return signalPassFailure();
    const int64_t limit = recipe->memory.limit;
    if (limit == 0)
      return;
    FailureOr<memory::ModulePlan> plan = memory::readPlan(getOperation());
    if (failed(plan))
      return signalPassFailure();
    if (plan->deviceBytes() <= limit)
      return;
    getOperation().emitError("the plan needs ")
        << readableBytes(plan->deviceBytes()) << " (" << plan->deviceBytes()
        << " bytes), memory.limit is " << readableBytes(limit) << ": " << describeParts(*plan)
        << "; use a smaller batch.micro with the same batch.global, or a higher limit";
    signalPassFailure();
  }
};

} // namespace

} // namespace titan
