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

bool isOnBuffers(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>())
    if (llvm::any_of(function.getArgumentTypes(), llvm::IsaPred<MemRefType>))
      return true;
  return false;
}

class ExecutionCheck : public PassInstrumentation {
public:
  explicit ExecutionCheck(std::string& mismatch) : mismatch_(mismatch) {}

  void runBeforePass(Pass* pass, Operation* op) override {
    auto module = dyn_cast<ModuleOp>(op);
    if (module && mismatch_.empty() && preservesMeaning(pass->getArgument()) &&
        !isOnBuffers(module))
      before_ = module.clone();
  }

  void runAfterPass(Pass* pass, Operation* op) override {
    OwningOpRef<ModuleOp> before = std::move(before_);
    auto module = dyn_cast<ModuleOp>(op);
    if (!before || !module || isOnBuffers(module))
      return;
    interpreter::EquivalenceOptions options;
    options.commonResultsOnly = true;
    // Constants in kernel bodies are f32, so f64 results differ by their rounding from *lower* on.
    options.tolerance = 1e-6;
    if (failed(interpreter::checkEquivalent(*before, module, options)))
      mismatch_ = pass->getArgument().str();
  }

private:
  std::string& mismatch_;
  OwningOpRef<ModuleOp> before_;
};

} // namespace

void addExecutionCheck(PassManager& passes, std::string& mismatch) {
  passes.addInstrumentation(std::make_unique<ExecutionCheck>(mismatch));
}

} // namespace titan
