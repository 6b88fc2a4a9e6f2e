#include "compiler/Pipeline/Pipeline.h"

#include "compiler/Accumulate/Passes.h"
#include "compiler/Autodiff/Passes.h"
#include "compiler/Lower/Passes.h"
#include "compiler/Memory/Passes.h"
#include "compiler/Optimize/Passes.h"
#include "compiler/Pipeline/MarkStage.h"
#include "compiler/Pipeline/MeasurePlan.h"
#include "compiler/Schedule/Passes.h"
#include "compiler/Shard/Passes.h"
#include "dialects/PassFacts.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace titan {

namespace {

void addStage(OpPassManager& passes, Stage stage, ArrayRef<std::string> disabled = {}) {
  switch (stage) {
  case Stage::Import:
  case Stage::Codegen:
    return;

  // The gradient first, while every op is still the model's own: derivative rules see a layer norm,
  // not its pieces. Precision ends the stage, because from here on no pass may change where a value
  // is rounded.
  case Stage::Differentiate:
    addDifferentiatePasses(passes);
    break;

  // Clip, schedule and update are ordinary ops after the loop, so that later stages shard, fuse and
  // plan them like all others.
  case Stage::Optimize:
    addOptimizePasses(passes);
    break;

  // Which order the microbatches are summed in decides bits; it is fixed before anything is
  // distributed.
  case Stage::Accumulate:
    addAccumulatePasses(passes);
    break;

  // Global tensors become one rank's part of them. Terms of gradients go into their accumulators
  // only then: until a sum over ranks has its place, they are values of their own.
  case Stage::Shard:
    addShardPasses(passes);
    break;

  // Order and recomputation, with the memory model at hand and whole ops still visible.
  case Stage::Schedule:
    addSchedulePasses(
        passes,
        [names = std::vector<std::string>(disabled)](ModuleOp module) {
          return measurePlan(module, names);
        },
        disabled);
    break;

  // Tensor ops become kernels. Fusion comes after one kernel per op exists, so that fused and
  // unfused code are the same bodies.
  case Stage::Lower:
    addLowerPasses(passes);
    break;

  // Values become buffers of one arena; nothing is allocated later.
  case Stage::Plan:
    addPlanPasses(passes);
    break;
  }
  passes.addPass(createMarkStage(stage));
}

} // namespace

void addStages(OpPassManager& passes, Stage from, Stage to, ArrayRef<std::string> disabled) {
  for (Stage stage : allStages())
    if (stage > from && stage <= to)
      addStage(passes, stage, disabled);
}

void addStageChecks(OpPassManager& passes, Stage stage) {
  if (stage == Stage::Differentiate)
    passes.addPass(createVerifyDifferentiate());
  // What optimize and the stages after it promise holds until tensor ops become kernels.
  if (stage >= Stage::Optimize && stage <= Stage::Schedule)
    passes.addPass(createVerifyOptimize());
  // The loop over all microbatches of the job: from shard on it runs those of one rank.
  if (stage == Stage::Accumulate)
    passes.addPass(createVerifyAccumulate());
  if (stage >= Stage::Shard && stage <= Stage::Schedule)
    passes.addPass(createVerifyShard());
  if (stage == Stage::Schedule)
    passes.addPass(createVerifySchedule());
  if (stage == Stage::Lower)
    passes.addNestedPass<func::FuncOp>(createVerifyLowered());
  if (stage == Stage::Plan)
    passes.addPass(createVerifyPlan());
}

bool isOptionalPass(StringRef name) {
  // MLIR's own say nothing of themselves.
  if (name == "canonicalize" || name == "cse")
    return true;
  const PassInfo* info = PassInfo::lookup(name);
  OpPassManager passes;
  auto ignore = [](const Twine&) { return failure(); };
  return info && succeeded(info->addToPipeline(passes, "", ignore)) &&
         llvm::any_of(passes.getPasses(),
                      [](const Pass& pass) { return factsOf(pass).isOptional; });
}

std::vector<std::string> optionalPasses() {
  OpPassManager passes(ModuleOp::getOperationName());
  addStages(passes, Stage::Import, Stage::Plan);
  std::string text;
  llvm::raw_string_ostream stream(text);
  passes.printAsTextualPipeline(stream);
  // Names, between parentheses and options.
  SmallVector<StringRef> words;
  SplitString(text, words, "(){}, ");
  std::vector<std::string> names;
  for (StringRef word : words)
    if (!llvm::is_contained(names, word) && isOptionalPass(word))
      names.push_back(word.str());
  return names;
}

void skipPasses(MLIRContext& context, ArrayRef<std::string> names) {
  if (names.empty())
    return;
  // Each pass run is an action; not executing it skips the pass.
  context.registerActionHandler(
      [skipped = llvm::StringSet<>(llvm::from_range, names)](llvm::function_ref<void()> execute,
                                                             const tracing::Action& action) {
        const auto* pass = dyn_cast<PassExecutionAction>(&action);
        if (!pass || !skipped.contains(pass->getPass().getArgument()))
          execute();
      });
}

void registerStagePipelines() {
  for (Stage stage : allStages()) {
    if (stage == Stage::Import || stage == Stage::Codegen)
      continue;
    std::string name(stageName(stage));
    PassPipelineRegistration<>("titan-stage-" + name, "all passes of the stage '" + name + "'",
                               [stage](OpPassManager& passes) { addStage(passes, stage); });
  }
}

} // namespace titan
