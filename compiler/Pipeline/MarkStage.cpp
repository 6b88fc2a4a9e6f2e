#include "compiler/Pipeline/MarkStage.h"

#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace titan {

namespace {

struct MarkStage : PassWrapper<MarkStage, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MarkStage)

  MarkStage() = default;
  MarkStage(const MarkStage& other) : PassWrapper(other) {}
  explicit MarkStage(Stage stage) { name = std::string(stageName(stage)); }

  StringRef getName() const override { return "MarkStage"; }
  StringRef getArgument() const override { return "titan-mark-stage"; }
  StringRef getDescription() const override {
    return "record on the module which stage it has gone through";
  }

  void runOnOperation() override {
    std::optional<Stage> stage = parseStage(std::string_view(name.getValue()));
    if (!stage) {
      getOperation().emitError("titan-mark-stage: '") << name.getValue() << "' is no stage";
      return signalPassFailure();
    }
    FailureOr<Stage> before = getStage(getOperation());
    if (failed(before))
      return signalPassFailure();
    if (static_cast<int>(*before) + 1 != static_cast<int>(*stage)) {
      getOperation().emitError("the module is at stage '")
          << stageName(*before) << "' and cannot go through '" << name.getValue() << "'";
      return signalPassFailure();
    }
    setStage(getOperation(), *stage);
  }

  Option<std::string> name{*this, "stage", llvm::cl::desc("import, differentiate, ..., codegen")};
};

} // namespace

std::unique_ptr<Pass> createMarkStage(Stage stage) { return std::make_unique<MarkStage>(stage); }

void registerMarkStage() { PassRegistration<MarkStage>(); }

} // namespace titan
