#include "compiler/Pipeline/CheckByExecution.h"

#include "compiler/Interpreter/Equivalence.h"
#include "dialects/Kernel/Kernel.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassInstrumentation.h"

using namespace mlir;

namespace titan {

bool preservesMeaning(StringRef pass) {
  return !llvm::is_contained({"titan-differentiate-insert-loss", "titan-optimize-insert-update",
                              "titan-accumulate-place-random"},
                             pass);
}

namespace {

bool isOnBuffers(func::FuncOp function) {
  return llvm::any_of(function.getArgumentTypes(), llvm::IsaPred<MemRefType>);
}

bool isOnBuffers(ModuleOp module) {
  return llvm::any_of(module.getOps<func::FuncOp>(),
                      [](func::FuncOp function) { return isOnBuffers(function); });
}

class ExecutionCheck : public PassInstrumentation {
public:
  explicit ExecutionCheck(std::string& mismatch) : mismatch_(mismatch) {}

  void runBeforePass(Pass* pass, Operation* op) override {
    if (isPipeline(pass) || !mismatch_.empty() || !preservesMeaning(pass->getArgument()))
      return;
    if (auto module = dyn_cast<ModuleOp>(op); module && !isOnBuffers(module))
      before_ = module.clone();
    else if (auto function = dyn_cast<func::FuncOp>(op); function && !isOnBuffers(function))
      before_ = moduleOf(function);
  }

  void runAfterPass(Pass* pass, Operation* op) override {
    if (isPipeline(pass))
      return;
    OwningOpRef<ModuleOp> before = std::move(before_);
    if (!before)
      return;
    auto function = dyn_cast<func::FuncOp>(op);
    if (function ? isOnBuffers(function) : isOnBuffers(cast<ModuleOp>(op)))
      return;
    OwningOpRef<ModuleOp> after = function ? moduleOf(function) : cast<ModuleOp>(op).clone();
    interpreter::EquivalenceOptions options;
    options.commonResultsOnly = true;
    // Constants in kernel bodies are f32, so f64 results differ by their rounding from *lower* on.
    options.tolerance = 1e-6;
    // Folding rounds each result to its type: cosines of many radians are not those of f64.
    if (pass->getArgument() == "titan-import-fold-constants")
      options.engine = interpreter::Engine::F32;
    if (failed(interpreter::checkEquivalent(*before, *after, options)))
      mismatch_ = pass->getArgument().str();
  }

private:
  /// Passes over functions run inside of a pass over the module that has no name; they are checked
  /// one by one instead.
  static bool isPipeline(Pass* pass) { return pass->getArgument().empty(); }

  /// A module with a copy of `function` alone.
  static OwningOpRef<ModuleOp> moduleOf(func::FuncOp function) {
    OwningOpRef<ModuleOp> module = ModuleOp::create(function.getLoc());
    module->push_back(function.clone());
    return module;
  }

  std::string& mismatch_;
  OwningOpRef<ModuleOp> before_;
};

} // namespace

void addExecutionCheck(PassManager& passes, std::string& mismatch) {
  passes.addInstrumentation(std::make_unique<ExecutionCheck>(mismatch));
}

} // namespace titan
