#include "compiler/Pipeline/CheckByExecution.h"

#include "compiler/Interpreter/Equivalence.h"
#include "compiler/Interpreter/ShardedRun.h"
#include "compiler/Memory/BufferRun.h"
#include "dialects/PassFacts.h"
#include "dialects/Titan/Titan.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "runtime/program/Collective.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace titan {

void ExecutionReport::add(StringRef pass, bool changed, StringRef notCompared) {
  auto found = llvm::find_if(passes_, [&](const Entry& entry) { return entry.pass == pass; });
  if (found == passes_.end())
    found = passes_.insert(found, {.pass = pass.str(), .notCompared = {}});
  Entry& entry = *found;
  entry.changed |= changed;
  if (changed && entry.notCompared.empty())
    entry.notCompared = notCompared.str();
}

std::vector<std::string> ExecutionReport::notes() const {
  std::string compared, unchanged;
  std::vector<std::string> notes;
  for (const Entry& entry : passes_) {
    std::string& list = entry.changed ? compared : unchanged;
    list += (list.empty() ? "" : ", ") + entry.pass;
  }
  if (!compared.empty())
    notes.push_back("checked by execution: " + compared);
  if (!unchanged.empty())
    notes.push_back("changed nothing: " + unchanged);
  for (const Entry& entry : passes_)
    if (!entry.notCompared.empty())
      notes.push_back(entry.pass + ": " + entry.notCompared);
  return notes;
}

namespace {

/// Larger meshes are not run: each rank takes as long as the whole job.
constexpr int64_t mostSimulatedRanks = 8;
constexpr StringLiteral tooManyRanks = "more than 8 ranks are not simulated";

/// A pass that changes what the module says, and what of it stays comparable.
struct Exception {
  StringRef pass, notCompared;
  StringRef omitted = {};      ///< a function that is not compared
  bool omitsRandom = false;    ///< functions that drew random numbers are not compared
  bool withoutRandom = false;  ///< both run with nothing dropped
  bool modelIsPredict = false; ///< @model before is @predict afterwards
  bool newResults = false;     ///< some are new, all others are compared
  bool newFunctions = false;   ///< likewise
};

const Exception* exceptionOf(StringRef pass) {
  static const Exception exceptions[] = {
      {.pass = "titan-import-raise-dropout",
       .notCompared = "what is dropped is decided otherwise: a model that drew random numbers "
                      "was not compared",
       .omitsRandom = true},
      {.pass = "titan-differentiate-insert-loss",
       .notCompared = "@step and @eval are new; @predict was compared with the model, in "
                      "evaluation",
       .modelIsPredict = true},
      {.pass = "titan-differentiate-build-gradients",
       .notCompared = "the gradients of @step are new; its other results were compared",
       .newResults = true},
      {.pass = "titan-optimize-insert-update",
       .notCompared = "the results of @step become those of the update; @eval and @predict were "
                      "compared",
       .omitted = ir::function::step},
      {.pass = "titan-optimize-average-parameters",
       .notCompared = "the averages are new; the rest was compared",
       .newResults = true,
       .newFunctions = true},
      {.pass = "titan-shard-seed-placements",
       .notCompared = "the metric that stops all ranks is new; the rest was compared",
       .newResults = true},
      {.pass = "titan-accumulate-place-random",
       .notCompared = "what is dropped changes; the rest was compared, without dropout",
       .withoutRandom = true}};
  const auto* found = llvm::find_if(exceptions, [&](auto& one) { return one.pass == pass; });
  return found == std::end(exceptions) ? nullptr : found;
}

bool isOnBuffers(func::FuncOp function) {
  return llvm::any_of(function.getArgumentTypes(), llvm::IsaPred<MemRefType>);
}

int64_t countLosses(ModuleOp module) {
  int64_t count = 0;
  module.walk([&](ir::CrossEntropyOp) { ++count; });
  return count;
}

/// A module with a copy of `function` alone, and what says which part of it a rank has: the mesh,
/// the recipe, the states.
OwningOpRef<ModuleOp> moduleOf(func::FuncOp function) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(function.getLoc());
  auto original = function->getParentOfType<ModuleOp>();
  (*module)->setAttrs(original->getAttrs());
  for (auto state : original.getOps<ir::StateOp>())
    module->push_back(state.clone());
  module->push_back(function.clone());
  return module;
}

func::FuncOp functionIn(ModuleOp module) { return *module.getOps<func::FuncOp>().begin(); }

/// Is a value of `after` rounded elsewhere than in `before`? Then results are compared in f64; all
/// other passes leave the same bits. Ranks add in another order than one loop.
FailureOr<bool> hasMovedRounding(const Pass& pass, ModuleOp before, ModuleOp after) {
  const PassFacts facts = factsOf(pass);
  FailureOr<bool> wasOfRank = interpreter::isOfOneRank(functionIn(before));
  FailureOr<bool> isOfRank = interpreter::isOfOneRank(functionIn(after));
  if (failed(wasOfRank) || failed(isOfRank))
    return failure();
  return facts.movesRounding || *wasOfRank != *isOfRank ||
         (facts.cutsLoss && countLosses(before) != countLosses(after));
}

/// Does the function of `module` run on so many ranks that it is not run here?
bool runsOnTooMany(ModuleOp module) {
  return rankCount(interpreter::meshAxesOf(module)) > mostSimulatedRanks &&
         interpreter::isOfOneRank(functionIn(module)).value_or(false);
}

class ExecutionCheck : public PassInstrumentation {
public:
  explicit ExecutionCheck(ExecutionReport& report) : report_(report) {}

  void runBeforePass(Pass* pass, Operation* op) override {
    if (isPipeline(pass) || !report_.mismatch.empty())
      return;
    fingerprint_.emplace(op);
    before_.clear();
    for (func::FuncOp function : functionsOf(op))
      if (!isOnBuffers(function))
        before_[function.getName()] = moduleOf(function);
  }

  void runAfterPass(Pass* pass, Operation* op) override {
    if (isPipeline(pass) || !report_.mismatch.empty())
      return;
    StringRef name = pass->getArgument();
    if (*fingerprint_ == OperationFingerPrint(op))
      return report_.add(name, /*changed=*/false);
    const Exception* exception = exceptionOf(name);
    StringRef notCompared = exception ? exception->notCompared : StringRef();
    ScopedDiagnosticHandler handler(
        op->getContext(), [&](Diagnostic& diagnostic) { report_.difference = diagnostic.str(); });
    LogicalResult same = checkFunctions(op, exception);
    for (func::FuncOp function : functionsOf(op)) {
      if (failed(same))
        break;
      if (isOnBuffers(function))
        same = checkBuffers(function, notCompared);
      else
        same = checkTensors(*pass, function, exception, notCompared);
    }
    if (failed(same)) {
      report_.mismatch = name.str();
      return;
    }
    report_.add(name, /*changed=*/true, notCompared);
  }

private:
  /// Passes over functions run inside of a pass over the module that has no name; they are checked
  /// one by one instead.
  static bool isPipeline(Pass* pass) { return pass->getArgument().empty(); }

  static SmallVector<func::FuncOp> functionsOf(Operation* op) {
    if (auto function = dyn_cast<func::FuncOp>(op))
      return {function};
    return llvm::to_vector(cast<ModuleOp>(op).getOps<func::FuncOp>());
  }

  /// A function that is gone, or new, was compared with nothing.
  LogicalResult checkFunctions(Operation* op, const Exception* exception) {
    if (exception && exception->modelIsPredict)
      return success();
    llvm::StringSet<> left;
    for (const auto& entry : before_)
      left.insert(entry.getKey());
    for (func::FuncOp function : functionsOf(op))
      if (!left.erase(function.getName()) && !isOnBuffers(function) &&
          !(exception && exception->newFunctions))
        return function.emitError() << "@" << function.getName() << " is new";
    if (!left.empty())
      return op->emitError() << "lost @" << left.begin()->getKey();
    return success();
  }

  LogicalResult checkTensors(const Pass& pass, func::FuncOp function, const Exception* exception,
                             StringRef& notCompared) {
    StringRef name = function.getName();
    if (exception && exception->omitted == name)
      return success();
    const bool isModel = exception && exception->modelIsPredict && name == ir::function::predict;
    auto found = before_.find(isModel ? StringRef(ir::function::model) : name);
    if (found == before_.end())
      return success();
    if (exception && exception->omitsRandom && !ir::randomOps(*found->second).empty())
      return success();
    OwningOpRef<ModuleOp> before = found->second->clone(), after = moduleOf(function);
    if (isModel)
      functionIn(*before).setName(name);
    if (isModel)
      functionIn(*before).walk([](Operation* op) { ir::replaceByEvaluation(op); });
    if (exception && exception->withoutRandom) {
      for (ModuleOp module : {*before, *after})
        for (ir::RandomOpInterface random : ir::randomOps(module))
          ir::replaceByDeterministic(random);
    }
    if (runsOnTooMany(*before) || runsOnTooMany(*after)) {
      notCompared = tooManyRanks;
      return success();
    }
    interpreter::EquivalenceOptions options;
    options.newResults = exception && exception->newResults;
    options.commonResultsOnly = exception && !exception->newResults;
    FailureOr<bool> movedRounding = hasMovedRounding(pass, *before, *after);
    if (failed(movedRounding))
      return failure();
    if (*movedRounding) {
      // Constants in kernel bodies are f32.
      options.tolerance = 1e-6;
    } else {
      options.engine = interpreter::Engine::F32;
      options.tolerance = 0;
    }
    return interpreter::checkEquivalent(*before, *after, options);
  }

  /// Against the function on tensors that it was before the first of the passes on buffers.
  LogicalResult checkBuffers(func::FuncOp function, StringRef& notCompared) {
    if (auto found = before_.find(function.getName()); found != before_.end())
      tensors_[function.getName()] = std::move(found->second);
    auto found = tensors_.find(function.getName());
    if (found == tensors_.end()) {
      notCompared = "the module was on buffers from the start";
      return success();
    }
    if (runsOnTooMany(*found->second)) {
      notCompared = tooManyRanks;
      return success();
    }
    return memory::checkEquivalent(functionIn(*found->second), function);
  }

  ExecutionReport& report_;
  std::optional<OperationFingerPrint> fingerprint_;
  llvm::StringMap<OwningOpRef<ModuleOp>> before_;  ///< functions on tensors, before the pass
  llvm::StringMap<OwningOpRef<ModuleOp>> tensors_; ///< of functions that are on buffers now
};

} // namespace

void addExecutionCheck(PassManager& passes, ExecutionReport& report) {
  passes.addInstrumentation(std::make_unique<ExecutionCheck>(report));
}

} // namespace titan
