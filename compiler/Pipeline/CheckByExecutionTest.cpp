#include "compiler/Pipeline/CheckByExecution.h"

#include "compiler/Pipeline/Register.h"
#include "dialects/Titan/Titan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace titan;

namespace {

/// Takes every relu away. On a module or on each function.
template <typename Op> struct ForgetRelu : PassWrapper<ForgetRelu<Op>, OperationPass<Op>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ForgetRelu)
  StringRef getArgument() const override { return "forget-relu"; }
  void runOnOperation() override {
    this->getOperation()->walk([](ir::ReluOp op) {
      op.getResult().replaceAllUsesWith(op.getOperand());
      op.erase();
    });
  }
};

template <typename Op> struct Nothing : PassWrapper<Nothing<Op>, OperationPass<Op>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Nothing)
  StringRef getArgument() const override { return "nothing"; }
  void runOnOperation() override {}
};

struct CheckByExecution : testing::Test {
  CheckByExecution() {
    DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.disableMultithreading();
    context.getDiagEngine().registerHandler([this](Diagnostic& diagnostic) {
      message = diagnostic.str();
      return success();
    });
    module = parseSourceString<ModuleOp>(R"mlir(
      func.func @step(%x: tensor<4x3xf32> {titan.input = "x"}) -> (tensor<4x3xf32> {titan.output = "y"}) {
        %0 = titan.relu %x : tensor<4x3xf32>
        return %0 : tensor<4x3xf32>
      }
      func.func @eval(%x: tensor<2xf32> {titan.input = "x"}) -> (tensor<2xf32> {titan.output = "y"}) {
        return %x : tensor<2xf32>
      })mlir",
                                         &context);
  }

  /// The pass that the check names, empty: none.
  std::string run(llvm::function_ref<void(PassManager&)> add) {
    std::string mismatch;
    PassManager passes(&context);
    addExecutionCheck(passes, mismatch);
    add(passes);
    EXPECT_TRUE(succeeded(passes.run(*module)));
    return mismatch;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::string message;
};

TEST_F(CheckByExecution, NamesTheModulePassThatChangesAResult) {
  EXPECT_EQ(run([](PassManager& passes) {
              passes.addPass(std::make_unique<Nothing<ModuleOp>>());
              passes.addPass(std::make_unique<ForgetRelu<ModuleOp>>());
            }),
            "forget-relu");
  EXPECT_NE(message.find("@step result 0"), std::string::npos) << message;
}

TEST_F(CheckByExecution, NamesTheFunctionPassThatChangesAResult) {
  EXPECT_EQ(run([](PassManager& passes) {
              passes.addNestedPass<func::FuncOp>(std::make_unique<Nothing<func::FuncOp>>());
              passes.addNestedPass<func::FuncOp>(std::make_unique<ForgetRelu<func::FuncOp>>());
              passes.addNestedPass<func::FuncOp>(std::make_unique<Nothing<func::FuncOp>>());
            }),
            "forget-relu");
}

TEST_F(CheckByExecution, AcceptsPassesThatChangeNoResult) {
  EXPECT_EQ(run([](PassManager& passes) {
              passes.addPass(std::make_unique<Nothing<ModuleOp>>());
              passes.addNestedPass<func::FuncOp>(std::make_unique<Nothing<func::FuncOp>>());
            }),
            "");
}

} // namespace
