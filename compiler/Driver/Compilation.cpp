#include "compiler/Driver/Compilation.h"

#include "compiler/Codegen/Targets.h"
#include "compiler/Driver/Output.h"
#include "compiler/Optimize/ParameterGroups.h"
#include "compiler/Pipeline/CheckByExecution.h"
#include "compiler/Pipeline/MeasurePlan.h"
#include "compiler/Pipeline/Pipeline.h"
#include "compiler/Shard/AutoSync.h"
#include "compiler/Support/RecipeAttribute.h"
#include "compiler/Support/Verification.h"
#include "dialects/Titan/Titan.h"
#include "frontend/nn/Builder.h"
#include "frontend/nn/Models.h"
#include "frontend/onnx/Import.h"
#include "frontend/raise/Passes.h"

#include "mlir/IR/Remarks.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/raw_ostream.h"

#include <filesystem>
#include <fstream>

using namespace mlir;

namespace titan {

namespace {

/// Does the verifier reject `op` with the words that were `reported`? A pass that refuses its input
/// reports something else, whatever it leaves behind.
bool isRejected(Operation* op, StringRef reported) {
  std::string first;
  ScopedDiagnosticHandler handler(op->getContext(), [&](Diagnostic& diagnostic) {
    if (first.empty())
      first = diagnostic.str();
    return success();
  });
  return failed(verify(op)) && reported.contains(first);
}

struct PassFailure {
  std::string pass;
  Operation* op;
};

struct FailureRecorder : PassInstrumentation {
  explicit FailureRecorder(std::vector<PassFailure>& failures) : failures(failures) {}
  void runAfterPassFailed(Pass* pass, Operation* op) override {
    failures.push_back({pass->getArgument().str(), op});
  }
  std::vector<PassFailure>& failures;
};

/// The one whose diagnostic is the first: functions that fail beside each other report in their
/// order, and what holds them fails after them.
const PassFailure& firstOf(const std::vector<PassFailure>& failures) {
  return *llvm::min_element(failures, [](const PassFailure& a, const PassFailure& b) {
    return a.op->getBlock() == b.op->getBlock() ? a.op->getBlock() && a.op->isBeforeInBlock(b.op)
                                                : b.op->isProperAncestor(a.op);
  });
}

/// Whose fault it is: a stage's own checks, or the verifier behind a pass, are our bug; any other
/// failing pass refuses the user's input.
ErrorCode codeOf(const PassFailure& failure, StringRef reported) {
  const StringRef pass = failure.pass;
  const bool isOurs =
      pass.contains("-verify") || pass == "titan-mark-stage" || isRejected(failure.op, reported);
  return isOurs ? ErrorCode::Internal : ErrorCode::BadInput;
}

} // namespace

Compilation::Compilation(const CompileOptions& options, const DialectRegistry& more)
    : options_(options), compiler_(more),
      name_(std::filesystem::path(options.model).stem().string()) {
  // The check executes all of the module behind each pass, so these run one by one. So do they for
  // remarks: those of functions beside each other come in an order of chance.
  compiler_.context().disableMultithreading(options.checkPasses || !options.remarks.empty());
  timing_.setEnabled(options.timing);
  timing_.setDisplayMode(DefaultTimingManager::DisplayMode::Tree);
  timingRoot_ = timing_.getRootScope();
}

Result<std::unique_ptr<Compilation>> Compilation::load(const CompileOptions& options,
                                                       const DialectRegistry& more) {
  std::unique_ptr<Compilation> compilation(new Compilation(options, more));
  TITAN_TRY(compilation->compiler_.disablePasses(options.disabledPasses));
  if (!options.remarks.empty())
    TITAN_TRY(compilation->compiler_.enableRemarks(options.remarks));
  std::string extension = std::filesystem::path(options.model).extension().string();
  if (nn::isModelRequest(options.model))
    TITAN_TRY(compilation->buildByName());
  else if (extension == ".onnx")
    TITAN_TRY(compilation->import());
  else if (extension == ".mlir")
    TITAN_TRY(compilation->parse());
  else
    return Error::usage(
        "{}: a model is an .onnx or an .mlir file, or one that Titan knows (nn:gpt)",
        options.model);
  TITAN_TRY(compilation->chooseTargets());
  TITAN_TRY(compilation->checkTarget());
  return compilation;
}

Result<std::unique_ptr<Compilation>> Compilation::build(const CompileOptions& options,
                                                        const nn::ModelFunction& build,
                                                        const Recipe& recipe) {
  std::unique_ptr<Compilation> compilation(new Compilation(options, DialectRegistry()));
  TITAN_TRY(validate(recipe));
  TITAN_TRY(compilation->buildModel(build, recipe));
  TITAN_TRY(compilation->chooseTargets());
  TITAN_TRY(compilation->checkTarget());
  return compilation;
}

Status Compilation::chooseTargets() {
  const bool areSeveral = options_.target.find(',') != std::string::npos;
  if ((*module_)->hasAttr(ir::tag::target)) {
    // A printed stage was made for the machine that it names.
    if (!options_.arch.empty())
      return Error::usage("{} carries the target it was printed for: --arch has no effect on it",
                          options_.model);
    if (areSeveral)
      return Error::usage("{} carries the target it was printed for: --target={} has no effect on "
                          "it",
                          options_.model, options_.target);
    return {};
  }
  std::vector<TargetInfo> targets =
      TITAN_TRY(codegen::resolveTargets(options_.target, options_.arch));
  const Stage last = options_.emit.value_or(stage_);
  if (targets.size() > 1 && std::max(stage_, last) > Stage::Shard)
    return Error::usage("stage {} is of one target, and --target={} has {}: give one of them",
                        stageName(std::max(stage_, last)), options_.target, targets.size());
  if (targets.size() > 1)
    targets_ = std::move(targets);
  else
    setTarget(*module_, targets.front());
  return {};
}

Status Compilation::enterTarget(size_t number) {
  if (targets_.empty())
    return {};
  if (!shardedForAll_) {
    TITAN_TRY(advance(Stage::Shard));
    shardedForAll_ = module_->clone();
  }
  module_ = shardedForAll_->clone();
  setTarget(*module_, targets_[number]);
  target_ = number;
  stage_ = Stage::Shard;
  return {};
}

std::string Compilation::fileName(Stage stage) const {
  return targets_.empty() || stage <= Stage::Shard ? name_ : name_ + "." + targets_[target_].kind;
}

/// The recipe as a job is compiled under it. The schedule's length is that of the run as compiled,
/// whatever the run's --steps says later.
static Recipe forRun(Recipe recipe) {
  if (recipe.schedule.steps == 0)
    recipe.schedule.steps = recipe.train.steps;
  return recipe;
}

Status Compilation::finishImport(const Recipe& recipe) {
  TITAN_TRY(checkMismatch());
  setRecipe(*module_, recipe);
  setStage(*module_, Stage::Import);
  for (const std::string& glob : unmatchedNoDecay(recipe.optimizer, *module_))
    notes_.push_back(fmt::format("optimizer.no_decay: '{}' matches no parameter", glob));
  return options_.emit == Stage::Import ? verifyBehind(Stage::Import) : Status();
}

Status Compilation::import() {
  TimingScope scope = timingRoot_.nest("import");
  const Recipe recipe = forRun(TITAN_TRY(readRecipe(options_)));
  frontend::ImportOptions import;
  import.weightsDirectory = options_.weightsDirectory;
  import.namesFile = options_.names;
  import.strictNames = options_.strictNames;
  import.instrument = checksOfPasses();
  frontend::ImportReport report;
  module_ =
      TITAN_TRY(frontend::importOnnx(compiler_.context(), options_.model, recipe, import, report));
  notes_ = std::move(report.notes);
  return finishImport(recipe);
}

Status Compilation::buildByName() {
  const nn::ModelRequest request = TITAN_TRY(nn::parseModelRequest(options_.model));
  TITAN_TRY(buildModel(request.builder(), TITAN_TRY(readRecipe(options_))));
  name_ = request.model->name;
  return {};
}

Status Compilation::buildModel(const nn::ModelFunction& build, const Recipe& recipe) {
  TimingScope scope = timingRoot_.nest("build");
  const Recipe used = forRun(recipe);
  module_ = TITAN_TRY(
      nn::buildModule(compiler_.context(), options_.model, used, build, checksOfPasses()));
  return finishImport(used);
}

/// For the passes that end an import.
std::function<void(PassManager&)> Compilation::checksOfPasses() {
  return [this](PassManager& passes) {
    passes.enableVerifier(verifiesEach());
    if (options_.checkPasses)
      addExecutionCheck(passes, checked_);
  };
}

/// What --emit=codegen prints begins with the program of a job, and is no MLIR.
static bool isPrintedCode(const std::string& path) {
  std::string word;
  std::ifstream(path) >> word;
  return word == "program";
}

Status Compilation::parse() {
  TimingScope scope = timingRoot_.nest("parse");
  if (!std::filesystem::exists(options_.model))
    return Error::badInput("{}: no such file", options_.model);
  if (isPrintedCode(options_.model))
    return Error::badInput("{} was printed by --emit={}, from which nothing goes on: a compilation "
                           "goes on from what --emit prints of a stage from {} to {}",
                           options_.model, stageName(Stage::Codegen), stageName(Stage::Import),
                           stageName(Stage::Plan));
  module_ = parseSourceFile<ModuleOp>(options_.model, &compiler_.context());
  if (!module_)
    return compiler_.takeError(ErrorCode::BadInput);
  FailureOr<Stage> stage = getStage(*module_);
  if (failed(stage))
    return compiler_.takeError(ErrorCode::BadInput);
  stage_ = *stage;
  bool carriesRecipe = (*module_)->hasAttr(ir::tag::recipe);
  if (carriesRecipe && (!options_.recipe.empty() || !options_.set.empty()))
    return Error::usage(
        "{} carries the recipe it was printed with: --recipe and --set have no effect on it",
        options_.model);
  if (!carriesRecipe)
    setRecipe(*module_, TITAN_TRY(readRecipe(options_)));
  if (failed(getRecipe(*module_)))
    return compiler_.takeError(ErrorCode::BadInput);
  return checkStage();
}

/// Can a job for the target follow the recipe?
Status Compilation::checkTarget() {
  for (const TargetInfo& target : targets_)
    TITAN_TRY(checkRecipeFor(target.kind));
  if (!targets_.empty())
    return {};
  FailureOr<TargetInfo> target = getTarget(*module_);
  if (failed(target))
    return compiler_.takeError(ErrorCode::BadInput);
  return checkRecipeFor(target->kind);
}

Status Compilation::checkRecipeFor(StringRef kind) {
  FailureOr<Recipe> recipe = getRecipe(*module_);
  if (failed(recipe))
    return compiler_.takeError(ErrorCode::BadInput);
  TITAN_TRY(codegen::checkRecipe(std::string_view(kind), *recipe));
  llvm::append_range(notes_, TITAN_TRY(codegen::ignoredKeys(std::string_view(kind), *recipe)));
  return {};
}

/// Does the module, which a user may have edited, keep the promises of the stage it says it is at?
Status Compilation::checkStage() {
  PassManager passes(&compiler_.context());
  if (stage_ == Stage::Import)
    passes.addPass(frontend::createVerifyImport());
  addStageChecks(passes, stage_);
  if (failed(passes.run(*module_)))
    return compiler_.takeError(ErrorCode::BadInput)
        .withContext("not a module of stage " + std::string(stageName(stage_)));
  return {};
}

Status Compilation::advance(Stage target) {
  if (target < stage_)
    return Error::usage("{} is already at stage {}, which comes after {}", options_.model,
                        stageName(stage_), stageName(target));
  for (Stage stage : allStages())
    if (stage > stage_ && stage <= target) {
      TITAN_TRY(run(stage));
      if (stage == Stage::Schedule || stage == target)
        TITAN_TRY(verifyBehind(stage));
    }
  return {};
}

/// What no pass was verified for yet.
Status Compilation::verifyBehind(Stage stage) {
  if (verifiesEach() || succeeded(verify(*module_)))
    return {};
  return compiler_.takeError(ErrorCode::Internal)
      .withContext("behind stage " + std::string(stageName(stage)));
}

/// *schedule* refused memory.limit: sums over ranks that are taken more often may fit.
Status Compilation::syncWithinLimit(Error refusal) {
  auto smallest = (*module_)->getAttrOfType<IntegerAttr>(smallestPlanTag);
  if (!unsharded_ || !smallest)
    return refusal;
  module_ = std::move(unsharded_);
  FailureOr<Recipe> recipe = getRecipe(*module_);
  if (failed(recipe))
    return refusal;
  recipe->mesh.sync = *leanerSync(*recipe);
  setRecipe(*module_, *recipe);
  stage_ = Stage::Accumulate;
  TITAN_TRY(run(Stage::Shard));
  TITAN_TRY(run(Stage::Schedule));
  FailureOr<int64_t> bytes = measurePlan(*module_, options_.disabledPasses);
  if (failed(bytes))
    return compiler_.takeError(ErrorCode::Internal);
  remark::passed(module_->getLoc(), remark::RemarkOpts::name("auto-sync").category("shard"))
      << remark::add("mesh.sync = \"auto\" is immediate on shard: {0} bytes; summed once a step, "
                     "the smallest plan has {1}, memory.limit is {2}",
                     *bytes, smallest.getInt(), recipe->memory.limit);
  return {};
}

bool Compilation::verifiesEach() const { return verifiesEachPass || options_.checkPasses; }

Status Compilation::run(Stage stage) {
  if (stage == Stage::Shard && targets_.empty()) {
    FailureOr<Recipe> recipe = getRecipe(*module_);
    if (succeeded(recipe) && recipe->memory.limit > 0 && leanerSync(*recipe))
      unsharded_ = module_->clone();
  }
  std::string name(stageName(stage));
  TimingScope scope = timingRoot_.nest(name);
  PassManager passes(&compiler_.context());
  passes.enableTiming(scope);
  passes.enableVerifier(verifiesEach());
  std::vector<PassFailure> failures;
  passes.addInstrumentation(std::make_unique<FailureRecorder>(failures));
  if (options_.checkPasses)
    addExecutionCheck(passes, checked_);
  addStages(passes, stage_, stage, options_.disabledPasses);
  if (failed(passes.run(*module_))) {
    if (failures.empty())
      return compiler_.takeError(ErrorCode::Internal);
    const PassFailure& failure = firstOf(failures);
    const ErrorCode code = codeOf(failure, compiler_.firstError());
    Error error = compiler_.takeError(code).withContext(failure.pass);
    return stage == Stage::Schedule ? syncWithinLimit(std::move(error)) : Status(std::move(error));
  }
  TITAN_TRY(checkMismatch());
  stage_ = stage;
  if (!options_.saveTemps.empty()) {
    std::error_code failure;
    std::filesystem::create_directories(options_.saveTemps, failure);
    TITAN_TRY(
        writeOutput(options_.saveTemps + "/" + fileName(stage) + "." + name + ".mlir", print()));
  }
  return {};
}

/// Did --check-passes find a pass that changes what the module computes?
Status Compilation::checkMismatch() {
  if (checked_.mismatch.empty())
    return {};
  return Error::internal("{} changes what the module computes: {}", checked_.mismatch,
                         checked_.difference);
}

std::string Compilation::print() {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module_->print(stream);
  return text;
}

} // namespace titan
